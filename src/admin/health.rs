//! Health and metrics: `/livez`, `/readyz` and `/metrics`.

use axum::extract::State;
use axum::response::{IntoResponse, Response};
use http::{HeaderMap, StatusCode, header};

use super::control::Admin;
use crate::telemetry::ClockSkew;

/// `GET /livez`: the process runs.
pub(super) async fn live() -> &'static str {
    "live\n"
}

/// `GET /readyz`: the process takes requests, and its store claims and settles.
pub(super) async fn ready(State(admin): State<Admin>) -> (StatusCode, String) {
    let not_ready = |why: &str| (StatusCode::SERVICE_UNAVAILABLE, format!("not ready: {why}\n"));
    if let Some(drained_by) = admin.0.drained_by.get() {
        let in_flight = admin.0.metrics.in_flight.get();
        let left = admin.0.clock.moment().until(*drained_by).as_millis().div_ceil(1000);
        return not_ready(&format!("draining; attempts in flight: {in_flight}, {left} s at most"));
    }
    if let Err(why) = admin.0.health.probe().await {
        return not_ready(&why);
    }
    // A concern is no reason to be unready: every process on the store has it, so all of them would
    // turn senders away. Only the codes are shown, since the texts name servers, users and tables
    // and anybody may call this. The log has the texts.
    let concerns = admin.0.health.concerns();
    let clock = admin.0.metrics.clock_is_suspected().then_some(ClockSkew::CONCERN);
    let warnings = concerns.iter().copied().chain(clock);
    let warnings = warnings.map(|code| format!("warning: {code}\n"));
    (StatusCode::OK, format!("ready\n{}", warnings.collect::<String>()))
}

const OPENMETRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";
const PROMETHEUS: &str = "text/plain; version=0.0.4; charset=utf-8";

/// `GET /metrics`: all metrics, in the format that the caller accepts.
pub(super) async fn metrics(State(admin): State<Admin>, headers: HeaderMap) -> Response {
    let metrics = &admin.0.metrics;
    // A store that cannot be asked has no count. NaN says so; the last count would look current.
    let uncertain =
        admin.0.store.uncertain().await.ok().and_then(|count| u32::try_from(count).ok());
    metrics.uncertain.set(uncertain.map_or(f64::NAN, f64::from));
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

#[cfg(test)]
mod tests {
    use std::collections::HashMap;
    use std::sync::Arc;
    use std::time::Duration;

    use super::*;
    use crate::admin::{Dependencies, Retentions};
    use crate::clock::Clock;
    use crate::operation::Timestamp;
    use crate::store::Concern;
    use crate::store::memory::Memory;
    use crate::telemetry::Metrics;

    #[tokio::test]
    async fn a_clock_that_seems_wrong_is_a_warning() {
        let clock = Clock::manual(Timestamp(0));
        let metrics = Arc::new(Metrics::new());
        let admin = Admin::new(Dependencies {
            store: Arc::new(Memory::new(clock.clone())),
            metrics: Arc::clone(&metrics),
            clock,
            token: None,
            retentions: Retentions { routes: HashMap::new(), otherwise: Duration::ZERO },
        });
        let said = async || ready(State(admin.clone())).await;
        let skew = metrics.clock_skew("hooks");
        skew.set(400);
        assert_eq!(said().await, (StatusCode::OK, "ready\nwarning: clock-skew\n".to_owned()));
        skew.set(0);
        assert_eq!(said().await, (StatusCode::OK, "ready\n".to_owned()));
    }

    /// Callers of `/readyz` have no token.
    #[tokio::test]
    async fn nothing_but_the_code_of_a_concern_is_shown() {
        let clock = Clock::manual(Timestamp(0));
        let admin = Admin::new(Dependencies {
            store: Arc::new(Memory::new(clock.clone())),
            metrics: Arc::new(Metrics::new()),
            clock,
            token: None,
            retentions: Retentions { routes: HashMap::new(), otherwise: Duration::ZERO },
        });
        let said = async || ready(State(admin.clone())).await;
        assert_eq!(said().await, (StatusCode::OK, "ready\n".to_owned()));
        let text = "user `u`".to_owned();
        let hint = "alter table `t`".to_owned();
        admin.set_concerns(&[Concern { code: "not-durable", text, hint }]);
        assert_eq!(said().await, (StatusCode::OK, "ready\nwarning: not-durable\n".to_owned()));
        admin.set_concerns(&[]);
        assert_eq!(said().await, (StatusCode::OK, "ready\n".to_owned()));
    }

    #[tokio::test]
    async fn while_it_drains_it_says_what_is_in_flight_and_how_long_that_may_take() {
        let clock = Clock::manual(Timestamp(0));
        let metrics = Arc::new(Metrics::new());
        let admin = Admin::new(Dependencies {
            store: Arc::new(Memory::new(clock.clone())),
            metrics: Arc::clone(&metrics),
            clock: clock.clone(),
            token: None,
            retentions: Retentions { routes: HashMap::new(), otherwise: Duration::ZERO },
        });
        let said = async || ready(State(admin.clone())).await.1;
        let attempt = metrics.in_flight_guard();
        admin.drain(Duration::from_secs(65));
        assert_eq!(said().await, "not ready: draining; attempts in flight: 1, 65 s at most\n");
        clock.advance(Duration::from_millis(64_100));
        assert_eq!(said().await, "not ready: draining; attempts in flight: 1, 1 s at most\n");
        drop(attempt);
        clock.advance(Duration::from_mins(1));
        let (status, text) = ready(State(admin.clone())).await;
        assert_eq!(status, StatusCode::SERVICE_UNAVAILABLE);
        assert_eq!(text, "not ready: draining; attempts in flight: 0, 0 s at most\n");
    }
}
