//! Alive, ready, measured.

use std::sync::atomic::Ordering;

use axum::extract::State;
use axum::response::{IntoResponse, Response};
use http::{HeaderMap, StatusCode, header};

use super::Admin;

/// The process runs.
pub(super) async fn live() -> &'static str {
    "live\n"
}

/// The process takes requests, and its store claims and settles.
pub(super) async fn ready(State(admin): State<Admin>) -> (StatusCode, String) {
    let not_ready = |why: &str| (StatusCode::SERVICE_UNAVAILABLE, format!("not ready: {why}\n"));
    if admin.0.draining.load(Ordering::Acquire) {
        return not_ready("draining");
    }
    match admin.0.store.probe().await {
        Ok(()) => (StatusCode::OK, "ready\n".to_owned()),
        Err(error) => not_ready(&error.to_string()),
    }
}

const OPENMETRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";
const PROMETHEUS: &str = "text/plain; version=0.0.4; charset=utf-8";

/// All metrics, in the format that the caller asks for.
pub(super) async fn metrics(State(admin): State<Admin>, headers: HeaderMap) -> Response {
    let metrics = &admin.0.metrics;
    if let Ok(uncertain) = admin.0.store.uncertain().await {
        metrics.uncertain.set(i64::try_from(uncertain).unwrap_or(i64::MAX));
    }
    let accepts = headers.get(header::ACCEPT).and_then(|value| value.to_str().ok());
    let openmetrics = accepts.is_some_and(|accepts| accepts.contains("openmetrics"));
    let (kind, page) = if openmetrics {
        (OPENMETRICS, metrics.openmetrics())
    } else {
        (PROMETHEUS, metrics.prometheus())
    };
    match page {
        Ok(page) => ([(header::CONTENT_TYPE, kind)], page).into_response(),
        Err(_) => StatusCode::INTERNAL_SERVER_ERROR.into_response(),
    }
}
