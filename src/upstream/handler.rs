//! A handler of the same process in the place of an upstream.

use std::fmt;
use std::panic::AssertUnwindSafe;

use bytes::Bytes;
use futures_util::FutureExt as _;
use http::{Extensions, Request as HttpRequest, Response};
use http_body::Body;
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt as _, Full};
use tower::util::BoxCloneSyncService;
use tower::{Service, ServiceExt as _};

use super::answer::{AnswerStream, UpstreamAnswer};
use super::handler_body::{HandlerBody, HandlerError};
use super::progress::{Progress, SendResult};
use super::request::Request;
use crate::operation::Reason;

type HandlerResponse = Response<UnsyncBoxBody<Bytes, HandlerError>>;

/// A handler that takes the place of the upstream for one request. It is an extension of the
/// request, so each request reaches the handler behind its own layer.
#[derive(Clone)]
pub struct Handler(BoxCloneSyncService<HttpRequest<Full<Bytes>>, HandlerResponse, HandlerError>);

/// A call of a handler, with what layers and routers in front of the proxy attached to the request.
#[derive(Debug, Clone)]
pub struct HandlerCall {
    handler: Handler,
    extensions: Extensions,
}

impl Handler {
    /// A handler from a service of any type.
    pub fn new<S, B>(service: S) -> Self
    where
        S: Service<HttpRequest<Full<Bytes>>, Response = Response<B>>
            + Clone
            + Send
            + Sync
            + 'static,
        S::Error: Into<HandlerError>,
        S::Future: Send + 'static,
        B: Body<Data = Bytes> + Send + 'static,
        B::Error: Into<HandlerError>,
    {
        let service = service
            .map_response(|response: Response<B>| {
                response.map(|body| body.map_err(Into::into).boxed_unsync())
            })
            .map_err(Into::into);
        Self(BoxCloneSyncService::new(service))
    }
}

impl HandlerCall {
    /// Takes the handler and all else out of the extensions of a request. None, and nothing is taken
    /// out, if no layer has put a handler in.
    pub fn take(extensions: &mut Extensions) -> Option<Self> {
        let handler = extensions.remove::<Handler>()?;
        Some(Self { handler, extensions: std::mem::take(extensions) })
    }

    /// Calls the handler and waits for the head of its answer.
    ///
    /// A handler that panics, fails, or is dropped after it was given the request may have done its
    /// work: the result is not [`SendResult::NeverSent`]. It is that only if the handler was never
    /// ready.
    pub async fn call(self, request: Request, progress: &Progress) -> SendResult {
        let Self { handler: Handler(mut service), extensions } = self;
        // A handler that sheds load or waits for its turn has not been given the request.
        match AssertUnwindSafe(service.ready()).catch_unwind().await {
            Ok(Ok(_)) => {}
            Ok(Err(_)) | Err(_) => return SendResult::NeverSent(Reason::NothingWritten),
        }
        let mut message = HttpRequest::new(Full::new(request.body));
        *message.method_mut() = request.method;
        *message.uri_mut() = request.target.into();
        *message.headers_mut() = request.headers;
        *message.extensions_mut() = extensions;
        progress.hand_over();
        // A panic ends this attempt and not the task, which has to record the outcome.
        let called = AssertUnwindSafe(async move { service.call(message).await }).catch_unwind();
        match called.await {
            Ok(Ok(response)) => {
                let (head, body) = response.into_parts();
                // An interim response (RFC 9110, 15.2) is no answer: hyper sends none for a
                // handler.
                if head.status.is_informational() {
                    return SendResult::Unanswered(Reason::HandlerFailed);
                }
                let stream = AnswerStream::of_handler(HandlerBody(body));
                SendResult::Answered(UpstreamAnswer {
                    status: head.status,
                    headers: head.headers,
                    stream,
                })
            }
            Ok(Err(_)) | Err(_) => SendResult::Unanswered(Reason::HandlerFailed),
        }
    }
}

impl fmt::Debug for Handler {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Handler")
    }
}
