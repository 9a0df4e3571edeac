//! The rule for the end of an attempt.

use std::sync::Arc;

use http::StatusCode;

use super::decisions::{add, by_setting};
use super::lapse::lapse;
use super::{Change, Hold, Rule, RuleName, State, Transition};
use crate::operation::{
    Attempt, AttemptLog, ClaimId, DecisionKind, Durations, Operation, OperationId, Outcome, Reason,
    StoredAnswer, Subject, Timestamp,
};

/// The end of an attempt, as its holder reports it.
#[derive(Debug, Clone)]
pub struct Settlement {
    /// What the request of the claim was about. It is written again if the record is gone.
    pub subject: Arc<Subject>,
    /// The claim that is settled.
    pub claim_id: ClaimId,
    /// The attempt's number.
    pub attempt: u32,
    /// The process that made the attempt.
    pub holder: Arc<str>,
    /// The durations that bind the operation.
    pub durations: Durations,
    /// How the attempt ended.
    pub ending: Ending,
}

/// How an attempt, or one step of it, ended.
#[derive(Debug, Clone)]
pub enum Ending {
    /// The upstream's complete answer says that the operation was done.
    Succeeded {
        /// The answer that copies get.
        answer: Arc<StoredAnswer>,
        /// The receiver's reference for the operation, if its answer has one.
        reference: Option<String>,
    },
    /// The upstream's complete answer says that the operation was not done.
    Failed {
        /// The status of that answer.
        status: StatusCode,
        /// The receiver's reference for the operation, if its answer has one.
        reference: Option<String>,
    },
    /// No byte of the request was sent.
    NeverSent {
        /// The reason why nothing was sent.
        reason: Reason,
    },
    /// The upstream's complete answer does not say whether the operation was done.
    Uncertain {
        /// The answer. If the operation turns out to be done, copies get this answer, provided that
        /// it is a success with its whole body.
        answer: Arc<StoredAnswer>,
        /// The receiver's reference for the operation, if its answer has one.
        reference: Option<String>,
    },
    /// The request may have reached the upstream, and no complete answer came back.
    Unanswered {
        /// What went wrong.
        reason: Reason,
        /// The status of the answer, if its head came.
        status: Option<StatusCode>,
    },
}

/// Whether the operation, or one step of it, was done.
pub(super) enum Completion {
    /// It was done. Copies get this answer.
    Done(Arc<StoredAnswer>),
    /// It was not done. A copy may attempt it again.
    NotDone,
    /// Nobody knows. The complete answer is here, if one came.
    Unknown(Option<Arc<StoredAnswer>>),
}

impl Ending {
    /// Whether the operation, or the step, was done.
    pub(super) fn completion(&self) -> Completion {
        match self {
            Self::Succeeded { answer, .. } => Completion::Done(Arc::clone(answer)),
            Self::Failed { .. } | Self::NeverSent { .. } => Completion::NotDone,
            Self::Uncertain { answer, .. } => Completion::Unknown(Some(Arc::clone(answer))),
            Self::Unanswered { .. } => Completion::Unknown(None),
        }
    }

    /// The outcome of the attempt.
    pub const fn outcome(&self) -> Outcome {
        match self {
            Self::Succeeded { .. } => Outcome::Succeeded,
            Self::Failed { .. } | Self::NeverSent { .. } => Outcome::Failed,
            Self::Uncertain { .. } | Self::Unanswered { .. } => Outcome::Uncertain,
        }
    }

    /// Why the attempt has this outcome.
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

    fn reference(&self) -> Option<&String> {
        match self {
            Self::Succeeded { reference, .. }
            | Self::Failed { reference, .. }
            | Self::Uncertain { reference, .. } => reference.as_ref(),
            Self::NeverSent { .. } | Self::Unanswered { .. } => None,
        }
    }
}

/// The reply to a settle.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Settled {
    /// The outcome is recorded.
    Recorded {
        /// Whether a copy was refused since the claim. If the attempt failed and the copy's sender
        /// does not come back, the event is lost.
        copy_refused: bool,
    },
    /// The store had lost the record. The outcome is recorded in a new one.
    RecordLost,
    /// The claim is no longer current. Nothing changed but the attempt log.
    Superseded,
}

/// in flight, uncertain -> succeeded | failed | uncertain, for the current claim only.
impl Rule for Settlement {
    type Reply = Settled;
    const NAME: RuleName = RuleName::Settle;

    fn operation(&self) -> OperationId {
        self.subject.id
    }

    fn apply(&self, found: Option<Operation>, now: Timestamp) -> Transition<Settled> {
        let mut lapsed = lapse(found, now);
        let Some(operation) = &mut lapsed.operation else {
            lapsed.operation = Some(new_record(self, now));
            return lapsed.replied(Change::Durable, Settled::RecordLost);
        };
        if operation.state.current_claim() == Some(self.claim_id) {
            // A settle after the end of the lease counts too, as long as nobody has claimed or
            // decided since. The holder alone knows how its attempt ended.
            let copy_refused = operation.state.copy_refused();
            end(operation, self, now);
            lapsed.replied(Change::Durable, Settled::Recorded { copy_refused })
        } else if operation.state.settled_by() == Some(self.claim_id) {
            // The holder repeats a settle whose reply was lost. The first one has changed the
            // state, but may not be durable yet, so the record is written again.
            lapsed.replied(Change::Durable, Settled::Recorded { copy_refused: false })
        } else {
            // Another claim, an operator or a look-up has superseded this one. An operator who
            // investigates sees the end of the attempt in the log.
            log_end(&mut operation.attempts, self, None, now);
            lapsed.replied(Change::Lazy, Settled::Superseded)
        }
    }

    fn is_valid_unwritten(reply: &Settled) -> bool {
        *reply == Settled::Superseded
    }
}

/// A new record with this outcome, for an operation whose record the store has lost.
fn new_record(settlement: &Settlement, now: Timestamp) -> Operation {
    let Settlement { subject, attempt, durations, .. } = settlement;
    let mut operation = Operation::begun(subject, now);
    let holder = settlement.holder();
    operation.attempts.push(Attempt::begun(*attempt, holder.claim_id, holder.name, now));
    // The time of the claim was lost with the record.
    operation.state = holder.in_flight(now.plus(durations.attempt_timeout), now);
    end(&mut operation, settlement, now);
    operation
}

/// Writes an outcome into the record of an operation that is in flight or uncertain.
fn end(operation: &mut Operation, settlement: &Settlement, now: Timestamp) {
    let &Settlement { claim_id, durations, ref ending, .. } = settlement;
    log_end(&mut operation.attempts, settlement, None, now);
    let reason = ending.reason();
    operation.state = match (ending.completion(), &operation.state) {
        (Completion::Done(answer), _) => {
            State::succeeded(Some(claim_id), answer, durations.retention, now)
        }
        (Completion::Unknown(answer), State::InFlight(lease)) => {
            let decision = by_setting(DecisionKind::Hold, None, reason, now);
            add(&mut operation.decisions, decision);
            State::Uncertain(Hold { answer, ..lease.hold(reason, now) })
        }
        // The lease ran out before. The operation is uncertain since then, and the decision to hold
        // it is in the list already.
        (Completion::Unknown(answer), State::Uncertain(hold)) => {
            let hold_until = now.plus(hold.hold_for).max(hold.ends_at);
            State::Uncertain(Hold { reason, hold_until, answer, lookup: None, ..hold.clone() })
        }
        (Completion::NotDone, _) => State::failed(Some(claim_id), durations.retention, now),
        // The claim is not current, so it changes nothing.
        (
            Completion::Unknown(_),
            State::Succeeded(_) | State::Failed(_) | State::Forgotten { .. },
        ) => return,
    };
}

/// Completes the line of an attempt, or of one of its steps, in the log.
pub(super) fn log_end(
    attempts: &mut AttemptLog,
    settlement: &Settlement,
    step: Option<&Arc<str>>,
    now: Timestamp,
) {
    let Settlement { claim_id, attempt, holder, ending, .. } = settlement;
    let name = step.map(|step| &**step);
    // A superseded attempt has no line if the record was lost and claimed anew meanwhile. The
    // attempt gets a line now, unless the log may have dropped its line. A dropped line must not be
    // counted twice.
    if attempts.of(*claim_id, name).is_none() && !attempts.may_have_dropped(*attempt) {
        let line = Attempt::begun(*attempt, *claim_id, holder, now);
        attempts.push(Attempt { step: step.cloned(), ..line });
    }
    if let Some(line) = attempts.of(*claim_id, name) {
        line.end(ending.outcome(), ending.reason(), now);
        line.sent = !matches!(ending, Ending::NeverSent { .. });
        line.status = ending.status().map(|status| status.as_u16());
        line.reference = ending.reference().cloned();
    }
}
