//! What a person decides about an operation.

use std::sync::Arc;
use std::time::Duration;

use super::{Change, Failure, State, StateName, Success, Transition, lapse, steps};
use crate::operation::{AnswerBody, Decision, DecisionKind, Operation, StoredAnswer, Timestamp};

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
    /// If given, the state that the operator was looking at.
    pub state: Option<StateName>,
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
            steps::free_all(&mut found.steps);
            // what is remembered is not remembered for longer
            found.state = State::Forgotten { expires_at: found.state.changes_at() };
            let by = by.to_owned();
            let reason = reason.to_owned();
            let kind = DecisionKind::Forgotten;
            let reference = None;
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

/// Whether it is in a state that a person may end, and stands as the person saw it.
fn may_resolve(operation: &Operation, resolution: &Resolution) -> bool {
    let latest = operation.attempts.latest_number();
    let state = operation.state.name();
    match &operation.state {
        State::Uncertain(_) | State::Failed(_) => {
            resolution.attempt.is_none_or(|seen| seen == latest)
                && resolution.state.is_none_or(|seen| seen == state)
        }
        State::InFlight(_) | State::Succeeded(_) | State::Forgotten { .. } => false,
    }
}

fn apply(operation: &mut Operation, resolution: &Resolution, now: Timestamp) -> DecisionKind {
    let claim_id = None;
    let settled_at = now;
    let expires_at = now.plus(resolution.retention);
    match &resolution.verdict {
        Verdict::Succeeded(given) => {
            let answer = given.clone().unwrap_or_else(|| answer_of(&operation.state));
            steps::resolve(&mut operation.steps, true);
            operation.state =
                State::Succeeded(Success { claim_id, settled_at, expires_at, answer });
            DecisionKind::ResolvedSucceeded
        }
        Verdict::Failed => {
            steps::resolve(&mut operation.steps, false);
            operation.state = State::Failed(Failure { claim_id, settled_at, expires_at });
            DecisionKind::ResolvedFailed
        }
    }
}

/// What copies get of an operation that was done after all: its stored answer if that is a success,
/// else an empty 200.
pub(super) fn answer_of(state: &State) -> Arc<StoredAnswer> {
    let stored = match state {
        State::Uncertain(held) => held.answer.clone(),
        State::Failed(_) | State::InFlight(_) | State::Succeeded(_) | State::Forgotten { .. } => {
            None
        }
    };
    let complete = |answer: &Arc<StoredAnswer>| matches!(answer.body, AnswerBody::Kept(_));
    stored
        .filter(|answer| answer.status.is_success() && complete(answer))
        .unwrap_or_else(|| Arc::new(StoredAnswer::empty(http::StatusCode::OK)))
}

/// Adds a decision. Of a long list the first and the latest stay.
pub(super) fn note(decisions: &mut Vec<Decision>, decision: Decision) {
    if decisions.len() >= 2 * DECISIONS_KEPT {
        decisions.remove(DECISIONS_KEPT);
    }
    decisions.push(decision);
}
