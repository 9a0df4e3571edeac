//! Taking an operation: who may attempt it next, and what a copy gets.

use std::sync::Arc;
use std::time::Duration;

use super::decide::note;
use super::grant::grant;
use super::lapse::WHEN_UNCERTAIN;
use super::lookup::{Next, await_lookup, begin, next, refuse};
use super::{Call, Change, Held, Lease, LookUpLease, Rule, State, Success, Transition, lapse};
use crate::operation::{
    ClaimId, Decision, DecisionKind, KeyKind, Operation, OperationId, OperationRequest, Plan,
    RequestMode, Step, StepState, StoredAnswer, Terms, Timestamp,
};

/// Asks for the right to attempt an operation.
#[derive(Debug, Clone)]
pub struct ClaimRequest {
    /// What is to be done.
    pub asked: Arc<OperationRequest>,
    /// New and random. A call repeated with the same one is the same claim.
    pub claim_id: ClaimId,
    /// The process that asks.
    pub holder: Arc<str>,
    /// The durations that bind the operation.
    pub terms: Terms,
    /// `false` only looks: nothing is granted.
    pub may_grant: bool,
    /// What the caller does with its sender if the operation is in flight.
    pub if_in_flight: IfInFlight,
    /// What the route wants done if the operation is uncertain.
    pub if_uncertain: IfUncertain,
    /// Whether the caller can ask the receiver about an uncertain operation.
    pub may_look_up: bool,
    /// What the route wants done if the operation has succeeded.
    pub if_succeeded: IfSucceeded,
    /// The header that carries the key to the receiver, if there is one.
    pub forward_key: Option<Arc<str>>,
    /// The receivers, if there are several.
    pub plan: Option<Arc<Plan>>,
}

impl ClaimRequest {
    /// A claim that may be granted, on an operation with one receiver. Other states are answered as
    /// is built in: copies in flight are refused, an uncertain operation is held, a success is
    /// replayed.
    pub fn new(
        asked: Arc<OperationRequest>,
        claim_id: ClaimId,
        holder: Arc<str>,
        terms: Terms,
    ) -> Self {
        Self {
            asked,
            claim_id,
            holder,
            terms,
            may_grant: true,
            if_in_flight: IfInFlight::Refused,
            if_uncertain: IfUncertain::Held,
            may_look_up: true,
            if_succeeded: IfSucceeded::Replayed,
            forward_key: None,
            plan: None,
        }
    }
}

/// What happens to a copy of a success.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IfSucceeded {
    /// It gets the answer.
    Replayed,
    /// Only a request that waited for this attempt gets its answer. Any other one is a new event,
    /// for which the sender has no other name.
    Shared {
        /// The attempt that the caller has waited for, if it has.
        waited_for: Option<u32>,
    },
}

/// What happens to a copy of an uncertain operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IfUncertain {
    /// It is refused until somebody resolves the operation.
    Held,
    /// It makes the next attempt, once the upstream cannot be working on the last one any more. An
    /// upstream that was paused may still do that one too: this is at-least-once.
    Retried {
        /// Uncertain attempts of an operation in all; then it is held.
        attempts_max: u32,
    },
    /// The receiver is asked whether it was done, one look-up at a time. Not done: the copy makes
    /// the next attempt under the same conditions as above.
    LookedUp {
        /// Uncertain attempts of an operation in all; then it is not sent again.
        attempts_max: u32,
        /// How long nobody else may ask.
        lease: Duration,
    },
}

/// What happens to a copy of an operation in flight.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IfInFlight {
    /// Its sender is told to come back; that is noted, in case the attempt fails.
    Refused,
    /// It waits for the outcome.
    Waits,
}

/// The answer to a claim.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Claimed {
    /// The caller, and nobody else, may make this attempt.
    Granted(Grant),
    /// Nobody knows whether it was done. The caller, and nobody else, may ask the receiver, and
    /// must [conclude](super::Conclusion).
    LookUp(LookUp),
    /// Nothing was granted: this is how the operation stands.
    NotGranted(OperationState),
}

/// The right to make one attempt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Grant {
    /// The attempt's number.
    pub attempt: u32,
    /// The steps that have begun with it and must be run; none on a route without steps.
    pub steps: Vec<Arc<str>>,
}

/// The right to ask the receiver whether an operation was done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LookUp {
    /// The number of the latest attempt.
    pub attempt: u32,
    /// The step that is asked about; none on a route without steps.
    pub step: Option<Arc<str>>,
}

/// How an operation stands for a request that may not attempt it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum OperationState {
    /// Nobody holds it, but this call could not be granted anything, or its claim is used up.
    Free,
    /// Done before.
    Succeeded {
        /// The number of the latest attempt.
        attempt: u32,
        /// What every copy gets.
        answer: Arc<StoredAnswer>,
    },
    /// Another attempt runs.
    InFlight {
        /// Its number.
        attempt: u32,
        /// What is left of its lease.
        lease_left: Duration,
    },
    /// Nobody knows whether it was done.
    Uncertain {
        /// The number of the latest attempt.
        attempt: u32,
        /// How long the upstream may still be working on it.
        ends_in: Duration,
    },
    /// The key stands for a different request.
    Mismatched {
        /// The number of the latest attempt.
        attempt: u32,
    },
}

impl From<OperationState> for Claimed {
    fn from(state: OperationState) -> Self {
        Self::NotGranted(state)
    }
}

/// Grants the operation to the caller, or says how it stands. The fingerprint is compared before
/// anything else is told.
impl Rule for ClaimRequest {
    type Answer = Claimed;
    const CALL: Call = Call::Claim;

    fn operation(&self) -> OperationId {
        self.asked.id
    }

    fn apply(&self, found: Option<Operation>, now: Timestamp) -> Transition<Claimed> {
        let seen = lapse(found, now);
        let done = match seen.operation {
            None => grant(None, self, now),
            Some(mut operation) if !counts(&operation, &self.asked) => {
                if self.may_grant {
                    free(&mut operation, now);
                }
                grant(Some(operation), self, now)
            }
            Some(operation) => claim(operation, self, now),
        };
        done.after(seen.change, seen.hold_ended)
    }

    fn stands_unwritten(answer: &Claimed) -> bool {
        match answer {
            Claimed::Granted(_) | Claimed::LookUp(_) => false,
            Claimed::NotGranted(state) => state.turns_away(),
        }
    }

    fn waits(&self) -> bool {
        self.if_in_flight == IfInFlight::Waits
    }
}

impl OperationState {
    /// Whether it turns a copy away because of another attempt. That is right even if the note that
    /// goes with it could not be written.
    const fn turns_away(&self) -> bool {
        match self {
            Self::InFlight { .. } | Self::Uncertain { .. } | Self::Mismatched { .. } => true,
            Self::Free | Self::Succeeded { .. } => false,
        }
    }
}

/// A claim on an operation that is there, as time has left it.
fn claim(mut operation: Operation, request: &ClaimRequest, now: Timestamp) -> Transition<Claimed> {
    let attempt = operation.attempts.latest_number();
    let matches = operation.asked.fingerprint.matches(&request.asked.fingerprint);
    let is_used_up = operation.attempts.knows(request.claim_id);
    let next = next(&operation, request, now);
    let (change, answer) = match &mut operation.state {
        // The call was sent twice. Whether the first one is durable is not known.
        State::InFlight(lease) if lease.claim_id == request.claim_id => {
            (Change::Durable, granted_before(&operation.steps, attempt, request.claim_id))
        }
        // Another event under the same id is refused as a copy is, and lost with it if the attempt
        // fails.
        State::InFlight(Lease { copy_refused, .. })
        | State::Uncertain(Held { copy_refused, .. })
            if !matches =>
        {
            let is_event = request.asked.key.from == KeyKind::Event;
            let change = note_refused(copy_refused, is_event);
            (change, OperationState::Mismatched { attempt }.into())
        }
        State::InFlight(lease) => {
            let is_refused = request.if_in_flight == IfInFlight::Refused;
            let change = note_refused(&mut lease.copy_refused, is_refused);
            let lease_left = now.until(lease.expires_at);
            (change, OperationState::InFlight { attempt, lease_left }.into())
        }
        State::Uncertain(held) => match next {
            Next::Attempt => {
                // A step that is sent again has a decision of its own, made when it begins.
                if request.plan.is_none() {
                    let decision = retried(held, now);
                    note(&mut operation.decisions, decision);
                }
                return grant(Some(operation), request, now);
            }
            Next::Held => (Change::Lazy, refuse(held, attempt, now)),
            Next::LookUp(step, lease) => {
                let inquiry = LookUpLease { id: request.claim_id, until: now.plus(lease), step };
                (Change::Lazy, begin(held, attempt, inquiry, now))
            }
            Next::Awaited(left) => await_lookup(held, attempt, request, left),
        },
        State::Succeeded(success) if is_told(request.if_succeeded, attempt) => {
            (Change::None, remembered(success, attempt, matches).into())
        }
        // This claim was settled or withdrawn before it arrived once more.
        State::Succeeded(_) | State::Failed(_) | State::Forgotten { .. } if is_used_up => {
            (Change::None, OperationState::Free.into())
        }
        State::Succeeded(_) | State::Failed(_) | State::Forgotten { .. } => {
            return grant(Some(operation), request, now);
        }
    };
    Transition::to(operation, change, answer)
}

/// Notes that a copy was refused, if this one is and none was before.
pub(super) fn note_refused(copy_refused: &mut bool, is_refused: bool) -> Change {
    let is_first = is_refused && !*copy_refused;
    *copy_refused |= is_first;
    if is_first { Change::Lazy } else { Change::None }
}

/// Whether a record says anything to this request. What a route has only observed says nothing to one
/// that enforces, except for a success whose sender is known: anybody can have sent the others.
fn counts(found: &Operation, asked: &OperationRequest) -> bool {
    match (found.asked.mode, asked.mode) {
        (RequestMode::Observe { genuine }, RequestMode::Enforce) => {
            genuine && matches!(found.state, State::Succeeded(_))
        }
        (RequestMode::Enforce, _) | (_, RequestMode::Observe { .. }) => true,
    }
}

/// As if it had never been asked for; its log stays.
fn free(operation: &mut Operation, now: Timestamp) {
    operation.state = State::Forgotten { expires_at: now };
    operation.steps.clear();
}

/// What was granted to a claim, as it stands now.
fn granted_before(steps: &[Step], attempt: u32, claim_id: ClaimId) -> Claimed {
    let runs = |step: &&Step| matches!(&step.state, StepState::InFlight { claim_id: of, .. } if *of == claim_id);
    let steps = steps.iter().filter(runs).map(|step| Arc::clone(&step.name)).collect();
    Claimed::Granted(Grant { attempt, steps })
}

/// The decision to send an uncertain operation again.
fn retried(held: &Held, now: Timestamp) -> Decision {
    Decision {
        at: now,
        by: WHEN_UNCERTAIN.to_owned(),
        kind: DecisionKind::Retried,
        reason: held.reason.as_str().to_owned(),
        reference: None,
    }
}

/// Whether a copy of a success whose latest attempt this is gets its answer.
fn is_told(if_succeeded: IfSucceeded, attempt: u32) -> bool {
    match if_succeeded {
        IfSucceeded::Replayed => true,
        IfSucceeded::Shared { waited_for } => waited_for == Some(attempt),
    }
}

/// What a copy of a success is told, without a change of anything. None if the operation is not, or
/// no longer, remembered as succeeded: then it takes a [`ClaimRequest`].
pub fn recall(
    found: &Operation,
    asked: &OperationRequest,
    now: Timestamp,
) -> Option<OperationState> {
    let State::Succeeded(success) = &found.state else { return None };
    if !counts(found, asked) || success.expires_at <= now {
        return None;
    }
    let matches = found.asked.fingerprint.matches(&asked.fingerprint);
    Some(remembered(success, found.attempts.latest_number(), matches))
}

fn remembered(success: &Success, attempt: u32, matches: bool) -> OperationState {
    if matches {
        OperationState::Succeeded { attempt, answer: Arc::clone(&success.answer) }
    } else {
        OperationState::Mismatched { attempt }
    }
}
