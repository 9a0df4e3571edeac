//! Decides about a copy of an uncertain operation.

use std::sync::Arc;
use std::time::Duration;

use super::steps::{Lookups, NextSteps, next_steps};
use super::{ClaimRequest, Hold, IfUncertain};
use crate::operation::{AttemptLog, Operation, Plan, Timestamp};

/// The decision about a copy of an uncertain operation: hold, attempt, look up or wait.
pub(super) enum Next {
    /// Nothing: the operation is held.
    Hold,
    /// Make the next attempt.
    Attempt,
    /// Ask the receiver about the operation, or about this step of it.
    Lookup {
        /// The step; none on a route without steps.
        step: Option<Arc<str>>,
        /// How long the look-up keeps other copies from asking.
        lease: Duration,
    },
    /// Wait: another copy is asking the receiver.
    AwaitLookup {
        /// How long the lease of that look-up lasts from now.
        lease_left: Duration,
    },
}

/// Decides about a copy of an uncertain operation. `hold` is its state.
pub(super) fn next(
    operation: &Operation,
    hold: &Hold,
    request: &ClaimRequest,
    now: Timestamp,
) -> Next {
    let attempts = &operation.attempts;
    // Only one look-up runs at a time, so that many copies do not overrun a receiver in trouble.
    // The request that has the look-up may claim again, because its own call may be repeated.
    if let Some(lookup) = &hold.lookup
        && now < lookup.until
        && lookup.id != request.claim_id
    {
        return Next::AwaitLookup { lease_left: now.until(lookup.until) };
    }
    // A claim id makes one attempt only. A call that arrives after its own attempt became uncertain
    // must not begin another one.
    if !request.may_grant || attempts.knows(request.claim_id) {
        return Next::Hold;
    }
    if let Some(plan) = &request.plan {
        return next_of_steps(operation, plan, request, now);
    }
    match request.if_uncertain {
        IfUncertain::Retry { attempts_max } if may_attempt(hold, attempts, attempts_max, now) => {
            Next::Attempt
        }
        IfUncertain::LookUp { lease, .. } if request.may_look_up => {
            Next::Lookup { step: None, lease }
        }
        IfUncertain::Hold | IfUncertain::Retry { .. } | IfUncertain::LookUp { .. } => Next::Hold,
    }
}

fn next_of_steps(
    operation: &Operation,
    plan: &Plan,
    request: &ClaimRequest,
    now: Timestamp,
) -> Next {
    // The event became uncertain before its route had steps. Nobody knows which of the receivers
    // it has reached, so none of them may get it again.
    if operation.steps.is_empty() {
        return Next::Hold;
    }
    let look_ups = if request.may_look_up { Lookups::Any } else { Lookups::None };
    match next_steps(operation, plan, look_ups, now) {
        NextSteps::Begin(_) | NextSteps::Done => Next::Attempt,
        NextSteps::Lookup { step, lease } => Next::Lookup { step: Some(step), lease },
        NextSteps::Hold => Next::Hold,
    }
}

/// Whether the upstream cannot be working on the operation any more, and fewer than `attempts_max`
/// attempts were uncertain.
pub(super) fn may_attempt(
    hold: &Hold,
    attempts: &AttemptLog,
    attempts_max: u32,
    now: Timestamp,
) -> bool {
    hold.ends_at <= now && attempts.uncertain(None) < attempts_max
}
