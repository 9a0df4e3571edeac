//! The reply to a claim.

use std::sync::Arc;
use std::time::Duration;

use crate::operation::StoredAnswer;

/// The reply to a claim.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ClaimReply {
    /// The caller makes this attempt, and no other caller does.
    Granted(Grant),
    /// The operation is uncertain. The caller must ask the receiver whether the operation was done,
    /// and report the finding as a [`LookupReport`](super::LookupReport).
    Lookup(LookupGrant),
    /// Nothing was granted. This is the state of the operation.
    NotGranted(ReportedState),
}

/// The right to make one attempt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Grant {
    /// The attempt's number.
    pub attempt: u32,
    /// The steps that have begun with the attempt and must be run; empty on a route without steps.
    pub steps: Vec<Arc<str>>,
}

/// The right to ask the receiver whether an operation was done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LookupGrant {
    /// The number of the latest attempt.
    pub attempt: u32,
    /// The step to ask about; none on a route without steps.
    pub step: Option<Arc<str>>,
}

/// The state of an operation, for a request that may not attempt it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ReportedState {
    /// No attempt is in flight and no success is remembered, but this request may not make an
    /// attempt: nothing may be granted to it, or its claim was settled or withdrawn before.
    Free,
    /// The operation was done by an earlier attempt.
    Succeeded {
        /// The number of the latest attempt.
        attempt: u32,
        /// The answer that copies get.
        answer: Arc<StoredAnswer>,
    },
    /// An attempt, or a look-up, of another request is under way.
    InFlight {
        /// The number of the latest attempt.
        attempt: u32,
        /// How long the lease of the attempt or the look-up lasts from now, unless it is renewed.
        lease_left: Duration,
    },
    /// Nobody knows whether the operation was done.
    Uncertain {
        /// The number of the latest attempt.
        attempt: u32,
        /// How long from now the upstream may still be working on the operation.
        ends_in: Duration,
    },
    /// The key stands for a request with another fingerprint.
    Mismatched {
        /// The number of the latest attempt.
        attempt: u32,
    },
}

impl From<ReportedState> for ClaimReply {
    fn from(state: ReportedState) -> Self {
        Self::NotGranted(state)
    }
}
