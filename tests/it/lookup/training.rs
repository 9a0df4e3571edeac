//! A timeout leaves the outcome unknown, and the receiver is asked; a refusal before anything was
//! accepted is a failure, and nobody is asked.

use std::time::Duration;

use tokio::net::TcpSocket;

use super::{Asked, HELD, decision, is_held};
use crate::support::{Act, Answer, Onceward, Receiver, event};

const SHORT: &str = "attempt_timeout = \"1s\"";

#[tokio::test]
async fn a_timeout_is_held_and_a_look_up_that_finds_it_records_success_without_sending_again() {
    let asked = Asked::that(
        |_, _| Act::Hang,
        |_, _| Answer::new(200, r#"{"status":"processed","id":"pay_7"}"#).into(),
    )
    .await;
    let lookup = "done_when = { \"json:/status\" = \"processed\" }\nreference = \"json:/id\"";
    let onceward = asked.with(SHORT, lookup).in_memory().start().await;
    let first = onceward.sends(event("evt_72")).await;
    first.is_executed_as("upstream-timeout", 504).comes_back();
    assert_eq!(onceward.state(&first.operation()).await, "uncertain");
    let copy = onceward.sends(event("evt_72")).await;
    assert_eq!(copy.is_replayed(200).text(), "");
    assert_eq!(asked.attempts(), 1);
    let [lookup] = &*asked.lookups() else { panic!("{:?}", asked.lookups()) };
    assert_eq!(lookup.target, "/internal/events/evt_72");
    let found = decision(&onceward, &copy).await;
    assert_eq!(found["decision"], "looked_up");
    assert_eq!(
        (&found["reason"], &found["reference"]),
        (&"done: answered 200".into(), &"pay_7".into())
    );
    // it is done now: nobody is asked again
    onceward.sends(event("evt_72")).await.is_replayed(200);
    assert_eq!((asked.attempts(), asked.lookups().len()), (1, 1));
    assert_eq!(onceward.state(&copy.operation()).await, "succeeded");
    let done = "onceward_lookups_total{route=\"hooks\",finding=\"done\"}";
    assert_eq!(onceward.metric(done).await, 1.0);
}

#[tokio::test]
async fn a_timeout_of_which_the_receiver_knows_nothing_is_attempted_again_once() {
    let asked = Asked::that(
        |_, copies| if copies == 0 { Act::Hang } else { Answer::new(201, "second").into() },
        |_, _| Answer::new(404, "").into(),
    )
    .await;
    let onceward = asked.with(SHORT, "").in_memory().start().await;
    let first = onceward.sends(event("evt_1")).await;
    first.is_executed_as("upstream-timeout", 504);
    onceward.must_have_ended(&first.operation(), Duration::from_secs(1)).await;
    let copy = onceward.sends(event("evt_1")).await;
    assert_eq!(copy.is_executed(201).text(), "second");
    onceward.sends(event("evt_1")).await.is_replayed(201);
    assert_eq!((asked.attempts(), asked.lookups().len()), (2, 1));
    assert_eq!(decision(&onceward, &copy).await["reason"], "not-done: answered 404");
    assert_eq!(asked.of("POST")[1].header("onceward-attempt"), Some("2"));
}

/// The upstream may still be working on it, though the connection is lost.
#[tokio::test]
async fn what_is_not_done_yet_is_not_sent_again_before_its_attempt_must_have_ended() {
    let asked = Asked::that(|_, _| Act::Close, |_, _| Answer::new(404, "").into()).await;
    let onceward = asked.with("", "").start().await;
    onceward.sends(event("evt_1")).await.is_executed_as("upstream-broken", 502);
    for _ in 0..2 {
        is_held(&onceward, &onceward.sends(event("evt_1")).await, "not-done: answered 404").await;
    }
    assert_eq!((asked.attempts(), asked.lookups().len()), (1, 2));
}

#[tokio::test]
async fn after_so_many_uncertain_attempts_it_is_asked_about_and_not_sent_again() {
    let asked = Asked::that(|_, _| Act::Hang, |_, _| Answer::new(404, "").into()).await;
    let defaults = "attempt_timeout = \"1s\"\nattempts_max = 2";
    let onceward = asked.with(defaults, "").in_memory().start().await;
    for _ in 0..2 {
        let reply = onceward.sends(event("evt_1")).await;
        reply.is_executed_as("upstream-timeout", 504);
        onceward.must_have_ended(&reply.operation(), Duration::from_secs(1)).await;
    }
    is_held(&onceward, &onceward.sends(event("evt_1")).await, "not-done: answered 404").await;
    assert_eq!(asked.attempts(), 2);
}

/// The stored answer of an operation that the receiver left open is a success and complete.
#[tokio::test]
async fn what_was_done_is_answered_with_the_stored_answer_if_it_is_a_success() {
    let asked =
        Asked::that(|_, _| Answer::new(202, "accepted").into(), |_, _| Answer::new(204, "").into())
            .await;
    let unclear = "[defaults.outcome]\nuncertain = [\"202\"]";
    let onceward = asked.with(unclear, "").start().await;
    onceward.sends(event("evt_1")).await.is_executed(202);
    let copy = onceward.sends(event("evt_1")).await;
    assert_eq!(copy.is_replayed(202).text(), "accepted");
    assert_eq!(asked.attempts(), 1);
}

#[tokio::test]
async fn a_refusal_before_acceptance_is_free_at_once_and_nobody_is_asked() {
    let socket = TcpSocket::new_v4().unwrap();
    socket.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let url = format!("http://{}", socket.local_addr().unwrap());
    let onceward = Onceward::in_front_of_url(&url)
        .defaults("when_uncertain = \"lookup\"")
        .routes(&format!("[routes.hooks.lookup]\nurl = \"{url}/{{key}}\""))
        .start()
        .await;
    let first = onceward.sends(event("evt_1")).await;
    first.is_executed_as("upstream-unreachable", 502);
    assert_eq!(onceward.state(&first.operation()).await, "failed");
    let receiver = Receiver::on(socket.listen(64).unwrap(), |_, copies| {
        if copies == 0 { Answer::new(503, "busy").into() } else { Answer::new(200, "ok").into() }
    });
    onceward.sends(event("evt_1")).await.is_executed(503);
    onceward.sends(event("evt_1")).await.is_executed(200);
    assert!(receiver.seen().iter().all(|seen| seen.method == "POST"));
    receiver.was_called(2);
}

/// The decision record: what the receiver calls it, and how it tells copies apart itself.
#[tokio::test]
async fn an_attempt_keeps_its_reference_and_the_duplicate_protection_of_its_receiver() {
    let receiver = Receiver::that(|_, _| {
        Answer::new(200, r#"{"id":12345678901234567890}"#).header("x-ref", "r-1").into()
    })
    .await;
    for (place, reference) in [("json:/id", "12345678901234567890"), ("header:x-ref", "r-1")] {
        let onceward = Onceward::in_front_of(&receiver)
            .defaults(&format!(
                "forward_key = \"x-dedup\"\n[defaults.outcome]\nreference = \"{place}\""
            ))
            .start()
            .await;
        let id = onceward.sends(event("evt_1")).await.is_executed(200).operation();
        let operation = onceward.operation(&id).await.unwrap();
        assert_eq!(operation["attempts"][0]["reference"], reference);
        assert_eq!(operation["attempts"][0]["forward_key"], "x-dedup");
    }
}

/// A person still decides where the receiver cannot say.
#[tokio::test]
async fn hold_stays_the_default() {
    let asked = Asked::that(|_, _| Act::Close, |_, _| Answer::new(200, "").into()).await;
    let onceward = Onceward::in_front_of(&asked.receiver).expects_log(HELD).start().await;
    onceward.sends(event("evt_1")).await.is_executed_as("upstream-broken", 502);
    onceward.sends(event("evt_1")).await.is_uncertain();
    assert!(asked.lookups().is_empty());
}
