//! The end of an attempt.

use std::sync::Arc;
use std::time::Duration;

use super::decide::note;
use super::lapse::hold;
use super::{Change, Failure, Held, Lease, State, Success, Transition, lapse, steps};
use crate::operation::{
    Asked, Attempt, AttemptLog, ClaimId, Operation, Outcome, Reason, StoredAnswer, Terms, Timestamp,
};

/// The end of an attempt, as its holder reports it.
#[derive(Debug, Clone)]
pub struct Settlement {
    /// What the claim asked for: written again should the record be gone.
    pub asked: Arc<Asked>,
    /// The claim that is settled.
    pub claim_id: ClaimId,
    /// The attempt's number.
    pub attempt: u32,
    /// The process that made it.
    pub holder: Arc<str>,
    /// The durations that bind the operation.
    pub terms: Terms,
    /// How it ended.
    pub ending: Ending,
}

/// How an attempt ended, and what came back.
#[derive(Debug, Clone)]
pub struct Ending {
    /// Succeeded, failed or uncertain.
    pub outcome: Outcome,
    /// Why.
    pub reason: Reason,
    /// Whether a byte of the request may have left.
    pub sent: bool,
    /// The status of the upstream's answer, if one came.
    pub status: Option<u16>,
    /// The complete answer, as it may be replayed.
    pub answer: Option<Arc<StoredAnswer>>,
    /// What the receiver calls it, as its answer says.
    pub reference: Option<String>,
}

/// The answer to a settle.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Settled {
    /// Written.
    Recorded {
        /// A copy was refused meanwhile: if the attempt failed, its sender may have lost the event.
        copy_refused: bool,
    },
    /// The record was gone. The outcome was written anew.
    RecordLost,
    /// The claim is no longer current. Nothing changed but the attempt log.
    Superseded,
}

/// `in_flight`, uncertain -> succeeded | failed | uncertain, for the current claim only.
pub fn settle(
    found: Option<Operation>,
    settlement: &Settlement,
    now: Timestamp,
) -> Transition<Settled> {
    let seen = lapse(found, now);
    let Some(mut operation) = seen.operation else {
        let Settlement { asked, claim_id, attempt, holder, .. } = settlement;
        let mut attempts = AttemptLog::default();
        attempts.push(Attempt::begun(*attempt, *claim_id, holder, now));
        let state = State::Forgotten { expires_at: now };
        let asked = Arc::clone(asked);
        let decisions = Vec::new();
        let steps = Vec::new();
        let mut operation = Operation { asked, created_at: now, state, attempts, decisions, steps };
        end(&mut operation, settlement, false, now);
        return Transition {
            operation: Some(operation),
            change: Change::Durable,
            hold_ended: seen.hold_ended,
            result: Settled::RecordLost,
        };
    };
    let (change, result) = match &operation.state {
        // in_flight, uncertain -> the outcome; a late settle counts
        State::InFlight(Lease { claim_id, copy_refused, .. })
        | State::Uncertain(Held { claim_id, copy_refused, .. })
            if *claim_id == settlement.claim_id =>
        {
            let copy_refused = *copy_refused;
            end(&mut operation, settlement, copy_refused, now);
            (Change::Durable, Settled::Recorded { copy_refused })
        }
        // the call was sent twice; whether the first one is durable is not known
        state if state.settled_by() == Some(settlement.claim_id) => {
            (Change::Durable, Settled::Recorded { copy_refused: false })
        }
        // superseded: only the log learns of it
        State::InFlight(_)
        | State::Uncertain(_)
        | State::Succeeded(_)
        | State::Failed(_)
        | State::Forgotten { .. } => {
            log(&mut operation.attempts, settlement, now);
            (seen.change.max(Change::Lazy), Settled::Superseded)
        }
    };
    Transition { operation: Some(operation), change, hold_ended: false, result }
}

/// Writes an outcome into a record.
fn end(operation: &mut Operation, settlement: &Settlement, copy_refused: bool, now: Timestamp) {
    let Settlement { claim_id, terms, ending, .. } = settlement;
    log(&mut operation.attempts, settlement, now);
    let expires_at = now.plus(terms.retention);
    operation.state = match ending.outcome {
        Outcome::Succeeded => State::Succeeded(Success {
            claim_id: Some(*claim_id),
            settled_at: now,
            expires_at,
            answer: ending
                .answer
                .clone()
                .unwrap_or_else(|| Arc::new(StoredAnswer::empty(http::StatusCode::OK))),
        }),
        Outcome::Failed => {
            State::Failed(Failure { claim_id: Some(*claim_id), settled_at: now, expires_at })
        }
        Outcome::Uncertain => {
            if !matches!(operation.state, State::Uncertain(_)) {
                note(&mut operation.decisions, hold(ending.reason, now));
            }
            let (since, ends_at) = match &operation.state {
                State::InFlight(lease) => (now, lease.ends_at),
                State::Uncertain(held) => (held.since, held.ends_at),
                // the record was lost, and with it when the claim was made
                State::Succeeded(_) | State::Failed(_) | State::Forgotten { .. } => {
                    (now, now.plus(terms.attempt_timeout))
                }
            };
            State::Uncertain(Held {
                claim_id: *claim_id,
                reason: ending.reason,
                since,
                ends_at,
                hold_for: terms.hold_for,
                hold_until: now.plus(terms.hold_for).max(ends_at),
                copy_refused,
                answer: ending.answer.clone(),
                lookup: None,
            })
        }
    };
}

fn log(attempts: &mut AttemptLog, settlement: &Settlement, now: Timestamp) {
    let Settlement { claim_id, attempt, holder, ending, .. } = settlement;
    let line = Line { claim_id: *claim_id, attempt: *attempt, holder, step: None };
    log_end(attempts, &line, ending, now);
}

/// Names one line of the attempt log.
pub(super) struct Line<'a> {
    pub(super) claim_id: ClaimId,
    pub(super) attempt: u32,
    pub(super) holder: &'a Arc<str>,
    /// None on a route without steps.
    pub(super) step: Option<&'a Arc<str>>,
}

/// Completes the attempt's line in the log; adds one if it never had one.
pub(super) fn log_end(attempts: &mut AttemptLog, line: &Line<'_>, ending: &Ending, now: Timestamp) {
    let &Line { claim_id, attempt, holder, step } = line;
    let name = step.map(|step| &**step);
    if attempts.of(claim_id, name).is_none() && !attempts.may_have_dropped(attempt) {
        let line = Attempt::begun(attempt, claim_id, holder, now);
        attempts.push(Attempt { step: step.cloned(), ..line });
    }
    if let Some(line) = attempts.of(claim_id, name) {
        line.ended_at = Some(now);
        line.sent = ending.sent;
        line.outcome = Some(ending.outcome);
        line.reason = Some(ending.reason);
        line.status = ending.status;
        line.reference.clone_from(&ending.reference);
    }
}

/// `in_flight`, uncertain -> failed, for a claim whose reply never came: nothing was sent under it.
/// Its lines in the log are marked as never sent even if the claim is no longer current.
///
/// Unlike [`settle`] it leaves no trace where the claim has left none.
pub fn withdraw(
    found: Option<Operation>,
    claim_id: ClaimId,
    retention: Duration,
    now: Timestamp,
) -> Transition<()> {
    let Transition { mut operation, mut change, hold_ended, .. } = lapse(found, now);
    if let Some(State::Uncertain(held)) = operation.as_mut().map(|found| &mut found.state)
        && held.lookup.as_ref().is_some_and(|lookup| lookup.id == claim_id)
    {
        // it would have been granted a look-up: nobody makes it, and who waits for it is told
        held.lookup = None;
        change = Change::Durable;
    }
    if let Some(found) = &mut operation
        && found.state.current_claim() == Some(claim_id)
    {
        if !steps::withdraw(found, claim_id, retention, now) {
            let expires_at = now.plus(retention);
            let claim_id = Some(claim_id);
            found.state = State::Failed(Failure { claim_id, settled_at: now, expires_at });
        }
        change = Change::Durable;
    }
    let lines = operation.iter_mut().flat_map(|found| found.attempts.all_of(claim_id));
    for line in lines.filter(|line| line.reason != Some(Reason::Withdrawn)) {
        line.ended_at = Some(now);
        line.sent = false;
        line.outcome = Some(Outcome::Failed);
        line.reason = Some(Reason::Withdrawn);
        change = change.max(Change::Lazy);
    }
    Transition { operation, change, hold_ended, result: () }
}
