//! The process is stopped past its lease, and goes on: nobody else had a claim, so its outcome
//! counts.

use std::time::Duration;

use super::{answered, standing};
use crate::support::{Act, Answer, Gate, Onceward, Receiver, event};

const LEASE: &str = "lease = \"300ms\"";

/// Far longer than the lease.
const LONG: Duration = Duration::from_millis(900);

#[tokio::test]
async fn a_late_settle_counts_after_a_copy_has_seen_it_uncertain() {
    let gate = Gate::default();
    let waits = gate.clone();
    let receiver = Receiver::that(move |_, _| {
        Act::When(waits.clone(), Box::new(Answer::new(200, "late").into()))
    })
    .await;
    let onceward = Onceward::in_front_of(&receiver).defaults(LEASE).start().await;
    let first = async {
        let reply = onceward.sends(event("evt_1")).await;
        reply.is_executed(200);
        assert_eq!(reply.text(), "late");
        reply
    };
    let meanwhile = async {
        receiver.has_counted(1).await;
        onceward.stands_still(LONG, || {}).await;
        let copy = onceward.sends(event("evt_1")).await;
        copy.is_uncertain();
        assert_eq!(onceward.state(&copy.operation()).await, "uncertain");
        gate.opens();
    };
    let (first, ()) = tokio::join!(first, meanwhile);
    assert_eq!(standing(&onceward, &first).await, answered(1, "succeeded", 200));
    let copy = onceward.sends(event("evt_1")).await;
    copy.is_replayed(200);
    assert_eq!(copy.text(), "late");
    receiver.was_called(1);
}

/// The answer came in time, and the process could look at it only after the end of the attempt.
#[tokio::test]
async fn an_answer_in_time_counts_although_it_is_seen_after_the_end_of_the_attempt() {
    let gate = Gate::default();
    let waits = gate.clone();
    let receiver = Receiver::that(move |_, _| {
        Act::When(waits.clone(), Box::new(Answer::new(200, "in time").into()))
    })
    .await;
    let settings = "attempt_timeout = \"600ms\"";
    let onceward = Onceward::in_front_of(&receiver).defaults(settings).start().await;
    let stopped = async {
        receiver.has_counted(1).await;
        onceward.stands_still(LONG, || gate.opens()).await;
    };
    let (first, ()) = tokio::join!(onceward.sends(event("evt_1")), stopped);
    first.is_executed(200);
    assert_eq!(standing(&onceward, &first).await, answered(1, "succeeded", 200));
    receiver.was_called(1);
}

/// The answer came while nobody could read it.
#[tokio::test]
async fn an_answer_that_came_while_the_process_was_stopped_counts() {
    for (status, outcome) in [(200, "succeeded"), (500, "failed")] {
        let gate = Gate::default();
        let waits = gate.clone();
        let receiver = Receiver::that(move |_, _| {
            Act::When(waits.clone(), Box::new(Answer::new(status, "meanwhile").into()))
        })
        .await;
        let onceward = Onceward::in_front_of(&receiver).defaults(LEASE).start().await;
        let stopped = async {
            receiver.has_counted(1).await;
            onceward.stands_still(LONG, || gate.opens()).await;
        };
        let (first, ()) = tokio::join!(onceward.sends(event("evt_1")), stopped);
        first.is_executed(status);
        assert_eq!(standing(&onceward, &first).await, answered(1, outcome, status));
        receiver.was_called(1);
        let copy = onceward.sends(event("evt_1")).await;
        match outcome {
            "succeeded" => copy.is_replayed(200),
            _ => copy.is_executed(500),
        };
    }
}
