//! What a person decides about one operation.

use std::sync::Arc;

use axum::Json;
use axum::extract::{Request, State};
use bytes::Bytes;
use http::{HeaderValue, StatusCode, header};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::Admin;
use super::body::{self, json, mistake};
use super::operations::{InPath, operation_id};
use super::problem::{Problem, Stands};
use crate::operation::state::{Decided, Forgetting, Resolution, Verdict};
use crate::operation::{AnswerBody, OperationId, StateName, StoredAnswer};
use crate::store::{self, Store, StoreExt as _};
use crate::telemetry::chain;

/// The longest body that an operator can have replayed.
const ANSWER_BYTES_MAX: usize = 256 * 1024;

/// How an operation is resolved.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum OutcomeWord {
    Succeeded,
    Failed,
}

/// What can be resolved.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum StateWord {
    Uncertain,
    Failed,
}

impl From<StateWord> for StateName {
    fn from(word: StateWord) -> Self {
        match word {
            StateWord::Uncertain => Self::Uncertain,
            StateWord::Failed => Self::Failed,
        }
    }
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct ResolveJson {
    outcome: OutcomeWord,
    reason: String,
    reference: Option<String>,
    by: Option<String>,
    attempt: Option<u32>,
    state: Option<StateWord>,
    status: Option<u16>,
    body: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct ForgetJson {
    reason: String,
    by: Option<String>,
}

/// What was done.
#[derive(Debug, Serialize)]
pub(super) struct DecidedJson {
    operation: String,
    state: &'static str,
}

/// `POST /api/operations/{id}/resolve`.
pub(super) async fn resolve(
    State(admin): State<Admin>,
    id: InPath,
    request: Request,
) -> Result<Json<DecidedJson>, Problem> {
    let id = operation_id(id)?;
    let asked: ResolveJson = json(request).await?;
    let (verdict, state) = verdict(&asked)?;
    let reason = body::reason(asked.reason)?;
    let by = body::by(asked.by)?;
    let reference = body::reference(asked.reference)?;
    let route = admin.find(id).await?.asked.route.clone();
    let resolution = Resolution {
        operation: id,
        verdict,
        by,
        reason,
        reference,
        attempt: asked.attempt,
        state: asked.state.map(Into::into),
        retention: admin.0.retentions.of(&route),
    };
    admin.decide(Act::Resolve(resolution)).await?;
    Ok(Json(DecidedJson { operation: id.to_string(), state: state.as_str() }))
}

/// `DELETE /api/operations/{id}`.
pub(super) async fn forget(
    State(admin): State<Admin>,
    id: InPath,
    request: Request,
) -> Result<Json<DecidedJson>, Problem> {
    let id = operation_id(id)?;
    let asked: ForgetJson = json(request).await?;
    let reason = body::reason(asked.reason)?;
    let by = body::by(asked.by)?;
    admin.decide(Act::Forget(Forgetting { operation: id, by, reason })).await?;
    Ok(Json(DecidedJson { operation: id.to_string(), state: StateName::Forgotten.as_str() }))
}

/// What was decided, and the state that it leads to.
fn verdict(asked: &ResolveJson) -> Result<(Verdict, StateName), Problem> {
    match (asked.outcome, asked.status, &asked.body) {
        (OutcomeWord::Failed, None, None) => Ok((Verdict::Failed, StateName::Failed)),
        (OutcomeWord::Failed, _, _) => {
            Err(mistake("`status` and `body` are for `succeeded`: a failure is not replayed"))
        }
        (OutcomeWord::Succeeded, None, None) => {
            Ok((Verdict::Succeeded(None), StateName::Succeeded))
        }
        (OutcomeWord::Succeeded, status, body) => {
            let answer = answer(status.unwrap_or(200), body.as_deref().unwrap_or_default())?;
            Ok((Verdict::Succeeded(Some(Arc::new(answer))), StateName::Succeeded))
        }
    }
}

/// The answer that every later copy gets.
fn answer(status: u16, body: &str) -> Result<StoredAnswer, Problem> {
    let status = StatusCode::from_u16(status).ok();
    // A sender takes a 4xx or 5xx for a failure, and would come again for the whole retention.
    let status = status
        .filter(|status| (200..=399).contains(&status.as_u16()))
        .ok_or_else(|| mistake("`status` must be that of a success: a number from 200 to 399"))?;
    if body.is_empty() {
        return Ok(StoredAnswer::empty(status));
    }
    let never_has_one =
        [StatusCode::NO_CONTENT, StatusCode::RESET_CONTENT, StatusCode::NOT_MODIFIED];
    if never_has_one.contains(&status) {
        return Err(mistake(format_args!("an answer with status {} has no body", status.as_u16())));
    }
    if body.len() > ANSWER_BYTES_MAX {
        return Err(mistake(format_args!("`body` is longer than {ANSWER_BYTES_MAX} bytes")));
    }
    let kind = HeaderValue::from_static(content_type(body));
    let headers = vec![(header::CONTENT_TYPE, kind)];
    let body = AnswerBody::Kept(Bytes::copy_from_slice(body.as_bytes()));
    Ok(StoredAnswer { status, headers, body })
}

/// Senders that read JSON want to be told so.
fn content_type(body: &str) -> &'static str {
    let is_json = body.trim_start().starts_with(['{', '['])
        && serde_json::from_str::<&RawValue>(body).is_ok();
    if is_json { "application/json" } else { "text/plain; charset=utf-8" }
}

/// A decision to be made.
#[derive(Debug)]
pub(super) enum Act {
    Resolve(Resolution),
    Forget(Forgetting),
}

impl Act {
    const fn operation(&self) -> OperationId {
        match self {
            Self::Resolve(resolution) => resolution.operation,
            Self::Forget(forgetting) => forgetting.operation,
        }
    }
}

impl Admin {
    /// Makes a decision, or says how the operation stands instead.
    async fn decide(&self, act: Act) -> Result<(), Problem> {
        let id = act.operation();
        let store = Arc::clone(&self.0.store);
        // In a task of its own: a caller that hangs up leaves no decision without its line in the
        // log.
        let made = tokio::spawn(async move { make(&*store, act).await }).await;
        let made = made.map_err(|_panicked| Problem::NoReply)?;
        match made.map_err(|error| Problem::of_writing(&error))? {
            Decided::Done => Ok(()),
            Decided::Unknown => Err(Problem::NoSuchOperation),
            Decided::Refused => {
                let found = self.find(id).await?;
                let state = found.state.name();
                let attempt = found.attempts.latest_number();
                Err(Problem::Refused(Stands { operation: id, state, attempt }))
            }
        }
    }
}

/// Makes a decision and writes it into the log.
pub(super) async fn make(store: &dyn Store, act: Act) -> Result<Decided, store::Error> {
    let id = act.operation();
    let decision = match &act {
        Act::Resolve(Resolution { verdict: Verdict::Succeeded(_), .. }) => "resolved as succeeded",
        Act::Resolve(Resolution { verdict: Verdict::Failed, .. }) => "resolved as failed",
        Act::Forget(_) => "forgotten",
    };
    let (Act::Resolve(Resolution { by, reason, .. }) | Act::Forget(Forgetting { by, reason, .. })) =
        &act;
    let by = by.clone();
    let reason = reason.clone();
    let made = match act {
        Act::Resolve(resolution) => store.apply(resolution).await,
        Act::Forget(forgetting) => store.apply(forgetting).await,
    };
    match &made {
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
    made
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
