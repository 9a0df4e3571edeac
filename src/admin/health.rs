//! Alive, ready, measured.

use std::sync::{Arc, PoisonError};
use std::time::Duration;

use axum::extract::State;
use axum::response::{IntoResponse, Response};
use http::{HeaderMap, StatusCode, header};

use super::Admin;
use crate::clock::{Clock, Moment};
use crate::store::{Concern, Store};
use crate::telemetry::ClockSkew;

/// How long it is told again what a probe has found. A probe writes, and anybody may ask.
const PROBE_KEPT_FOR: Duration = Duration::from_secs(1);

/// What is known of the store: whether it works, and what makes it unsafe.
#[derive(Debug)]
pub(super) struct Health {
    store: Arc<dyn Store>,
    clock: Clock,
    latest: Arc<tokio::sync::Mutex<Option<Probed>>>,
    /// The codes of what makes it unsafe.
    concerns: std::sync::Mutex<Vec<&'static str>>,
}

/// What a probe has found: a failure in words that name nothing of the store.
#[derive(Debug)]
struct Probed {
    at: Moment,
    result: Result<(), String>,
}

impl Health {
    pub(super) fn new(store: Arc<dyn Store>, clock: Clock) -> Self {
        let (latest, concerns) = (Arc::default(), std::sync::Mutex::default());
        Self { store, clock, latest, concerns }
    }

    /// What the latest probe has found. However many ask, one is made at a time, and no other one
    /// soon after it.
    async fn probed(&self) -> Result<(), String> {
        let mut latest = Arc::clone(&self.latest).lock_owned().await;
        if let Some(Probed { at, result }) = &*latest
            && at.until(self.clock.moment()) < PROBE_KEPT_FOR
        {
            return result.clone();
        }
        let (store, clock) = (Arc::clone(&self.store), self.clock.clone());
        // In a task of its own: a caller that hangs up does not have the next one begin another.
        let probe = tokio::spawn(async move {
            let result = store.probe().await.map_err(|error| error.to_string());
            *latest = Some(Probed { at: clock.moment(), result: result.clone() });
            result
        });
        probe.await.unwrap_or_else(|_panicked| Err("the store could not be tried".to_owned()))
    }

    pub(super) fn has_seen(&self, concerns: &[Concern]) {
        let codes = concerns.iter().map(|concern| concern.code).collect();
        *self.concerns.lock().unwrap_or_else(PoisonError::into_inner) = codes;
    }

    fn concerns(&self) -> Vec<&'static str> {
        self.concerns.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// The process runs.
pub(super) async fn live() -> &'static str {
    "live\n"
}

/// The process takes requests, and its store claims and settles.
pub(super) async fn ready(State(admin): State<Admin>) -> (StatusCode, String) {
    let not_ready = |why: &str| (StatusCode::SERVICE_UNAVAILABLE, format!("not ready: {why}\n"));
    if let Some(drained_by) = admin.0.drained_by.get() {
        let in_flight = admin.0.metrics.in_flight.get();
        let left = admin.0.clock.moment().until(*drained_by).as_millis().div_ceil(1000);
        return not_ready(&format!("draining; attempts in flight: {in_flight}, {left} s at most"));
    }
    if let Err(why) = admin.0.health.probed().await {
        return not_ready(&why);
    }
    // What is not safe is no reason to send senders away. The log has the rest of it, which names
    // servers, users and tables.
    let concerns = admin.0.health.concerns();
    let clock = admin.0.metrics.clock_is_suspected().then_some(ClockSkew::CONCERN);
    let warnings = concerns.iter().copied().chain(clock);
    let warnings = warnings.map(|code| format!("warning: {code}\n"));
    (StatusCode::OK, format!("ready\n{}", warnings.collect::<String>()))
}

const OPENMETRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";
const PROMETHEUS: &str = "text/plain; version=0.0.4; charset=utf-8";

/// All metrics, in the format that the caller asks for.
pub(super) async fn metrics(State(admin): State<Admin>, headers: HeaderMap) -> Response {
    let metrics = &admin.0.metrics;
    // what was so before the store went away may not be so any more
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

    use futures_util::FutureExt as _;
    use futures_util::future::join_all;

    use super::*;
    use crate::admin::{Parties, Retentions};
    use crate::operation::Timestamp;
    use crate::store::memory::Memory;
    use crate::telemetry::Metrics;

    /// How many probes were made: each leaves a record that is swept when its time is over.
    async fn probes(store: &dyn Store, clock: &Clock) -> usize {
        clock.advance(Duration::from_hours(24));
        store.sweep(1000).await.unwrap().removed
    }

    #[tokio::test]
    async fn however_many_ask_the_store_is_tried_once_a_second() {
        let clock = Clock::manual(Timestamp(0));
        let store: Arc<dyn Store> = Arc::new(Memory::new(clock.clone()));
        let health = Health::new(Arc::clone(&store), clock.clone());
        let ask = async |count: usize| {
            let asked = join_all((0..count).map(|_| health.probed())).await;
            assert_eq!(asked, vec![Ok(()); count]);
        };
        ask(100).await;
        clock.advance(Duration::from_millis(999));
        ask(100).await;
        assert_eq!(probes(&*store, &clock).await, 1);
        ask(100).await;
        clock.advance(PROBE_KEPT_FOR);
        ask(1).await;
        assert_eq!(probes(&*store, &clock).await, 2);
    }

    #[tokio::test]
    async fn who_hangs_up_leaves_a_probe_that_others_get() {
        let clock = Clock::manual(Timestamp(0));
        let store: Arc<dyn Store> = Arc::new(Memory::new(clock.clone()));
        let health = Health::new(Arc::clone(&store), clock.clone());
        assert_eq!(health.probed().now_or_never(), None, "it hangs up");
        assert!(health.latest.try_lock().is_err(), "the probe goes on");
        assert_eq!(health.probed().await, Ok(()));
        assert_eq!(probes(&*store, &clock).await, 1);
    }

    #[tokio::test]
    async fn a_clock_that_seems_wrong_is_a_warning() {
        let clock = Clock::manual(Timestamp(0));
        let metrics = Arc::new(Metrics::new());
        let admin = Admin::new(Parties {
            store: Arc::new(Memory::new(clock.clone())),
            metrics: Arc::clone(&metrics),
            clock,
            token: None,
            retentions: Retentions { routes: HashMap::new(), otherwise: Duration::ZERO },
        });
        let told = async || ready(State(admin.clone())).await;
        let skew = metrics.clock_skew("hooks");
        skew.set(400);
        assert_eq!(told().await, (StatusCode::OK, "ready\nwarning: clock-skew\n".to_owned()));
        skew.set(0);
        assert_eq!(told().await, (StatusCode::OK, "ready\n".to_owned()));
    }

    /// Whoever asks has no token.
    #[tokio::test]
    async fn of_what_is_unsafe_nothing_but_the_code_is_told() {
        let clock = Clock::manual(Timestamp(0));
        let admin = Admin::new(Parties {
            store: Arc::new(Memory::new(clock.clone())),
            metrics: Arc::new(Metrics::new()),
            clock,
            token: None,
            retentions: Retentions { routes: HashMap::new(), otherwise: Duration::ZERO },
        });
        let told = async || ready(State(admin.clone())).await;
        assert_eq!(told().await, (StatusCode::OK, "ready\n".to_owned()));
        let (text, hint) = ("user `u`".to_owned(), "alter table `t`".to_owned());
        admin.has_seen(&[Concern { code: "not-durable", text, hint }]);
        assert_eq!(told().await, (StatusCode::OK, "ready\nwarning: not-durable\n".to_owned()));
        admin.has_seen(&[]);
        assert_eq!(told().await, (StatusCode::OK, "ready\n".to_owned()));
    }

    #[tokio::test]
    async fn while_it_drains_it_says_what_is_in_flight_and_how_long_that_may_take() {
        let clock = Clock::manual(Timestamp(0));
        let metrics = Arc::new(Metrics::new());
        let admin = Admin::new(Parties {
            store: Arc::new(Memory::new(clock.clone())),
            metrics: Arc::clone(&metrics),
            clock: clock.clone(),
            token: None,
            retentions: Retentions { routes: HashMap::new(), otherwise: Duration::ZERO },
        });
        let told = async || ready(State(admin.clone())).await.1;
        let attempt = metrics.in_flight_guard();
        admin.drain(Duration::from_secs(65));
        assert_eq!(told().await, "not ready: draining; attempts in flight: 1, 65 s at most\n");
        clock.advance(Duration::from_millis(64_100));
        assert_eq!(told().await, "not ready: draining; attempts in flight: 1, 1 s at most\n");
        drop(attempt);
        clock.advance(Duration::from_mins(1));
        let (status, text) = ready(State(admin.clone())).await;
        assert_eq!(status, StatusCode::SERVICE_UNAVAILABLE);
        assert_eq!(text, "not ready: draining; attempts in flight: 0, 0 s at most\n");
    }
}
