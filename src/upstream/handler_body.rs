//! The body of a handler's answer.

use std::error::Error;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use http_body_util::combinators::UnsyncBoxBody;

use super::body::BodyError;

/// An error of a handler or of its body. Its text is not used.
pub(super) type HandlerError = Box<dyn Error + Send + Sync>;

/// The body of a handler's answer, of any type.
pub(super) struct HandlerBody(pub(super) UnsyncBoxBody<Bytes, HandlerError>);

impl HandlerBody {
    pub(super) fn size_hint(&self) -> SizeHint {
        // The hint is only that. A body that panics here panics again when it is read.
        catch_unwind(AssertUnwindSafe(|| self.0.size_hint())).unwrap_or_default()
    }

    /// The next frame. A body that fails or panics is incomplete.
    pub(super) fn poll_frame(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        let body = Pin::new(&mut self.0);
        // A panic here would end the work of the attempt, and its outcome would not be recorded.
        match catch_unwind(AssertUnwindSafe(|| body.poll_frame(cx))) {
            Ok(polled) => polled.map_err(|_| BodyError::Incomplete),
            Err(_) => Poll::Ready(Some(Err(BodyError::Incomplete))),
        }
    }
}

impl fmt::Debug for HandlerBody {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("HandlerBody")
    }
}
