//! What a person decides about an operation.

use std::sync::Arc;
use std::time::Duration;

use super::{Change, Failure, State, Success, Transition, lapse};
use crate::operation::{Decision, DecisionKind, Operation, StoredAnswer, Timestamp};

/// How many decisions are kept from either end.
const DECISIONS_KEPT: usize = 32;

/// What an operator decides about an operation.
#[derive(Debug, Clone)]
pub struct Resolution {
    /// Succeeded, with what every copy gets; or failed.
    pub verdict: Verdict,
    /// Who decided.
    pub by: String,
    /// Why.
    pub reason: String,
    /// Something to find it by elsewhere.
    pub reference: Option<String>,
    /// If given, the attempt that the operator was looking at.
    pub attempt: Option<u32>,
    /// How long the decision is remembered.
    pub retention: Duration,
}

/// The two ways to resolve an operation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// It was done. Without an answer, the stored one is used, or an empty 200.
    Succeeded(Option<Arc<StoredAnswer>>),
    /// It was not done: the next copy is a new attempt.
    Failed,
}

/// The answer to [`resolve`] and [`forget`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Decided {
    /// Written.
    Done,
    /// There is no such operation.
    Unknown,
    /// It is in flight, already succeeded, or has moved on to another attempt.
    Refused,
}

/// uncertain, failed -> succeeded | failed, by a person. The attempt's own settle becomes stale.
pub fn resolve(
    found: Option<Operation>,
    resolution: &Resolution,
    now: Timestamp,
) -> Transition<Decided> {
    decide(found, now, |found| {
        let may = may_resolve(found, resolution);
        may.then(|| {
            let kind = apply(found, resolution, now);
            let Resolution { by, reason, reference, .. } = resolution.clone();
            Decision { at: now, by, kind, reason, reference }
        })
    })
}

/// uncertain, succeeded, failed -> forgotten, by a person: the next copy runs again.
pub fn forget(
    found: Option<Operation>,
    by: &str,
    reason: &str,
    now: Timestamp,
) -> Transition<Decided> {
    decide(found, now, |found| {
        let may = !matches!(found.state, State::InFlight(_));
        may.then(|| {
            // what is remembered is not remembered for longer
            found.state = State::Forgotten { expires_at: found.state.changes_at() };
            let (by, reason) = (by.to_owned(), reason.to_owned());
            let (kind, reference) = (DecisionKind::Forgotten, None);
            Decision { at: now, by, kind, reason, reference }
        })
    })
}

/// Applies a decision, unless there is nothing to decide about or `change` makes none.
fn decide(
    found: Option<Operation>,
    now: Timestamp,
    change: impl FnOnce(&mut Operation) -> Option<Decision>,
) -> Transition<Decided> {
    let mut seen = lapse(found, now);
    let (change, result) = match &mut seen.operation {
        None => (seen.change, Decided::Unknown),
        Some(operation) => match change(operation) {
            None => (seen.change, Decided::Refused),
            Some(decision) => {
                note(&mut operation.decisions, decision);
                (Change::Durable, Decided::Done)
            }
        },
    };
    Transition { operation: seen.operation, change, hold_ended: seen.hold_ended, result }
}

/// Whether it is in a state that a person may end, and the one that the person was looking at.
fn may_resolve(operation: &Operation, resolution: &Resolution) -> bool {
    let latest = operation.attempts.latest_number();
    match &operation.state {
        State::Uncertain(_) | State::Failed(_) => {
            resolution.attempt.is_none_or(|looked_at| looked_at == latest)
        }
        State::InFlight(_) | State::Succeeded(_) | State::Forgotten { .. } => false,
    }
}

fn apply(operation: &mut Operation, resolution: &Resolution, now: Timestamp) -> DecisionKind {
    let (claim_id, settled_at) = (None, now);
    let expires_at = now.plus(resolution.retention);
    match &resolution.verdict {
        Verdict::Succeeded(given) => {
            let stored = match &operation.state {
                State::Uncertain(held) => held.answer.clone(),
                State::Failed(_)
                | State::InFlight(_)
                | State::Succeeded(_)
                | State::Forgotten { .. } => None,
            };
            let answer = given
                .clone()
                .or(stored.filter(|answer| answer.status.is_success()))
                .unwrap_or_else(|| Arc::new(StoredAnswer::empty(http::StatusCode::OK)));
            operation.state =
                State::Succeeded(Success { claim_id, settled_at, expires_at, answer });
            DecisionKind::ResolvedSucceeded
        }
        Verdict::Failed => {
            operation.state = State::Failed(Failure { claim_id, settled_at, expires_at });
            DecisionKind::ResolvedFailed
        }
    }
}

/// Adds a decision. Of a long list the first and the latest stay.
pub(super) fn note(decisions: &mut Vec<Decision>, decision: Decision) {
    if decisions.len() >= 2 * DECISIONS_KEPT {
        decisions.remove(DECISIONS_KEPT);
    }
    decisions.push(decision);
}
