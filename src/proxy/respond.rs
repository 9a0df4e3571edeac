//! The answer to the sender: the only place that names a status code.

use std::time::Duration;

use http::{HeaderName, HeaderValue, Response, StatusCode, header};
use serde::Serialize;

use super::guard::{self, GuardError};
use super::identify::IdentifyError;
use super::route::RouteSettings;
use crate::idempotency::{Disposition, Forwarded};
use crate::operation::{AnswerBody as StoredBody, OperationId, StoredAnswer};
use crate::provider::signature::Refused;
use crate::telemetry;
use crate::upstream::AnswerBody;

/// Why a request got no operation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Refusal {
    /// No route serves this host and path.
    NoRoute,
    /// The route does not take this method; it takes these.
    MethodNotAllowed(String),
    /// The request is not one that can be passed on safely.
    Malformed(Malformed),
    /// It expects something other than 100 (Continue).
    Expectation,
    /// Its body is longer than the route takes.
    BodyTooLarge {
        /// What the route takes.
        bytes_max: usize,
    },
    /// Its body took too long.
    BodyTimeout,
    /// It is not known to be its sender's.
    Signature(Refused),
    /// It has no key, or one that cannot be used.
    Key(IdentifyError),
    /// There is more to do than can be done.
    Overloaded,
    /// The process is about to end.
    Draining,
}

impl From<GuardError> for Refusal {
    fn from(error: GuardError) -> Self {
        match error {
            GuardError::Malformed(malformed) => Self::Malformed(Malformed::Head(malformed)),
            GuardError::Expectation => Self::Expectation,
        }
    }
}

impl From<IdentifyError> for Refusal {
    fn from(error: IdentifyError) -> Self {
        Self::Key(error)
    }
}

/// What is wrong with a request's form.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(super) enum Malformed {
    /// Its head can be read in two ways.
    #[error(transparent)]
    Head(guard::Malformed),
    /// Its target does not parse.
    #[error("the request target does not parse")]
    Target,
    /// Dot segments lead out of the route.
    #[error("the path leaves its route through dot segments")]
    LeavesRoute,
    /// Its body broke off or is framed wrongly.
    #[error("the body is incomplete or framed wrongly")]
    Body,
}

/// The answer to a request, and what is said of it in log and metrics.
#[derive(Debug)]
pub(super) struct Answer {
    pub(super) response: Response<AnswerBody>,
    pub(super) disposition: telemetry::Disposition,
    /// The code of the problem, if it is one.
    pub(super) code: Option<&'static str>,
    pub(super) operation: Option<OperationId>,
    pub(super) attempt: Option<u32>,
}

const DISPOSITION: HeaderName = HeaderName::from_static("onceward-disposition");
const OPERATION: HeaderName = HeaderName::from_static("onceward-operation");
const BODY: HeaderName = HeaderName::from_static("onceward-body");
const REPLAYED: HeaderName = HeaderName::from_static("idempotent-replayed");

/// An answer that is a problem (RFC 9457).
struct Problem {
    status: StatusCode,
    code: &'static str,
    title: &'static str,
    detail: String,
    retry_after: Option<Duration>,
    operation: Option<OperationId>,
    attempt: Option<u32>,
}

impl Refusal {
    /// Status, code, title and detail of the problem.
    fn describe(&self) -> (StatusCode, &'static str, &'static str, String) {
        use StatusCode as S;
        match self {
            Self::NoRoute => {
                let detail = "no route serves this host and path".to_owned();
                (S::NOT_FOUND, "no-route", "no route", detail)
            }
            Self::MethodNotAllowed(allow) => {
                let detail = format!("this route takes {allow}");
                (S::METHOD_NOT_ALLOWED, "method-not-allowed", "method not allowed", detail)
            }
            Self::Malformed(malformed) => {
                (S::BAD_REQUEST, "malformed", "malformed request", malformed.to_string())
            }
            Self::Expectation => {
                let detail = "only `100-continue` can be expected".to_owned();
                (S::EXPECTATION_FAILED, "malformed", "expectation failed", detail)
            }
            Self::BodyTooLarge { bytes_max } => {
                let detail = format!("this route takes bodies of up to {bytes_max} bytes");
                (S::PAYLOAD_TOO_LARGE, "body-too-large", "body too large", detail)
            }
            Self::BodyTimeout => {
                let detail = "the body did not come in time; nothing was forwarded".to_owned();
                (S::REQUEST_TIMEOUT, "body-timeout", "body timeout", detail)
            }
            Self::Signature(refused) => {
                let (status, code, title) = match refused {
                    Refused::Missing(_) => {
                        (S::UNAUTHORIZED, "signature-missing", "signature missing")
                    }
                    Refused::Invalid(_) => {
                        (S::UNAUTHORIZED, "signature-invalid", "signature invalid")
                    }
                    Refused::Stale { .. } => {
                        (S::UNAUTHORIZED, "signature-stale", "signature stale")
                    }
                    Refused::Undecided(_) => {
                        (S::SERVICE_UNAVAILABLE, "signature-undecided", "signature undecided")
                    }
                };
                (status, code, title, refused.to_string())
            }
            Self::Key(error) => {
                let title =
                    if error.code() == "key-missing" { "key missing" } else { "key invalid" };
                (S::BAD_REQUEST, error.code(), title, error.to_string())
            }
            Self::Overloaded => {
                let detail = "there is more to do than can be done now; nothing was forwarded";
                (S::SERVICE_UNAVAILABLE, "overloaded", "overloaded", detail.to_owned())
            }
            Self::Draining => {
                let detail = "this process is about to end; nothing was forwarded".to_owned();
                (S::SERVICE_UNAVAILABLE, "draining", "draining", detail)
            }
        }
    }

    /// The code and the detail of the problem, for those who explain it elsewhere.
    pub(super) fn explained(&self) -> (&'static str, String) {
        let (_, code, _, detail) = self.describe();
        (code, detail)
    }
}

/// The answer to a request that got no operation.
pub(super) fn refused(refusal: &Refusal) -> Answer {
    let (status, code, title, detail) = refusal.describe();
    let retry_after = (status == StatusCode::SERVICE_UNAVAILABLE).then_some(Duration::ZERO);
    let problem =
        Problem { status, code, title, detail, retry_after, operation: None, attempt: None };
    let mut answer = problem.answer(telemetry::Disposition::Refused);
    if let Refusal::MethodNotAllowed(allow) = refusal
        && let Ok(allow) = HeaderValue::from_str(allow)
    {
        answer.response.headers_mut().insert(header::ALLOW, allow);
    }
    if status == StatusCode::UNAUTHORIZED {
        // RFC 9110, 15.5.2: it says which kind of credentials there should have been.
        let challenge = HeaderValue::from_static("Signature");
        answer.response.headers_mut().insert(header::WWW_AUTHENTICATE, challenge);
    }
    answer
}

/// The answer to a request by what happened to it.
pub(super) fn with(disposition: Disposition, route: &RouteSettings) -> Answer {
    use telemetry::Disposition as D;
    match disposition {
        Disposition::Executed { operation, attempt, end } => {
            executed(end, D::Executed, (Some(operation), Some(attempt)))
        }
        Disposition::Passed(end) => executed(end, D::Passed, (None, None)),
        Disposition::Replayed { operation, attempt, answer } => {
            replayed(&answer, operation, attempt)
        }
        Disposition::InFlight { operation, attempt, retry_after, own } => {
            let status = if own { StatusCode::GATEWAY_TIMEOUT } else { route.in_flight_status };
            let problem = Problem {
                status,
                code: "in-flight",
                title: "in flight",
                detail: "an attempt of this operation is in flight; send it again later".to_owned(),
                retry_after: Some(retry_after),
                operation: Some(operation),
                attempt,
            };
            problem.answer(D::InFlight)
        }
        Disposition::Uncertain { operation, attempt, ends_in } => {
            let problem = Problem {
                status: route.uncertain_status,
                code: "uncertain",
                title: "uncertain",
                detail:
                    "nobody knows whether this operation was done; it is not sent again on a guess"
                        .to_owned(),
                retry_after: Some(come_back_for_uncertain(ends_in)),
                operation: Some(operation),
                attempt,
            };
            problem.answer(D::Uncertain)
        }
        Disposition::Mismatched { operation, attempt } => {
            let problem = Problem {
                status: StatusCode::UNPROCESSABLE_ENTITY,
                code: "key-reused",
                title: "key reused",
                detail: "this idempotency key stands for a different request".to_owned(),
                retry_after: None,
                operation: Some(operation),
                attempt: Some(attempt),
            };
            problem.answer(D::Mismatched)
        }
        Disposition::Overloaded => refused(&Refusal::Overloaded),
        Disposition::StoreUnavailable => {
            let problem = Problem {
                status: StatusCode::SERVICE_UNAVAILABLE,
                code: "store-unavailable",
                title: "store unavailable",
                detail: "the operation store is unavailable; nothing was forwarded".to_owned(),
                retry_after: Some(Duration::from_secs(5)),
                operation: None,
                attempt: None,
            };
            problem.answer(D::Refused)
        }
    }
}

/// The time until the upstream can no longer be working on it; once that is over, 30 s.
fn come_back_for_uncertain(ends_in: Duration) -> Duration {
    if ends_in.is_zero() { Duration::from_secs(30) } else { ends_in }
}

fn executed(
    end: Forwarded,
    disposition: telemetry::Disposition,
    (operation, attempt): (Option<OperationId>, Option<u32>),
) -> Answer {
    let mut retry_after = None;
    let (status, code, title, detail) = match end {
        Forwarded::Answered { status, headers, body } => {
            let mut response = Response::new(body);
            *response.status_mut() = status;
            *response.headers_mut() = headers;
            mark(&mut response, disposition, operation);
            return Answer { response, disposition, code: None, operation, attempt };
        }
        Forwarded::Unreachable => (
            StatusCode::BAD_GATEWAY,
            "upstream-unreachable",
            "upstream unreachable",
            "nothing was sent: the upstream could not be reached in time",
        ),
        Forwarded::Broken { ends_in } => {
            retry_after = Some(come_back_for_uncertain(ends_in));
            let detail = "the upstream was sent the request and gave no complete answer";
            (StatusCode::BAD_GATEWAY, "upstream-broken", "upstream broken", detail)
        }
        Forwarded::TimedOut => {
            retry_after = Some(come_back_for_uncertain(Duration::ZERO));
            let detail = "the upstream was sent the request and gave no complete answer in time";
            (StatusCode::GATEWAY_TIMEOUT, "upstream-timeout", "upstream timeout", detail)
        }
    };
    let detail = detail.to_owned();
    Problem { status, code, title, detail, retry_after, operation, attempt }.answer(disposition)
}

fn replayed(answer: &StoredAnswer, operation: OperationId, attempt: u32) -> Answer {
    let body = match &answer.body {
        StoredBody::Kept(bytes) => bytes.clone(),
        StoredBody::Omitted => bytes::Bytes::new(),
    };
    let mut response = Response::new(AnswerBody::whole(body));
    *response.status_mut() = answer.status;
    let headers = response.headers_mut();
    headers.reserve(answer.headers.len() + 4);
    for (name, value) in &answer.headers {
        headers.append(name.clone(), value.clone());
    }
    headers.insert(REPLAYED, HeaderValue::from_static("true"));
    if answer.body == StoredBody::Omitted {
        headers.insert(BODY, HeaderValue::from_static("omitted"));
    }
    let disposition = telemetry::Disposition::Replayed;
    mark(&mut response, disposition, Some(operation));
    let (operation, attempt) = (Some(operation), Some(attempt));
    Answer { response, disposition, code: None, operation, attempt }
}

fn mark(
    response: &mut Response<AnswerBody>,
    disposition: telemetry::Disposition,
    operation: Option<OperationId>,
) {
    let headers = response.headers_mut();
    headers.insert(DISPOSITION, HeaderValue::from_static(disposition.as_str()));
    if let Some(id) = operation.and_then(|id| HeaderValue::from_str(&id.to_string()).ok()) {
        headers.insert(OPERATION, id);
    }
}

impl Problem {
    fn answer(self, disposition: telemetry::Disposition) -> Answer {
        let Self { status, code, title, detail, retry_after, operation, attempt } = self;
        let json = ProblemJson {
            kind: format!("urn:onceward:problem:{code}"),
            title,
            status: status.as_u16(),
            detail,
            operation: operation.map(|id| id.to_string()),
            attempt,
        };
        // A struct of texts and numbers always becomes JSON.
        let body = serde_json::to_vec(&json).unwrap_or_default();
        let mut response = Response::new(AnswerBody::whole(body.into()));
        *response.status_mut() = status;
        let headers = response.headers_mut();
        let json = HeaderValue::from_static("application/problem+json");
        headers.insert(header::CONTENT_TYPE, json);
        if let Some(retry_after) = retry_after {
            let seconds = retry_after.as_millis().div_ceil(1000).clamp(1, 30);
            headers.insert(
                header::RETRY_AFTER,
                HeaderValue::from(u64::try_from(seconds).unwrap_or(30)),
            );
        }
        mark(&mut response, disposition, operation);
        Answer { response, disposition, code: Some(code), operation, attempt }
    }
}

#[derive(Serialize)]
struct ProblemJson {
    #[serde(rename = "type")]
    kind: String,
    title: &'static str,
    status: u16,
    detail: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    operation: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    attempt: Option<u32>,
}
