//! The rule of a heartbeat: it makes the lease of an attempt longer.

use std::time::Duration;

use super::lapse::lapse;
use super::{Change, Rule, RuleName, State, Transition};
use crate::operation::{ClaimId, Operation, OperationId, Timestamp};

/// Makes the lease of the current claim longer.
#[derive(Debug, Clone, Copy)]
pub struct Renewal {
    /// The operation.
    pub operation: OperationId,
    /// The claim that has the lease.
    pub claim_id: ClaimId,
    /// How long the lease lasts from now. A renewal never makes the lease shorter.
    pub lease: Duration,
}

/// The reply to a renewal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Renewed {
    /// The lease is longer now.
    Renewed,
    /// The claim is no longer current, or its lease has run out. Nothing changed.
    Superseded,
}

impl Rule for Renewal {
    type Reply = Renewed;
    const NAME: RuleName = RuleName::Renew;

    fn operation(&self) -> OperationId {
        self.operation
    }

    fn apply(&self, found: Option<Operation>, now: Timestamp) -> Transition<Renewed> {
        let mut lapsed = lapse(found, now);
        if let Some(State::InFlight(lease)) =
            lapsed.operation.as_mut().map(|found| &mut found.state)
            && lease.claim_id == self.claim_id
        {
            lease.expires_at = lease.expires_at.max(now.plus(self.lease));
            // A renewal need not be durable. If a renewal is lost, the operation becomes uncertain
            // too early. That never leads to a second attempt.
            return lapsed.replied(Change::Volatile, Renewed::Renewed);
        }
        lapsed.replied(Change::None, Renewed::Superseded)
    }

    fn is_valid_unwritten(reply: &Renewed) -> bool {
        *reply == Renewed::Superseded
    }
}
