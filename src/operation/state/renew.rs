//! Keeping an operation: the lease of its claim is made to last longer.

use std::time::Duration;

use super::{Call, Change, Rule, State, Transition, lapse};
use crate::operation::{ClaimId, Operation, OperationId, Timestamp};

/// Makes the lease of the current claim last longer, while it lasts.
#[derive(Debug, Clone, Copy)]
pub struct Renewal {
    /// The operation.
    pub operation: OperationId,
    /// The claim whose lease it is.
    pub claim_id: ClaimId,
    /// How long it lasts from now.
    pub lease: Duration,
}

/// The answer to a renewal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Renewed {
    /// The lease lasts longer now.
    Renewed,
    /// The claim is no longer current, or its lease has run out. Nothing changed.
    Superseded,
}

impl Rule for Renewal {
    type Answer = Renewed;
    const CALL: Call = Call::Renew;

    fn operation(&self) -> OperationId {
        self.operation
    }

    fn apply(&self, found: Option<Operation>, now: Timestamp) -> Transition<Renewed> {
        let mut seen = lapse(found, now);
        if let Some(State::InFlight(lease)) = seen.operation.as_mut().map(|found| &mut found.state)
            && lease.claim_id == self.claim_id
        {
            lease.expires_at = lease.expires_at.max(now.plus(self.lease));
            return seen.answered(Change::Lazy, Renewed::Renewed);
        }
        seen.answered(Change::None, Renewed::Superseded)
    }

    fn stands_unwritten(answer: &Renewed) -> bool {
        *answer == Renewed::Superseded
    }
}
