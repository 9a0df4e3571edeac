//! The decisions of an operator about one operation: to resolve it, or to forget it.

use std::sync::Arc;

use axum::Json;
use axum::extract::{Request, State};
use bytes::Bytes;
use http::{HeaderValue, StatusCode, header};
use serde_json::value::RawValue;

use super::api::{Decided as DecidedAnswer, Forget, Outcome, ResolvableState, Resolve};
use super::body::{self, json, mistake};
use super::control::Admin;
use super::operations::{IdInPath, operation_id};
use super::problem::{CurrentState, Problem};
use crate::operation::state::{Decided, Forgetting, Resolution, Verdict};
use crate::operation::{AnswerBody, OperationId, StateName, StoredAnswer};
use crate::store::{self, Store, StoreExt as _};
use crate::telemetry::chain;

/// The longest body that an operator can give to an operation's copies.
const ANSWER_BYTES_MAX: usize = 256 * 1024;

impl From<ResolvableState> for StateName {
    fn from(state: ResolvableState) -> Self {
        match state {
            ResolvableState::Uncertain => Self::Uncertain,
            ResolvableState::Failed => Self::Failed,
        }
    }
}

/// `POST /api/operations/{id}/resolve`.
pub(super) async fn resolve(
    State(admin): State<Admin>,
    id: IdInPath,
    request: Request,
) -> Result<Json<DecidedAnswer>, Problem> {
    let id = operation_id(id)?;
    let body: Resolve = json(request).await?;
    let verdict = verdict(&body)?;
    let reason = body::reason(body.reason)?;
    let by = body::by(body.by)?;
    let reference = body::reference(body.reference)?;
    // The retention belongs to the route, and only the record knows the route of an operation id.
    let route = admin.find(id).await?.subject.route.clone();
    let resolution = Resolution {
        operation: id,
        verdict,
        by,
        reason,
        reference,
        attempt: body.attempt,
        state: body.state.map(Into::into),
        retention: admin.0.retentions.of(&route),
    };
    admin.decide(DecisionRequest::Resolve(resolution)).await?;
    let state = body.outcome.as_str().to_owned();
    Ok(Json(DecidedAnswer { operation: id.to_string(), state }))
}

/// `DELETE /api/operations/{id}`.
pub(super) async fn forget(
    State(admin): State<Admin>,
    id: IdInPath,
    request: Request,
) -> Result<Json<DecidedAnswer>, Problem> {
    let id = operation_id(id)?;
    let body: Forget = json(request).await?;
    let reason = body::reason(body.reason)?;
    let by = body::by(body.by)?;
    admin.decide(DecisionRequest::Forget(Forgetting { operation: id, by, reason })).await?;
    let state = StateName::Forgotten.as_str().to_owned();
    Ok(Json(DecidedAnswer { operation: id.to_string(), state }))
}

/// The verdict of a resolution.
fn verdict(resolve: &Resolve) -> Result<Verdict, Problem> {
    match (resolve.outcome, resolve.status, &resolve.body) {
        (Outcome::Failed, None, None) => Ok(Verdict::Failed),
        (Outcome::Failed, _, _) => {
            Err(mistake("`status` and `body` are for `succeeded`: a failure is not replayed"))
        }
        (Outcome::Succeeded, None, None) => Ok(Verdict::Succeeded(None)),
        (Outcome::Succeeded, status, body) => {
            let answer = answer(status.unwrap_or(200), body.as_deref().unwrap_or_default())?;
            Ok(Verdict::Succeeded(Some(Arc::new(answer))))
        }
    }
}

/// The answer that every later copy gets.
fn answer(status: u16, body: &str) -> Result<StoredAnswer, Problem> {
    let status = StatusCode::from_u16(status).ok();
    // A sender takes a 4xx or 5xx for a failure and would send again for the whole retention.
    let status = status
        .filter(|status| (200..=399).contains(&status.as_u16()))
        .ok_or_else(|| mistake("`status` must be that of a success: a number from 200 to 399"))?;
    if body.is_empty() {
        return Ok(StoredAnswer::empty(status));
    }
    // RFC 9110, sections 15.3.5, 15.3.6 and 15.4.5: a response with one of these has no content.
    let without_content =
        [StatusCode::NO_CONTENT, StatusCode::RESET_CONTENT, StatusCode::NOT_MODIFIED];
    if without_content.contains(&status) {
        return Err(mistake(format_args!("an answer with status {} has no body", status.as_u16())));
    }
    if body.len() > ANSWER_BYTES_MAX {
        return Err(mistake(format_args!("`body` is longer than {ANSWER_BYTES_MAX} bytes")));
    }
    let content_type = HeaderValue::from_static(content_type(body));
    let headers = vec![(header::CONTENT_TYPE, content_type)];
    let body = AnswerBody::Kept(Bytes::copy_from_slice(body.as_bytes()));
    Ok(StoredAnswer { status, headers, body })
}

/// The content type of a body. A sender that parses JSON may look at it before it does.
fn content_type(body: &str) -> &'static str {
    let is_json = body.trim_start().starts_with(['{', '['])
        && serde_json::from_str::<&RawValue>(body).is_ok();
    if is_json { "application/json" } else { "text/plain; charset=utf-8" }
}

/// A decision that is to be made.
#[derive(Debug)]
pub(super) enum DecisionRequest {
    Resolve(Resolution),
    Forget(Forgetting),
}

impl DecisionRequest {
    const fn operation(&self) -> OperationId {
        match self {
            Self::Resolve(resolution) => resolution.operation,
            Self::Forget(forgetting) => forgetting.operation,
        }
    }
}

impl Admin {
    /// Makes a decision. Refuses it with the operation's current state if that state does not allow
    /// it.
    async fn decide(&self, request: DecisionRequest) -> Result<(), Problem> {
        let id = request.operation();
        let store = Arc::clone(&self.0.store);
        // In a task of its own, so that a caller that hangs up leaves no decision without its line
        // in the log.
        let decided = tokio::spawn(async move { decide(&*store, request).await }).await;
        let decided = decided.map_err(|_panicked| Problem::NoReply)?;
        match decided.map_err(|error| Problem::of_writing(&error))? {
            Decided::Done => Ok(()),
            Decided::Unknown => Err(Problem::NoSuchOperation),
            Decided::Refused => {
                let found = self.find(id).await?;
                let state = found.state.name();
                let attempt = found.attempts.latest_number();
                Err(Problem::Refused(CurrentState { operation: id, state, attempt }))
            }
        }
    }
}

/// Makes a decision, and logs it and whether it was made.
pub(super) async fn decide(
    store: &dyn Store,
    request: DecisionRequest,
) -> Result<Decided, store::Error> {
    let id = request.operation();
    let decision = match &request {
        DecisionRequest::Resolve(Resolution { verdict: Verdict::Succeeded(_), .. }) => {
            "resolved as succeeded"
        }
        DecisionRequest::Resolve(Resolution { verdict: Verdict::Failed, .. }) => {
            "resolved as failed"
        }
        DecisionRequest::Forget(_) => "forgotten",
    };
    let (DecisionRequest::Resolve(Resolution { by, reason, .. })
    | DecisionRequest::Forget(Forgetting { by, reason, .. })) = &request;
    let by = by.clone();
    let reason = reason.clone();
    let decided = match request {
        DecisionRequest::Resolve(resolution) => store.apply(resolution).await,
        DecisionRequest::Forget(forgetting) => store.apply(forgetting).await,
    };
    match &decided {
        Ok(Decided::Done) => {
            tracing::info!(operation.id = %id, decision, ?by, ?reason, "a person decided");
        }
        Ok(Decided::Unknown | Decided::Refused) => {
            tracing::info!(operation.id = %id, decision, ?by, "a decision was refused");
        }
        Err(error) => {
            let error = chain(error);
            tracing::warn!(
                operation.id = %id, decision, ?by, %error,
                "a person's decision may not have been made"
            );
        }
    }
    decided
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(status: u16, body: &str) -> String {
        match answer(status, body) {
            Err(Problem::Body(what)) => what,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn an_answer_says_what_its_body_is() {
        for (body, kind) in [
            ("{\"ok\":true}", Some("application/json")),
            (" [1]\n", Some("application/json")),
            ("[accepted]", Some("text/plain; charset=utf-8")),
            ("ok", Some("text/plain; charset=utf-8")),
            ("", None),
        ] {
            let answer = answer(200, body).unwrap();
            assert_eq!(answer.body, AnswerBody::Kept(Bytes::from(body.to_owned())));
            let found = answer.headers.first().map(|(_, value)| value.to_str().unwrap());
            assert_eq!(found, kind, "{body}");
        }
    }

    #[test]
    fn an_answer_that_cannot_be_given_is_refused() {
        for status in [0, 99, 100, 101, 199, 400, 500, 599, 600, 1000] {
            let expected = "`status` must be that of a success: a number from 200 to 399";
            assert_eq!(refused(status, ""), expected);
        }
        for status in [204, 205, 304] {
            assert!(answer(status, "").is_ok());
            assert_eq!(refused(status, "x"), format!("an answer with status {status} has no body"));
        }
        assert!(answer(200, &"x".repeat(ANSWER_BYTES_MAX)).is_ok());
        assert!(refused(200, &"x".repeat(ANSWER_BYTES_MAX + 1)).contains("longer than 262144"));
    }
}
