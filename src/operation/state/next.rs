//! Decides about a copy of an uncertain operation.

use super::steps::{Lookups, Next, next_steps};
use super::{ClaimRequest, Hold, IfUncertain};
use crate::operation::{Operation, Timestamp};

/// Decides about a copy of an uncertain operation. `hold` is its state.
pub(super) fn next(
    operation: &Operation,
    hold: &Hold,
    request: &ClaimRequest,
    now: Timestamp,
) -> Next {
    let attempts = &operation.attempts;
    // A claim id makes one attempt only. A call that arrives after its own attempt became uncertain
    // must not begin another one.
    if !request.may_grant || attempts.knows(request.claim_id) {
        return Next::Hold;
    }
    if let Some(plan) = &request.plan {
        // The event became uncertain before its route had steps. Nobody knows which of the
        // receivers it has reached, so none of them may get it again.
        if operation.steps.is_empty() {
            return Next::Hold;
        }
        let look_ups = if request.may_look_up { Lookups::Any } else { Lookups::None };
        return next_steps(operation, plan, look_ups, now);
    }
    match request.if_uncertain {
        // The upstream cannot be working on the operation any more.
        IfUncertain::Retry { .. }
            if hold.ends_at <= now
                && request.if_uncertain.allows_another(attempts.uncertain(None)) =>
        {
            Next::Attempt(Vec::new())
        }
        IfUncertain::LookUp { lease, .. } if request.may_look_up => {
            Next::Lookup { step: None, lease }
        }
        IfUncertain::Hold | IfUncertain::Retry { .. } | IfUncertain::LookUp { .. } => Next::Hold,
    }
}
