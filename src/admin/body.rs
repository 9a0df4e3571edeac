//! What a decision must bring: JSON, not too long, with a reason.

use std::fmt::Display;
use std::time::Duration;

use axum::extract::Request;
use http::{HeaderMap, header};
use http_body::Body as _;
use http_body_util::{BodyExt as _, LengthLimitError, Limited};
use serde::de::DeserializeOwned;
use tokio::time::timeout;

use super::problem::Problem;

/// Who decides through this API, in the decision record.
const OPERATOR: &str = "operator";

/// What a whole call may bring.
pub(super) const BODY_BYTES_MAX: usize = 1024 * 1024;
const BODY_TIMEOUT: Duration = Duration::from_secs(30);
const REASON_BYTES_MAX: usize = 1024;
const REFERENCE_BYTES_MAX: usize = 255;
const BY_BYTES_MAX: usize = 128;
/// What is told of a mistake; the caller knows what it wrote.
pub(super) const MISTAKE_CHARS_MAX: usize = 200;

/// Reads a call's body. A form of a web page cannot have this content type.
pub(super) async fn json<T: DeserializeOwned>(request: Request) -> Result<T, Problem> {
    if !is_json(request.headers()) {
        let empty = request.body().is_end_stream();
        return Err(if empty { mistake("expected a JSON object") } else { Problem::NotJson });
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
    let mut kinds = headers.get_all(header::CONTENT_TYPE).iter();
    let (kind, more) = (kinds.next().and_then(|kind| kind.to_str().ok()), kinds.next().is_some());
    let essence = kind.and_then(|kind| kind.split(';').next()).map(str::trim);
    essence.is_some_and(|kind| kind.eq_ignore_ascii_case("application/json")) && !more
}

/// What is wrong with a body.
pub(super) fn mistake(what: impl Display) -> Problem {
    Problem::Body(what.to_string().chars().take(MISTAKE_CHARS_MAX).collect())
}

/// Why something is decided.
pub(super) fn reason(given: String) -> Result<String, Problem> {
    bounded("reason", given, REASON_BYTES_MAX)
}

/// Something to find it by elsewhere.
pub(super) fn reference(given: Option<String>) -> Result<Option<String>, Problem> {
    given.map(|given| bounded("reference", given, REFERENCE_BYTES_MAX)).transpose()
}

/// Who decides: an operator, and what they call themselves. Nobody checks that.
pub(super) fn by(given: Option<String>) -> Result<String, Problem> {
    let Some(name) = given else { return Ok(OPERATOR.to_owned()) };
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
