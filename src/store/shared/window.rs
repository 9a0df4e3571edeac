//! The time on the server's clock within which a server may make a change.

use std::time::Duration;

use super::assumption::Assumption;
use crate::operation::state::Transition;
use crate::operation::{RequestMode, State, Step, StepState, Timestamp};

/// The most that a server's clock may be behind the estimate.
const CLOCK_SLACK: Duration = Duration::from_secs(1);

/// Returns the earliest time on the server's clock at which the server may make a change. A rule
/// derived the change from the assumption. If it took the record for lapsed, the record must have
/// lapsed.
pub(super) fn earliest<T>(assumed: &Assumption, done: &Transition<T>) -> Timestamp {
    let lapsed_at = assumed.changes_at().filter(|at| *at <= assumed.at);
    end_of_attempts(assumed, done).max(lapsed_at.unwrap_or_default())
}

/// Returns the latest time on the server's clock at which the server may make a change. Whoever
/// asked for it gives up when `time_left` has passed. If the rule did not take the record for
/// lapsed, the record must not have lapsed.
pub(super) fn latest(assumed: &Assumption, time_left: Duration) -> Timestamp {
    let late = assumed.at.plus(time_left);
    let lapses_at = assumed.changes_at().filter(|at| *at > assumed.at);
    lapses_at.map_or(late, |at| late.min(at.minus(Duration::from_millis(1))))
}

/// Returns the earliest time at which no earlier attempt can run any more.
///
/// The estimate may be ahead of the server's clock. A change that frees an uncertain operation must
/// therefore wait for the server's own clock to reach `ends_at`. Until then the upstream may still
/// be working on the earlier attempt, and a new attempt would run beside it.
fn end_of_attempts<T>(assumed: &Assumption, done: &Transition<T>) -> Timestamp {
    let slack = assumed.at.minus(CLOCK_SLACK);
    let before = assumed.record.as_ref().map(|snapshot| &*snapshot.operation);
    let (Some(before), Some(after)) = (before, &done.operation) else { return slack };
    // An attempt that was only observed does not hold back a route that enforces, so the new
    // attempt begins at once.
    if before.subject.mode != after.subject.mode && after.subject.mode == RequestMode::Enforce {
        return slack;
    }
    match (&before.state, &after.state) {
        (State::Uncertain(hold), State::InFlight(_)) if before.steps.is_empty() => {
            slack.max(hold.ends_at)
        }
        _ => freed_steps_end(&before.steps, &after.steps).fold(slack, Timestamp::max),
    }
}

/// Returns the times by which the earlier attempts have ended, for the uncertain steps that begin
/// anew.
fn freed_steps_end(before: &[Step], after: &[Step]) -> impl Iterator<Item = Timestamp> {
    before.iter().filter_map(|step| {
        let StepState::Uncertain(hold) = &step.state else { return None };
        // A step under the same claim goes on, because it turned out that it had never been sent.
        let begins_anew = |next: &Step| {
            next.name == step.name
                && matches!(next.state, StepState::InFlight { claim_id, .. } if claim_id != hold.claim_id)
        };
        after.iter().any(begins_anew).then_some(hold.ends_at)
    })
}
