//! What becomes of an uncertain operation for a copy that comes upon it, and of the look-up that
//! the copy may make: the receiver is asked whether it was done.

use std::sync::Arc;
use std::time::Duration;

use super::claim::note_refused;
use super::decide::{answer_of, note};
use super::grant::grant;
use super::steps::{self, Asks, Run, run};
use super::{
    Call, Change, ClaimRequest, Claimed, Held, IfInFlight, IfUncertain, LookUp, LookUpLease,
    OperationState, Rule, State, Success, Transition, lapse,
};
use crate::operation::{
    AttemptLog, Decision, DecisionKind, Operation, OperationId, Plan, Timestamp,
};

/// Who made the decision, where the receiver was asked.
const LOOKUP: &str = "lookup";

/// What a look-up has found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Finding {
    /// The receiver has done it.
    Done,
    /// The receiver has not done it, or not yet.
    NotDone,
    /// The receiver did not say.
    Unknown,
}

impl Finding {
    /// All of them, in the order of their discriminants.
    pub const ALL: [Self; 3] = [Self::Done, Self::NotDone, Self::Unknown];

    /// The word used in metrics, logs and decisions.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Done => "done",
            Self::NotDone => "not-done",
            Self::Unknown => "unknown",
        }
    }
}

/// The end of a look-up, as the one who made it reports it.
#[derive(Debug, Clone)]
pub struct Conclusion {
    /// The request to which the look-up was granted. It is what makes the next attempt, if there is
    /// to be one.
    pub request: ClaimRequest,
    /// Which step was asked about; none on a route without steps.
    pub step: Option<Arc<str>>,
    /// What was found.
    pub finding: Finding,
    /// How that came about, in a few words.
    pub reason: String,
    /// What the receiver calls it.
    pub reference: Option<String>,
}

/// What a copy may do about an uncertain operation.
pub(super) enum Next {
    /// Nothing: it is held.
    Held,
    /// Make the next attempt.
    Attempt,
    /// Ask the receiver, of this step if there are several, for so long at most.
    LookUp(Option<Arc<str>>, Duration),
    /// Somebody asks the receiver now, and has so much time left.
    Awaited(Duration),
}

/// What a copy may do about an operation that is uncertain.
pub(super) fn next(operation: &Operation, request: &ClaimRequest, now: Timestamp) -> Next {
    let State::Uncertain(held) = &operation.state else { return Next::Held };
    let attempts = &operation.attempts;
    if let Some(lookup) = &held.lookup
        && now < lookup.until
        && lookup.id != request.claim_id
    {
        return Next::Awaited(now.until(lookup.until));
    }
    if !request.may_grant || attempts.knows(request.claim_id) {
        return Next::Held;
    }
    if let Some(plan) = &request.plan {
        return next_of(operation, plan, request, now);
    }
    match request.if_uncertain {
        IfUncertain::Retried { attempts_max } if may_attempt(held, attempts, attempts_max, now) => {
            Next::Attempt
        }
        IfUncertain::LookedUp { lease, .. } if request.may_look_up => Next::LookUp(None, lease),
        IfUncertain::Held | IfUncertain::Retried { .. } | IfUncertain::LookedUp { .. } => {
            Next::Held
        }
    }
}

/// The same of an event with steps. One that became uncertain before the route had any is held:
/// nobody knows which of them it has reached.
fn next_of(operation: &Operation, plan: &Plan, request: &ClaimRequest, now: Timestamp) -> Next {
    if operation.steps.is_empty() {
        return Next::Held;
    }
    let asks = if request.may_look_up { Asks::Everybody } else { Asks::Nobody };
    match run(operation, plan, asks, now) {
        Run::Begin(_) | Run::Done => Next::Attempt,
        Run::LookUp { step, lease } => Next::LookUp(Some(step), lease),
        Run::Held => Next::Held,
    }
}

/// Whether the receiver cannot be working on it any more, and it was not tried too often.
fn may_attempt(held: &Held, attempts: &AttemptLog, attempts_max: u32, now: Timestamp) -> bool {
    held.ends_at <= now && attempts.uncertain(None) < attempts_max
}

/// The copy is refused, and the operation held for longer, since copies still come.
pub(super) fn refuse(held: &mut Held, attempt: u32, now: Timestamp) -> Claimed {
    held.copy_refused = true;
    held.hold_until = held.hold_until.max(now.plus(held.hold_for));
    OperationState::Uncertain { attempt, ends_in: now.until(held.ends_at) }.into()
}

/// The copy may ask the receiver, and nobody else may for as long.
pub(super) fn begin(
    held: &mut Held,
    attempt: u32,
    inquiry: LookUpLease,
    now: Timestamp,
) -> Claimed {
    held.hold_until = held.hold_until.max(now.plus(held.hold_for));
    let step = inquiry.step.clone();
    held.lookup = Some(inquiry);
    Claimed::LookUp(LookUp { attempt, step })
}

/// The copy comes while somebody asks the receiver. That is like an attempt in flight: it has an end
/// that can be waited for.
pub(super) fn await_lookup(
    held: &mut Held,
    attempt: u32,
    request: &ClaimRequest,
    lease_left: Duration,
) -> (Change, Claimed) {
    let is_refused = request.if_in_flight == IfInFlight::Refused;
    let change = note_refused(&mut held.copy_refused, is_refused);
    (change, OperationState::InFlight { attempt, lease_left }.into())
}

/// uncertain -> succeeded | in flight | uncertain, by what a look-up has found, if nothing has changed
/// since it was granted. Otherwise it changes nothing, and its request is told how the operation
/// stands.
impl Rule for Conclusion {
    type Answer = Claimed;
    const CALL: Call = Call::Conclude;

    fn operation(&self) -> OperationId {
        self.request.asked.id
    }

    fn apply(&self, found: Option<Operation>, now: Timestamp) -> Transition<Claimed> {
        let mut seen = lapse(found, now);
        let current = seen.operation.take_if(|found| is_current(&found.state, self));
        let done = if let Some(operation) = current {
            conclude(operation, self, now)
        } else {
            let look = ClaimRequest { may_grant: false, ..self.request.clone() };
            look.apply(seen.operation, now)
        };
        done.after(seen.change, seen.hold_ended)
    }

    fn stands_unwritten(answer: &Claimed) -> bool {
        ClaimRequest::stands_unwritten(answer)
    }
}

/// A look-up that is under way ends.
fn conclude(
    mut operation: Operation,
    conclusion: &Conclusion,
    now: Timestamp,
) -> Transition<Claimed> {
    let Conclusion { request, step, finding, .. } = conclusion;
    note(&mut operation.decisions, decision(conclusion, now));
    if let (Some(step), Some(plan)) = (step, &request.plan) {
        return steps::conclude(operation, plan, step, conclusion, now);
    }
    let attempt = operation.attempts.latest_number();
    let attempts_max = match request.if_uncertain {
        IfUncertain::LookedUp { attempts_max, .. } | IfUncertain::Retried { attempts_max } => {
            attempts_max
        }
        IfUncertain::Held => 0,
    };
    let answer = answer_of(&operation.state);
    let State::Uncertain(held) = &mut operation.state else {
        return request.apply(Some(operation), now);
    };
    let result = match finding {
        Finding::NotDone if may_attempt(held, &operation.attempts, attempts_max, now) => {
            return grant(Some(operation), request, now);
        }
        Finding::Done => {
            let told = OperationState::Succeeded { attempt, answer: Arc::clone(&answer) };
            operation.state = State::Succeeded(Success {
                claim_id: None,
                settled_at: now,
                expires_at: now.plus(request.terms.retention),
                answer,
            });
            told.into()
        }
        Finding::NotDone | Finding::Unknown => {
            held.lookup = None;
            refuse(held, attempt, now)
        }
    };
    Transition::to(operation, Change::Durable, result)
}

/// Whether the look-up that was granted to a request is the one that is under way.
fn is_current(state: &State, conclusion: &Conclusion) -> bool {
    let Conclusion { request, step, .. } = conclusion;
    match state {
        State::Uncertain(held) => held
            .lookup
            .as_ref()
            .is_some_and(|lookup| lookup.id == request.claim_id && lookup.step == *step),
        State::InFlight(_) | State::Succeeded(_) | State::Failed(_) | State::Forgotten { .. } => {
            false
        }
    }
}

fn decision(conclusion: &Conclusion, now: Timestamp) -> Decision {
    let Conclusion { step, finding, reason, reference, .. } = conclusion;
    let finding = finding.as_str();
    let reason = match step {
        Some(step) => format!("{step}: {finding}: {reason}"),
        None => format!("{finding}: {reason}"),
    };
    Decision {
        at: now,
        by: LOOKUP.to_owned(),
        kind: DecisionKind::LookedUp,
        reason,
        reference: reference.clone(),
    }
}
