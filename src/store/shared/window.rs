//! The earliest time at which a server may make a change.

use std::time::Duration;

use super::Assumption;
use crate::operation::state::Transition;
use crate::operation::{RequestMode, State, Step, StepState, Timestamp};

/// How far a server's clock may be behind the time that was assumed.
const CLOCK_SLACK: Duration = Duration::from_secs(1);

/// The earliest time on the server's clock at which it may do what a rule has made of an assumption.
/// The estimate of that clock may be ahead: nobody frees an uncertain operation before its attempt
/// must have ended, not by a moment.
pub(super) fn earliest<T>(assumed: &Assumption, done: &Transition<T>) -> Timestamp {
    let at = assumed.at.minus(CLOCK_SLACK);
    let before = assumed.record.as_ref().map(|known| &*known.operation);
    let (Some(before), Some(after)) = (before, &done.operation) else { return at };
    // What was only observed is free at once for a route that enforces.
    if before.asked.mode != after.asked.mode && after.asked.mode == RequestMode::Enforce {
        return at;
    }
    match (&before.state, &after.state) {
        (State::Uncertain(held), State::InFlight(_)) if before.steps.is_empty() => {
            at.max(held.ends_at)
        }
        _ => freed(&before.steps, &after.steps).fold(at, Timestamp::max),
    }
}

/// When the attempts at uncertain steps that begin again must have ended.
fn freed(before: &[Step], after: &[Step]) -> impl Iterator<Item = Timestamp> {
    before.iter().filter_map(|step| match &step.state {
        StepState::Uncertain(held) => {
            // Under the same claim it is a step that was never sent.
            let is_anew = |claim_id| claim_id != held.claim_id;
            let begins = |next: &&Step| {
                next.name == step.name
                    && matches!(next.state, StepState::InFlight { claim_id, .. } if is_anew(claim_id))
            };
            after.iter().any(|next| begins(&next)).then_some(held.ends_at)
        }
        StepState::Waiting
        | StepState::InFlight { .. }
        | StepState::Succeeded { .. }
        | StepState::Failed { .. } => None,
    })
}
