//! `kill -9` at every point of the sequence: what has succeeded is never run again.

use std::time::Duration;

use rustix::process::Signal;
use tokio::time::sleep;

use super::{ABANDONED, HELD, NAMES, Three, standing};
use crate::support::{Act, Onceward, Reply, event, until};

/// Sends an event and kills the process as soon as the receiver of a step has read it.
async fn is_killed_in(onceward: &mut Onceward, three: &Three, place: usize) {
    let (cut_off, ()) = tokio::join!(onceward.try_sends(event("evt_1")), async {
        three.receivers[place].has_counted(1).await;
        onceward.signal(Signal::KILL);
    });
    assert!(cut_off.is_err(), "{cut_off:?}");
    onceward.ends().await;
    onceward.starts_again().await;
}

fn hanging_once(slow: &'static str) -> impl Fn(&str, &crate::support::Seen, usize) -> Option<Act> {
    move |name, _, copies| (name == slow && copies == 0).then_some(Act::Hang)
}

#[tokio::test]
async fn after_a_crash_in_a_step_it_is_uncertain_and_no_other_step_is_run() {
    for at_once in [false, true] {
        for (place, slow) in NAMES.into_iter().enumerate() {
            let three = Three::that(hanging_once(slow)).await;
            let defaults = format!("steps_at_once = {at_once}");
            let mut onceward =
                three.with("").defaults(&defaults).expects_log(ABANDONED).start().await;
            if at_once {
                // the others are done before the crash
                let (cut_off, ()) = tokio::join!(onceward.try_sends(event("evt_1")), async {
                    three.receivers[place].has_counted(1).await;
                    let id = onceward.sends(event("evt_1")).await.operation();
                    until("the others are done", async || {
                        let states = standing(&onceward, &id).await;
                        states.iter().filter(|state| *state == "succeeded").count() == 2
                    })
                    .await;
                    onceward.signal(Signal::KILL);
                });
                assert!(cut_off.is_err(), "{cut_off:?}");
                onceward.ends().await;
                onceward.starts_again().await;
            } else {
                is_killed_in(&mut onceward, &three, place).await;
            }
            let counts = three.counts();
            let copy = onceward.sends(event("evt_1")).await;
            let id = copy.is_uncertain().operation();
            let expected = [0, 1, 2].map(|index| match index {
                same if same == place => "uncertain",
                before if before < place || at_once => "succeeded",
                _ => "waiting",
            });
            assert_eq!(standing(&onceward, &id).await, expected);
            assert_eq!(three.counts(), counts);
        }
    }
}

#[tokio::test]
async fn after_a_crash_the_sequence_goes_on_where_it_was_cut_off() {
    for (place, slow) in NAMES.into_iter().enumerate() {
        let three = Three::that(hanging_once(slow)).await;
        let builder = three.with("when_uncertain = \"retry\"\nattempt_timeout = \"1s\"");
        let mut onceward = builder.expects_log(ABANDONED).expects_log(HELD).start().await;
        is_killed_in(&mut onceward, &three, place).await;
        let goes_on = |reply: &Reply| {
            if reply.disposition() != "executed" {
                reply.is_uncertain();
            }
            reply.disposition() == "executed"
        };
        let reply = onceward.sends_until(&event("evt_1"), goes_on).await;
        assert_eq!(reply.is_executed(200).text(), "mail");
        let expected = [0, 1, 2].map(|index| if index == place { 2 } else { 1 });
        assert_eq!(three.counts(), expected, "{slow}");
        onceward.sends(event("evt_1")).await.is_replayed(200);
    }
}

/// How many crashes at random moments: `ONCEWARD_CRASH_ROUNDS`, else 12.
fn rounds() -> u64 {
    let set = std::env::var("ONCEWARD_CRASH_ROUNDS").ok();
    set.map_or(12, |set| set.parse().expect("a number"))
}

/// Under `hold` no step is ever run twice, wherever the crash comes.
#[tokio::test]
async fn no_step_runs_twice_however_often_the_process_is_killed() {
    let three = Three::that(|_, _, _| None).await;
    let builder = three.with("").expects_log(ABANDONED).expects_log(HELD);
    let mut onceward = builder.start().await;
    for round in 0..rounds() {
        let sent = event(&format!("evt_{round}"));
        let (_cut_off, ()) = tokio::join!(onceward.try_sends(sent.clone()), async {
            // time itself is what is waited for: the kill comes at another moment in each round
            sleep(Duration::from_micros(round * 700 % 9_000)).await;
            onceward.signal(Signal::KILL);
        });
        onceward.ends().await;
        onceward.starts_again().await;
        for _ in 0..2 {
            let reply = onceward.sends(sent.clone()).await;
            match reply.disposition() {
                "executed" => reply.is_executed(200),
                "replayed" => reply.is_replayed(200),
                _ => reply.is_uncertain(),
            };
        }
        for receiver in &three.receivers {
            let of_this = receiver.seen().iter().filter(|seen| seen.body == sent.body).count();
            assert!(of_this <= 1, "a step ran {of_this} times in round {round}");
        }
    }
}
