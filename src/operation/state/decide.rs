//! The rules of an operator's decisions: resolve and forget.

use std::sync::Arc;
use std::time::Duration;

use super::decisions::add;
use super::lapse::lapse;
use super::{Change, Rule, RuleName, State, StateName, Transition, steps};
use crate::operation::{Decision, DecisionKind, Operation, OperationId, StoredAnswer, Timestamp};

/// An operator's statement of how an uncertain or failed operation ended.
#[derive(Debug, Clone)]
pub struct Resolution {
    /// The operation.
    pub operation: OperationId,
    /// How the operation ended.
    pub verdict: Verdict,
    /// The operator who decided.
    pub by: String,
    /// The reason, in the operator's words.
    pub reason: String,
    /// A reference by which the operation is found in another system, such as the number of a
    /// payment.
    pub reference: Option<String>,
    /// The number of the attempt that the operator saw. If another one is the latest by now, the
    /// resolution is refused. None: any attempt.
    pub attempt: Option<u32>,
    /// The state that the operator saw. If the operation is in another one by now, the resolution
    /// is refused. None: any state.
    pub state: Option<StateName>,
    /// How long the outcome is remembered.
    pub retention: Duration,
}

/// How an operation ended, according to an operator.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// The operation was done. Copies get this answer. Without an answer here, copies get the
    /// stored answer or an empty 200.
    Succeeded(Option<Arc<StoredAnswer>>),
    /// The operation was not done. The next copy is a new attempt.
    Failed,
}

/// Frees an operation because an operator says so: its next copy is a new attempt.
#[derive(Debug, Clone)]
pub struct Forgetting {
    /// The operation.
    pub operation: OperationId,
    /// The operator who decided.
    pub by: String,
    /// The reason, in the operator's words.
    pub reason: String,
}

/// The reply to an operator's decision.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Decided {
    /// The decision is recorded.
    Done,
    /// There is no such operation.
    Unknown,
    /// The operation is in a state that the decision cannot change, or is not as the operator saw
    /// it. Nothing changed.
    Refused,
}

/// uncertain, failed -> succeeded | failed. After that, a late settle of the attempt is superseded.
impl Rule for Resolution {
    type Reply = Decided;
    const NAME: RuleName = RuleName::Resolve;

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

    fn is_valid_unwritten(reply: &Decided) -> bool {
        *reply != Decided::Done
    }
}

/// uncertain, succeeded, failed, forgotten -> forgotten.
impl Rule for Forgetting {
    type Reply = Decided;
    const NAME: RuleName = RuleName::Forget;

    fn operation(&self) -> OperationId {
        self.operation
    }

    fn apply(&self, found: Option<Operation>, now: Timestamp) -> Transition<Decided> {
        decide(found, now, |found| {
            // An attempt in flight would go on, and a copy would be forwarded beside it.
            let may_forget = !matches!(found.state, State::InFlight(_));
            may_forget.then(|| {
                steps::free_all(&mut found.steps);
                // The record keeps its end: forgetting does not make a record live for longer.
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

    fn is_valid_unwritten(reply: &Decided) -> bool {
        *reply != Decided::Done
    }
}

/// Changes an operation by a decision. `change` gives the decision to note, or none to refuse the
/// change.
fn decide(
    found: Option<Operation>,
    now: Timestamp,
    change: impl FnOnce(&mut Operation) -> Option<Decision>,
) -> Transition<Decided> {
    let mut lapsed = lapse(found, now);
    let Some(operation) = &mut lapsed.operation else {
        return lapsed.replied(Change::None, Decided::Unknown);
    };
    let Some(decision) = change(operation) else {
        return lapsed.replied(Change::None, Decided::Refused);
    };
    add(&mut operation.decisions, decision);
    lapsed.replied(Change::Durable, Decided::Done)
}

/// Whether an operator may resolve the operation. Its state must allow that, and the operation must
/// still be as the operator saw it. An operator who looks at an old page must not decide about a
/// newer attempt.
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

/// Writes a resolution into the record.
fn resolve(operation: &mut Operation, resolution: &Resolution, now: Timestamp) -> DecisionKind {
    match &resolution.verdict {
        Verdict::Succeeded(given) => {
            let answer = given.clone().unwrap_or_else(|| stored_answer(&operation.state));
            steps::mark_done(&mut operation.steps);
            operation.state = State::succeeded(None, answer, resolution.retention, now);
            DecisionKind::ResolvedSucceeded
        }
        Verdict::Failed => {
            steps::mark_not_done(&mut operation.steps);
            operation.state = State::failed(None, resolution.retention, now);
            DecisionKind::ResolvedFailed
        }
    }
}

/// The answer for copies if the operator gives none.
fn stored_answer(state: &State) -> Arc<StoredAnswer> {
    let stored = if let State::Uncertain(hold) = state { hold.answer.as_ref() } else { None };
    StoredAnswer::for_copies(stored)
}
