//! The answer to the sender, with what log and metrics say about it.

use std::sync::Arc;

use http::Response;

use crate::budget::BytesGuard;
use crate::operation::{OperationId, Reason};
use crate::telemetry::DispositionWord;
use crate::upstream::ResponseBody;

/// The answer to a request, with what log and metrics say about it.
#[derive(Debug)]
pub(super) struct Answer {
    pub(super) response: Response<ResponseBody>,
    pub(super) disposition: DispositionWord,
    /// The code of the problem, if the answer is one.
    pub(super) code: Option<&'static str>,
    /// The detail of the problem.
    pub(super) detail: Option<String>,
    /// Why the upstream gave no answer, if it gave none.
    pub(super) reason: Option<Reason>,
    /// The step whose upstream gave no answer, on a route with steps.
    pub(super) step: Option<Arc<str>>,
    pub(super) operation: Option<OperationId>,
    pub(super) attempt: Option<u32>,
}

impl Answer {
    /// An answer that is not a problem and belongs to no operation.
    pub(super) const fn plain(
        response: Response<ResponseBody>,
        disposition: DispositionWord,
    ) -> Self {
        Self {
            response,
            disposition,
            code: None,
            detail: None,
            reason: None,
            step: None,
            operation: None,
            attempt: None,
        }
    }

    /// The same answer. It keeps the place and memory in `guard` until it is sent. Otherwise a
    /// sender that reads slowly would hold memory that no limit counts.
    pub(super) fn guarded_by(mut self, guard: BytesGuard) -> Self {
        self.response = self.response.map(|body| body.guarded_by(guard));
        self
    }
}
