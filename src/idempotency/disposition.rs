//! The disposition of a request: what happened to it.

use std::sync::Arc;
use std::time::Duration;

use http::{HeaderMap, StatusCode};

use crate::operation::state::ReportedState;
use crate::operation::{OperationId, Reason};
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
        forwarded: Forwarded,
    },
    /// The request makes no attempt, because of the state of its operation. A copy of a success
    /// gets the stored answer.
    NotGranted {
        /// The request's operation.
        operation: OperationId,
        /// The state of the operation, as the store gave it.
        state: ReportedState,
    },
    /// The request's own attempt or look-up is in flight, and its sender does not wait any longer.
    StillInFlight {
        /// The request's operation.
        operation: OperationId,
        /// The attempt's number.
        attempt: u32,
        /// How long the sender should wait before it comes back.
        retry_after: Duration,
    },
    /// The request's own attempt was superseded, and the operation is free now: another attempt has
    /// failed, or an operator has freed it. A copy makes the next attempt.
    Superseded(OperationId),
    /// The work on the request was lost, for example by a panic: nobody knows how far it got.
    Lost(OperationId),
    /// The request was forwarded and not deduplicated.
    Passed(Forwarded),
    /// As many attempts are in flight as the route allows.
    Overloaded,
    /// The store could not reply. Nothing is forwarded without a claim.
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

impl Forwarded {
    /// The work on the request was lost, so nobody knows whether the request was sent.
    pub(super) const LOST: Self =
        Self::Broken { reason: Reason::HolderEnded, ends_in: Duration::ZERO };
}

impl Disposition {
    /// The disposition of the same request on a route that only observes. There the sender gets
    /// what a plain proxy would give it, and learns nothing of operations.
    pub(super) fn passed(self) -> Self {
        match self {
            Self::Executed { forwarded, .. } => Self::Passed(forwarded),
            Self::StillInFlight { .. } => Self::Passed(Forwarded::TimedOut),
            Self::Lost(_) | Self::Superseded(_) => Self::Passed(Forwarded::LOST),
            Self::NotGranted { .. }
            | Self::Passed(_)
            | Self::Overloaded
            | Self::StoreUnavailable => self,
        }
    }

    /// The disposition after an attempt. It names no step, because the route has no steps or all of
    /// them were done.
    pub(super) const fn executed(
        operation: OperationId,
        attempt: u32,
        forwarded: Forwarded,
    ) -> Self {
        Self::Executed { operation, attempt, step: None, forwarded }
    }
}
