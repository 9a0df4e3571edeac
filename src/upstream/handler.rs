//! An upstream in the same process: a handler behind a layer.

use std::error::Error as StdError;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use futures_util::FutureExt as _;
use http::{Request as HttpRequest, Response};
use http_body::{Body, Frame, SizeHint};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt as _, Full};
use tower::util::BoxCloneSyncService;
use tower::{Service, ServiceExt as _};

use super::body::BrokeOff;
use super::exchange::{Answer, AnswerStream};
use super::{Progress, Request, Sent};
use crate::operation::Reason;

type Failure = Box<dyn StdError + Send + Sync>;
type Answered = Response<UnsyncBoxBody<Bytes, Failure>>;

/// A handler that takes the place of the upstream for one request. It travels in the extensions of
/// the request, so that each request reaches the handler that the layer stands in front of.
#[derive(Clone)]
pub struct Handler(BoxCloneSyncService<HttpRequest<Full<Bytes>>, Answered, Failure>);

impl Handler {
    /// Hides the type of a service.
    pub fn new<S, B>(service: S) -> Self
    where
        S: Service<HttpRequest<Full<Bytes>>, Response = Response<B>>
            + Clone
            + Send
            + Sync
            + 'static,
        S::Error: Into<Failure>,
        S::Future: Send + 'static,
        B: Body<Data = Bytes> + Send + 'static,
        B::Error: Into<Failure>,
    {
        let service = service
            .map_response(|response: Response<B>| {
                response.map(|body| body.map_err(Into::into).boxed_unsync())
            })
            .map_err(Into::into);
        Self(BoxCloneSyncService::new(service))
    }

    /// Calls the handler and waits for the head of its answer. A handler that panics, fails, or is
    /// dropped because time is over may have done its work: the outcome is uncertain.
    pub async fn call(self, request: Request, progress: &Progress) -> Sent {
        let mut message = HttpRequest::new(Full::new(request.body));
        *message.method_mut() = request.method;
        *message.uri_mut() = request.target.into();
        *message.headers_mut() = request.headers;
        *message.extensions_mut() = request.extensions;
        progress.handed_over();
        let called = AssertUnwindSafe(self.0.oneshot(message)).catch_unwind();
        match called.await {
            Ok(Ok(response)) => {
                let (head, body) = response.into_parts();
                let stream = AnswerStream::of_handler(HandlerBody(body));
                Sent::Answered(Answer { status: head.status, headers: head.headers, stream })
            }
            Ok(Err(_)) | Err(_) => Sent::Unanswered(Reason::HandlerFailed),
        }
    }
}

impl std::fmt::Debug for Handler {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Handler")
    }
}

/// The body of a handler's answer.
pub(super) struct HandlerBody(UnsyncBoxBody<Bytes, Failure>);

impl HandlerBody {
    pub(super) fn size_hint(&self) -> SizeHint {
        self.0.size_hint()
    }

    /// The next frame. A body that fails or panics has broken off.
    pub(super) fn poll_frame(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BrokeOff>>> {
        let body = Pin::new(&mut self.0);
        match catch_unwind(AssertUnwindSafe(|| body.poll_frame(cx))) {
            Ok(polled) => polled.map_err(|_| BrokeOff::Early),
            Err(_) => Poll::Ready(Some(Err(BrokeOff::Early))),
        }
    }
}

impl std::fmt::Debug for HandlerBody {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("HandlerBody")
    }
}
