//! All at the same time.

use super::{HELD, NAMES, Three, standing};
use crate::support::{Act, Answer, Gate, event, until};

const AT_ONCE: &str = "steps_at_once = true";

#[tokio::test]
async fn all_run_at_the_same_time_and_the_sender_waits_for_all() {
    let gates = NAMES.map(|_| Gate::default());
    let waits = gates.clone();
    let three = Three::that(move |name, _, _| {
        let index = NAMES.iter().position(|other| *other == name).unwrap();
        Some(Answer::new(200, name).when(&waits[index]))
    })
    .await;
    let onceward = three.with("").defaults(AT_ONCE).start().await;
    let opens = async {
        for receiver in &three.receivers {
            receiver.has_counted(1).await;
        }
        let id = onceward.sends(event("evt_1")).await.is_in_flight(409).operation();
        assert_eq!(standing(&onceward, &id).await, ["in_flight"; 3]);
        // the last one first
        for (index, gate) in gates.iter().enumerate().rev() {
            gate.opens();
            if index > 0 {
                let is_done = async || standing(&onceward, &id).await[index] == "succeeded";
                until("the step is done", is_done).await;
            }
        }
    };
    let (reply, ()) = tokio::join!(onceward.sends(event("evt_1")), opens);
    assert_eq!(reply.is_executed(200).text(), "mail");
    assert_eq!(three.counts(), [1; 3]);
}

#[tokio::test]
async fn a_copy_runs_those_that_failed_alone() {
    let three = Three::that(|name, _, copies| {
        (name == "account" && copies == 0).then(|| Answer::new(500, "not now").into())
    })
    .await;
    let onceward = three.with("").defaults(AT_ONCE).start().await;
    let first = onceward.sends(event("evt_120")).await;
    assert_eq!(first.is_executed(500).text(), "not now");
    assert_eq!(standing(&onceward, &first.operation()).await, ["succeeded", "failed", "succeeded"]);
    assert_eq!(onceward.sends(event("evt_120")).await.is_executed(200).text(), "mail");
    onceward.sends(event("evt_120")).await.is_replayed(200);
    assert_eq!(three.counts(), [1, 2, 1]);
}

#[tokio::test]
async fn a_copy_runs_those_that_failed_while_an_uncertain_one_is_held() {
    let three = Three::that(|name, _, copies| match (name, copies) {
        ("charge", _) => Some(Act::Close),
        ("mail", 0) => Some(Answer::new(500, "not now").into()),
        _ => None,
    })
    .await;
    let onceward = three.with("").defaults(AT_ONCE).expects_log(HELD).start().await;
    let first = onceward.sends(event("evt_1")).await;
    first.is_executed_as("upstream-broken", 502);
    let id = first.operation();
    assert_eq!(standing(&onceward, &id).await, ["uncertain", "succeeded", "failed"]);
    // mail runs again; what is not known of charge gives the answer
    onceward.sends(event("evt_1")).await.is_uncertain();
    assert_eq!(standing(&onceward, &id).await, ["uncertain", "succeeded", "succeeded"]);
    onceward.sends(event("evt_1")).await.is_uncertain();
    assert_eq!(three.counts(), [1, 1, 2]);
}

#[tokio::test]
async fn the_first_step_that_has_not_succeeded_gives_the_answer() {
    let three = Three::that(|name, _, _| match name {
        "account" => Some(Answer::new(503, "account").into()),
        "mail" => Some(Answer::new(500, "mail").into()),
        _ => None,
    })
    .await;
    let onceward = three.with("").defaults(AT_ONCE).start().await;
    for _ in 0..3 {
        assert_eq!(onceward.sends(event("evt_1")).await.is_executed(503).text(), "account");
    }
    assert_eq!(three.counts(), [1, 3, 3]);
}
