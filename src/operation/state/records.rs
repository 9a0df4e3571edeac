//! The values that a record keeps in each state of its operation.
//!
//! Stores keep these values with the fields in this order: see `store::codec` before a change.

use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::State;
use crate::operation::{ClaimId, Reason, StoredAnswer, Timestamp};

/// The time-limited right to finish an operation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lease {
    /// The claim that has the lease. Renew, settle and withdraw must name it.
    pub claim_id: ClaimId,
    /// The process that holds the lease.
    pub holder: Arc<str>,
    /// When the lease runs out unless it is renewed.
    pub expires_at: Timestamp,
    /// When the attempt ends at the latest.
    pub ends_at: Timestamp,
    /// How long the operation is held if it becomes uncertain.
    pub hold_for: Duration,
    /// Whether a copy was refused, or its sender told to come back, since the claim.
    pub copy_refused: bool,
}

/// The values of an uncertain operation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hold {
    /// The claim that is still current. It may settle the operation late.
    pub claim_id: ClaimId,
    /// Why the operation is uncertain.
    pub reason: Reason,
    /// When the operation became uncertain.
    pub since: Timestamp,
    /// The latest time at which the upstream may still be working on the operation.
    pub ends_at: Timestamp,
    /// How long the operation is held after the last refused copy.
    pub hold_for: Duration,
    /// When the operation is given up, unless another copy comes.
    pub hold_until: Timestamp,
    /// Whether a copy was refused since the claim.
    pub copy_refused: bool,
    /// The complete answer whose status means *uncertain*; none if the operation became uncertain
    /// without a complete answer.
    pub answer: Option<Arc<StoredAnswer>>,
    /// The look-up that was granted last. It does not supersede the claim.
    pub lookup: Option<LookupLease>,
}

/// The time-limited right to ask the receiver whether an operation was done.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LookupLease {
    /// The claim id of the request that asks.
    pub id: ClaimId,
    /// When the lease runs out.
    pub until: Timestamp,
    /// The step that is asked about; none on a route without steps.
    pub step: Option<Arc<str>>,
}

/// The values of an operation that was done.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Success {
    /// The claim that settled the operation; none if an operator or a look-up did.
    pub claim_id: Option<ClaimId>,
    /// When the operation was settled.
    pub settled_at: Timestamp,
    /// When the retention has passed.
    pub expires_at: Timestamp,
    /// The answer that copies get.
    pub answer: Arc<StoredAnswer>,
}

/// The values of an operation that was not done.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failure {
    /// The claim that settled the operation; none if an operator did.
    pub claim_id: Option<ClaimId>,
    /// When the operation was settled.
    pub settled_at: Timestamp,
    /// When the retention has passed.
    pub expires_at: Timestamp,
}

impl Lease {
    /// The hold that follows if nobody knows whether the attempt has done the operation.
    pub(super) fn hold(&self, reason: Reason, since: Timestamp) -> Hold {
        Hold {
            claim_id: self.claim_id,
            reason,
            since,
            ends_at: self.ends_at,
            hold_for: self.hold_for,
            // The hold lasts at least until the attempt must have ended. A shorter hold would free
            // an operation on which the upstream may still be working.
            hold_until: since.plus(self.hold_for).max(self.ends_at),
            copy_refused: self.copy_refused,
            answer: None,
            lookup: None,
        }
    }
}

impl State {
    /// The state of an operation that turned out at `now` to be done.
    pub(super) fn succeeded(
        claim_id: Option<ClaimId>,
        answer: Arc<StoredAnswer>,
        retention: Duration,
        now: Timestamp,
    ) -> Self {
        let expires_at = now.plus(retention);
        Self::Succeeded(Success { claim_id, settled_at: now, expires_at, answer })
    }

    /// The state of an operation that turned out at `now` not to be done.
    pub(super) fn failed(claim_id: Option<ClaimId>, retention: Duration, now: Timestamp) -> Self {
        Self::Failed(Failure { claim_id, settled_at: now, expires_at: now.plus(retention) })
    }

    /// When time alone changes the record: a lease or a hold runs out, or a retention has passed.
    pub const fn changes_at(&self) -> Timestamp {
        match self {
            Self::InFlight(lease) => lease.expires_at,
            Self::Uncertain(hold) => hold.hold_until,
            Self::Succeeded(success) => success.expires_at,
            Self::Failed(failure) => failure.expires_at,
            Self::Forgotten { expires_at } => *expires_at,
        }
    }

    /// The claim that may still settle the operation.
    pub(super) const fn current_claim(&self) -> Option<ClaimId> {
        match self {
            Self::InFlight(lease) => Some(lease.claim_id),
            Self::Uncertain(hold) => Some(hold.claim_id),
            Self::Succeeded(_) | Self::Failed(_) | Self::Forgotten { .. } => None,
        }
    }

    /// The claim that has settled the operation.
    pub(super) const fn settled_by(&self) -> Option<ClaimId> {
        match self {
            Self::Succeeded(success) => success.claim_id,
            Self::Failed(failure) => failure.claim_id,
            Self::InFlight(_) | Self::Uncertain(_) | Self::Forgotten { .. } => None,
        }
    }

    /// Whether a copy was refused since the claim that is still current.
    pub(super) const fn copy_refused(&self) -> bool {
        match self {
            Self::InFlight(lease) => lease.copy_refused,
            Self::Uncertain(hold) => hold.copy_refused,
            Self::Succeeded(_) | Self::Failed(_) | Self::Forgotten { .. } => false,
        }
    }
}
