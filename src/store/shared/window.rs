//! The earliest time at which a server may make a change.

use std::time::Duration;

use super::assumption::Assumption;
use crate::operation::state::Transition;
use crate::operation::{RequestMode, State, Step, StepState, Timestamp};

/// How far a server's clock may be behind the estimate.
const CLOCK_SLACK: Duration = Duration::from_secs(1);

/// The earliest time on the server's clock at which it may make the change that a rule derived from
/// an assumption.
///
/// The estimate of the server's clock may be ahead of it. A change that frees an uncertain
/// operation is therefore bound to the server's own clock: until `ends_at` the upstream may still
/// be working on the earlier attempt, and a new one would run beside it.
pub(super) fn earliest<T>(assumed: &Assumption, done: &Transition<T>) -> Timestamp {
    let slack = assumed.at.minus(CLOCK_SLACK);
    let before = assumed.record.as_ref().map(|snapshot| &*snapshot.operation);
    let (Some(before), Some(after)) = (before, &done.operation) else { return slack };
    // A route that only observes does not hold back one that enforces: the latter begins at once.
    if before.asked.mode != after.asked.mode && after.asked.mode == RequestMode::Enforce {
        return slack;
    }
    match (&before.state, &after.state) {
        (State::Uncertain(held), State::InFlight(_)) if before.steps.is_empty() => {
            slack.max(held.ends_at)
        }
        _ => freed_steps_end(&before.steps, &after.steps).fold(slack, Timestamp::max),
    }
}

/// When the attempts at the uncertain steps that begin anew must have ended.
fn freed_steps_end(before: &[Step], after: &[Step]) -> impl Iterator<Item = Timestamp> {
    before.iter().filter_map(|step| match &step.state {
        StepState::Uncertain(held) => {
            // Under the same claim the step goes on: it turned out that it had never been sent.
            let is_new_claim = |claim_id| claim_id != held.claim_id;
            let begins_anew = |next: &&Step| {
                next.name == step.name
                    && matches!(next.state, StepState::InFlight { claim_id, .. } if is_new_claim(claim_id))
            };
            after.iter().any(|next| begins_anew(&next)).then_some(held.ends_at)
        }
        StepState::Waiting
        | StepState::InFlight { .. }
        | StepState::Succeeded { .. }
        | StepState::Failed { .. } => None,
    })
}
