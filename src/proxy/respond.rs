//! The answer to the sender: the only place that names a status code.

use std::sync::Arc;
use std::time::Duration;

use http::{HeaderName, HeaderValue, Response, StatusCode, header};

use super::identify::KeySource;
use super::problem::{Problem, mark, reused, what_failed};
use super::refusal::Refusal;
use super::route::{RefusalBody, RouteSettings};
use crate::idempotency::{Disposition, Forwarded};
use crate::operation::{AnswerBody as StoredBody, OperationId, Reason, StoredAnswer};
use crate::provider::signature::Refused;
use crate::telemetry;
use crate::upstream::AnswerBody;

/// The answer to a request, and what is said of it in log and metrics.
#[derive(Debug)]
pub(super) struct Answer {
    pub(super) response: Response<AnswerBody>,
    pub(super) disposition: telemetry::Disposition,
    /// The code of the problem, if it is one.
    pub(super) code: Option<&'static str>,
    /// Its detail.
    pub(super) detail: Option<String>,
    /// Why the upstream gave no answer, if that is it.
    pub(super) reason: Option<Reason>,
    /// Which of several upstreams that was.
    pub(super) step: Option<Arc<str>>,
    pub(super) operation: Option<OperationId>,
    pub(super) attempt: Option<u32>,
}

impl Answer {
    /// One that is no problem, and of no operation.
    pub(super) const fn plain(
        response: Response<AnswerBody>,
        disposition: telemetry::Disposition,
    ) -> Self {
        Self {
            response,
            disposition,
            code: None,
            detail: None,
            reason: None,
            step: None,
            operation: None,
            attempt: None,
        }
    }
}

const UPSTREAM_STATUS: HeaderName = HeaderName::from_static("onceward-upstream-status");
const BODY: HeaderName = HeaderName::from_static("onceward-body");
const REPLAYED: HeaderName = HeaderName::from_static("idempotent-replayed");

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
                    Refused::Missing(_) | Refused::Empty(_) | Refused::NoEvent => {
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

/// Takes the body from a refusal of a route whose sender demands it without.
pub(super) fn bare(answer: &mut Answer, route: &RouteSettings) {
    if route.refusal_body == RefusalBody::None && answer.code.is_some() {
        *answer.response.body_mut() = AnswerBody::whole(bytes::Bytes::new());
        answer.response.headers_mut().remove(header::CONTENT_TYPE);
    }
}

/// The answer to a request by what happened to it, and by where its key was found, if it has one.
pub(super) fn with(
    disposition: Disposition,
    route: &RouteSettings,
    from: Option<KeySource>,
) -> Answer {
    use telemetry::Disposition as D;
    match disposition {
        Disposition::Executed { operation, attempt, step, end } => {
            executed(end, D::Executed, route, Some(Of { operation, attempt, step }))
        }
        Disposition::Passed(end) => executed(end, D::Passed, route, None),
        Disposition::Replayed { operation, attempt, answer } => {
            replayed(&answer, operation, attempt)
        }
        Disposition::InFlight { operation, attempt, retry_after, own } => {
            let own_status = || route.in_place_of(StatusCode::GATEWAY_TIMEOUT);
            let status = if own { own_status() } else { route.in_flight_status };
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
                detail: reused(from).to_owned(),
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

/// Which attempt of which operation, and at which step it has ended.
struct Of {
    operation: OperationId,
    attempt: u32,
    step: Option<Arc<str>>,
}

fn executed(
    end: Forwarded,
    disposition: telemetry::Disposition,
    route: &RouteSettings,
    of: Option<Of>,
) -> Answer {
    let operation = of.as_ref().map(|of| of.operation);
    let attempt = of.as_ref().map(|of| of.attempt);
    let step = of.and_then(|of| of.step);
    let (status, code, title, reason, retry_after) = match end {
        Forwarded::Answered { status, headers, body } => {
            let mut response = Response::new(body);
            *response.status_mut() = status;
            *response.headers_mut() = headers;
            replace_final(&mut response, route);
            mark(&mut response, disposition, operation);
            return Answer { step, operation, attempt, ..Answer::plain(response, disposition) };
        }
        Forwarded::Unreachable { reason } => {
            (StatusCode::BAD_GATEWAY, "upstream-unreachable", "upstream unreachable", reason, None)
        }
        Forwarded::Broken { reason, ends_in } => {
            let retry_after = Some(come_back_for_uncertain(ends_in));
            (StatusCode::BAD_GATEWAY, "upstream-broken", "upstream broken", reason, retry_after)
        }
        Forwarded::TimedOut => {
            let retry_after = Some(come_back_for_uncertain(Duration::ZERO));
            let reason = Reason::TimedOut;
            (
                StatusCode::GATEWAY_TIMEOUT,
                "upstream-timeout",
                "upstream timeout",
                reason,
                retry_after,
            )
        }
    };
    let sent = route.in_place_of(status);
    let retry_after = retry_after.or_else(|| (sent != status).then_some(Duration::ZERO));
    let failed = what_failed(reason);
    let detail = match &step {
        Some(step) => format!("step `{step}`: {failed}"),
        None => failed.to_owned(),
    };
    let problem = Problem { status: sent, code, title, detail, retry_after, operation, attempt };
    Answer { reason: Some(reason), step, ..problem.answer(disposition) }
}

/// Sends `retry_status` in place of a status of the upstream's after which its sender would give the
/// event up, though it is not done. The body stays.
fn replace_final(response: &mut Response<AnswerBody>, route: &RouteSettings) {
    let own = response.status();
    let sent = if route.is_done_after(own) { own } else { route.in_place_of(own) };
    if sent != own {
        *response.status_mut() = sent;
        let headers = response.headers_mut();
        headers.insert(UPSTREAM_STATUS, HeaderValue::from(own.as_u16()));
        headers.entry(header::RETRY_AFTER).or_insert(HeaderValue::from_static("1"));
    }
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
    Answer { operation, attempt, ..Answer::plain(response, disposition) }
}

#[cfg(test)]
mod tests {
    use super::super::refusal::Malformed;
    use super::*;
    use crate::proxy::problem::{CODES_OF_ROUTES, CODES_WITHOUT_ROUTE};

    /// A counter that is not among them begins with 1 in the metrics.
    #[test]
    fn the_code_of_every_refusal_is_counted_from_zero() {
        let stale = Refused::Stale { by: Duration::ZERO, distance: Duration::ZERO, ahead: false };
        let without_route = [
            Refusal::NoRoute,
            Refusal::MethodNotAllowed("POST".to_owned()),
            Refusal::Malformed(Malformed::Target),
            Refusal::Expectation,
            Refusal::Draining,
        ];
        let of_routes = [
            Refusal::Malformed(Malformed::Body),
            Refusal::BodyTooLarge { bytes_max: 1 },
            Refusal::BodyTimeout,
            Refusal::Signature(Refused::NoEvent),
            Refusal::Signature(stale),
            Refusal::Overloaded,
        ];
        for (refusals, codes) in
            [(&without_route[..], CODES_WITHOUT_ROUTE), (&of_routes[..], CODES_OF_ROUTES)]
        {
            for refusal in refusals {
                let (code, _) = refusal.explained();
                assert!(codes.contains(&code), "{code}");
            }
        }
    }
}
