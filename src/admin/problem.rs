//! The control plane's refusals, as problems (RFC 9457).

use axum::response::{IntoResponse, Response};
use http::{StatusCode, header};
use serde_json::json;

/// Why a call was refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Problem {
    /// The token is missing or wrong.
    Unauthorized,
    /// The call exists, but not with this method.
    MethodNotAllowed,
    /// There is no such call.
    NotFound,
    /// What stands in the path is no operation id.
    NotAnOperationId,
    /// Nothing is remembered under this id.
    NoSuchOperation,
    /// The store did not answer.
    StoreUnavailable,
    /// The record cannot be read.
    Unreadable,
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        use StatusCode as S;
        let (status, code, title) = match self {
            Self::Unauthorized => {
                (S::UNAUTHORIZED, "unauthorized", "the token is missing or wrong")
            }
            Self::MethodNotAllowed => {
                (S::METHOD_NOT_ALLOWED, "method-not-allowed", "this call has another method")
            }
            Self::NotFound => (S::NOT_FOUND, "not-found", "there is no such call"),
            Self::NotAnOperationId => {
                (S::BAD_REQUEST, "invalid-id", "an operation id is `op_` and 32 hex digits")
            }
            Self::NoSuchOperation => {
                (S::NOT_FOUND, "no-such-operation", "nothing is remembered under this id")
            }
            Self::StoreUnavailable => {
                (S::SERVICE_UNAVAILABLE, "store-unavailable", "the store did not answer")
            }
            Self::Unreadable => {
                (S::INTERNAL_SERVER_ERROR, "unreadable", "the record cannot be read")
            }
        };
        let kind = format!("urn:onceward:problem:{code}");
        let body = json!({ "type": kind, "title": title, "status": status.as_u16() }).to_string();
        let mut response =
            (status, [(header::CONTENT_TYPE, "application/problem+json")], body).into_response();
        if status == S::UNAUTHORIZED {
            let challenge = http::HeaderValue::from_static("Bearer");
            response.headers_mut().insert(header::WWW_AUTHENTICATE, challenge);
        }
        response
    }
}
