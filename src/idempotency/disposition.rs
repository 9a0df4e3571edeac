//! The disposition of a request: what happened to it.

use std::sync::Arc;
use std::time::Duration;

use http::{HeaderMap, StatusCode};

use crate::operation::state::OperationState;
use crate::operation::{OperationId, Reason, StoredAnswer};
use crate::upstream::ResponseBody;

/// What happened to a request. The proxy turns it into the answer to the sender.
#[derive(Debug)]
pub enum Disposition {
    /// An attempt was made for the request.
    Executed {
        /// The request's operation.
        operation: OperationId,
        /// The attempt's number.
        attempt: u32,
        /// The first step that was not done; none if all steps were done, and on a route without
        /// steps.
        step: Option<Arc<str>>,
        /// The upstream's answer, or why there is none.
        end: Forwarded,
    },
    /// The request is a copy of a success and gets the stored answer.
    Replayed {
        /// The request's operation.
        operation: OperationId,
        /// The number of the latest attempt.
        attempt: u32,
        /// The stored answer.
        answer: Arc<StoredAnswer>,
    },
    /// An attempt is in flight. The sender should come back later.
    InFlight {
        /// The request's operation.
        operation: OperationId,
        /// The attempt's number; none if the attempt has ended by now.
        attempt: Option<u32>,
        /// How long the sender should wait before it comes back.
        retry_after: Duration,
        /// Whether the attempt is this request's own, and its sender does not wait any longer.
        own: bool,
    },
    /// Nobody knows whether the operation was done.
    Uncertain {
        /// The request's operation.
        operation: OperationId,
        /// The number of the latest attempt, if that is known.
        attempt: Option<u32>,
        /// How long from now the upstream may still be working on the operation.
        ends_in: Duration,
    },
    /// The request's key stands for a request with another fingerprint.
    Mismatched {
        /// The operation of that key.
        operation: OperationId,
        /// The number of the latest attempt.
        attempt: u32,
    },
    /// The request was forwarded and not deduplicated.
    Passed(Forwarded),
    /// As many attempts are in flight as the route allows.
    Overloaded,
    /// The store could not answer. Nothing is forwarded without a claim.
    StoreUnavailable,
}

/// The upstream's answer to a forwarded request, or the reason why there is none.
#[derive(Debug)]
pub enum Forwarded {
    /// The upstream answered.
    Answered {
        /// The status of the answer.
        status: StatusCode,
        /// The headers, as the sender gets them.
        headers: HeaderMap,
        /// The body.
        body: ResponseBody,
    },
    /// No byte of the request was sent.
    Unreachable {
        /// What failed.
        reason: Reason,
    },
    /// The request may have reached the upstream, and no complete answer came.
    Broken {
        /// What failed.
        reason: Reason,
        /// How long from now the upstream may be working on the request.
        ends_in: Duration,
    },
    /// The request may have reached the upstream, and no complete answer came in time.
    TimedOut,
}

impl Disposition {
    /// The disposition of the same request on a route that only observes. There the sender learns
    /// nothing of operations.
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

    /// The disposition of a request that makes no attempt, by the state of its operation.
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
            // The operation is free, but this claim makes no attempt: it was settled or withdrawn
            // before, or it only read the state. Its sender may come back and claim anew.
            OperationState::Free => {
                let attempt = None;
                let retry_after = Duration::ZERO;
                Self::InFlight { operation, attempt, retry_after, own: false }
            }
        }
    }

    /// The disposition after an attempt. It names no step, because the route has no steps or all of
    /// them were done.
    pub(super) const fn executed(operation: OperationId, attempt: u32, end: Forwarded) -> Self {
        Self::Executed { operation, attempt, step: None, end }
    }

    /// The disposition of a sender that does not wait any longer for its own attempt.
    pub(super) const fn own_in_flight(operation: OperationId, attempt: u32) -> Self {
        let attempt = Some(attempt);
        Self::InFlight { operation, attempt, retry_after: Duration::ZERO, own: true }
    }

    /// The disposition of a request whose work has panicked: nobody knows how far it got.
    pub(super) const fn lost(operation: OperationId) -> Self {
        Self::Uncertain { operation, attempt: None, ends_in: Duration::ZERO }
    }
}
