//! The changes that time alone, or the end of a process, makes in a record.

use super::decisions::{add, by_setting};
use super::{Change, Rule, RuleName, State, Transition, steps};
use crate::operation::{DecisionKind, Operation, OperationId, Outcome, Reason, Timestamp};

/// Changes a record as time alone does: an operation whose lease ran out is uncertain, and a record
/// whose retention or hold has passed is gone.
pub fn lapse(found: Option<Operation>, now: Timestamp) -> Transition<()> {
    let mut change = Change::None;
    let mut hold_ended = false;
    let operation = found.and_then(|mut operation| {
        if let State::InFlight(lease) = &operation.state
            && lease.expires_at <= now
        {
            // The holder may have sent the request before it died or was paused. Giving the
            // operation to another process now could do it twice.
            let since = lease.expires_at;
            make_uncertain(&mut operation, Reason::LeaseExpired, since);
            change = Change::Durable;
        }
        let gone =
            !matches!(operation.state, State::InFlight(_)) && operation.state.changes_at() <= now;
        // An attempt in flight is never given up: its lease must run out first.
        if gone {
            // Nobody sees a record past its end, so its removal need not survive a crash.
            change = Change::Lazy;
            // A hold of zero belongs to a probe of the store: nobody misses that operation.
            hold_ended =
                matches!(&operation.state, State::Uncertain(hold) if !hold.hold_for.is_zero());
        }
        (!gone).then_some(operation)
    });
    Transition { operation, change, hold_ended, reply: () }
}

/// Makes the changes of time alone, for a sweep of the store. The reply says whether a record was
/// found and is gone now.
#[derive(Debug, Clone, Copy)]
pub struct Expiry {
    /// The operation.
    pub operation: OperationId,
}

impl Rule for Expiry {
    type Reply = bool;
    const NAME: RuleName = RuleName::Expire;

    fn operation(&self) -> OperationId {
        self.operation
    }

    fn apply(&self, found: Option<Operation>, now: Timestamp) -> Transition<bool> {
        let was_there = found.is_some();
        let lapsed = lapse(found, now);
        let is_gone = was_there && lapsed.operation.is_none();
        lapsed.replied(Change::None, is_gone)
    }
}

/// Makes an operation in flight uncertain, because the process that held it has ended.
pub fn abandon(mut operation: Operation, now: Timestamp) -> Operation {
    make_uncertain(&mut operation, Reason::HolderEnded, now);
    operation
}

fn make_uncertain(operation: &mut Operation, reason: Reason, since: Timestamp) {
    let State::InFlight(lease) = &operation.state else { return };
    let hold = lease.hold(reason, since);
    if let Some(line) = operation.attempts.of(hold.claim_id, None) {
        line.end(Outcome::Uncertain, reason, since);
    }
    steps::make_uncertain(operation, reason, since);
    add(&mut operation.decisions, by_setting(DecisionKind::Hold, None, reason, since));
    operation.state = State::Uncertain(hold);
}
