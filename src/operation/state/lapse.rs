//! What time, or the end of a process, does to an operation.

use super::decide::note;
use super::{Call, Change, Held, Rule, State, Transition, steps};
use crate::operation::{
    Decision, DecisionKind, Operation, OperationId, Outcome, Reason, Timestamp,
};

/// Who decides what becomes of an uncertain operation where nobody else does: the route's setting.
pub(super) const WHEN_UNCERTAIN: &str = "when_uncertain";

/// What time alone has done to a record: a lease that ran out leaves it uncertain; a retention or
/// a hold that has passed leaves nothing.
pub fn lapse(found: Option<Operation>, now: Timestamp) -> Transition<()> {
    let mut change = Change::None;
    let mut hold_ended = false;
    let operation = found.and_then(|mut operation| {
        if let State::InFlight(lease) = &operation.state
            && lease.expires_at <= now
        {
            let since = lease.expires_at;
            lose(&mut operation, Reason::LeaseExpired, since);
            change = Change::Durable;
        }
        let gone =
            !matches!(operation.state, State::InFlight(_)) && operation.state.changes_at() <= now;
        if gone {
            // What was not to be held at all was given up by nobody: a probe of the store.
            hold_ended =
                matches!(&operation.state, State::Uncertain(held) if !held.hold_for.is_zero());
            change = Change::Durable;
        }
        (!gone).then_some(operation)
    });
    Transition { operation, change, hold_ended, result: () }
}

/// Does what time has done to an operation, for a sweep. The answer is whether it has left nothing of
/// a record that was there.
#[derive(Debug, Clone, Copy)]
pub struct Expiry {
    /// The operation.
    pub operation: OperationId,
}

impl Rule for Expiry {
    type Answer = bool;
    const CALL: Call = Call::Expire;

    fn operation(&self) -> OperationId {
        self.operation
    }

    fn apply(&self, found: Option<Operation>, now: Timestamp) -> Transition<bool> {
        let was_there = found.is_some();
        let seen = lapse(found, now);
        let is_gone = was_there && seen.operation.is_none();
        seen.answered(Change::None, is_gone)
    }

    fn stands_unwritten(_: &bool) -> bool {
        false
    }
}

/// `in_flight` -> uncertain, because the process that held it has ended.
pub fn abandon(mut operation: Operation, now: Timestamp) -> Operation {
    lose(&mut operation, Reason::HolderEnded, now);
    operation
}

fn lose(operation: &mut Operation, reason: Reason, since: Timestamp) {
    let State::InFlight(lease) = &operation.state else {
        return;
    };
    let held = Held {
        claim_id: lease.claim_id,
        reason,
        since,
        ends_at: lease.ends_at,
        hold_for: lease.hold_for,
        // while the upstream may still be working on it, only an operator frees it
        hold_until: since.plus(lease.hold_for).max(lease.ends_at),
        copy_refused: lease.copy_refused,
        answer: None,
        lookup: None,
    };
    if let Some(line) = operation.attempts.of(held.claim_id, None) {
        line.ended_at = Some(since);
        line.outcome = Some(Outcome::Uncertain);
        line.reason = Some(reason);
    }
    steps::lose(operation, reason, since);
    note(&mut operation.decisions, hold(reason, since));
    operation.state = State::Uncertain(held);
}

/// An uncertain operation is not sent again on a guess.
pub(super) fn hold(reason: Reason, at: Timestamp) -> Decision {
    Decision {
        at,
        by: WHEN_UNCERTAIN.to_owned(),
        kind: DecisionKind::Hold,
        reason: reason.as_str().to_owned(),
        reference: None,
    }
}
