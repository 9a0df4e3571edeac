//! Hang-ups, stalls and shutdowns, within and between steps.

use std::time::Duration;

use rustix::process::Signal;
use tokio::time::timeout;

use super::{HELD, NAMES, Three, standing};
use crate::support::{Act, Answer, Gate, event};

/// The receiver of this step waits for the gate.
fn waiting(
    slow: &'static str,
    gate: &Gate,
) -> impl Fn(&str, &crate::support::Seen, usize) -> Option<Act> + use<> {
    let gate = gate.clone();
    move |name, _, copies| (name == slow && copies == 0).then(|| Answer::new(200, name).when(&gate))
}

#[tokio::test]
async fn a_sender_that_hangs_up_in_any_step_interrupts_nothing() {
    for (place, slow) in NAMES.into_iter().enumerate() {
        let gate = Gate::default();
        let three = Three::that(waiting(slow, &gate)).await;
        let onceward = three.with("").start().await;
        let mut sender = onceward.connects().await;
        sender.writes(&event("evt_1").raw()).await;
        three.receivers[place].has_counted(1).await;
        drop(sender);
        let id = onceward.sends(event("evt_1")).await.is_in_flight(409).operation();
        gate.opens();
        onceward.comes_to_be(&id, "succeeded").await;
        onceward.sends(event("evt_1")).await.is_replayed(200);
        assert_eq!(three.counts(), [1; 3]);
    }
}

#[tokio::test]
async fn a_sender_that_has_waited_for_long_enough_is_told_and_the_steps_go_on() {
    let gate = Gate::default();
    let three = Three::that(waiting("account", &gate)).await;
    let onceward = three.with("").defaults("answer_within = \"200ms\"").start().await;
    let reply = onceward.sends(event("evt_1")).await;
    reply.is_in_flight(504);
    gate.opens();
    onceward.comes_to_be(&reply.operation(), "succeeded").await;
    assert_eq!(three.counts(), [1; 3]);
}

/// The process is stopped past its lease in the middle of a step, and goes on with the next.
#[tokio::test]
async fn a_late_outcome_of_a_step_counts_and_the_next_ones_run() {
    let gate = Gate::default();
    let three = Three::that(waiting("account", &gate)).await;
    let onceward = three.with("").defaults("lease = \"300ms\"").start().await;
    let meanwhile = async {
        three.receivers[1].has_counted(1).await;
        onceward.stands_still(Duration::from_millis(900), || {}).await;
        let id = onceward.sends(event("evt_1")).await.is_uncertain().operation();
        assert_eq!(standing(&onceward, &id).await, ["succeeded", "uncertain", "waiting"]);
        gate.opens();
    };
    let (reply, ()) = tokio::join!(onceward.sends(event("evt_1")), meanwhile);
    assert_eq!(reply.is_executed(200).text(), "mail");
    onceward.sends(event("evt_1")).await.is_replayed(200);
    assert_eq!(three.counts(), [1; 3]);
}

/// Each step may take longer than a lease: it is renewed in all of them.
#[tokio::test]
async fn the_lease_is_kept_through_all_steps() {
    let three = Three::that(|name, _, _| {
        Some(Act::After(Duration::from_millis(2200), Box::new(Answer::new(200, name).into())))
    })
    .await;
    let onceward = three.with("").defaults("lease = \"2s\"").start().await;
    onceward.sends(event("evt_1")).await.is_executed(200);
    assert_eq!(three.counts(), [1; 3]);
}

#[tokio::test]
async fn a_shutdown_that_has_time_lets_all_steps_end() {
    let gate = Gate::default();
    let three = Three::that(waiting("charge", &gate)).await;
    let mut onceward = three.with("").start().await;
    let (reply, ()) = tokio::join!(onceward.sends(event("evt_1")), async {
        three.receivers[0].has_counted(1).await;
        onceward.signal(Signal::TERM);
        gate.opens();
    });
    assert_eq!(reply.is_executed(200).text(), "mail");
    assert!(onceward.ends().await.success());
    assert_eq!(three.counts(), [1; 3]);
}

#[tokio::test]
async fn a_shutdown_that_has_no_time_leaves_the_step_uncertain_and_begins_no_other() {
    for (place, slow) in NAMES.into_iter().enumerate() {
        let three =
            Three::that(move |name, _, copies| (name == slow && copies == 0).then_some(Act::Hang))
                .await;
        let builder = three.with("").server("shutdown_timeout = \"300ms\"");
        let mut onceward = builder.expects_log("the time is over").expects_log(HELD).start().await;
        let (reply, ()) = tokio::join!(onceward.sends(event("evt_1")), async {
            three.receivers[place].has_counted(1).await;
            onceward.signal(Signal::TERM);
        });
        reply.is_executed_as("upstream-broken", 502);
        assert!(onceward.ends().await.success());
        let counts = three.counts();
        onceward.starts_again().await;
        let copy = onceward.sends(event("evt_1")).await;
        let id = copy.is_uncertain().operation();
        let expected = [0, 1, 2].map(|index| match index {
            before if before < place => "succeeded",
            same if same == place => "uncertain",
            _ => "waiting",
        });
        assert_eq!(standing(&onceward, &id).await, expected);
        assert_eq!(three.counts(), counts);
    }
}

/// Nothing hangs: the steps are bounded by their own timeouts.
#[tokio::test]
async fn each_step_has_its_own_time() {
    let three = Three::that(|name, _, _| (name == "account").then_some(Act::Hang)).await;
    let onceward = three.with("attempt_timeout = \"1s\"").expects_log(HELD).start().await;
    let reply = timeout(Duration::from_secs(10), onceward.sends(event("evt_1"))).await.unwrap();
    reply.is_executed_as("upstream-timeout", 504);
    assert_eq!(three.counts(), [1, 1, 0]);
}
