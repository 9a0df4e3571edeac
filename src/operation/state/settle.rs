//! The end of an attempt.

use std::sync::Arc;

use http::StatusCode;

use super::decide::note;
use super::lapse::hold;
use super::{Call, Change, Failure, Held, Lease, Rule, State, Success, Transition, lapse};
use crate::operation::{
    Attempt, AttemptLog, ClaimId, Operation, OperationId, OperationRequest, Outcome, Reason,
    StoredAnswer, Terms, Timestamp,
};

/// The end of an attempt, as its holder reports it.
#[derive(Debug, Clone)]
pub struct Settlement {
    /// What the claim asked for: written again should the record be gone.
    pub asked: Arc<OperationRequest>,
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
pub enum Ending {
    /// The upstream did it.
    Succeeded {
        /// What every copy gets.
        answer: Arc<StoredAnswer>,
        /// What the receiver calls it, as its answer says.
        reference: Option<String>,
    },
    /// The upstream's complete answer says that it did not do it.
    Failed {
        /// The status of that answer.
        status: StatusCode,
        /// What the receiver calls it, as its answer says.
        reference: Option<String>,
    },
    /// Provably nothing was sent.
    NeverSent {
        /// Why.
        reason: Reason,
    },
    /// The upstream's complete answer leaves the outcome unknown.
    Uncertain {
        /// That answer, for whoever finds out that it was done after all.
        answer: Arc<StoredAnswer>,
        /// What the receiver calls it, as its answer says.
        reference: Option<String>,
    },
    /// The request may have reached the upstream, and no complete answer came back.
    Unanswered {
        /// Why.
        reason: Reason,
        /// The status of the answer's head, if that came.
        status: Option<StatusCode>,
    },
}

impl Ending {
    /// The outcome of the attempt.
    pub const fn outcome(&self) -> Outcome {
        match self {
            Self::Succeeded { .. } => Outcome::Succeeded,
            Self::Failed { .. } | Self::NeverSent { .. } => Outcome::Failed,
            Self::Uncertain { .. } | Self::Unanswered { .. } => Outcome::Uncertain,
        }
    }

    /// Why it ended so.
    pub const fn reason(&self) -> Reason {
        match self {
            Self::Succeeded { .. } | Self::Failed { .. } | Self::Uncertain { .. } => {
                Reason::Answered
            }
            Self::NeverSent { reason } | Self::Unanswered { reason, .. } => *reason,
        }
    }

    /// The status of the upstream's answer, if one came.
    pub fn status(&self) -> Option<StatusCode> {
        match self {
            Self::Succeeded { answer, .. } | Self::Uncertain { answer, .. } => Some(answer.status),
            Self::Failed { status, .. } => Some(*status),
            Self::NeverSent { .. } => None,
            Self::Unanswered { status, .. } => *status,
        }
    }

    /// Whether a byte of the request may have left.
    pub(super) const fn was_sent(&self) -> bool {
        !matches!(self, Self::NeverSent { .. })
    }

    fn reference(&self) -> Option<&String> {
        match self {
            Self::Succeeded { reference, .. }
            | Self::Failed { reference, .. }
            | Self::Uncertain { reference, .. } => reference.as_ref(),
            Self::NeverSent { .. } | Self::Unanswered { .. } => None,
        }
    }
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

/// in flight, uncertain -> succeeded | failed | uncertain, for the current claim only.
impl Rule for Settlement {
    type Answer = Settled;
    const CALL: Call = Call::Settle;

    fn operation(&self) -> OperationId {
        self.asked.id
    }

    fn apply(&self, found: Option<Operation>, now: Timestamp) -> Transition<Settled> {
        let mut seen = lapse(found, now);
        let Some(operation) = &mut seen.operation else {
            seen.operation = Some(lost(self, now));
            return seen.answered(Change::Durable, Settled::RecordLost);
        };
        match &operation.state {
            // An attempt in flight ends. A late settle of an uncertain one counts.
            State::InFlight(Lease { claim_id, copy_refused, .. })
            | State::Uncertain(Held { claim_id, copy_refused, .. })
                if *claim_id == self.claim_id =>
            {
                let copy_refused = *copy_refused;
                end(operation, self, copy_refused, now);
                seen.answered(Change::Durable, Settled::Recorded { copy_refused })
            }
            // The call was sent twice. Whether the first one is durable is not known.
            state if state.settled_by() == Some(self.claim_id) => {
                seen.answered(Change::Durable, Settled::Recorded { copy_refused: false })
            }
            // Superseded: only the log learns of it.
            State::InFlight(_)
            | State::Uncertain(_)
            | State::Succeeded(_)
            | State::Failed(_)
            | State::Forgotten { .. } => {
                log(&mut operation.attempts, self, now);
                seen.answered(Change::Lazy, Settled::Superseded)
            }
        }
    }

    fn stands_unwritten(answer: &Settled) -> bool {
        *answer == Settled::Superseded
    }
}

/// The record of an operation that the store has lost, with this outcome.
fn lost(settlement: &Settlement, now: Timestamp) -> Operation {
    let Settlement { asked, claim_id, attempt, holder, .. } = settlement;
    let mut attempts = AttemptLog::default();
    attempts.push(Attempt::begun(*attempt, *claim_id, holder, now));
    let mut operation = Operation {
        asked: Arc::clone(asked),
        created_at: now,
        state: State::Forgotten { expires_at: now },
        attempts,
        decisions: Vec::new(),
        steps: Vec::new(),
    };
    end(&mut operation, settlement, false, now);
    operation
}

/// Writes an outcome into a record.
fn end(operation: &mut Operation, settlement: &Settlement, copy_refused: bool, now: Timestamp) {
    let Settlement { claim_id, terms, ending, .. } = settlement;
    log(&mut operation.attempts, settlement, now);
    let claim_id = *claim_id;
    let expires_at = now.plus(terms.retention);
    let answer = match ending {
        Ending::Succeeded { answer, .. } => {
            operation.state = State::Succeeded(Success {
                claim_id: Some(claim_id),
                settled_at: now,
                expires_at,
                answer: Arc::clone(answer),
            });
            return;
        }
        Ending::Failed { .. } | Ending::NeverSent { .. } => {
            let claim_id = Some(claim_id);
            operation.state = State::Failed(Failure { claim_id, settled_at: now, expires_at });
            return;
        }
        Ending::Uncertain { answer, .. } => Some(Arc::clone(answer)),
        Ending::Unanswered { .. } => None,
    };
    let reason = ending.reason();
    if !matches!(operation.state, State::Uncertain(_)) {
        note(&mut operation.decisions, hold(reason, now));
    }
    let since = match &operation.state {
        State::Uncertain(held) => held.since,
        State::InFlight(_) | State::Succeeded(_) | State::Failed(_) | State::Forgotten { .. } => {
            now
        }
    };
    let ends_at = match &operation.state {
        State::InFlight(lease) => lease.ends_at,
        State::Uncertain(held) => held.ends_at,
        // The record was lost, and with it the time of the claim.
        State::Succeeded(_) | State::Failed(_) | State::Forgotten { .. } => {
            now.plus(terms.attempt_timeout)
        }
    };
    operation.state = State::Uncertain(Held {
        claim_id,
        reason,
        since,
        ends_at,
        hold_for: terms.hold_for,
        hold_until: now.plus(terms.hold_for).max(ends_at),
        copy_refused,
        answer,
        lookup: None,
    });
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
        line.sent = ending.was_sent();
        line.outcome = Some(ending.outcome());
        line.reason = Some(ending.reason());
        line.status = ending.status().map(|status| status.as_u16());
        line.reference = ending.reference().cloned();
    }
}
