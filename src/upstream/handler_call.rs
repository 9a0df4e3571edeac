//! The call of a handler, which takes the place of an exchange with an upstream.

use std::panic::AssertUnwindSafe;

use futures_util::FutureExt as _;
use http::Request as HttpRequest;
use http_body_util::Full;
use tower::{Service as _, ServiceExt as _};

use super::answer::{AnswerStream, UpstreamAnswer};
use super::handler::{Handler, HandlerCall};
use super::handler_body::HandlerBody;
use super::progress::{Progress, SendResult};
use super::request::Request;
use crate::operation::Reason;

/// A handler that is ready for a request, as a connection is that was made.
#[derive(Debug)]
pub struct ReadyHandler(HandlerCall);

impl HandlerCall {
    /// Waits until the handler is ready. A handler that sheds load or waits for its turn has not
    /// been given the request.
    ///
    /// # Errors
    /// The handler takes no request, or has panicked.
    pub async fn ready(mut self) -> Result<ReadyHandler, Reason> {
        match AssertUnwindSafe(self.handler.0.ready()).catch_unwind().await {
            Ok(Ok(_)) => Ok(ReadyHandler(self)),
            Ok(Err(_)) | Err(_) => Err(Reason::NothingWritten),
        }
    }
}

impl ReadyHandler {
    /// Calls the handler and waits for the head of its answer.
    ///
    /// A handler that panics, fails, or is dropped after it was given the request may have done its
    /// work: the result is never [`SendResult::NeverSent`].
    pub async fn send(self, request: Request, progress: &Progress) -> SendResult {
        let HandlerCall { handler: Handler(mut service), extensions } = self.0;
        let mut message = HttpRequest::new(Full::new(request.body));
        *message.method_mut() = request.method;
        *message.uri_mut() = request.target.into();
        *message.headers_mut() = request.headers;
        *message.extensions_mut() = extensions;
        progress.hand_over();
        // A panic ends this attempt and not the work, which has to record the outcome.
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
