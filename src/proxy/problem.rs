//! Problem documents (RFC 9457), and the headers that every answer has.

use std::time::Duration;

use http::{HeaderName, HeaderValue, Response, StatusCode, header};

use super::answer::Answer;
use super::identify::KeySource;

use crate::operation::{OperationId, Reason};
use crate::problem::{self, Document};
use crate::telemetry::{self, ExpectedCounters};
use crate::upstream::ResponseBody;

const DISPOSITION: HeaderName = HeaderName::from_static("onceward-disposition");
const OPERATION: HeaderName = HeaderName::from_static("onceward-operation");

/// Codes that are counted from zero for requests without a route. The listener makes and counts the
/// last one.
pub(super) const CODES_WITHOUT_ROUTE: &[&str] =
    &["draining", "malformed", "no-route", "head-too-large"];

/// The counters of requests that no route took.
pub(super) const COUNTED_WITHOUT_ROUTE: ExpectedCounters =
    ExpectedCounters { refusals: CODES_WITHOUT_ROUTE, observed: false, lookups: false };

/// Codes that are counted from zero for each route.
pub(super) const CODES_OF_ROUTES: &[&str] = &[
    "body-too-large",
    "body-timeout",
    "draining",
    "malformed",
    "method-not-allowed",
    "signature-missing",
    "signature-invalid",
    "signature-stale",
    "signature-undecided",
    "key-missing",
    "key-invalid",
    "overloaded",
    "store-unavailable",
];

/// An answer that is a problem (RFC 9457).
pub(super) struct Problem {
    pub(super) status: StatusCode,
    pub(super) code: &'static str,
    pub(super) title: &'static str,
    pub(super) detail: String,
    pub(super) retry_after: Option<Duration>,
    pub(super) operation: Option<OperationId>,
    pub(super) attempt: Option<u32>,
}

/// Tells the sender what happened, and to which operation.
pub(super) fn mark(
    response: &mut Response<ResponseBody>,
    disposition: telemetry::DispositionWord,
    operation: Option<OperationId>,
) {
    let headers = response.headers_mut();
    // The header is inserted and not appended, so an upstream that sends it, too, cannot contradict
    // Onceward.
    headers.insert(DISPOSITION, HeaderValue::from_static(disposition.as_str()));
    if let Some(id) = operation.and_then(|id| HeaderValue::from_str(&id.to_string()).ok()) {
        headers.insert(OPERATION, id);
    }
}

impl Problem {
    /// A problem that belongs to no operation and asks for no `Retry-After`.
    pub(super) fn new(
        status: StatusCode,
        code: &'static str,
        title: &'static str,
        detail: impl Into<String>,
    ) -> Self {
        let detail = detail.into();
        Self { status, code, title, detail, retry_after: None, operation: None, attempt: None }
    }

    /// The answer that holds this problem.
    pub(super) fn answer(self, disposition: telemetry::DispositionWord) -> Answer {
        let Self { status, code, title, detail, retry_after, operation, attempt } = self;
        let document = Document {
            code: code.into(),
            title: title.into(),
            status: status.as_u16(),
            detail: Some((&detail).into()),
            operation: operation.map(|id| id.to_string()),
            state: None,
            attempt,
        };
        let mut response = Response::new(ResponseBody::whole(document.to_body()));
        *response.status_mut() = status;
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_TYPE, problem::MEDIA_TYPE);
        if let Some(retry_after) = retry_after {
            // A whole number of seconds (RFC 9110, 10.2.3). It is at least 1, because a sender that
            // sends again at once would find nothing changed.
            let seconds = retry_after.as_millis().div_ceil(1000).clamp(1, 30);
            headers.insert(
                header::RETRY_AFTER,
                HeaderValue::from(u64::try_from(seconds).unwrap_or(30)),
            );
        }
        mark(&mut response, disposition, operation);
        Answer {
            code: Some(code),
            detail: Some(detail),
            operation,
            attempt,
            ..Answer::plain(response, disposition)
        }
    }
}

/// What failed, in words that name no internal address.
pub(super) const fn what_failed(reason: Reason) -> &'static str {
    match reason {
        Reason::NameNotFound => "nothing was sent: the upstream's name could not be resolved",
        Reason::ConnectFailed => "nothing was sent: the upstream accepted no connection",
        Reason::ConnectTimedOut => {
            "nothing was sent: there was no connection to the upstream within `connect_timeout`"
        }
        Reason::TlsFailed => "nothing was sent: the TLS handshake with the upstream failed",
        Reason::NothingWritten | Reason::LeaseLost | Reason::Withdrawn => {
            "nothing was sent: the upstream could not be reached in time"
        }
        Reason::TimedOut => "the upstream was sent the request and gave no complete answer in time",
        Reason::NotHttp => "the upstream was sent the request, and what came back was not HTTP",
        Reason::AnswerBrokeOff => "the upstream was sent the request, and its answer broke off",
        Reason::ClientCertificateRefused => {
            "nothing was taken: the upstream wants a client certificate"
        }
        Reason::AnswerHeadTooLarge => {
            "the upstream was sent the request, and the head of its answer was too large"
        }
        Reason::AnswerLengthUnclear => {
            "the upstream was sent the request, and it is not clear where its answer ends"
        }
        Reason::AnswerBodyMalformed => {
            "the upstream was sent the request, and the chunks of its answer could not be read"
        }
        Reason::ProtocolSwitched => {
            "the upstream was sent the request, and switched to another protocol"
        }
        Reason::HandlerFailed => "the handler was given the request and gave no answer",
        Reason::ConnectionLost => {
            "the upstream was sent the request and closed the connection without a complete answer"
        }
        Reason::ShutDown => "this process ended before the upstream gave a complete answer",
        Reason::Answered | Reason::LeaseExpired | Reason::HolderEnded => {
            "the upstream was sent the request and gave no complete answer"
        }
    }
}

/// Tells a sender that its key stands for another request, and what to do if that is a mistake.
pub(super) const fn reused(from: Option<KeySource>) -> &'static str {
    match from {
        Some(KeySource::UntypedEvent) => {
            "this event's id stands for an event with another body; if one id has several events, \
             `key.event.type` has to say where their type is"
        }
        Some(KeySource::Header | KeySource::Event | KeySource::Body) | None => {
            "this idempotency key stands for a different request"
        }
    }
}
