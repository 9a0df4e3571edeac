//! Taking an operation, and keeping it.

use std::sync::Arc;
use std::time::Duration;

use super::decide::note;
use super::lapse::WHEN_UNCERTAIN;
use super::lookup::{Next, await_lookup, begin, next, refuse};
use super::{Change, Held, Inquiry, Lease, State, Success, Transition, lapse, steps};
use crate::operation::{
    Asked, AskedUnder, Attempt, AttemptLog, ClaimId, Decision, DecisionKind, KeyKind, Operation,
    Plan, Step, StepState, StoredAnswer, Terms, Timestamp,
};

/// Asks for the right to attempt an operation.
#[derive(Debug, Clone)]
pub struct ClaimRequest {
    /// What is to be done.
    pub asked: Arc<Asked>,
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
    /// A claim that may be granted, on an operation with one receiver, by a caller that does with
    /// other states what is built in: it is refused, held, replayed.
    pub fn new(asked: Arc<Asked>, claim_id: ClaimId, holder: Arc<str>, terms: Terms) -> Self {
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

/// What happens to a copy that meets a success.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IfSucceeded {
    /// It gets the answer.
    Replayed,
    /// Only who waited for this attempt gets its answer. Any other copy is something new, for which
    /// the sender has no other name.
    Shared {
        /// The attempt that the caller has waited for, if it has.
        waited_for: Option<u32>,
    },
}

/// What happens to a copy that meets an uncertain operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IfUncertain {
    /// It is refused until somebody resolves it.
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

/// What happens to a copy that meets an attempt in flight.
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
    Granted {
        /// The attempt's number.
        attempt: u32,
    },
    /// The caller, and nobody else, may make this attempt, of an event with several receivers.
    Begun {
        /// The attempt's number.
        attempt: u32,
        /// The steps that have begun: they must be run.
        steps: Vec<Arc<str>>,
    },
    /// Nobody holds it, but this call was not to be granted anything, or its claim is used up.
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
    /// Nobody knows whether it was done: the caller, and nobody else, may ask the receiver, and
    /// must [conclude](super::conclude).
    LookUp {
        /// The number of the latest attempt.
        attempt: u32,
        /// The step that is asked about, on a route with steps.
        step: Option<Arc<str>>,
    },
    /// The key stands for a different request.
    Mismatched {
        /// The number of the latest attempt.
        attempt: u32,
    },
}

impl Claimed {
    /// Whether it only turns a copy away because of another attempt. That is right even if the note
    /// that goes with it could not be written.
    pub const fn turns_away(&self) -> bool {
        match self {
            Self::InFlight { .. } | Self::Uncertain { .. } | Self::Mismatched { .. } => true,
            Self::Granted { .. }
            | Self::Begun { .. }
            | Self::Free
            | Self::Succeeded { .. }
            | Self::LookUp { .. } => false,
        }
    }
}

/// The answer to a renewal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Renewed {
    /// The lease lasts longer now.
    Renewed,
    /// The claim is no longer current, or its lease has run out. Nothing changed.
    Superseded,
}

/// Grants the operation to the caller, or says how it stands. The fingerprint is compared before
/// anything else is told.
pub fn claim(
    found: Option<Operation>,
    request: &ClaimRequest,
    now: Timestamp,
) -> Transition<Claimed> {
    let seen = lapse(found, now);
    let Some(mut operation) = seen.operation else {
        let granted = grant(None, request, now);
        return granted.after(seen.change, seen.hold_ended);
    };
    if !counts(&operation, &request.asked) {
        if request.may_grant {
            free(&mut operation, now);
        }
        let granted = grant(Some(operation), request, now);
        return granted.after(seen.change, seen.hold_ended);
    }
    let attempt = operation.attempts.latest_number();
    let matches = operation.asked.fingerprint.matches(&request.asked.fingerprint);
    let used_up = operation.attempts.knows(request.claim_id);
    let next = next(&operation, request, now);
    let (change, result) = match &mut operation.state {
        // in_flight -> in_flight: the call was sent twice; whether the first one is durable is not known
        State::InFlight(lease) if lease.claim_id == request.claim_id => {
            (Change::Durable, granted(&operation.steps, attempt, request.claim_id))
        }
        // another event under one id is refused as a copy is, and lost with it if the attempt fails
        State::InFlight(Lease { copy_refused, .. })
        | State::Uncertain(Held { copy_refused, .. })
            if !matches =>
        {
            let first = request.asked.key.from == KeyKind::Event && !*copy_refused;
            *copy_refused |= first;
            let change = if first { Change::Lazy } else { Change::None };
            (seen.change.max(change), Claimed::Mismatched { attempt })
        }
        // in_flight -> in_flight: noting that a copy was refused
        State::InFlight(lease) => {
            let first = request.if_in_flight == IfInFlight::Refused && !lease.copy_refused;
            lease.copy_refused |= first;
            let change = if first { Change::Lazy } else { Change::None };
            let lease_left = now.until(lease.expires_at);
            (seen.change.max(change), Claimed::InFlight { attempt, lease_left })
        }
        State::Uncertain(held) => match next {
            // uncertain -> in_flight
            Next::Attempt if request.plan.is_some() => {
                return grant(Some(operation), request, now);
            }
            Next::Attempt => {
                let decision = retried(held, now);
                note(&mut operation.decisions, decision);
                return grant(Some(operation), request, now);
            }
            // uncertain -> uncertain
            Next::Held => (seen.change.max(Change::Lazy), refuse(held, attempt, now)),
            Next::LookUp(step, lease) => {
                let inquiry = Inquiry { id: request.claim_id, until: now.plus(lease), step };
                let claimed = begin(held, attempt, inquiry, now);
                (seen.change.max(Change::Lazy), claimed)
            }
            Next::Awaited(left) => {
                let (change, claimed) = await_lookup(held, attempt, request, left);
                (seen.change.max(change), claimed)
            }
        },
        State::Succeeded(success) if is_told(request.if_succeeded, attempt) => {
            (seen.change, remembered(success, attempt, matches))
        }
        // free: this claim was settled or withdrawn before it arrived once more
        State::Succeeded(_) | State::Failed(_) | State::Forgotten { .. } if used_up => {
            (seen.change, Claimed::Free)
        }
        // failed, forgotten, a success that is shared no more -> in_flight
        State::Succeeded(_) | State::Failed(_) | State::Forgotten { .. } => {
            return grant(Some(operation), request, now);
        }
    };
    Transition { operation: Some(operation), change, hold_ended: false, result }
}

/// Whether a record says anything to who asks. What a route has only observed says nothing to one
/// that enforces, but for a success whose sender is known: anybody can have sent the others.
fn counts(found: &Operation, asked: &Asked) -> bool {
    match (found.asked.under, asked.under) {
        (AskedUnder::Observe { genuine }, AskedUnder::Enforce) => {
            genuine && matches!(found.state, State::Succeeded(_))
        }
        (AskedUnder::Enforce, _) | (_, AskedUnder::Observe { .. }) => true,
    }
}

/// As if it had never been asked for; its log stays.
fn free(operation: &mut Operation, now: Timestamp) {
    operation.state = State::Forgotten { expires_at: now };
    operation.steps.clear();
}

/// What was granted to a claim, as it stands now.
fn granted(steps: &[Step], attempt: u32, claim_id: ClaimId) -> Claimed {
    let runs = |step: &&Step| matches!(&step.state, StepState::InFlight { claim_id: of, .. } if *of == claim_id);
    let steps: Vec<_> = steps.iter().filter(runs).map(|step| Arc::clone(&step.name)).collect();
    if steps.is_empty() { Claimed::Granted { attempt } } else { Claimed::Begun { attempt, steps } }
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
/// no longer, remembered as succeeded: then it takes a [`claim`].
pub fn recall(found: &Operation, asked: &Asked, now: Timestamp) -> Option<Claimed> {
    let State::Succeeded(success) = &found.state else { return None };
    if !counts(found, asked) {
        return None;
    }
    let matches = found.asked.fingerprint.matches(&asked.fingerprint);
    let told = || remembered(success, found.attempts.latest_number(), matches);
    (now < success.expires_at).then(told)
}

fn remembered(success: &Success, attempt: u32, matches: bool) -> Claimed {
    if matches {
        Claimed::Succeeded { attempt, answer: Arc::clone(&success.answer) }
    } else {
        Claimed::Mismatched { attempt }
    }
}

/// (none), failed, forgotten, uncertain -> `in_flight`, unless the caller only looks.
pub(super) fn grant(
    free: Option<Operation>,
    request: &ClaimRequest,
    now: Timestamp,
) -> Transition<Claimed> {
    if !request.may_grant {
        let change = Change::None;
        let hold_ended = false;
        return Transition { operation: free, change, hold_ended, result: Claimed::Free };
    }
    if let Some(plan) = &request.plan {
        return steps::grant(free, request, plan, now);
    }
    let terms = &request.terms;
    let state = State::InFlight(Lease {
        claim_id: request.claim_id,
        holder: Arc::clone(&request.holder),
        expires_at: now.plus(terms.lease),
        ends_at: now.plus(terms.attempt_timeout),
        hold_for: terms.hold_for,
        copy_refused: false,
    });
    let (created_at, mut attempts, decisions, steps) = match free {
        Some(known) => (known.created_at, known.attempts, known.decisions, known.steps),
        None => (now, AttemptLog::default(), Vec::new(), Vec::new()),
    };
    let attempt = attempts.latest_number().saturating_add(1);
    let forward_key = request.forward_key.clone();
    let line = Attempt::begun(attempt, request.claim_id, &request.holder, now);
    attempts.push(Attempt { forward_key, ..line });
    let asked = Arc::clone(&request.asked);
    let operation = Operation { asked, created_at, state, attempts, decisions, steps };
    let result = Claimed::Granted { attempt };
    Transition { operation: Some(operation), change: Change::Durable, hold_ended: false, result }
}

/// `in_flight` -> `in_flight` with a later end, for the current claim while its lease lasts.
pub fn renew(
    found: Option<Operation>,
    claim_id: ClaimId,
    lease_for: Duration,
    now: Timestamp,
) -> Transition<Renewed> {
    let Transition { mut operation, change, hold_ended, .. } = lapse(found, now);
    if let Some(State::InFlight(lease)) = operation.as_mut().map(|found| &mut found.state)
        && lease.claim_id == claim_id
    {
        lease.expires_at = lease.expires_at.max(now.plus(lease_for));
        let change = change.max(Change::Lazy);
        return Transition { operation, change, hold_ended, result: Renewed::Renewed };
    }
    Transition { operation, change, hold_ended, result: Renewed::Superseded }
}
