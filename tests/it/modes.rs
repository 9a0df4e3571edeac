//! Trying it before it is enforced, and the rest of an app behind the same proxy.

use tokio::join;

use crate::support::{
    Act, Answer, Event, Gate, Onceward, Receiver, Reply, event, free_port, signing,
};

const SECRET: &str = "whsec_x";
const OBSERVES: &str = "mode = \"observe\"\nprovider = \"stripe\"\n\
    secrets = [{ env = \"THE_SECRET\" }]\n";

fn observed(disposition: &str) -> String {
    format!("onceward_observed_total{{route=\"hooks\",disposition=\"{disposition}\"}}")
}

fn signed(event: Event) -> Event {
    let signature = signing::stripe(SECRET, signing::now(), &event.body);
    event.header("stripe-signature", &signature)
}

async fn observes(receiver: &Receiver, routes: &str) -> Onceward {
    let builder = Onceward::in_front_of(receiver).variable("THE_SECRET", SECRET);
    builder.routes(routes).start().await
}

/// It was forwarded, and its answer says nothing of an operation.
#[track_caller]
fn passes(reply: &Reply, receiver: &Receiver, count: usize) {
    reply.is_passed(200);
    receiver.was_called(count);
}

#[tokio::test]
async fn a_route_that_observes_forwards_everything_and_counts_what_it_would_do() {
    let receiver = Receiver::that_answers(200, "ok").await;
    let onceward = observes(&receiver, OBSERVES).await;
    passes(&onceward.sends(signed(event("evt_1"))).await, &receiver, 1);
    assert_eq!(receiver.seen()[0].header("onceward-verified"), Some("stripe"));
    assert_eq!(onceward.metric(&observed("replayed")).await, 0.0);
    assert_eq!(onceward.metric(&observed("executed")).await, 1.0);
    passes(&onceward.sends(signed(event("evt_1"))).await, &receiver, 2);
    assert_eq!(onceward.metric(&observed("replayed")).await, 1.0);

    let forged = event("evt_2").header("stripe-signature", "t=1,v1=00");
    passes(&onceward.sends(forged.header("onceward-verified", "stripe")).await, &receiver, 3);
    assert_eq!(receiver.seen()[2].header("onceward-verified"), None);
    passes(&onceward.sends(event("evt_3")).await, &receiver, 4);
    let without_key = Event::bytes("not an event");
    passes(&onceward.sends(signed(without_key)).await, &receiver, 5);
    // Its signature is right all the same.
    assert_eq!(receiver.seen()[4].header("onceward-verified"), Some("stripe"));
    assert_eq!(onceward.metric(&observed("refused")).await, 3.0);
    onceward.logs("signature-missing").await;
    onceward.logs("key-missing").await;

    // A forged copy has taken nothing: this is the first of its event.
    passes(&onceward.sends(signed(event("evt_2"))).await, &receiver, 6);
    assert_eq!(onceward.metric(&observed("replayed")).await, 1.0);
    let passed = "onceward_requests_total{route=\"hooks\",disposition=\"passed\"}";
    assert_eq!(onceward.metric(passed).await, 6.0);
}

#[tokio::test]
async fn a_route_that_observes_does_not_hold_back_a_copy_of_what_is_in_flight() {
    let gate = Gate::default();
    let receiver = Receiver::behind(&gate, 200, "ok").await;
    let onceward = observes(&receiver, OBSERVES).await;
    let copy = async {
        receiver.has_counted(1).await;
        let opens = async {
            receiver.has_counted(2).await;
            gate.opens();
        };
        join!(onceward.sends(signed(event("evt_1"))), opens).0
    };
    let (first, copy) = join!(onceward.sends(signed(event("evt_1"))), copy);
    passes(&first, &receiver, 2);
    passes(&copy, &receiver, 2);
    assert_eq!(onceward.metric(&observed("in-flight")).await, 1.0);
}

/// A copy that was only observed was not refused, so its sender has lost nothing.
#[tokio::test]
async fn an_attempt_that_fails_after_a_copy_was_observed_is_no_lost_event() {
    let gate = Gate::default();
    let receiver = Receiver::behind(&gate, 500, "no").await;
    let onceward = observes(&receiver, OBSERVES).await;
    let copy = async {
        receiver.has_counted(1).await;
        let opens = async {
            receiver.has_counted(2).await;
            gate.opens();
        };
        join!(onceward.sends(signed(event("evt_1"))), opens).0
    };
    let (first, copy) = join!(onceward.sends(signed(event("evt_1"))), copy);
    first.is_passed(500);
    copy.is_passed(500);
    assert_eq!(onceward.metric("onceward_refused_then_failed_total").await, 0.0);
}

#[tokio::test]
async fn a_route_that_observes_forwards_another_request_under_the_same_key() {
    let receiver = Receiver::that_answers(200, "ok").await;
    let onceward = observes(&receiver, "mode = \"observe\"\n").await;
    passes(&onceward.sends(Event::bytes("one").keyed("k")).await, &receiver, 1);
    passes(&onceward.sends(Event::bytes("two").keyed("k")).await, &receiver, 2);
    assert_eq!(onceward.metric(&observed("mismatched")).await, 1.0);
    let two_keys = Event::bytes("one").keyed("k").header("idempotency-key", "l");
    passes(&onceward.sends(two_keys).await, &receiver, 3);
    assert_eq!(onceward.metric(&observed("refused")).await, 1.0);
}

#[tokio::test]
async fn a_route_that_observes_gives_each_copy_the_answer_of_its_own_request() {
    let receiver = Receiver::that(|_, copies| -> Act {
        Answer::new(if copies == 1 { 500 } else { 200 }, copies.to_string()).into()
    });
    let receiver = receiver.await;
    let onceward = observes(&receiver, "mode = \"observe\"\n").await;
    for (copy, status) in [(0, 200), (1, 500), (2, 200)] {
        let reply = onceward.sends(event("evt_1")).await;
        reply.is_passed(status);
        assert_eq!(reply.text(), copy.to_string());
        assert_eq!(reply.header("idempotent-replayed"), None);
    }
    assert_eq!(onceward.metric(&observed("replayed")).await, 2.0);
}

/// Nobody knows what became of the first copy, and the second one is not held back for it.
#[tokio::test]
async fn a_route_that_observes_forwards_a_copy_of_what_is_uncertain() {
    let receiver = Receiver::that(|_, copies| -> Act {
        if copies == 0 { Act::Close } else { Answer::new(200, "ok").into() }
    });
    let receiver = receiver.await;
    let builder = Onceward::in_front_of(&receiver).routes("mode = \"observe\"\n");
    let onceward = builder.expects_log("nobody knows whether the operation was done").start().await;
    let broken = onceward.sends(event("evt_1")).await;
    assert_eq!((broken.status, broken.disposition()), (502, "passed"), "{broken:?}");
    passes(&onceward.sends(event("evt_1")).await, &receiver, 2);
    assert_eq!(onceward.metric(&observed("uncertain")).await, 1.0);
}

/// From now on the route forwards each event once.
async fn enforces(onceward: &mut Onceward) {
    onceward.is_killed().await;
    let file = onceward.config_file();
    let enforced = std::fs::read_to_string(&file).unwrap().replace("\"observe\"", "\"enforce\"");
    std::fs::write(&file, enforced).unwrap();
    onceward.starts_again().await;
}

/// How many operations are listed.
async fn listed(onceward: &Onceward) -> usize {
    let page = onceward.get_admin("/api/operations").await.text();
    let page: serde_json::Value = serde_json::from_str(&page).unwrap();
    page["operations"].as_array().unwrap().len()
}

/// What has succeeded while the route only observed is not done again; what has not is done.
#[tokio::test]
async fn a_route_that_is_enforced_later_knows_what_it_has_seen_succeed() {
    let receiver = Receiver::that(|seen, copies| -> Act {
        let body = String::from_utf8_lossy(&seen.body).into_owned();
        match copies {
            0 if body.contains("fails") => Answer::new(500, "no").into(),
            0 if body.contains("breaks") => Act::Close,
            _ => Answer::new(200, "ok").into(),
        }
    })
    .await;
    let builder = Onceward::in_front_of(&receiver).variable("THE_SECRET", SECRET);
    let builder = builder.expects_log("nobody knows whether the operation was done");
    let mut onceward = builder.routes(OBSERVES).start().await;
    passes(&onceward.sends(signed(event("done"))).await, &receiver, 1);
    let observed_id = receiver.seen()[0].header("onceward-operation").unwrap().to_owned();
    assert_eq!(onceward.operation(&observed_id).await.unwrap()["observed"], true);
    onceward.sends(signed(event("fails"))).await.is_passed(500);
    let broken = onceward.sends(signed(event("breaks"))).await;
    assert_eq!((broken.status, broken.disposition()), (502, "passed"), "{broken:?}");
    passes(&onceward.sends(event("forged")).await, &receiver, 4);
    assert_eq!(listed(&onceward).await, 3, "what is forged leaves no record");

    enforces(&mut onceward).await;
    let known = onceward.sends(signed(event("done"))).await;
    known.is_replayed(200);
    assert_eq!(known.operation(), observed_id);
    receiver.was_called(4);
    for (count, id) in [(5, "fails"), (6, "breaks"), (7, "forged")] {
        onceward.sends(signed(event(id))).await.is_executed(200);
        onceward.sends(signed(event(id))).await.is_replayed(200);
        receiver.was_called(count);
    }
    onceward.sends(event("done")).await.is_refused(401, "signature-missing");
    assert_eq!(listed(&onceward).await, 4, "one event is one row");
    let attempts = receiver.seen();
    assert_eq!(attempts[4].header("onceward-attempt"), Some("2"));
}

/// Who checks no signature has seen what anybody may have sent.
#[tokio::test]
async fn a_success_that_nobody_vouches_for_is_not_kept() {
    let receiver = Receiver::that_answers(200, "ok").await;
    let mut onceward = observes(&receiver, "mode = \"observe\"\n").await;
    passes(&onceward.sends(event("evt_1")).await, &receiver, 1);
    passes(&onceward.sends(event("evt_1")).await, &receiver, 2);
    assert_eq!(onceward.metric(&observed("replayed")).await, 1.0);
    enforces(&mut onceward).await;
    onceward.sends(event("evt_1")).await.is_executed(200);
    onceward.sends(event("evt_1")).await.is_replayed(200);
    receiver.was_called(3);
    assert_eq!(listed(&onceward).await, 1);
}

/// Whoever only observes is not stopped by a store that is away.
#[tokio::test]
async fn a_route_that_observes_needs_no_store() {
    let receiver = Receiver::that_answers(200, "ok").await;
    let store = format!(
        "[store.redis]\nurls = [\"redis://127.0.0.1:{}\"]\ntimeout = \"300ms\"",
        free_port()
    );
    let builder = Onceward::in_front_of(&receiver).store(&store).routes("mode = \"observe\"\n");
    let onceward = builder.expects_log("store").expects_log("expired records").start().await;
    for count in 1..=3 {
        passes(&onceward.sends(event("evt_1")).await, &receiver, count);
    }
    assert_eq!(onceward.metric(&observed("refused")).await, 3.0);
}

/// The rest of an app: nothing in it is looked at.
#[tokio::test]
async fn a_route_that_passes_never_refuses_a_request_for_what_is_in_it() {
    let receiver = Receiver::that_answers(200, "ok").await;
    let route = "mode = \"pass\"\nprovider = \"stripe\"\nsecrets = [{ env = \"THE_SECRET\" }]\n";
    let onceward = observes(&receiver, route).await;
    let mut count = 0;
    for method in ["GET", "HEAD", "OPTIONS", "POST", "PUT", "PATCH", "DELETE"] {
        for event in [
            Event::bytes(""),
            Event::bytes("not json"),
            Event::bytes("{\"id\":null}"),
            Event::bytes("\0\u{ff}").keyed("k"),
            Event::bytes("another").keyed("k"),
            Event::bytes("").keyed("k").header("idempotency-key", "l"),
            event("evt_1").header("stripe-signature", "t=1,v1=00"),
            event("evt_1").header("onceward-verified", "stripe"),
        ] {
            if method == "HEAD" && !event.body.is_empty() {
                continue;
            }
            let reply = onceward.sends(event.clone().by(method).to("/hooks/app?x=1")).await;
            count += 1;
            passes(&reply, &receiver, count);
            let seen = receiver.seen().pop().unwrap();
            assert_eq!((&*seen.method, seen.body), (method, event.body));
            assert_eq!(seen.target, "/hooks/app?x=1");
            assert!(seen.headers.iter().all(|(name, _)| !name.starts_with("onceward-")));
        }
    }
    assert_eq!(onceward.metric("onceward_store_duration_seconds_count{call=\"claim\"}").await, 0.0);
}
