//! Each sender as it sends: an event, the same again as this sender tries it again, and events
//! that share much with it and are others.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use onceward::provider::presets;
use tempfile::TempDir;
use tokio::join;

use super::samples::{Kind, Sample, samples};
use super::{with_many_routes, with_senders};
use crate::support::{Act, Answer, Event, Gate, Onceward, Receiver, Reply, event, signing};

/// Their certificates or keys are fetched; they have tests of their own.
const WITH_CERTIFICATES: [&str; 3] = ["paypal", "plaid", "sns"];
/// Nothing of them is remembered: their changes all look the same.
const NOT_REMEMBERED: [&str; 2] = ["mollie-classic", "sumup-checkout"];

/// What a sender sends: its first delivery, retries of it, and siblings.
struct Sender {
    name: &'static str,
    samples: Vec<Sample>,
}

impl Sender {
    /// Whether its requests are verified: those of some samples have no signature that fits.
    fn verifies(&self) -> bool {
        self.samples.iter().all(|sample| sample.verify)
    }

    fn of(&self, kind: Kind) -> impl Iterator<Item = Event> {
        self.samples.iter().filter(move |sample| sample.kind == kind).map(published)
    }

    /// A route of it. The times that its samples were signed at have passed.
    fn route(&self, receiver: &Receiver, directory: &TempDir) -> String {
        let Self { name, samples } = self;
        let path = published(&samples[0]).path.split('?').next().unwrap().to_owned();
        let mut route = format!("[routes.{name}]\npath = \"{path}\"\n");
        writeln!(route, "upstream = \"{}\"\nprovider = \"{name}\"", receiver.url()).unwrap();
        if !self.verifies() {
            return route + "verify = false\n";
        }
        let secrets = samples.iter().flat_map(|sample| &sample.secrets);
        let secrets: std::collections::BTreeSet<&String> = secrets.collect();
        let mut files = Vec::new();
        for (number, secret) in secrets.into_iter().enumerate() {
            let file = directory.path().join(format!("{name}-{number}"));
            std::fs::write(&file, secret).unwrap();
            files.push(format!("{{ file = \"{}\" }}", file.display()));
        }
        if !files.is_empty() {
            writeln!(route, "secrets = [{}]", files.join(", ")).unwrap();
            route += "tolerance = \"3650d\"\n";
        }
        route
    }
}

/// The senders whose requests can be verified here.
fn senders() -> Vec<Sender> {
    let mut by_name: BTreeMap<String, Vec<Sample>> = BTreeMap::new();
    for sample in samples() {
        by_name.entry(sample.provider.clone()).or_default().push(sample);
    }
    let senders = presets().iter().filter(|preset| !WITH_CERTIFICATES.contains(&preset.name));
    senders
        .map(|preset| Sender { name: preset.name, samples: by_name.remove(preset.name).unwrap() })
        .map(|mut sender| {
            let wanted = [Kind::First, Kind::Retry, Kind::Sibling];
            sender.samples.retain(|sample| wanted.contains(&sample.kind));
            sender
        })
        .collect()
}

/// The request of a sample, byte for byte.
fn published(sample: &Sample) -> Event {
    let request = sample.request();
    let end = request.windows(4).position(|bytes| bytes == b"\r\n\r\n").unwrap();
    let head = std::str::from_utf8(&request[..end]).unwrap();
    let mut lines = head.split("\r\n");
    let target = lines.next().unwrap().split(' ').nth(1).unwrap();
    let event = Event::bytes(&request[end + 4..]).to(target);
    let lines = lines.map(|line| line.split_once(':').unwrap());
    // Those of the connection are written by whoever sends it.
    let own = |name: &str| !["host", "content-length", "connection"].contains(&name);
    lines
        .filter(|(name, _)| own(&name.to_ascii_lowercase()))
        .fold(event, |event, (name, value)| event.header(name, value.trim()))
}

/// A request, signed now.
fn sent(provider: &str, text: &str) -> Event {
    let event = Event::written(text).to(&format!("/{provider}"));
    signing::signed(provider, event, signing::now())
}

async fn in_front_of(receiver: &Receiver, senders: &[Sender]) -> (Onceward, TempDir) {
    let directory = TempDir::new().unwrap();
    let routes: String = senders.iter().map(|it| it.route(receiver, &directory)).collect();
    (with_many_routes(receiver, &routes).await, directory)
}

/// What came of it; a test says more than that it was not as expected.
#[track_caller]
fn is(reply: &Reply, disposition: &str, provider: &str, what: &str) {
    assert_eq!(reply.disposition(), disposition, "{provider}, {what}: {}", reply.text());
    assert_eq!(reply.status, 200, "{provider}, {what}: {}", reply.text());
}

#[tokio::test]
async fn every_sender_is_known_from_its_retry_and_from_a_sibling() {
    let receiver = Receiver::that_answers(200, "ok").await;
    let senders = senders();
    let (onceward, _secrets) = in_front_of(&receiver, &senders).await;
    for sender in &senders {
        let name = sender.name;
        let before = receiver.count();
        let first = sender.of(Kind::First).next().unwrap();
        is(&onceward.sends(first.clone()).await, "executed", name, "the event");
        let seen = receiver.seen().pop().unwrap();
        assert_eq!(seen.body, first.body, "{name}");
        let signs = presets().iter().any(|preset| preset.name == name && preset.signs());
        let verified = (signs && sender.verifies()).then_some(name);
        assert_eq!(seen.header("onceward-verified"), verified, "{name}");
        let again = if NOT_REMEMBERED.contains(&name) { "executed" } else { "replayed" };
        let mut attempts = 1;
        for retry in sender.of(Kind::Retry) {
            is(&onceward.sends(retry).await, again, name, "its retry");
            attempts += usize::from(again == "executed");
        }
        for sibling in sender.of(Kind::Sibling) {
            is(&onceward.sends(sibling.clone()).await, "executed", name, "a sibling");
            is(&onceward.sends(sibling).await, again, name, "a sibling again");
            attempts += 1 + usize::from(again == "executed");
        }
        assert_eq!(receiver.count(), before + attempts, "{name}");
    }
}

/// What has failed is free: no sender has to say that it means a new attempt.
#[tokio::test]
async fn every_sender_has_an_event_forwarded_again_that_failed() {
    let receiver = Receiver::that(|seen, _| -> Act {
        let is_first = seen.header("onceward-attempt") == Some("1");
        Answer::new(if is_first { 500 } else { 200 }, "").into()
    });
    let receiver = receiver.await;
    let senders = senders();
    let (onceward, _secrets) = in_front_of(&receiver, &senders).await;
    for sender in &senders {
        let before = receiver.count();
        let first = sender.of(Kind::First).next().unwrap();
        // Some take a 500 for final: they get another status in its place.
        let failed = onceward.sends(first.clone()).await;
        assert_eq!(failed.disposition(), "executed", "{}", sender.name);
        let of_upstream = failed.header("onceward-upstream-status");
        assert_eq!(of_upstream.map_or(failed.status.to_string(), str::to_owned), "500");
        let again = onceward.sends(first).await;
        is(&again, "executed", sender.name, "its retry");
        let seen = receiver.seen().pop().unwrap();
        assert_eq!(seen.header("onceward-attempt"), Some("2"), "{}", sender.name);
        assert_eq!(receiver.count(), before + 2, "{}", sender.name);
    }
}

/// Every change of a payment has the same body. A change that comes during an attempt is sent again
/// by Mollie: the attempt may have read the payment before it changed.
#[tokio::test]
async fn a_sender_without_ids_shares_no_attempt_and_has_nothing_remembered() {
    let gate = Gate::default();
    let receiver = Receiver::behind(&gate, 200, "ok").await;
    let (onceward, _secrets) = with_senders(&receiver, &["mollie-classic"]).await;
    let change =
        || sent("mollie-classic", "Content-Type: application/x-www-form-urlencoded\n\nid=tr_1");
    let next = async {
        receiver.has_counted(1).await;
        let next = onceward.sends(change()).await;
        gate.opens();
        next
    };
    let (first, next) = join!(onceward.sends(change()), next);
    first.is_executed(200);
    next.is_in_flight(503);
    receiver.was_called(1);
    for later in 2..4 {
        onceward.sends(change()).await.is_executed(200);
        receiver.was_called(later);
    }
}

/// Without ids nobody could say later which change was meant: what is uncertain is held only for as
/// long as the upstream may be working on it.
#[tokio::test]
async fn a_sender_without_ids_has_an_uncertain_change_held_until_it_must_have_ended() {
    let receiver = Receiver::that(|_, copies| -> Act {
        if copies % 2 == 0 { Act::Close } else { Answer::new(200, "ok").into() }
    });
    let receiver = receiver.await;
    let upstream = receiver.url();
    let route = |name: &str, timeout: &str| {
        format!(
            "[routes.{name}]\npath = \"/{name}\"\nupstream = \"{upstream}\"\n\
             provider = \"mollie-classic\"\nattempt_timeout = \"{timeout}\"\n"
        )
    };
    let routes = route("long", "2m") + &route("short", "3s");
    let builder = Onceward::in_front_of(&receiver).routes(&routes);
    let onceward = builder.expects_log("nobody knows whether the operation was done").start().await;
    let change = |path: &str, id: &str| {
        let text = format!("Content-Type: application/x-www-form-urlencoded\n\nid={id}");
        Event::written(&text).to(path)
    };
    let first = onceward.sends(change("/long", "tr_1")).await;
    first.is_executed_as("upstream-broken", 502);
    onceward.sends(change("/long", "tr_1")).await.is_uncertain();
    receiver.was_called(1);

    let first = onceward.sends(change("/short", "tr_2")).await;
    first.is_executed_as("upstream-broken", 502);
    // It is told when to come back.
    let is_told = |copy: &Reply| copy.disposition() != "uncertain";
    onceward.sends_until(&change("/short", "tr_2"), is_told).await.is_executed(200);
    assert_eq!(receiver.seen().pop().unwrap().header("onceward-attempt"), Some("2"));
    receiver.was_called(3);
}

/// The states of one transaction.
#[tokio::test]
async fn one_transaction_has_an_event_for_each_of_its_states() {
    let receiver = Receiver::that_answers(200, "ok").await;
    let route = "key.event = { id = \"form:txn_id\", type = \"form:payment_status\" }\n";
    let onceward = Onceward::in_front_of(&receiver).routes(route).start().await;
    let sends = async |status: &str| {
        let body = format!("txn_id=T1&payment_status={status}&mc_gross=1.00");
        let form = "application/x-www-form-urlencoded";
        onceward.sends(Event::bytes(body).header("content-type", form)).await
    };
    sends("Completed").await.is_executed(200);
    sends("Pending").await.is_executed(200);
    sends("Completed").await.is_replayed(200);
    sends("Pending").await.is_replayed(200);
    receiver.was_called(2);
}

/// A person who has a delivery sent again means the one that failed, or says what else.
#[tokio::test]
async fn a_redelivery_is_forwarded_if_the_first_one_failed_and_else_replayed() {
    let receiver = Receiver::that(|seen, copies| -> Act {
        let fails = seen.header("x-github-delivery") == Some("G2") && copies == 0;
        Answer::new(if fails { 500 } else { 200 }, "").into()
    });
    let receiver = receiver.await;
    let (onceward, _secrets) = with_senders(&receiver, &["github"]).await;
    let delivery = |id: &str, body: &str| {
        let text = format!(
            "X-GitHub-Delivery: {id}\nX-GitHub-Hook-ID: 11\nX-GitHub-Event: push\n\n{body}"
        );
        sent("github", &text)
    };
    onceward.sends(delivery("G2", "{\"after\":2}")).await.is_executed(500);
    onceward.sends(delivery("G2", "{\"after\":2}")).await.is_executed(200);
    onceward.sends(delivery("G2", "{\"after\":2}")).await.is_replayed(200);
    onceward.sends(delivery("G3", "{\"after\":3}")).await.is_executed(200);
    let replay = onceward.sends(delivery("G3", "{\"after\":3}")).await;
    replay.is_replayed(200);
    receiver.was_called(3);
    // A person who means a success all the same says so.
    let admin = format!("http://{}", onceward.admin);
    let mut command = tokio::process::Command::new(env!("CARGO_BIN_EXE_onceward"));
    command.args(["operations", "forget", &replay.operation(), "--yes", "--reason", "run again"]);
    let output = command.args(["--admin", &admin]).output().await.unwrap();
    assert!(output.status.success(), "{output:?}");
    onceward.sends(delivery("G3", "{\"after\":3}")).await.is_executed(200);
    receiver.was_called(4);
}

/// An array has no id of its own.
#[tokio::test]
async fn a_pointer_to_a_member_finds_nothing_in_an_array() {
    let receiver = Receiver::that_answers(200, "ok").await;
    let onceward = Onceward::in_front_of(&receiver).start().await;
    let batch = Event::bytes("[{\"id\":\"evt_1\"},{\"id\":\"evt_2\"}]");
    onceward.sends(batch).await.is_refused(400, "key-missing");
    onceward.sends(event("evt_1")).await.is_executed(200);
    receiver.was_called(1);
}

/// A header by which other hops would take a request for one that they may send again comes
/// from the sender or from the route's own word, never from the proxy by itself.
#[tokio::test]
async fn no_key_header_is_added_unless_the_route_says_so() {
    let receiver = Receiver::that_answers(200, "ok").await;
    let upstream = receiver.url();
    let told = format!(
        "[routes.told]\npath = \"/told\"\nupstream = \"{upstream}\"\nprovider = \"stripe\"\n\
         verify = false\nforward_key = \"idempotency-key\"\n"
    );
    let route = "provider = \"stripe\"\nverify = false\n";
    let onceward = Onceward::in_front_of(&receiver).routes(route).routes(&told).start().await;
    onceward.sends(event("evt_1")).await.is_executed(200);
    let told = onceward.sends(event("evt_1").to("/told")).await;
    told.is_executed(200);
    let seen = receiver.seen();
    for name in ["idempotency-key", "x-idempotency-key"] {
        assert_eq!(seen[0].header(name), None);
    }
    assert_eq!(seen[1].header("idempotency-key"), Some(&*told.operation()));
    receiver.was_called(2);
}
