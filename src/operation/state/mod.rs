//! The states of an operation, and the only code that changes them.
//!
//! Every change is a [`Rule`]: a request that takes the record as it was found (or none) and the time
//! on the store's clock, and gives back the record as it must be kept, and the answer. Stores apply
//! it in one atomic step. What each rule makes of each state:
//!
//! | found | claim | settle | conclude | withdraw | resolve | forget | time |
//! | --- | --- | --- | --- | --- | --- | --- | --- |
//! | none | in flight | its outcome | - | - | - | - | - |
//! | in flight | - | its outcome | - | failed | - | - | uncertain |
//! | uncertain | in flight | its outcome | succeeded, in flight | failed | succeeded, failed | forgotten | none |
//! | succeeded | - | - | - | - | - | forgotten | none |
//! | failed | in flight | - | - | - | succeeded, failed | forgotten | none |
//! | forgotten | in flight | - | - | - | - | forgotten | none |
//!
//! `-`: the state stays, and the caller is told how it stands. Settle and withdraw change it for the
//! current claim alone. An uncertain operation is claimed only under the route's policy, and never
//! before its attempt must have ended. `advance` is settle for one of several steps, `renew` makes
//! a lease longer.

mod claim;
mod decide;
mod grant;
mod lapse;
mod lookup;
mod renew;
mod rule;
mod settle;
mod steps;
#[cfg(test)]
mod tests;
mod withdraw;

pub use claim::{
    ClaimRequest, Claimed, Grant, IfInFlight, IfSucceeded, IfUncertain, LookUp, OperationState,
    recall,
};
pub use decide::{Decided, Forgetting, Resolution, Verdict};
pub use lapse::{Expiry, abandon, lapse};
pub use lookup::{Conclusion, Finding};
pub use renew::{Renewal, Renewed};
pub use rule::{Call, Rule};
pub use settle::{Ending, Settled, Settlement};
pub use steps::{Advanced, EventEnd, StepEnd};
pub use withdraw::Withdrawal;

use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::{ClaimId, Operation, Reason, StoredAnswer, Timestamp};

/// Where an operation stands.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum State {
    /// An attempt runs, under a lease.
    InFlight(Lease),
    /// The request may have reached the upstream; nobody knows. Not sent again.
    Uncertain(Held),
    /// Done. Copies get the stored answer.
    Succeeded(Success),
    /// Not done. The next copy is a new attempt.
    Failed(Failure),
    /// An operator took it back: it counts as never seen, but its log stays.
    Forgotten {
        /// When the record may go.
        expires_at: Timestamp,
    },
}

/// The time-limited right to finish an operation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lease {
    /// What every write of its holder must name.
    pub claim_id: ClaimId,
    /// The process that holds it.
    pub holder: Arc<str>,
    /// When it runs out unless it is renewed.
    pub expires_at: Timestamp,
    /// When the attempt ends at the latest.
    pub ends_at: Timestamp,
    /// How long to hold the operation should it become uncertain.
    pub hold_for: Duration,
    /// Whether a copy was refused, or told to come back, meanwhile.
    pub copy_refused: bool,
}

/// An operation whose outcome nobody knows.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Held {
    /// The claim that is still current: its late settle counts.
    pub claim_id: ClaimId,
    /// Why it is uncertain.
    pub reason: Reason,
    /// Since when.
    pub since: Timestamp,
    /// Until then the upstream may still be working on it.
    pub ends_at: Timestamp,
    /// How long it is held after the last refused copy.
    pub hold_for: Duration,
    /// When it is given up, unless another copy comes.
    pub hold_until: Timestamp,
    /// Whether a copy was refused since the claim.
    pub copy_refused: bool,
    /// The complete answer that left the outcome unknown, if that is how it became so.
    pub answer: Option<Arc<StoredAnswer>>,
    /// The look-up that is under way, if one is. It leaves the claim alone.
    pub lookup: Option<LookUpLease>,
}

/// The time-limited right to ask the receiver whether an operation was done.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LookUpLease {
    /// The claim id of the request that asks.
    pub id: ClaimId,
    /// When it runs out.
    pub until: Timestamp,
    /// Which of the route's steps is asked about; none on a route without steps.
    pub step: Option<Arc<str>>,
}

/// An operation that is done.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Success {
    /// The claim whose settle this is; none if an operator resolved it.
    pub claim_id: Option<ClaimId>,
    /// When it was settled.
    pub settled_at: Timestamp,
    /// When its retention has passed.
    pub expires_at: Timestamp,
    /// What every copy gets.
    pub answer: Arc<StoredAnswer>,
}

/// An operation that is free for a new attempt.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failure {
    /// The claim whose settle this is; none if an operator resolved it.
    pub claim_id: Option<ClaimId>,
    /// When it was settled.
    pub settled_at: Timestamp,
    /// When its retention has passed.
    pub expires_at: Timestamp,
}

/// The states without what belongs to each.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[expect(missing_docs, reason = "each is described at `State`")]
pub enum StateName {
    InFlight,
    Uncertain,
    Succeeded,
    Failed,
    Forgotten,
}

impl StateName {
    /// All of them.
    pub const ALL: [Self; 5] =
        [Self::InFlight, Self::Uncertain, Self::Succeeded, Self::Failed, Self::Forgotten];

    /// The word used in stores, metrics, logs and JSON.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::InFlight => "in_flight",
            Self::Uncertain => "uncertain",
            Self::Succeeded => "succeeded",
            Self::Failed => "failed",
            Self::Forgotten => "forgotten",
        }
    }
}

impl State {
    /// Which one it is.
    pub const fn name(&self) -> StateName {
        match self {
            Self::InFlight(_) => StateName::InFlight,
            Self::Uncertain(_) => StateName::Uncertain,
            Self::Succeeded(_) => StateName::Succeeded,
            Self::Failed(_) => StateName::Failed,
            Self::Forgotten { .. } => StateName::Forgotten,
        }
    }

    /// The word used in metrics, logs and JSON.
    pub const fn as_str(&self) -> &'static str {
        self.name().as_str()
    }

    /// When the record changes by itself: a lease or a hold runs out, a retention passes.
    pub const fn changes_at(&self) -> Timestamp {
        match self {
            Self::InFlight(lease) => lease.expires_at,
            Self::Uncertain(held) => held.hold_until,
            Self::Succeeded(success) => success.expires_at,
            Self::Failed(failure) => failure.expires_at,
            Self::Forgotten { expires_at } => *expires_at,
        }
    }

    /// The claim that may still settle it.
    const fn current_claim(&self) -> Option<ClaimId> {
        match self {
            Self::InFlight(lease) => Some(lease.claim_id),
            Self::Uncertain(held) => Some(held.claim_id),
            Self::Succeeded(_) | Self::Failed(_) | Self::Forgotten { .. } => None,
        }
    }

    /// The claim whose settle made it what it is.
    const fn settled_by(&self) -> Option<ClaimId> {
        match self {
            Self::Succeeded(success) => success.claim_id,
            Self::Failed(failure) => failure.claim_id,
            Self::InFlight(_) | Self::Uncertain(_) | Self::Forgotten { .. } => None,
        }
    }
}

/// What a rule makes of a record.
#[derive(Debug)]
pub struct Transition<T> {
    /// The record as it must be kept; none if there is none (any more).
    pub operation: Option<Operation>,
    /// Whether and how it must be written.
    pub change: Change,
    /// An uncertain operation was given up because `hold_for` has passed. A person should know.
    pub hold_ended: bool,
    /// The answer to the caller.
    pub result: T,
}

/// Whether a record must be written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Change {
    /// It is as it was.
    None,
    /// It should be written; if the machine fails before, nothing is broken.
    Lazy,
    /// It must be durable before anybody acts on it or reads it.
    Durable,
}

impl<T> Transition<T> {
    /// This operation is kept, and this is told.
    const fn to(operation: Operation, change: Change, result: T) -> Self {
        Self { operation: Some(operation), change, hold_ended: false, result }
    }

    /// The same, after what time alone had done to the record.
    fn after(mut self, change: Change, hold_ended: bool) -> Self {
        self.change = self.change.max(change);
        self.hold_ended |= hold_ended;
        self
    }

    /// The same with another answer, and after one more change.
    fn answered<A>(self, change: Change, result: A) -> Transition<A> {
        Transition {
            operation: self.operation,
            change: self.change.max(change),
            hold_ended: self.hold_ended,
            result,
        }
    }
}
