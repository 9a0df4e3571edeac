//! Answers to requests that no service sees: hyper or h2 cannot read them, or there is no memory
//! for them.

use std::fmt::Write as _;

use bytes::Bytes;
use http::header::{CONNECTION, CONTENT_TYPE, HeaderName, HeaderValue};
use http::{Response, StatusCode};

use crate::telemetry::Limit;

const PROBLEM: HeaderValue = HeaderValue::from_static("application/problem+json");
const DISPOSITION: HeaderName = HeaderName::from_static("onceward-disposition");

/// Why a request is refused before a service sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum EarlyRefusal {
    /// The request is not valid HTTP.
    Malformed,
    /// The head of the request is beyond this limit.
    HeadTooLarge(Limit),
    /// The target of the request is longer than the `http` crate can hold: 65,534 bytes, whatever
    /// the limits are.
    TargetTooLong,
    /// The `Content-Length` of the request is larger than hyper can hold.
    BodyTooLarge,
    /// There is no memory for the head of the request, or its connection has too many streams.
    Overloaded,
}

impl EarlyRefusal {
    /// The refusal that hyper means by an answer of its own with this status. `exceeded` is the
    /// limit that a head of this size exceeds.
    pub(super) fn of_status(status: &[u8], exceeded: Limit) -> Self {
        match status {
            b"431" => Self::HeadTooLarge(exceeded),
            b"414" => Self::TargetTooLong,
            _ => Self::Malformed,
        }
    }

    pub(super) const fn status(self) -> StatusCode {
        match self {
            Self::Malformed => StatusCode::BAD_REQUEST,
            // The status is not 414, because the limits of a head concern its whole size, and the
            // target is a part of the head.
            Self::HeadTooLarge(_) | Self::TargetTooLong => {
                StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE
            }
            Self::BodyTooLarge => StatusCode::PAYLOAD_TOO_LARGE,
            Self::Overloaded => StatusCode::SERVICE_UNAVAILABLE,
        }
    }

    pub(super) const fn code(self) -> &'static str {
        match self {
            Self::Malformed => "malformed",
            Self::HeadTooLarge(_) | Self::TargetTooLong => "head-too-large",
            Self::BodyTooLarge => "body-too-large",
            Self::Overloaded => "overloaded",
        }
    }

    const fn title(self) -> &'static str {
        match self {
            Self::Malformed => "malformed request",
            Self::HeadTooLarge(_) | Self::TargetTooLong => "head too large",
            Self::BodyTooLarge => "body too large",
            Self::Overloaded => "overloaded",
        }
    }

    pub(super) const fn detail(self) -> &'static str {
        match self {
            Self::Malformed => "the head of the request is not valid HTTP",
            Self::HeadTooLarge(Limit::HeaderLines) => "the head of the request has too many lines",
            Self::HeadTooLarge(_) => "the head of the request is too long",
            Self::TargetTooLong => "the target of the request is longer than 65534 bytes",
            Self::BodyTooLarge => "no route takes a body as long as `Content-Length` says",
            Self::Overloaded => "there is more to do than can be done now; nothing was forwarded",
        }
    }

    /// The problem document (RFC 9457). It can be formatted by hand, because no text in it has a
    /// character that JSON escapes.
    fn problem(self) -> String {
        let code = self.code();
        let title = self.title();
        let status = self.status().as_u16();
        let detail = self.detail();
        format!(
            "{{\"type\":\"urn:onceward:problem:{code}\",\"title\":\"{title}\",\
             \"status\":{status},\"detail\":\"{detail}\"}}"
        )
    }

    /// The answer to the request. On HTTP/1 it is the last answer of its connection.
    pub(super) fn response(self) -> Response<Bytes> {
        let mut response = Response::new(Bytes::from(self.problem()));
        *response.status_mut() = self.status();
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, PROBLEM);
        headers.insert(DISPOSITION, HeaderValue::from_static("refused"));
        // Nothing was forwarded, and the overload may pass at once. A sender that honours the
        // header need not wait for its own, longer schedule.
        if self == Self::Overloaded {
            headers.insert(http::header::RETRY_AFTER, HeaderValue::from_static("1"));
        }
        response
    }

    /// The bytes of the answer on HTTP/1.1. The connection ends after them.
    pub(super) fn http1_bytes(self) -> Bytes {
        let mut response = self.response();
        response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
        let status = self.status();
        let reason = status.canonical_reason().unwrap_or_default();
        let mut head = format!("HTTP/1.1 {} {reason}\r\n", status.as_u16());
        for (name, value) in response.headers() {
            // Writing to a `String` does not fail, and every value is a constant of this file.
            let _written = write!(head, "{name}: {}\r\n", value.to_str().unwrap_or_default());
        }
        let _written = write!(head, "content-length: {}\r\n\r\n", response.body().len());
        let mut bytes = head.into_bytes();
        bytes.extend_from_slice(response.body());
        bytes.into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_refusal_is_a_problem_document() {
        for refusal in [
            EarlyRefusal::Malformed,
            EarlyRefusal::HeadTooLarge(Limit::HeaderBytes),
            EarlyRefusal::HeadTooLarge(Limit::HeaderLines),
            EarlyRefusal::TargetTooLong,
            EarlyRefusal::BodyTooLarge,
            EarlyRefusal::Overloaded,
        ] {
            let bytes = refusal.http1_bytes();
            let text = std::str::from_utf8(&bytes).unwrap();
            let (head, body) = text.split_once("\r\n\r\n").unwrap();
            let problem: serde_json::Value = serde_json::from_str(body).unwrap();
            assert_eq!(problem["status"], refusal.status().as_u16());
            assert!(head.contains(&format!("\r\ncontent-length: {}", body.len())), "{head}");
            assert!(head.contains("\r\nconnection: close\r\n"), "{head}");
        }
    }
}
