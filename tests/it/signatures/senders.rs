//! Each sender as it sends: an event, the same again as this sender tries it again, and events
//! that share much with it and are others.

use tokio::join;

use super::samples::{SAMPLES, Sample};
use super::with_senders;
use crate::support::{Act, Answer, Event, Gate, Onceward, Receiver, Reply, event, signing};

/// They sign with certificates; they have tests of their own.
const WITH_CERTIFICATES: [&str; 2] = ["paypal", "sns"];
/// Nothing of it is remembered: its changes all look the same.
const NOT_REMEMBERED: &str = "mollie-classic";

fn samples() -> impl Iterator<Item = &'static Sample> {
    SAMPLES.iter().filter(|sample| !WITH_CERTIFICATES.contains(&sample.provider))
}

/// A request of a sample, signed now.
fn sent(provider: &str, text: &str) -> Event {
    let event = Event::written(text).to(&format!("/{provider}"));
    // The signature of a sample is only a place for one.
    let event = if provider == "flutterwave" { event.without("verif-hash") } else { event };
    signing::signed(provider, event, signing::now())
}

/// What came of it; a test says more than that it was not as expected.
#[track_caller]
fn is(reply: &Reply, disposition: &str, provider: &str, what: &str) {
    assert_eq!(reply.disposition(), disposition, "{provider}, {what}: {}", reply.text());
    assert_eq!(reply.status, 200, "{provider}, {what}: {}", reply.text());
}

/// C14, C17, C20, C22, C23, C31
#[tokio::test]
async fn every_sender_is_known_from_its_retry_and_from_a_sibling() {
    assert_eq!(samples().count(), 45);
    let receiver = Receiver::that_answers(200, "ok").await;
    let names: Vec<&str> = samples().map(|sample| sample.provider).collect();
    let (onceward, _secrets) = with_senders(&receiver, &names).await;
    for Sample { provider, event, retry, siblings } in samples() {
        let sends = async |text| onceward.sends(sent(provider, text)).await;
        let before = receiver.count();
        is(&sends(event).await, "executed", provider, "the event");
        let seen = receiver.seen().pop().unwrap();
        let verified = signing::secret(provider).map(|_| *provider);
        assert_eq!(seen.header("onceward-verified"), verified, "{provider}");
        let again = if *provider == NOT_REMEMBERED { "executed" } else { "replayed" };
        is(&sends(retry).await, again, provider, "its retry");
        for sibling in *siblings {
            is(&sends(sibling).await, "executed", provider, sibling);
            is(&sends(sibling).await, again, provider, sibling);
        }
        is(&sends(retry).await, again, provider, "its last retry");
        let operations = 1 + siblings.len();
        let attempts = if again == "executed" { 2 * operations + 1 } else { operations };
        assert_eq!(receiver.count(), before + attempts, "{provider}");
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
    let names: Vec<&str> = samples().map(|sample| sample.provider).collect();
    let (onceward, _secrets) = with_senders(&receiver, &names).await;
    for Sample { provider, event, .. } in samples() {
        let before = receiver.count();
        let first = sent(provider, event);
        onceward.sends(first.clone()).await.is_executed(500);
        let again = onceward.sends(first).await;
        is(&again, "executed", provider, "its retry");
        let seen = receiver.seen().pop().unwrap();
        assert_eq!(seen.header("onceward-attempt"), Some("2"), "{provider}");
        assert_eq!(receiver.count(), before + 2, "{provider}");
    }
}

/// C15: every change of a payment has the same body, so each of them is forwarded; only copies at
/// the same moment share one attempt.
#[tokio::test]
async fn a_sender_without_ids_shares_an_attempt_and_has_nothing_remembered() {
    let gate = Gate::default();
    let receiver = Receiver::behind(&gate, 200, "ok").await;
    let (onceward, _secrets) = with_senders(&receiver, &[NOT_REMEMBERED]).await;
    let change =
        || sent(NOT_REMEMBERED, "Content-Type: application/x-www-form-urlencoded\n\nid=tr_1");
    let copies = async {
        receiver.has_counted(1).await;
        let copy = change();
        let meanwhile = onceward.sends_copies(&copy, 3);
        let opens = async {
            let claims = super::CLAIMS;
            onceward.comes_to_count(claims, 4.0).await;
            gate.opens();
        };
        join!(meanwhile, opens).0
    };
    let (first, copies) = join!(onceward.sends(change()), copies);
    first.is_executed(200);
    for copy in copies {
        copy.is_replayed(200);
    }
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
             provider = \"{NOT_REMEMBERED}\"\nattempt_timeout = \"{timeout}\"\n"
        )
    };
    let routes = route("long", "2m") + &route("short", "50ms");
    let builder = Onceward::in_front_of(&receiver).routes(&routes);
    let onceward = builder.expects_log("nobody knows whether it was done").start().await;
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
    let mut copy = onceward.sends(change("/short", "tr_2")).await;
    while copy.disposition() == "uncertain" {
        copy = onceward.sends(change("/short", "tr_2")).await;
    }
    copy.is_executed(200);
    assert_eq!(receiver.seen().pop().unwrap().header("onceward-attempt"), Some("2"));
    receiver.was_called(3);
}

/// C13: the states of one transaction.
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

/// C18: a person who has a delivery sent again means the one that failed, or says what else.
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

/// C23: an array has no id of its own.
#[tokio::test]
async fn a_pointer_to_a_member_finds_nothing_in_an_array() {
    let receiver = Receiver::that_answers(200, "ok").await;
    let onceward = Onceward::in_front_of(&receiver).start().await;
    let batch = Event::bytes("[{\"id\":\"evt_1\"},{\"id\":\"evt_2\"}]");
    onceward.sends(batch).await.is_refused(400, "key-missing");
    onceward.sends(event("evt_1")).await.is_executed(200);
    receiver.was_called(1);
}

/// C40: a header by which other hops would take a request for one that they may send again comes
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
    onceward.sends(event("evt_1").to("/told")).await.is_executed(200);
    let seen = receiver.seen();
    for name in ["idempotency-key", "x-idempotency-key"] {
        assert_eq!(seen[0].header(name), None);
    }
    assert_eq!(seen[1].header("idempotency-key"), Some("evt_1"));
    receiver.was_called(2);
}
