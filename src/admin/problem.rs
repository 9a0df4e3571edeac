//! The control plane's refusals, as problems (RFC 9457).

use std::time::Duration;

use axum::response::{IntoResponse, Response};
use http::{HeaderValue, StatusCode, header};
use serde_json::{Map, Value};

use crate::operation::{OperationId, StateName};
use crate::store;

/// Why a call was refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Problem {
    /// The token is missing or wrong.
    Unauthorized,
    /// Too many tokens from there were wrong; none is looked at for so long.
    TooManyFailures(Duration),
    /// A page of another site asks for a change.
    CrossSite,
    /// There is no token, and the name in `Host` could be anybody's.
    UnknownHost,
    /// The call exists, but not with this method.
    MethodNotAllowed,
    /// There is no such call.
    NotFound,
    /// What stands in the path is no operation id.
    NotAnOperationId,
    /// Nothing is remembered under this id.
    NoSuchOperation,
    /// A parameter of the query is wrong.
    Query(String),
    /// The body is not JSON by its content type.
    NotJson,
    /// The body is not what is expected.
    Body(String),
    /// The body is longer than any decision.
    BodyTooLarge,
    /// The body did not come in time.
    BodyTimeout,
    /// It cannot be decided as it stands now.
    Refused(Stands),
    /// The store did not take the call.
    StoreUnavailable,
    /// The store did not answer, so that the decision may have been made.
    NoReply,
    /// The record cannot be read.
    Unreadable,
}

/// How an operation stands that nothing is decided about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Stands {
    pub(super) operation: OperationId,
    pub(super) state: StateName,
    /// The number of its latest attempt.
    pub(super) attempt: u32,
}

impl Problem {
    /// What becomes of a call that only reads.
    pub(super) fn of_reading(error: &store::Error) -> Self {
        match error {
            store::Error::Unreadable(..) => Self::Unreadable,
            store::Error::Unavailable(_)
            | store::Error::NoReply(_)
            | store::Error::TooFewReplicas { .. }
            | store::Error::Failed(_)
            | store::Error::Emptied
            | store::Error::AttemptExists(_) => Self::StoreUnavailable,
        }
    }

    /// What becomes of a call that writes.
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
            Self::StoreUnavailable | Self::NoReply => StatusCode::SERVICE_UNAVAILABLE,
            Self::Unreadable => StatusCode::INTERNAL_SERVER_ERROR,
        }
    }

    /// The code, and a title that is the same for all of its kind.
    const fn words(&self) -> (&'static str, &'static str) {
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
            Self::StoreUnavailable => ("store-unavailable", "the store did not answer"),
            Self::NoReply => {
                ("no-reply", "the store did not say whether this was done; look before another try")
            }
            Self::Unreadable => ("unreadable", "the record cannot be read"),
        }
    }

    fn detail(&self) -> Option<String> {
        match self {
            Self::Query(detail) | Self::Body(detail) => Some(detail.clone()),
            Self::Refused(stands) => Some(stands.to_string()),
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
            | Self::StoreUnavailable
            | Self::NoReply
            | Self::Unreadable => None,
        }
    }

    fn body(&self) -> String {
        let (code, title) = self.words();
        let mut members = Map::new();
        let mut put = |name: &str, value: Value| members.insert(name.to_owned(), value);
        put("type", format!("urn:onceward:problem:{code}").into());
        put("title", title.into());
        put("status", self.status().as_u16().into());
        self.detail().map(|detail| put("detail", detail.into()));
        if let Self::Refused(Stands { operation, state, attempt }) = self {
            put("operation", operation.to_string().into());
            put("state", state.as_str().into());
            put("attempt", (*attempt).into());
        }
        Value::Object(members).to_string()
    }
}

impl std::fmt::Display for Stands {
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
        let kind = [(header::CONTENT_TYPE, "application/problem+json")];
        let mut response = (self.status(), kind, self.body()).into_response();
        let headers = response.headers_mut();
        if self == Self::Unauthorized {
            headers.insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        if let Self::TooManyFailures(wait) = self {
            let seconds = wait.as_millis().div_ceil(1000).max(1);
            let seconds = u64::try_from(seconds).unwrap_or(u64::MAX);
            headers.insert(header::RETRY_AFTER, seconds.into());
        }
        response
    }
}
