//! What a person decides about an operation.

use std::sync::Arc;
use std::time::Duration;

use super::{Call, Change, Failure, Rule, State, StateName, Success, Transition, lapse, steps};
use crate::operation::{
    AnswerBody, Decision, DecisionKind, Operation, OperationId, StoredAnswer, Timestamp,
};

/// How many decisions are kept from either end.
const DECISIONS_KEPT: usize = 32;

/// What a person says of how an uncertain or failed operation ended.
#[derive(Debug, Clone)]
pub struct Resolution {
    /// The operation.
    pub operation: OperationId,
    /// Succeeded, with what every copy gets; or failed.
    pub verdict: Verdict,
    /// Who decided.
    pub by: String,
    /// Why.
    pub reason: String,
    /// Something to find it by elsewhere.
    pub reference: Option<String>,
    /// If given, the attempt that the person was looking at.
    pub attempt: Option<u32>,
    /// If given, the state that the person was looking at.
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

/// Takes an operation back by a person's decision: its next copy runs again.
#[derive(Debug, Clone)]
pub struct Forgetting {
    /// The operation.
    pub operation: OperationId,
    /// Who decided.
    pub by: String,
    /// Why.
    pub reason: String,
}

/// The answer to a person's decision.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Decided {
    /// Written.
    Done,
    /// There is no such operation.
    Unknown,
    /// It is in flight, already succeeded, or has moved on to another attempt.
    Refused,
}

/// uncertain, failed -> succeeded | failed. The attempt's own settle becomes stale.
impl Rule for Resolution {
    type Answer = Decided;
    const CALL: Call = Call::Resolve;

    fn operation(&self) -> OperationId {
        self.operation
    }

    fn apply(&self, found: Option<Operation>, now: Timestamp) -> Transition<Decided> {
        decide(found, now, |found| {
            may_resolve(found, self).then(|| Decision {
                at: now,
                kind: resolve(found, self, now),
                by: self.by.clone(),
                reason: self.reason.clone(),
                reference: self.reference.clone(),
            })
        })
    }

    fn stands_unwritten(answer: &Decided) -> bool {
        *answer != Decided::Done
    }
}

/// uncertain, succeeded, failed, forgotten -> forgotten.
impl Rule for Forgetting {
    type Answer = Decided;
    const CALL: Call = Call::Forget;

    fn operation(&self) -> OperationId {
        self.operation
    }

    fn apply(&self, found: Option<Operation>, now: Timestamp) -> Transition<Decided> {
        decide(found, now, |found| {
            let may_forget = !matches!(found.state, State::InFlight(_));
            may_forget.then(|| {
                steps::free_all(&mut found.steps);
                // What is remembered is not remembered for longer.
                found.state = State::Forgotten { expires_at: found.state.changes_at() };
                Decision {
                    at: now,
                    by: self.by.clone(),
                    kind: DecisionKind::Forgotten,
                    reason: self.reason.clone(),
                    reference: None,
                }
            })
        })
    }

    fn stands_unwritten(answer: &Decided) -> bool {
        *answer != Decided::Done
    }
}

/// Applies a decision, unless there is nothing to decide about or `change` makes none.
fn decide(
    found: Option<Operation>,
    now: Timestamp,
    change: impl FnOnce(&mut Operation) -> Option<Decision>,
) -> Transition<Decided> {
    let mut seen = lapse(found, now);
    let Some(operation) = &mut seen.operation else {
        return seen.answered(Change::None, Decided::Unknown);
    };
    let Some(decision) = change(operation) else {
        return seen.answered(Change::None, Decided::Refused);
    };
    note(&mut operation.decisions, decision);
    seen.answered(Change::Durable, Decided::Done)
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

/// Writes what a person has said into the record.
fn resolve(operation: &mut Operation, resolution: &Resolution, now: Timestamp) -> DecisionKind {
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
