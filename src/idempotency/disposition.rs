//! What happened to a request.

use std::sync::Arc;
use std::time::Duration;

use http::{HeaderMap, StatusCode};

use crate::operation::state::OperationState;
use crate::operation::{OperationId, Reason, StoredAnswer};
use crate::upstream::AnswerBody;

/// What happened to a request, for the answer to its sender.
#[derive(Debug)]
pub enum Disposition {
    /// An attempt was made for it.
    Executed {
        /// Its operation.
        operation: OperationId,
        /// The attempt's number.
        attempt: u32,
        /// Of several receivers, the one that has not done it.
        step: Option<Arc<str>>,
        /// How it ended.
        end: Forwarded,
    },
    /// It gets the answer of an earlier success.
    Replayed {
        /// Its operation.
        operation: OperationId,
        /// The number of the latest attempt.
        attempt: u32,
        /// What every copy gets.
        answer: Arc<StoredAnswer>,
    },
    /// An attempt is in flight.
    InFlight {
        /// Its operation.
        operation: OperationId,
        /// The attempt's number; none where it has ended by now.
        attempt: Option<u32>,
        /// When to come back.
        retry_after: Duration,
        /// It is the attempt of this very request, whose sender has waited for long enough.
        own: bool,
    },
    /// Nobody knows whether it was done.
    Uncertain {
        /// Its operation.
        operation: OperationId,
        /// The number of the latest attempt, if that is known.
        attempt: Option<u32>,
        /// How long the upstream may still be working on it.
        ends_in: Duration,
    },
    /// Its key stands for a different request.
    Mismatched {
        /// Its operation.
        operation: OperationId,
        /// The number of the latest attempt.
        attempt: u32,
    },
    /// It was forwarded and not deduplicated.
    Passed(Forwarded),
    /// The route makes as many attempts as it may.
    Overloaded,
    /// Without a claim nothing is forwarded.
    StoreUnavailable,
}

/// What came of forwarding a request.
#[derive(Debug)]
pub enum Forwarded {
    /// The upstream answered.
    Answered {
        /// Its status.
        status: StatusCode,
        /// Its headers, as the sender gets them.
        headers: HeaderMap,
        /// Its body.
        body: AnswerBody,
    },
    /// Provably nothing was sent.
    Unreachable {
        /// What failed.
        reason: Reason,
    },
    /// Something was sent, and no complete answer came.
    Broken {
        /// What failed.
        reason: Reason,
        /// How long the upstream may still be working on it.
        ends_in: Duration,
    },
    /// Something was sent, and no complete answer came in time.
    TimedOut,
}

impl Disposition {
    /// The same where nothing is deduplicated: the sender hears of no operation.
    pub(super) fn passed(self) -> Self {
        match self {
            Self::Executed { end, .. } => Self::Passed(end),
            other @ (Self::Replayed { .. }
            | Self::InFlight { .. }
            | Self::Uncertain { .. }
            | Self::Mismatched { .. }
            | Self::Passed(_)
            | Self::Overloaded
            | Self::StoreUnavailable) => other,
        }
    }

    /// What a copy gets of an operation that stands like this.
    pub(super) fn of(operation: OperationId, state: OperationState) -> Self {
        match state {
            OperationState::Succeeded { attempt, answer } => {
                Self::Replayed { operation, attempt, answer }
            }
            OperationState::InFlight { attempt, lease_left } => {
                let attempt = Some(attempt);
                Self::InFlight { operation, attempt, retry_after: lease_left, own: false }
            }
            OperationState::Uncertain { attempt, ends_in } => {
                Self::Uncertain { operation, attempt: Some(attempt), ends_in }
            }
            OperationState::Mismatched { attempt } => Self::Mismatched { operation, attempt },
            // Nobody works on it, and this request must not: its sender has to come back.
            OperationState::Free => {
                let attempt = None;
                let retry_after = Duration::ZERO;
                Self::InFlight { operation, attempt, retry_after, own: false }
            }
        }
    }

    /// An attempt was made, at the route's receiver or at all of them.
    pub(super) const fn executed(operation: OperationId, attempt: u32, end: Forwarded) -> Self {
        Self::Executed { operation, attempt, step: None, end }
    }

    /// The sender's own attempt is in flight, and nobody knows for how long.
    pub(super) const fn own_in_flight(operation: OperationId, attempt: u32) -> Self {
        let attempt = Some(attempt);
        Self::InFlight { operation, attempt, retry_after: Duration::ZERO, own: true }
    }

    /// The task that worked on it has died: nobody knows how far it got.
    pub(super) const fn lost(operation: OperationId) -> Self {
        Self::Uncertain { operation, attempt: None, ends_in: Duration::ZERO }
    }
}
