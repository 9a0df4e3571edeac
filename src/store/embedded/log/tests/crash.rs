//! What is left after a crash or a failure at each call of short histories.

use std::io;

use super::history::{Effort, Play, Step, survives_power_loss};
use super::sim::Fault;
use crate::store::embedded::settings::Durability;

use Step::{Append, Close, Keep, Kill, Mark, RemoveOld, Seal, Sync};

/// Short histories that come by every kind of call.
const HISTORIES: &[&[Step]] = &[
    &[Append(100), Append(900), Append(1300)],
    // The third group begins the next segment.
    &[Append(1000), Append(1700), Append(1700), Append(20)],
    &[Append(500), Seal, Append(700), Append(10)],
    &[Append(500), Kill, Append(1200), Close, Append(10)],
    // A group that is larger than a segment.
    &[Append(200), Append(5000), Append(300)],
    &[Append(300), Keep, Seal, Append(300), Mark, RemoveOld, Append(20)],
    &[Append(300), Mark, Kill, Seal, Append(1500), Mark, RemoveOld, Kill, Append(20)],
    &[Append(300), Sync, Append(1500), Append(1500), Sync, Append(900)],
];

const DURABILITIES: [Durability; 2] = [Durability::Sync, Durability::Os];

const ALL: Effort = Effort { all: 256, each: true, drawn: 50 };

/// Plays a history. `prepare` plans the faults.
fn played(steps: &[Step], durability: Durability, prepare: impl Fn(&Play)) -> Play {
    let mut play = Play::new(durability, 0);
    prepare(&play);
    play.run(steps);
    play
}

/// Returns the calls of a history that change something.
fn calls(steps: &[Step], durability: Durability) -> std::ops::Range<usize> {
    let first = Play::new(durability, 0).disk.calls();
    first..played(steps, durability, |_| {}).disk.calls()
}

#[test]
fn what_was_acknowledged_survives_a_crash_at_every_call() {
    for steps in HISTORIES {
        for durability in DURABILITIES {
            let mut states = 0;
            for call in calls(steps, durability) {
                let play = played(steps, durability, |play| play.disk.fault(call, Fault::Stop));
                states += survives_power_loss(&play, ALL, call as u64);
            }
            assert!(states > 50, "{steps:?} {durability:?}: {states}");
        }
    }
}

/// Fails one call of each history, and stops at some of the calls behind it: at every `stride`th.
fn fails_and_stops(stride: usize, effort: Effort) {
    for steps in HISTORIES {
        for durability in DURABILITIES {
            for failing in calls(steps, durability) {
                for sectors in [0, 1, 9] {
                    let kinds = [io::ErrorKind::StorageFull, io::ErrorKind::Other];
                    let fault = Fault::Fail { kind: kinds[sectors.min(1)], sectors };
                    let whole = played(steps, durability, |play| play.disk.fault(failing, fault));
                    survives_power_loss(&whole, effort, 1);
                    let first = failing + 1 + (failing + sectors) % stride;
                    for call in (first..whole.disk.calls()).step_by(stride) {
                        let play = played(steps, durability, |play| {
                            play.disk.fault(failing, fault);
                            play.disk.fault(call, Fault::Stop);
                        });
                        survives_power_loss(&play, effort, call as u64);
                    }
                }
            }
        }
    }
}

#[test]
fn what_was_acknowledged_survives_a_failure_at_every_call_and_a_crash_at_some() {
    fails_and_stops(20, Effort { all: 4, each: false, drawn: 3 });
}

#[test]
#[ignore = "it takes minutes"]
fn what_was_acknowledged_survives_a_failure_at_every_call_and_a_crash_at_every_call() {
    fails_and_stops(1, Effort { all: 64, each: true, drawn: 20 });
}
