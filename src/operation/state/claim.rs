//! Taking an operation, and keeping it.

use std::sync::Arc;
use std::time::Duration;

use super::{Change, Lease, State, Success, Transition, lapse};
use crate::operation::{
    Asked, Attempt, AttemptLog, ClaimId, Operation, StoredAnswer, Terms, Timestamp,
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
    /// The key stands for a different request.
    Mismatched {
        /// The number of the latest attempt.
        attempt: u32,
    },
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
    let attempt = operation.attempts.latest_number();
    let matches = operation.asked.fingerprint.matches(&request.asked.fingerprint);
    let used_up = operation.attempts.knows(request.claim_id);
    let (change, result) = match &mut operation.state {
        // in_flight -> in_flight: the call was sent twice
        State::InFlight(lease) if lease.claim_id == request.claim_id => {
            (seen.change, Claimed::Granted { attempt })
        }
        State::InFlight(_) | State::Uncertain(_) if !matches => {
            (seen.change, Claimed::Mismatched { attempt })
        }
        // in_flight -> in_flight: noting that a copy was refused
        State::InFlight(lease) => {
            let first = request.if_in_flight == IfInFlight::Refused && !lease.copy_refused;
            lease.copy_refused |= first;
            let change = if first { Change::Lazy } else { Change::None };
            let lease_left = now.until(lease.expires_at);
            (seen.change.max(change), Claimed::InFlight { attempt, lease_left })
        }
        // uncertain -> uncertain: held for longer, since copies still come
        State::Uncertain(held) => {
            held.copy_refused = true;
            held.hold_until = held.hold_until.max(now.plus(held.hold_for));
            let ends_in = now.until(held.ends_at);
            (seen.change.max(Change::Lazy), Claimed::Uncertain { attempt, ends_in })
        }
        State::Succeeded(success) => (seen.change, remembered(success, attempt, matches)),
        // failed, forgotten: this claim was settled or withdrawn before it arrived once more
        State::Failed(_) | State::Forgotten { .. } if used_up => (seen.change, Claimed::Free),
        // failed, forgotten -> in_flight
        State::Failed(_) | State::Forgotten { .. } => {
            return grant(Some(operation), request, now);
        }
    };
    Transition { operation: Some(operation), change, hold_ended: false, result }
}

/// What a copy of a success is told, without a change of anything. None if the operation is not, or
/// no longer, remembered as succeeded: then it takes a [`claim`].
pub fn recall(found: &Operation, asked: &Asked, now: Timestamp) -> Option<Claimed> {
    let State::Succeeded(success) = &found.state else { return None };
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

/// (none), failed, forgotten -> `in_flight`, unless the caller only looks.
fn grant(free: Option<Operation>, request: &ClaimRequest, now: Timestamp) -> Transition<Claimed> {
    if !request.may_grant {
        let (change, hold_ended) = (Change::None, false);
        return Transition { operation: free, change, hold_ended, result: Claimed::Free };
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
    let (created_at, mut attempts, decisions) = match free {
        Some(known) => (known.created_at, known.attempts, known.decisions),
        None => (now, AttemptLog::default(), Vec::new()),
    };
    let attempt = attempts.latest_number().saturating_add(1);
    attempts.push(Attempt::begun(attempt, request.claim_id, &request.holder, now));
    let asked = Arc::clone(&request.asked);
    let operation = Operation { asked, created_at, state, attempts, decisions };
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
