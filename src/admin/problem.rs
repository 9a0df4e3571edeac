//! Why the control plane refuses a call, as problem documents (RFC 9457).

use std::time::Duration;

use axum::response::{IntoResponse, Response};
use http::{HeaderValue, StatusCode, header};

use crate::operation::{OperationId, StateName};
use crate::problem::{self, Document};
use crate::store;

/// Why a call was refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Problem {
    /// The token is missing or wrong.
    Unauthorized,
    /// Too many wrong tokens came from the caller's address. It has to wait this long.
    TooManyFailures(Duration),
    /// A page of another site asked for a change.
    CrossSite,
    /// There is no token, and `Host` is a name that a stranger could control.
    UnknownHost,
    /// The path is that of a call, but with another method.
    MethodNotAllowed,
    /// No call has this path.
    NotFound,
    /// The path has something else in place of an operation id.
    NotAnOperationId,
    /// The store remembers no operation with this id.
    NoSuchOperation,
    /// A parameter of the query is wrong.
    Query(String),
    /// The content type of the body is not that of JSON.
    NotJson,
    /// The body has a mistake.
    Body(String),
    /// The body is longer than any call needs.
    BodyTooLarge,
    /// The body did not arrive in time.
    BodyTimeout,
    /// The operation's current state does not allow the decision.
    Refused(CurrentState),
    /// The store did nothing, for this reason.
    StoreUnavailable(String),
    /// The store did not answer, so the decision may have been made.
    NoReply,
    /// The record of the operation cannot be read.
    Unreadable,
}

/// The current state of an operation that could not be decided about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct CurrentState {
    pub(super) operation: OperationId,
    pub(super) state: StateName,
    /// The number of its latest attempt.
    pub(super) attempt: u32,
}

impl Problem {
    /// The problem of a call that only reads, if the store fails.
    pub(super) fn of_reading(error: &store::Error) -> Self {
        match error {
            store::Error::Unreadable(..) => Self::Unreadable,
            store::Error::Unavailable(_)
            | store::Error::NoReply(_)
            | store::Error::TooFewReplicas { .. }
            | store::Error::Failed(_)
            | store::Error::Emptied
            | store::Error::TablesGone(_)
            | store::Error::AttemptExists(_) => Self::StoreUnavailable(error.to_string()),
        }
    }

    /// The problem of a call that writes, if the store fails.
    pub(super) fn of_writing(error: &store::Error) -> Self {
        if error.may_have_applied() { Self::NoReply } else { Self::of_reading(error) }
    }

    const fn status(&self) -> StatusCode {
        match self {
            Self::Unauthorized => StatusCode::UNAUTHORIZED,
            Self::TooManyFailures(_) => StatusCode::TOO_MANY_REQUESTS,
            Self::CrossSite | Self::UnknownHost => StatusCode::FORBIDDEN,
            Self::MethodNotAllowed => StatusCode::METHOD_NOT_ALLOWED,
            Self::NotFound | Self::NoSuchOperation => StatusCode::NOT_FOUND,
            Self::NotAnOperationId | Self::Query(_) | Self::Body(_) => StatusCode::BAD_REQUEST,
            Self::NotJson => StatusCode::UNSUPPORTED_MEDIA_TYPE,
            Self::BodyTooLarge => StatusCode::PAYLOAD_TOO_LARGE,
            Self::BodyTimeout => StatusCode::REQUEST_TIMEOUT,
            Self::Refused(_) => StatusCode::CONFLICT,
            Self::StoreUnavailable(_) | Self::NoReply => StatusCode::SERVICE_UNAVAILABLE,
            Self::Unreadable => StatusCode::INTERNAL_SERVER_ERROR,
        }
    }

    const fn code_and_title(&self) -> (&'static str, &'static str) {
        match self {
            Self::Unauthorized => ("unauthorized", "the token is missing or wrong"),
            Self::TooManyFailures(_) => ("too-many-failures", "too many tokens were wrong"),
            Self::CrossSite => ("cross-site", "another site's page may not change anything"),
            Self::UnknownHost => {
                ("unknown-host", "without a token, `Host` must be an address or `localhost`")
            }
            Self::MethodNotAllowed => ("method-not-allowed", "this call has another method"),
            Self::NotFound => ("not-found", "there is no such call"),
            Self::NotAnOperationId => ("invalid-id", "an operation id is `op_` and 32 hex digits"),
            Self::NoSuchOperation => ("no-such-operation", "nothing is remembered under this id"),
            Self::Query(_) => ("invalid-query", "a parameter is wrong"),
            Self::NotJson => ("not-json", "the content type must be `application/json`"),
            Self::Body(_) => ("invalid-body", "the body is not what is expected"),
            Self::BodyTooLarge => ("body-too-large", "the body is too long"),
            Self::BodyTimeout => ("body-timeout", "the body did not come in time"),
            Self::Refused(_) => ("refused", "nothing was decided"),
            Self::StoreUnavailable(_) => ("store-unavailable", "the store cannot be used now"),
            Self::NoReply => {
                ("no-reply", "the store did not say whether this was done; look before another try")
            }
            Self::Unreadable => ("unreadable", "the record cannot be read"),
        }
    }

    fn detail(&self) -> Option<String> {
        match self {
            Self::Query(detail) | Self::Body(detail) => Some(detail.clone()),
            Self::Refused(current) => Some(current.to_string()),
            Self::StoreUnavailable(why) => Some(why.clone()),
            Self::UnknownHost => Some("`admin.token` opens it to other names".to_owned()),
            Self::NotFound => {
                Some("there are `/livez`, `/readyz`, `/metrics`, `/api/operations`".to_owned())
            }
            Self::Unauthorized
            | Self::TooManyFailures(_)
            | Self::CrossSite
            | Self::MethodNotAllowed
            | Self::NotAnOperationId
            | Self::NoSuchOperation
            | Self::NotJson
            | Self::BodyTooLarge
            | Self::BodyTimeout
            | Self::NoReply
            | Self::Unreadable => None,
        }
    }

    fn document(&self) -> Document<'static> {
        let (code, title) = self.code_and_title();
        let current = if let Self::Refused(current) = self { Some(current) } else { None };
        Document {
            code: code.into(),
            title: title.into(),
            status: self.status().as_u16(),
            detail: self.detail().map(Into::into),
            operation: current.map(|current| current.operation.to_string()),
            state: current.map(|current| current.state.as_str().into()),
            attempt: current.map(|current| current.attempt),
        }
    }
}

impl std::fmt::Display for CurrentState {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let attempt = self.attempt;
        match self.state {
            StateName::InFlight => write!(f, "attempt {attempt} is in flight: wait for its end"),
            StateName::Succeeded => {
                f.write_str("it has succeeded already; forgotten, it would run again")
            }
            StateName::Forgotten => f.write_str("it is forgotten: the next copy runs again"),
            StateName::Uncertain => write!(f, "it has moved on: attempt {attempt} is uncertain"),
            StateName::Failed => write!(f, "it has moved on: attempt {attempt} has failed"),
        }
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let content_type = [(header::CONTENT_TYPE, problem::MEDIA_TYPE)];
        let body = self.document().to_body();
        let mut response = (self.status(), content_type, body).into_response();
        let headers = response.headers_mut();
        // A 401 has to name the scheme of the credentials (RFC 9110, section 15.5.2).
        if self == Self::Unauthorized {
            headers.insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        if let Self::TooManyFailures(wait) = self {
            // Rounded up: whoever comes back too early is refused once more.
            let seconds = wait.as_millis().div_ceil(1000).max(1);
            let seconds = u64::try_from(seconds).unwrap_or(u64::MAX);
            headers.insert(header::RETRY_AFTER, seconds.into());
        }
        response
    }
}
