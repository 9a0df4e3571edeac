//! Reads the body of a call: JSON of limited length, with limited texts in it.

use std::fmt::Display;
use std::time::Duration;

use axum::extract::Request;
use http::{HeaderMap, header};
use http_body::Body as _;
use http_body_util::{BodyExt as _, LengthLimitError, Limited};
use serde::de::DeserializeOwned;
use tokio::time::timeout;

use super::api::OPERATOR;
use super::problem::Problem;

/// The longest body of a call. A resolution with the longest answer is below it.
const BODY_BYTES_MAX: usize = 1024 * 1024;
/// How long a body may take to arrive.
const BODY_TIMEOUT: Duration = Duration::from_secs(30);
const REASON_BYTES_MAX: usize = 1024;
const REFERENCE_BYTES_MAX: usize = 255;
const BY_BYTES_MAX: usize = 128;
/// How much of a mistake is described. A parser quotes what the caller wrote, at any length.
pub(super) const MISTAKE_CHARS_MAX: usize = 200;

/// Reads the body of a call as JSON.
pub(super) async fn json<T: DeserializeOwned>(request: Request) -> Result<T, Problem> {
    // A form of another site's page cannot have this content type: it is not one of those that a
    // browser sends to another site without asking it first (Fetch Standard, "CORS-safelisted
    // request-header").
    if !is_json(request.headers()) {
        let is_empty = request.body().is_end_stream();
        return Err(if is_empty { mistake("expected a JSON object") } else { Problem::NotJson });
    }
    let body = Limited::new(request.into_body(), BODY_BYTES_MAX).collect();
    let body = timeout(BODY_TIMEOUT, body).await.map_err(|_| Problem::BodyTimeout)?;
    let body = body.map_err(|error| match error.downcast_ref::<LengthLimitError>() {
        Some(_) => Problem::BodyTooLarge,
        None => mistake("it broke off"),
    })?;
    serde_json::from_slice(&body.to_bytes()).map_err(mistake)
}

fn is_json(headers: &HeaderMap) -> bool {
    let mut content_types = headers.get_all(header::CONTENT_TYPE).iter();
    let first = content_types.next().and_then(|value| value.to_str().ok());
    let has_more = content_types.next().is_some();
    let essence = first.and_then(|value| value.split(';').next()).map(str::trim);
    essence.is_some_and(|essence| essence.eq_ignore_ascii_case("application/json")) && !has_more
}

/// The problem of a body with this mistake.
pub(super) fn mistake(what: impl Display) -> Problem {
    Problem::Body(what.to_string().chars().take(MISTAKE_CHARS_MAX).collect())
}

/// The reason of a decision.
pub(super) fn reason(given: String) -> Result<String, Problem> {
    bounded("reason", given, REASON_BYTES_MAX)
}

/// The reference of a decision.
pub(super) fn reference(given: Option<String>) -> Result<Option<String>, Problem> {
    given.map(|given| bounded("reference", given, REFERENCE_BYTES_MAX)).transpose()
}

/// Who decides, as the decision record names them: an operator, with the name that they gave.
pub(super) fn by(given: Option<String>) -> Result<String, Problem> {
    let Some(name) = given else { return Ok(OPERATOR.to_owned()) };
    // With the word in front of it, no name can pass for that of a policy such as `when_uncertain`.
    Ok(format!("{OPERATOR}: {}", bounded("by", name, BY_BYTES_MAX)?))
}

fn bounded(name: &str, given: String, bytes_max: usize) -> Result<String, Problem> {
    if given.trim().is_empty() {
        return Err(mistake(format_args!("`{name}` is blank")));
    }
    if given.len() > bytes_max {
        return Err(mistake(format_args!("`{name}` is longer than {bytes_max} bytes")));
    }
    Ok(given)
}
