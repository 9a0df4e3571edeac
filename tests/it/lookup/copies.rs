//! Many copies, hang-ups, crashes and late outcomes around a look-up.

use std::time::Duration;

use futures_util::future::join_all;
use rustix::process::Signal;

use super::Asked;
use crate::support::{Act, Answer, Gate, Reply, event};

const CLAIMS: &str = "onceward_store_duration_seconds_count{call=\"claim\"}";
const ABANDONED: &str = "operations of an earlier process are uncertain now";

#[tokio::test]
async fn of_fifty_copies_one_asks_and_the_others_are_told_to_come_back() {
    let gate = Gate::default();
    let waits = gate.clone();
    let asked = Asked::that(|_, _| Act::Close, move |_, _| Answer::new(200, "").when(&waits)).await;
    let onceward = asked.with("", "").start().await;
    onceward.sends(event("evt_1")).await.is_executed_as("upstream-broken", 502);
    let asking = onceward.sends(event("evt_1"));
    let others = async {
        asked.receiver.has_counted(2).await;
        for reply in onceward.sends_copies(&event("evt_1"), 49).await {
            reply.is_in_flight(409);
        }
        gate.opens();
    };
    tokio::join!(asking, others).0.is_replayed(200);
    onceward.sends(event("evt_1")).await.is_replayed(200);
    assert_eq!((asked.attempts(), asked.lookups().len()), (1, 1));
}

#[tokio::test]
async fn copies_that_wait_get_what_the_look_up_finds() {
    for (status, found) in [(200, true), (500, false)] {
        let gate = Gate::default();
        let waits = gate.clone();
        let asked =
            Asked::that(|_, _| Act::Close, move |_, _| Answer::new(status, "").when(&waits)).await;
        let builder =
            asked.with("when_in_flight = \"wait\"\nwaiters_max = 64", "timeout = \"20s\"");
        let onceward = builder.start().await;
        onceward.sends(event("evt_1")).await.is_executed_as("upstream-broken", 502);
        let opens = async {
            asked.receiver.has_counted(2).await;
            // the others have come as well, and have looked again before they wait
            onceward.comes_to_count(CLAIMS, 100.0).await;
            gate.opens();
        };
        let copy = event("evt_1");
        let (replies, ()) = tokio::join!(onceward.sends_copies(&copy, 50), opens);
        for reply in replies {
            if found {
                reply.is_replayed(200)
            } else {
                reply.is_uncertain()
            };
        }
        assert_eq!((asked.attempts(), asked.lookups().len()), (1, 1));
    }
}

/// Every look-up says that it was not done: each time one copy sends it again.
#[tokio::test]
async fn copies_that_wait_make_one_attempt_where_it_was_not_done() {
    let asked = Asked::that(
        |_, copies| if copies == 0 { Act::Hang } else { Answer::new(200, "second").into() },
        |_, _| Answer::new(404, "").into(),
    )
    .await;
    let defaults = "when_in_flight = \"wait\"\nwaiters_max = 64\nattempt_timeout = \"1s\"";
    let onceward = asked.with(defaults, "").in_memory().start().await;
    let first = onceward.sends(event("evt_1")).await;
    first.is_executed_as("upstream-timeout", 504);
    onceward.must_have_ended(&first.operation(), Duration::from_secs(1)).await;
    let replies = onceward.sends_copies(&event("evt_1"), 50).await;
    let executed = replies.iter().filter(|reply| reply.disposition() == "executed").count();
    assert_eq!(executed, 1);
    assert!(replies.iter().all(|reply| reply.status == 200 && reply.text() == "second"));
    assert_eq!((asked.attempts(), asked.lookups().len()), (2, 1));
}

#[tokio::test]
async fn a_sender_that_has_waited_for_long_enough_is_told_and_the_look_up_goes_on() {
    let gate = Gate::default();
    let waits = gate.clone();
    let asked = Asked::that(|_, _| Act::Close, move |_, _| Answer::new(200, "").when(&waits)).await;
    let onceward = asked.with("answer_within = \"200ms\"", "timeout = \"20s\"").start().await;
    onceward.sends(event("evt_1")).await.is_executed_as("upstream-broken", 502);
    let reply = onceward.sends(event("evt_1")).await;
    reply.is_in_flight(504);
    gate.opens();
    onceward.comes_to_be(&reply.operation(), "succeeded").await;
    onceward.sends(event("evt_1")).await.is_replayed(200);
    assert_eq!((asked.attempts(), asked.lookups().len()), (1, 1));
}

#[tokio::test]
async fn after_a_crash_in_a_look_up_another_copy_asks() {
    let asked = Asked::that(
        |_, _| Act::Close,
        |_, copies| if copies == 0 { Act::Hang } else { Answer::new(200, "").into() },
    )
    .await;
    let builder = asked.with("", "timeout = \"500ms\"").expects_log(ABANDONED);
    let mut onceward = builder.start().await;
    onceward.sends(event("evt_1")).await.is_executed_as("upstream-broken", 502);
    let (cut_off, ()) = tokio::join!(onceward.try_sends(event("evt_1")), async {
        asked.receiver.has_counted(2).await;
        onceward.signal(Signal::KILL);
    });
    assert!(cut_off.is_err(), "{cut_off:?}");
    onceward.ends().await;
    onceward.starts_again().await;
    let is_replayed = |reply: &Reply| {
        if reply.disposition() != "replayed" {
            // the look-up's lease outlives its holder
            reply.is_in_flight(409);
        }
        reply.disposition() == "replayed"
    };
    onceward.sends_until(&event("evt_1"), is_replayed).await;
    assert_eq!((asked.attempts(), asked.lookups().len()), (1, 2));
}

/// A shutdown does not wait for a receiver that says nothing.
#[tokio::test]
async fn a_shutdown_ends_a_look_up() {
    let asked = Asked::that(|_, _| Act::Close, |_, _| Act::Hang).await;
    let builder = asked.with("", "timeout = \"60s\"").server("shutdown_timeout = \"300ms\"");
    let mut onceward = builder.expects_log("the time is over").start().await;
    onceward.sends(event("evt_1")).await.is_executed_as("upstream-broken", 502);
    let (reply, ()) = tokio::join!(onceward.sends(event("evt_1")), async {
        asked.receiver.has_counted(2).await;
        onceward.signal(Signal::TERM);
    });
    reply.is_uncertain();
    assert!(onceward.ends().await.success());
}

/// The answer comes while the receiver is asked about it.
#[tokio::test]
async fn a_late_outcome_counts_while_somebody_asks() {
    let (event_gate, lookup_gate) = (Gate::default(), Gate::default());
    let (event_waits, lookup_waits) = (event_gate.clone(), lookup_gate.clone());
    let asked = Asked::that(
        move |_, _| Answer::new(201, "late").when(&event_waits),
        move |_, _| Answer::new(404, "").when(&lookup_waits),
    )
    .await;
    let onceward = asked.with("lease = \"300ms\"", "timeout = \"20s\"").start().await;
    let first = onceward.sends(event("evt_1"));
    let meanwhile = async {
        asked.receiver.has_counted(1).await;
        // past its lease, so that a copy sees it uncertain
        onceward.stands_still(Duration::from_millis(900), || {}).await;
        let asking = onceward.sends(event("evt_1"));
        let settles = async {
            asked.receiver.has_counted(2).await;
            event_gate.opens();
            let id = onceward.sends(event("evt_1")).await.operation();
            onceward.comes_to_be(&id, "succeeded").await;
            lookup_gate.opens();
        };
        tokio::join!(asking, settles).0
    };
    let (first, copy) = tokio::join!(first, meanwhile);
    assert_eq!(first.is_executed(201).text(), "late");
    assert_eq!(copy.is_replayed(201).text(), "late");
    assert_eq!(asked.attempts(), 1);
}

/// Many operations are asked about at the same time, each once.
#[tokio::test]
async fn each_operation_is_asked_about_on_its_own() {
    let asked = Asked::that(|_, _| Act::Close, |_, _| Answer::new(200, "").into()).await;
    let onceward = asked.with("", "").start().await;
    let ids: Vec<String> = (0..20).map(|number| format!("evt_{number}")).collect();
    join_all(ids.iter().map(|id| onceward.sends(event(id)))).await;
    for reply in join_all(ids.iter().map(|id| onceward.sends(event(id)))).await {
        reply.is_replayed(200);
    }
    let mut targets: Vec<_> = asked.lookups().into_iter().map(|seen| seen.target).collect();
    targets.sort();
    targets.dedup();
    assert_eq!((targets.len(), asked.attempts()), (20, 20));
}
