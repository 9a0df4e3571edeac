//! Respond: the answer to the sender. This is the only place that names a status code.

use std::sync::Arc;
use std::time::Duration;

use http::{HeaderName, HeaderValue, Response, StatusCode, header};

use super::answer::Answer;
use super::identify::KeySource;
use super::problem::{Problem, mark, reused, what_failed};
use super::refusal::{ExplainedRefusal, Refusal};
use super::selector::Unread;
use super::settings::{Mode, RefusalBody, RouteSettings};
use crate::budget::{Budget, Reserved};
use crate::idempotency::{Disposition, Forwarded};
use crate::operation::state::ReportedState;
use crate::operation::{AnswerBody, OperationId, Outcome, Reason, StoredAnswer};
use crate::provider::signature::SignatureError;
use crate::telemetry;
use crate::upstream::ResponseBody;

const UPSTREAM_STATUS: HeaderName = HeaderName::from_static("onceward-upstream-status");
const BODY: HeaderName = HeaderName::from_static("onceward-body");
const REPLAYED: HeaderName = HeaderName::from_static("idempotent-replayed");

impl Refusal {
    /// The problem document of this refusal.
    fn problem(&self) -> Problem {
        use StatusCode as S;
        match self {
            Self::NoRoute => {
                let detail = "no route serves this host and path";
                Problem::new(S::NOT_FOUND, "no-route", "no route", detail)
            }
            Self::MethodNotAllowed(allow) => {
                let detail = format!("this route takes {allow}");
                Problem::new(
                    S::METHOD_NOT_ALLOWED,
                    "method-not-allowed",
                    "method not allowed",
                    detail,
                )
            }
            Self::Malformed(malformed) => {
                let detail = malformed.to_string();
                Problem::new(S::BAD_REQUEST, "malformed", "malformed request", detail)
            }
            Self::Expectation => {
                let detail = "only `100-continue` can be expected";
                Problem::new(S::EXPECTATION_FAILED, "malformed", "expectation failed", detail)
            }
            Self::BodyTooLarge { bytes_max } => {
                let detail = format!("this route takes bodies of up to {bytes_max} bytes");
                Problem::new(S::PAYLOAD_TOO_LARGE, "body-too-large", "body too large", detail)
            }
            Self::BodyTimeout => {
                let detail = "the body did not come in time; nothing was forwarded";
                Problem::new(S::REQUEST_TIMEOUT, "body-timeout", "body timeout", detail)
            }
            Self::Signature(error) => signature_problem(error),
            Self::Key(error) => {
                let title = match error.why {
                    Unread::Missing(_) => "key missing",
                    Unread::Invalid(_) => "key invalid",
                };
                Problem::new(S::BAD_REQUEST, error.code(), title, error.to_string())
            }
            Self::Overloaded => {
                let detail = "there is more to do than can be done now; nothing was forwarded";
                Problem::new(S::SERVICE_UNAVAILABLE, "overloaded", "overloaded", detail)
            }
            Self::Draining => {
                let detail = "this process is about to end; nothing was forwarded";
                Problem::new(S::SERVICE_UNAVAILABLE, "draining", "draining", detail)
            }
        }
    }

    /// Code and detail of the problem, for the log and `onceward explain`.
    pub(super) fn explained(&self) -> ExplainedRefusal {
        let Problem { code, detail, .. } = self.problem();
        ExplainedRefusal { code, detail }
    }
}

fn signature_problem(error: &SignatureError) -> Problem {
    let detail = error.to_string();
    match error {
        SignatureError::Missing(_) | SignatureError::Empty(_) | SignatureError::NoEvent => {
            let code = "signature-missing";
            Problem::new(StatusCode::UNAUTHORIZED, code, "signature missing", detail)
        }
        SignatureError::Invalid(_) => {
            let code = "signature-invalid";
            Problem::new(StatusCode::UNAUTHORIZED, code, "signature invalid", detail)
        }
        SignatureError::Stale { .. } => {
            let code = "signature-stale";
            Problem::new(StatusCode::UNAUTHORIZED, code, "signature stale", detail)
        }
        // The certificate could not be fetched, so the sender should send the event again.
        SignatureError::Undecided(_) => {
            let code = "signature-undecided";
            Problem::new(StatusCode::SERVICE_UNAVAILABLE, code, "signature undecided", detail)
        }
    }
}

/// The answer to a request that got no operation. If the route is known, its `retry_status`
/// replaces a 5xx after which the sender would not send the event again.
pub(super) fn refused(refusal: &Refusal, route: Option<&RouteSettings>) -> Answer {
    let mut problem = refusal.problem();
    // Every 503 asks the sender to send the request again soon, because nothing has been claimed.
    let status = problem.status;
    problem.retry_after = (status == StatusCode::SERVICE_UNAVAILABLE).then_some(Duration::ZERO);
    problem.status = route.map_or(status, |route| route.in_place_of(status));
    let mut answer = problem.answer(telemetry::DispositionWord::Refused);
    if let Refusal::MethodNotAllowed(allow) = refusal
        && let Ok(allow) = HeaderValue::from_str(allow)
    {
        answer.response.headers_mut().insert(header::ALLOW, allow);
    }
    if status == StatusCode::UNAUTHORIZED {
        // A 401 must say which kind of credentials it asks for (RFC 9110, 15.5.2).
        let challenge = HeaderValue::from_static("Signature");
        answer.response.headers_mut().insert(header::WWW_AUTHENTICATE, challenge);
    }
    answer
}

/// Removes the body of a problem, on a route whose sender accepts no body in a refusal.
pub(super) fn without_body(answer: &mut Answer, route: &RouteSettings) {
    if route.refusal_body == RefusalBody::None && answer.code.is_some() {
        *answer.response.body_mut() = ResponseBody::whole(bytes::Bytes::new());
        answer.response.headers_mut().remove(header::CONTENT_TYPE);
    }
}

/// The answer that tells the sender what happened to its request. `from` says where the key was
/// found.
pub(super) fn with(
    disposition: Disposition,
    route: &RouteSettings,
    from: Option<KeySource>,
) -> Answer {
    use telemetry::DispositionWord as D;
    match disposition {
        Disposition::Executed { operation, attempt, step, forwarded } => {
            let operation = Some(operation);
            let attempt = Some(attempt);
            executed(forwarded, D::Executed, route, Executed { operation, attempt, step })
        }
        Disposition::Passed(forwarded) => {
            executed(forwarded, D::Passed, route, Executed::default())
        }
        Disposition::NotGranted { operation, state } => not_granted(operation, state, route, from),
        Disposition::StillInFlight { operation, attempt, retry_after } => {
            let status = route.in_place_of(StatusCode::GATEWAY_TIMEOUT);
            let operation = Some(operation);
            let attempt = Some(attempt);
            Problem { operation, attempt, ..in_flight(status, retry_after) }.answer(D::InFlight)
        }
        Disposition::Superseded(operation) => {
            let status = route.in_place_of(StatusCode::SERVICE_UNAVAILABLE);
            let detail = "while this attempt ran, it was decided that the operation was not done; \
                          send it again";
            let problem = Problem {
                retry_after: Some(Duration::ZERO),
                operation: Some(operation),
                ..Problem::new(status, "superseded", "superseded", detail)
            };
            problem.answer(D::Executed)
        }
        Disposition::Lost(operation) => {
            let operation = Some(operation);
            Problem { operation, ..uncertain(route, Duration::ZERO) }.answer(D::Uncertain)
        }
        Disposition::Overloaded => refused(&Refusal::Overloaded, Some(route)),
        Disposition::StoreUnavailable => {
            let status = route.in_place_of(StatusCode::SERVICE_UNAVAILABLE);
            let detail = "the operation store is unavailable; nothing was forwarded";
            let problem = Problem {
                retry_after: Some(Duration::from_secs(5)),
                ..Problem::new(status, "store-unavailable", "store unavailable", detail)
            };
            problem.answer(D::Refused)
        }
    }
}

/// The answer to a request that makes no attempt, by the state of its operation.
fn not_granted(
    operation: OperationId,
    state: ReportedState,
    route: &RouteSettings,
    from: Option<KeySource>,
) -> Answer {
    let disposition = telemetry::DispositionWord::of_copy(&state);
    let (problem, attempt) = match state {
        ReportedState::Succeeded { attempt, answer } => {
            return replayed(&answer, operation, attempt);
        }
        ReportedState::InFlight { attempt, lease_left } => {
            (in_flight(route.in_flight_status, lease_left), Some(attempt))
        }
        // The operation is free, but this claim makes no attempt: it was settled or withdrawn
        // before, or nothing could be granted to it. Its sender may come back and claim anew.
        ReportedState::Free => (in_flight(route.in_flight_status, Duration::ZERO), None),
        ReportedState::Uncertain { attempt, ends_in } => (uncertain(route, ends_in), Some(attempt)),
        ReportedState::Mismatched { attempt } => {
            let status = StatusCode::UNPROCESSABLE_ENTITY;
            (Problem::new(status, "key-reused", "key reused", reused(from)), Some(attempt))
        }
    };
    Problem { operation: Some(operation), attempt, ..problem }.answer(disposition)
}

fn in_flight(status: StatusCode, retry_after: Duration) -> Problem {
    let detail = "an attempt of this operation is in flight; send it again later";
    let problem = Problem::new(status, "in-flight", "in flight", detail);
    Problem { retry_after: Some(retry_after), ..problem }
}

fn uncertain(route: &RouteSettings, ends_in: Duration) -> Problem {
    let detail = "nobody knows whether this operation was done; it is not sent again on a guess";
    let problem = Problem::new(route.uncertain_status, "uncertain", "uncertain", detail);
    Problem { retry_after: Some(retry_after_uncertain(ends_in)), ..problem }
}

/// How long a sender should wait before it sends a copy of an uncertain operation: until the
/// upstream can no longer be working on it, or 30 s if that time has passed.
fn retry_after_uncertain(ends_in: Duration) -> Duration {
    if ends_in.is_zero() { Duration::from_secs(30) } else { ends_in }
}

/// The operation whose attempt ended. Every field is empty for a request that is not deduplicated.
#[derive(Default)]
struct Executed {
    operation: Option<OperationId>,
    attempt: Option<u32>,
    /// The step at which the attempt ended.
    step: Option<Arc<str>>,
}

/// The answer to a request that was forwarded.
fn executed(
    forwarded: Forwarded,
    disposition: telemetry::DispositionWord,
    route: &RouteSettings,
    Executed { operation, attempt, step }: Executed,
) -> Answer {
    let uncertain = |ends_in| Some(retry_after_uncertain(ends_in));
    let gateway = StatusCode::BAD_GATEWAY;
    let (problem, reason) = match forwarded {
        Forwarded::Answered { status, headers, body } => {
            let mut response = Response::new(body);
            *response.status_mut() = status;
            *response.headers_mut() = headers;
            let is_done = match &route.steps {
                // The steps know it: a status means something else to each of them.
                Some(_) if disposition == telemetry::DispositionWord::Executed => step.is_none(),
                Some(_) | None => {
                    route.policy.receiver.outcome.classify(status) == Outcome::Succeeded
                }
            };
            // A route that only observes changes nothing of what the sender got before.
            if !is_done && route.mode != Mode::Observe {
                replace_final(&mut response, route);
            }
            mark(&mut response, disposition, operation);
            return Answer { step, operation, attempt, ..Answer::plain(response, disposition) };
        }
        Forwarded::Unreachable { reason } => {
            (Problem::new(gateway, "upstream-unreachable", "upstream unreachable", ""), reason)
        }
        Forwarded::Broken { reason, ends_in } => {
            let problem = Problem::new(gateway, "upstream-broken", "upstream broken", "");
            (Problem { retry_after: uncertain(ends_in), ..problem }, reason)
        }
        Forwarded::TimedOut => {
            let status = StatusCode::GATEWAY_TIMEOUT;
            let problem = Problem::new(status, "upstream-timeout", "upstream timeout", "");
            let retry_after = uncertain(Duration::ZERO);
            (Problem { retry_after, ..problem }, Reason::TimedOut)
        }
    };
    let status = route.in_place_of(problem.status);
    // A sender that gets `retry_status` in place of a final status is asked to come back.
    let asks_again = (status != problem.status).then_some(Duration::ZERO);
    let failed = what_failed(reason);
    let detail = match &step {
        Some(step) => format!("step `{step}`: {failed}"),
        None => failed.to_owned(),
    };
    let retry_after = problem.retry_after.or(asks_again);
    let problem = Problem { status, detail, retry_after, operation, attempt, ..problem };
    Answer { reason: Some(reason), step, ..problem.answer(disposition) }
}

/// Replaces a status of the upstream by `retry_status`, if the sender would not send the event
/// again after that status. The body stays.
fn replace_final(response: &mut Response<ResponseBody>, route: &RouteSettings) {
    let own = response.status();
    let sent = route.in_place_of(own);
    if sent != own {
        *response.status_mut() = sent;
        let headers = response.headers_mut();
        headers.insert(UPSTREAM_STATUS, HeaderValue::from(own.as_u16()));
        headers.entry(header::RETRY_AFTER).or_insert(HeaderValue::from_static("1"));
    }
}

fn replayed(answer: &StoredAnswer, operation: OperationId, attempt: u32) -> Answer {
    let body = match &answer.body {
        AnswerBody::Kept(bytes) => bytes.clone(),
        AnswerBody::Omitted => bytes::Bytes::new(),
    };
    let mut response = Response::new(ResponseBody::whole(body));
    *response.status_mut() = answer.status;
    let headers = response.headers_mut();
    headers.reserve(answer.headers.len() + 4);
    for (name, value) in &answer.headers {
        headers.append(name.clone(), value.clone());
    }
    // Stripe's API sends this header with a replayed response, so clients may know it.
    headers.insert(REPLAYED, HeaderValue::from_static("true"));
    // The body was too long to be kept. Without this header the sender would take the empty body
    // for the answer.
    if answer.body == AnswerBody::Omitted {
        headers.insert(BODY, HeaderValue::from_static("omitted"));
    }
    let disposition = telemetry::DispositionWord::Replayed;
    mark(&mut response, disposition, Some(operation));
    Answer {
        operation: Some(operation),
        attempt: Some(attempt),
        ..Answer::plain(response, disposition)
    }
}

/// The memory of a replay. Its body stays in memory for as long as the sender takes to read it.
///
/// # Errors
///
/// [`Refusal::Overloaded`] if the budget has no room for it.
pub(super) fn memory_of_replay(
    disposition: &Disposition,
    budget: &Budget,
) -> Result<Option<Reserved>, Refusal> {
    let Disposition::NotGranted { state: ReportedState::Succeeded { answer, .. }, .. } =
        disposition
    else {
        return Ok(None);
    };
    budget.reserve(answer.weight()).map(Some).map_err(|_| Refusal::Overloaded)
}

#[cfg(test)]
mod tests {
    use super::super::refusal::Malformed;
    use super::*;
    use crate::proxy::problem::{CODES_OF_ROUTES, CODES_WITHOUT_ROUTE};

    /// The counter of a code that is not in these lists begins with 1 in the metrics.
    #[test]
    fn the_code_of_every_refusal_is_counted_from_zero() {
        let stale =
            SignatureError::Stale { by: Duration::ZERO, distance: Duration::ZERO, ahead: false };
        let without_route = [
            Refusal::NoRoute,
            Refusal::Malformed(Malformed::Target),
            Refusal::Expectation,
            Refusal::Draining,
        ];
        let of_routes = [
            Refusal::MethodNotAllowed("POST".to_owned()),
            Refusal::Draining,
            Refusal::Malformed(Malformed::Body),
            Refusal::BodyTooLarge { bytes_max: 1 },
            Refusal::BodyTimeout,
            Refusal::Signature(SignatureError::NoEvent),
            Refusal::Signature(stale),
            Refusal::Overloaded,
        ];
        for (refusals, codes) in
            [(&without_route[..], CODES_WITHOUT_ROUTE), (&of_routes[..], CODES_OF_ROUTES)]
        {
            for refusal in refusals {
                let ExplainedRefusal { code, .. } = refusal.explained();
                assert!(codes.contains(&code), "{code}");
            }
        }
    }
}
