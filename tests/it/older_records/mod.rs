//! Records that an older version has written: the present one lists them, answers copies from them,
//! holds what is held, and makes the next attempts. They stand in `tests/fixtures/records`, whose
//! README says where they come from.

mod making;
mod places;

pub use places::{restore_embedded, time};

use std::collections::BTreeMap;

use reqwest::header::CONTENT_TYPE;
use serde_json::{Value, json};

use crate::support::{Act, Answer, Builder, Event, Onceward, Receiver, Reply, Seen, signing};

/// What operators say in these tests.
const WHY: &str = "seen in the ledger";
const SECRET: &str = "of these tests";
const ABANDONED: &str = "operations of an earlier process are uncertain now";
const HELD: &str = "nobody knows whether the operation was done";

/// The upstreams of the routes.
struct Upstreams {
    /// That of all routes but `steps`, and of its step `charge`. It also answers look-ups, by GET.
    main: Receiver,
    /// That of the step `mail`.
    mail: Receiver,
}

impl Upstreams {
    /// All answer as `act` says.
    async fn that(act: impl Fn(&Seen, usize) -> Act + Clone + Send + Sync + 'static) -> Self {
        Self { main: Receiver::that(act.clone()).await, mail: Receiver::that(act).await }
    }

    /// A proxy with a route for each kind of record. `mode`: that of the route `observed`.
    fn proxy(&self, mode: &str) -> Builder {
        let main = self.main.url();
        let routes = format!(
            "[routes.batch]\npath = \"/batch\"\nupstream = \"{main}\"\n\
             key.event = {{ id = \"json:/*/id\", type = \"json:/*/event\" }}\n\
             [routes.observed]\npath = \"/observed\"\nupstream = \"{main}\"\nmode = \"{mode}\"\n\
             provider = \"github\"\nsecrets = [{{ env = \"THE_SECRET\" }}]\n\
             [routes.asking]\npath = \"/asking\"\nupstream = \"{main}\"\n\
             when_uncertain = \"lookup\"\nlookup.url = \"{main}/found/{{key}}\"\n\
             [routes.steps]\npath = \"/steps\"\n\
             [[routes.steps.steps]]\nname = \"charge\"\nupstream = \"{main}\"\n\
             [[routes.steps.steps]]\nname = \"mail\"\nupstream = \"{}\"\n",
            self.mail.url(),
        );
        Onceward::in_front_of(&self.main)
            .defaults("replay.body_bytes_max = \"1KiB\"")
            .routes(&routes)
            .variable("THE_SECRET", SECRET)
            .expects_log(ABANDONED)
            .expects_log(HELD)
            .expects_log("the store is not safe")
    }
}

/// A request whose key is in a header. `plan`: what the older version's upstreams did with it.
fn keyed(key: &str, plan: &str) -> Event {
    Event::bytes(format!("{{\"of\":\"{key}\"}}")).keyed(key).header("x-plan", plan)
}

/// An event whose key is in its body.
fn by_event() -> Event {
    Event::json(&json!({ "id": "evt_1", "type": "payment.paid" })).header("x-plan", "done")
}

fn batch() -> Event {
    let items = json!([{ "id": "a", "event": "open" }, { "id": "b", "event": "click" }]);
    Event::json(&items).to("/batch").header("x-plan", "done")
}

fn observed() -> Event {
    let event = Event::bytes("{\"of\":\"observed\"}").to("/observed").header("x-plan", "done");
    let signature = signing::github(SECRET, &event.body);
    let event = event.header("x-github-delivery", "d1").header("x-github-hook-id", "11");
    event.header("x-github-event", "push").header("x-hub-signature-256", &signature)
}

fn asking() -> Event {
    keyed("asking", "vanishes").to("/asking")
}

fn to_steps(key: &str, plan: &str) -> Event {
    keyed(key, plan).to("/steps")
}

async fn resolves(onceward: &Onceward, id: &str, decision: Value) {
    let url = format!("http://{}/api/operations/{id}/resolve", onceward.admin);
    let client = crate::support::client();
    let request = client.post(url).header(CONTENT_TYPE, "application/json");
    let reply = Reply::of(request.body(decision.to_string()).send().await.unwrap()).await;
    assert_eq!(reply.status, 200, "{reply:?}");
}

/// Route, state and number of attempts of each operation, by the last part of its key.
async fn listed(onceward: &Onceward) -> BTreeMap<String, (String, String, u64)> {
    let page = onceward.get_admin("/api/operations?limit=100").await;
    let page: Value = serde_json::from_slice(&page.body).unwrap();
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let one = |found: &Value| {
        let key = text(found["key"]["parts"].as_array().unwrap().last().unwrap());
        let attempts = found["attempts_total"].as_u64().unwrap();
        (key, (text(&found["route"]), text(&found["state"]), attempts))
    };
    page["operations"].as_array().unwrap().iter().map(one).collect()
}

/// All that the older version has recorded: key, route, state, attempts.
const RECORDED: [(&str, &str, &str, u64); 15] = [
    ("succeeded", "hooks", "succeeded", 1),
    ("without-body", "hooks", "succeeded", 1),
    ("tried-again", "hooks", "succeeded", 2),
    ("failed", "hooks", "failed", 1),
    ("uncertain", "hooks", "uncertain", 1),
    ("in-flight", "hooks", "uncertain", 1),
    ("forgotten", "hooks", "forgotten", 1),
    ("resolved-succeeded", "hooks", "succeeded", 1),
    ("resolved-failed", "hooks", "failed", 1),
    ("payment.paid", "hooks", "succeeded", 1),
    ("asking", "asking", "uncertain", 1),
    ("push", "observed", "succeeded", 1),
    ("steps-done", "steps", "succeeded", 2),
    ("steps-failed", "steps", "failed", 2),
    ("steps-uncertain", "steps", "uncertain", 2),
];

async fn are_listed(onceward: &Onceward) {
    let mut listed = listed(onceward).await;
    // The key of a batch is that of all its items.
    let batch = listed.iter().find(|(_, (route, ..))| route == "batch");
    let (key, batch) = batch.map(|(key, found)| (key.clone(), found.clone())).unwrap();
    assert_eq!(batch, ("batch".to_owned(), "succeeded".to_owned(), 1));
    listed.remove(&key);
    let recorded = RECORDED.map(|(key, route, state, attempts)| {
        (key.to_owned(), (route.to_owned(), state.to_owned(), attempts))
    });
    assert_eq!(listed, recorded.into());
}

async fn are_replayed(onceward: &Onceward) {
    let first = onceward.sends(keyed("succeeded", "done")).await;
    assert_eq!(first.is_replayed(201).text(), "done");
    assert_eq!(first.header("x-of"), Some("the older version"));
    let changed = Event { body: b"{}".to_vec(), ..keyed("succeeded", "done") };
    onceward.sends(changed).await.is_mismatched();
    let long = onceward.sends(keyed("without-body", "long")).await;
    assert_eq!(long.is_replayed(200).header("onceward-body"), Some("omitted"));
    let second = onceward.sends(keyed("tried-again", "fails-once")).await;
    assert_eq!(second.is_replayed(201).text(), "done");
    let decided = onceward.sends(keyed("resolved-succeeded", "vanishes")).await;
    assert_eq!(decided.is_replayed(202).text(), "{\"ok\":1}");
    let decision = &onceward.operation(&decided.operation()).await.unwrap()["decisions"][1];
    assert_eq!((&decision["reason"], &decision["reference"]), (&json!(WHY), &json!("payment 7")));
    for copy in [by_event(), batch(), observed(), to_steps("steps-done", "done")] {
        assert_eq!(onceward.sends(copy).await.is_replayed(201).text(), "done");
    }
}

/// What has failed, was forgotten, or was resolved as failed is free: these are second attempts.
async fn are_free(onceward: &Onceward, upstreams: &Upstreams) {
    for (key, plan) in [("failed", "fails"), ("forgotten", "done"), ("resolved-failed", "vanishes")]
    {
        onceward.sends(keyed(key, plan)).await.is_executed(200);
        let seen = upstreams.main.seen().pop().unwrap();
        assert_eq!(seen.header("onceward-attempt"), Some("2"), "{key}");
        onceward.sends(keyed(key, plan)).await.is_replayed(200);
    }
    // Of the steps only the one runs again that has failed.
    let [charged, mailed] = [upstreams.main.count(), upstreams.mail.count()];
    onceward.sends(to_steps("steps-failed", "mail-fails")).await.is_executed(200);
    assert_eq!([upstreams.main.count(), upstreams.mail.count()], [charged, mailed + 1]);
}

/// What is uncertain is held until somebody decides.
async fn are_held(onceward: &Onceward, upstreams: &Upstreams) {
    let before = [upstreams.main.count(), upstreams.mail.count()];
    let held = onceward.sends(keyed("uncertain", "vanishes")).await.is_uncertain().operation();
    let left = onceward.sends(keyed("in-flight", "hangs")).await.is_uncertain().operation();
    let step = to_steps("steps-uncertain", "mail-vanishes");
    let of_steps = onceward.sends(step.clone()).await.is_uncertain().operation();
    assert_eq!([upstreams.main.count(), upstreams.mail.count()], before);

    let failed = json!({ "outcome": "failed", "reason": WHY, "attempt": 1 });
    resolves(onceward, &held, failed.clone()).await;
    onceward.sends(keyed("uncertain", "vanishes")).await.is_executed(200);
    let done = json!({ "outcome": "succeeded", "reason": WHY, "body": "decided" });
    resolves(onceward, &left, done).await;
    assert_eq!(
        onceward.sends(keyed("in-flight", "hangs")).await.is_replayed(200).text(),
        "decided"
    );
    resolves(onceward, &of_steps, failed).await;
    onceward.sends(step).await.is_executed(200);
    assert_eq!(upstreams.main.count(), before[0] + 1, "its first step had succeeded");
    assert_eq!(upstreams.mail.count(), before[1] + 1);
}

/// The upstream is asked about what is uncertain, and says that it was done.
async fn is_asked_about(onceward: &Onceward, upstreams: &Upstreams) {
    let before = upstreams.main.count();
    onceward.sends(asking()).await.is_replayed(200);
    assert_eq!(upstreams.main.count(), before + 1);
    assert_eq!(upstreams.main.seen().pop().unwrap().target, "/found/asking");
}

/// Everything that the present version makes of the records, and of what it has made of them.
async fn are_understood(
    builder: Builder,
    upstreams: &Upstreams,
    prepare: impl FnOnce(&std::path::Path),
) {
    let mut onceward = builder.start_on(prepare).await;
    onceward.becomes_ready().await;
    are_listed(&onceward).await;
    are_replayed(&onceward).await;
    are_held(&onceward, upstreams).await;
    are_free(&onceward, upstreams).await;
    is_asked_about(&onceward, upstreams).await;
    let before = listed(&onceward).await;
    onceward.is_killed().await;
    onceward.starts_again().await;
    onceward.becomes_ready().await;
    assert_eq!(listed(&onceward).await, before);
    are_replayed(&onceward).await;
}

async fn present() -> Upstreams {
    Upstreams::that(|_, _| Answer::new(200, "").into()).await
}

#[tokio::test]
async fn a_directory_of_an_older_version_is_understood() {
    let upstreams = present().await;
    let clock = places::clock();
    let mut builder = upstreams.proxy("enforce");
    for (name, path) in clock.wall_envs() {
        builder = builder.variable(name, path.to_str().unwrap());
    }
    are_understood(builder, &upstreams, places::restore_embedded).await;
}

#[tokio::test]
async fn records_of_an_older_version_in_redis_are_understood() {
    let upstreams = present().await;
    let server = places::restored_redis().await;
    let store = format!("[store.redis]\nurls = [\"{}\"]", server.url());
    are_understood(upstreams.proxy("enforce").store(&store), &upstreams, |_| {}).await;
}

#[tokio::test]
async fn records_of_an_older_version_in_postgres_are_understood() {
    let upstreams = present().await;
    let server = places::restored_postgres().await;
    let store = format!("[store.postgres]\nurl = \"{}\"", server.url());
    are_understood(upstreams.proxy("enforce").store(&store), &upstreams, |_| {}).await;
}
