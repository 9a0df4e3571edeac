//! The beginning of an attempt.

use std::sync::Arc;

use super::{Change, ClaimReply, ClaimRequest, Grant, ReportedState, Transition, steps};
use crate::operation::{Attempt, Operation, Timestamp};

/// (none), failed, forgotten, uncertain -> in flight, unless nothing may be granted. Also
/// succeeded -> in flight, on a route that shares successes only with waiters.
pub(super) fn grant(
    free: Option<Operation>,
    request: &ClaimRequest,
    now: Timestamp,
) -> Transition<ClaimReply> {
    if !request.may_grant {
        return Transition::to(free, Change::None, ReportedState::Free.into());
    }
    let mut operation = free.unwrap_or_else(|| Operation::begun(&request.subject, now));
    // A new attempt brings its own fingerprint: a sender may correct an event that has failed.
    operation.subject = Arc::clone(&request.subject);
    if let Some(plan) = &request.plan {
        return steps::grant(operation, request, plan, now);
    }
    let ends_at = now.plus(request.durations.attempt_timeout);
    operation.state = request.holder().in_flight(ends_at, now);
    let attempt = operation.attempts.latest_number().saturating_add(1);
    let line = Attempt::begun(attempt, request.claim_id, &request.holder, now);
    operation.attempts.push(Attempt { forward_key: request.forward_key.clone(), ..line });
    let grant = Grant { attempt, steps: Vec::new() };
    Transition::to(operation, Change::Durable, ClaimReply::Granted(grant))
}
