//! Answers to requests that no service gets to see: hyper and h2 cannot read them, or there is no
//! memory for them.

use std::fmt::Write as _;

use bytes::Bytes;
use http::header::{CONNECTION, CONTENT_TYPE, HeaderName, HeaderValue};
use http::{Response, StatusCode};

use crate::telemetry::Limit;

const PROBLEM: HeaderValue = HeaderValue::from_static("application/problem+json");
const DISPOSITION: HeaderName = HeaderName::from_static("onceward-disposition");

/// Why a request is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Refusal {
    /// It is not HTTP.
    Malformed,
    /// Its head passes this limit.
    HeadTooLarge(Limit),
    /// Its target is longer than hyper takes, whatever the limits are.
    TargetTooLong,
    /// Its `Content-Length` is one that no body can have.
    BodyTooLarge,
    /// There is no memory for its head, or there are too many streams on its connection.
    Overloaded,
}

impl Refusal {
    /// What hyper means by a status that it has chosen itself.
    pub(super) fn of_status(status: &[u8], passed: Limit) -> Self {
        match status {
            b"431" => Self::HeadTooLarge(passed),
            b"414" => Self::TargetTooLong,
            _ => Self::Malformed,
        }
    }

    pub(super) const fn status(self) -> StatusCode {
        match self {
            Self::Malformed => StatusCode::BAD_REQUEST,
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

    /// The problem (RFC 9457). None of its texts has a character that JSON escapes.
    fn problem(self) -> String {
        let (code, title, detail) = (self.code(), self.title(), self.detail());
        let status = self.status().as_u16();
        format!(
            "{{\"type\":\"urn:onceward:problem:{code}\",\"title\":\"{title}\",\
             \"status\":{status},\"detail\":\"{detail}\"}}"
        )
    }

    /// The answer, which is the last one on HTTP/1.
    pub(super) fn response(self) -> Response<Bytes> {
        let mut response = Response::new(Bytes::from(self.problem()));
        *response.status_mut() = self.status();
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, PROBLEM);
        headers.insert(DISPOSITION, HeaderValue::from_static("refused"));
        if self == Self::Overloaded {
            headers.insert(http::header::RETRY_AFTER, HeaderValue::from_static("1"));
        }
        response
    }

    /// The answer as HTTP/1.1 has it on the wire, with which the connection ends.
    pub(super) fn on_the_wire(self) -> Bytes {
        let mut response = self.response();
        response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
        let status = self.status();
        let reason = status.canonical_reason().unwrap_or_default();
        let mut head = format!("HTTP/1.1 {} {reason}\r\n", status.as_u16());
        for (name, value) in response.headers() {
            // Writing to a text does not fail, and all values are texts of ours.
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
            Refusal::Malformed,
            Refusal::HeadTooLarge(Limit::HeaderBytes),
            Refusal::HeadTooLarge(Limit::HeaderLines),
            Refusal::TargetTooLong,
            Refusal::BodyTooLarge,
            Refusal::Overloaded,
        ] {
            let bytes = refusal.on_the_wire();
            let text = std::str::from_utf8(&bytes).unwrap();
            let (head, body) = text.split_once("\r\n\r\n").unwrap();
            let problem: serde_json::Value = serde_json::from_str(body).unwrap();
            assert_eq!(problem["status"], refusal.status().as_u16());
            assert!(head.contains(&format!("\r\ncontent-length: {}", body.len())), "{head}");
            assert!(head.contains("\r\nconnection: close\r\n"), "{head}");
        }
    }
}
