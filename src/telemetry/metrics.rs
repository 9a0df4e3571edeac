//! The metric families, and the counters of one route.

use std::sync::atomic::AtomicU64;
use std::time::Duration;

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::encoding::{prometheus_text, text};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::metrics::info::Info;
use prometheus_client::registry::{Registry, Unit};

use super::clock_skew::{ClockSkew, ClockSkews};
use super::labels::{DispositionWord, Limit, StoreCall};
use crate::operation::Outcome;
use crate::operation::state::Finding;

/// All metrics of a process.
#[derive(Debug)]
pub struct Metrics {
    registry: Registry,
    requests: Family<RequestLabels, Counter>,
    attempts: Family<AttemptLabels, Counter>,
    refusals: Family<RefusalLabels, Counter>,
    observed: Family<RequestLabels, Counter>,
    lookups: Family<LookupLabels, Counter>,
    limits: Family<LimitLabels, Counter>,
    concerns: Family<ConcernLabels, Gauge>,
    clock_skews: ClockSkews,
    /// By the discriminant of the call.
    store: [Histogram; StoreCall::ALL.len()],
    attempt_duration: Histogram,
    request_duration: Histogram,
    /// Attempts that are in flight.
    pub in_flight: Gauge,
    /// Operations that are held. Read from the store when metrics are scraped; NaN if that fails.
    pub uncertain: Gauge<f64, AtomicU64>,
    /// Settles that changed nothing, because the claim was no longer current.
    pub superseded: Counter,
    /// Settles that found no record of the operation.
    pub record_lost: Counter,
    /// Outcomes that were not recorded, because the record could not be read.
    pub unrecorded: Counter,
    /// Attempts that failed after a copy had been refused. A sender that does not send again after
    /// such a refusal has lost the event.
    pub refused_then_failed: Counter,
    /// Operations that were given up while uncertain, because `hold_for` had passed.
    pub holds_ended: Counter,
    /// Requests that were forwarded without deduplication, because the store failed.
    pub unprotected: Counter,
    /// Open connections.
    pub connections: Gauge,
    /// Bytes of requests and answers in memory.
    pub buffered_bytes: Gauge,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct RequestLabels {
    route: String,
    disposition: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct AttemptLabels {
    route: String,
    outcome: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct LookupLabels {
    route: String,
    finding: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct RefusalLabels {
    route: String,
    code: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct LimitLabels {
    limit: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ConcernLabels {
    concern: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct CallLabels {
    call: &'static str,
}

/// A histogram of durations, from 100 microseconds to about 100 seconds: a claim in an embedded
/// store takes the one, a slow upstream the other.
fn durations() -> Histogram {
    Histogram::new(exponential_buckets(0.0001, 4.0, 11))
}

impl Default for Metrics {
    fn default() -> Self {
        Self::new()
    }
}

impl Metrics {
    /// A registry with every family registered.
    pub fn new() -> Self {
        // A histogram has no default buckets, so the family needs a constructor.
        let store = Family::<CallLabels, Histogram>::new_with_constructor(durations);
        let calls = StoreCall::ALL
            .map(|call| store.get_or_create(&CallLabels { call: call.as_str() }).clone());
        let mut metrics = Self {
            registry: Registry::with_prefix("onceward"),
            requests: Family::default(),
            attempts: Family::default(),
            refusals: Family::default(),
            observed: Family::default(),
            lookups: Family::default(),
            limits: Family::default(),
            concerns: Family::default(),
            clock_skews: ClockSkews::default(),
            store: calls,
            attempt_duration: durations(),
            request_duration: durations(),
            in_flight: Gauge::default(),
            uncertain: Gauge::default(),
            superseded: Counter::default(),
            record_lost: Counter::default(),
            unrecorded: Counter::default(),
            refused_then_failed: Counter::default(),
            holds_ended: Counter::default(),
            unprotected: Counter::default(),
            connections: Gauge::default(),
            buffered_bytes: Gauge::default(),
        };
        // All limits are shown from the start, with the value 0: see `start_at_zero`.
        for limit in Limit::ALL {
            drop(metrics.limits.get_or_create(&LimitLabels { limit: limit.as_str() }));
        }
        metrics.register_requests(store);
        metrics.register_operations();
        metrics
    }

    fn register_requests(&mut self, store: Family<CallLabels, Histogram>) {
        let all = &mut self.registry;
        all.register("requests", "Requests by what happened to them", self.requests.clone());
        all.register("refusals", "Refusals by code", self.refusals.clone());
        let help = "Requests that were only observed, by what would have happened to them";
        all.register("observed", help, self.observed.clone());
        all.register("limits_reached", "How often a limit was reached", self.limits.clone());
        all.register("connections", "Open connections", self.connections.clone());
        all.register("buffered_bytes", "Bytes of bodies in memory", self.buffered_bytes.clone());
        let help = "From the end of the head to the answer";
        let duration = self.request_duration.clone();
        all.register_with_unit("request_duration", help, Unit::Seconds, duration);
        all.register_with_unit("store_duration", "Calls to the store", Unit::Seconds, store);
        let help = "1 while the store is not safe in this respect";
        all.register("store_concerns", help, self.concerns.clone());
        let help = "By how many seconds the clock seems to be ahead of the senders'; 0: not at all";
        all.register("clock_skew_suspected", help, self.clock_skews.seconds.clone());
        let version = Info::new([("version", env!("CARGO_PKG_VERSION"))]);
        all.register("build", "The program", version);
    }

    fn register_operations(&mut self) {
        let all = &mut self.registry;
        all.register("attempts", "Attempts by outcome", self.attempts.clone());
        let help = "Look-ups of uncertain operations, by what they found";
        all.register("lookups", help, self.lookups.clone());
        let help = "From the claim to the outcome";
        let duration = self.attempt_duration.clone();
        all.register_with_unit("attempt_duration", help, Unit::Seconds, duration);
        all.register("in_flight", "Attempts that run now", self.in_flight.clone());
        all.register("uncertain", "Operations that are held now", self.uncertain.clone());
        let help = "Settles whose claim was no longer current";
        all.register("superseded", help, self.superseded.clone());
        let help = "Settles whose record was gone";
        all.register("record_lost", help, self.record_lost.clone());
        let help = "Outcomes given up because their record cannot be read";
        all.register("unrecorded", help, self.unrecorded.clone());
        let help = "A copy was refused, then the attempt failed";
        all.register("refused_then_failed", help, self.refused_then_failed.clone());
        let help = "Uncertain operations given up after `hold_for`";
        all.register("holds_ended", help, self.holds_ended.clone());
        let help = "Requests forwarded unprotected because the store failed";
        all.register("unprotected", help, self.unprotected.clone());
    }

    /// The counters of a route. They are looked up here once, so that a request looks none up.
    pub fn route(&self, name: &str) -> RouteMetrics {
        let requests = DispositionWord::ALL.map(|disposition| {
            let labels =
                RequestLabels { route: name.to_owned(), disposition: disposition.as_str() };
            self.requests.get_or_create(&labels).clone()
        });
        let attempts = Outcome::ALL.map(|outcome| {
            let labels = AttemptLabels { route: name.to_owned(), outcome: outcome.as_str() };
            self.attempts.get_or_create(&labels).clone()
        });
        RouteMetrics {
            name: name.to_owned(),
            requests,
            attempts,
            refusals: self.refusals.clone(),
            observed: self.observed.clone(),
            lookups: self.lookups.clone(),
            request_duration: self.request_duration.clone(),
            attempt_duration: self.attempt_duration.clone(),
        }
    }

    /// Counts that a limit was reached.
    pub fn limit_reached(&self, limit: Limit) {
        self.limits.get_or_create(&LimitLabels { limit: limit.as_str() }).inc();
    }

    /// Shows whether a concern about the store is present.
    pub fn store_concern(&self, concern: &'static str, is_so: bool) {
        self.concerns.get_or_create(&ConcernLabels { concern }).set(i64::from(is_so));
    }

    /// The suspicion that a route has of the clock.
    pub fn clock_skew(&self, route: &str) -> ClockSkew {
        self.clock_skews.of_route(route)
    }

    /// Whether any route suspects the clock.
    pub fn clock_is_suspected(&self) -> bool {
        self.clock_skews.are_suspected()
    }

    /// Records how long a call to the store took.
    pub fn store_call(&self, call: StoreCall, took: Duration) {
        // `ALL` is in the order of the discriminants, so every call has its histogram.
        if let Some(histogram) = self.store.get(call as usize) {
            histogram.observe(took.as_secs_f64());
        }
    }

    /// Counts an attempt as in flight until the guard is dropped.
    pub fn in_flight_guard(&self) -> InFlightGuard {
        self.in_flight.inc();
        InFlightGuard(self.in_flight.clone())
    }

    /// All metrics in the text format of `OpenMetrics`.
    pub fn openmetrics(&self) -> Result<String, std::fmt::Error> {
        let mut page = String::new();
        text::encode(&mut page, &self.registry)?;
        Ok(page)
    }

    /// All metrics in the Prometheus text format 0.0.4, for scrapers that do not accept
    /// `OpenMetrics`.
    pub fn prometheus(&self) -> Result<String, std::fmt::Error> {
        let mut page = String::new();
        prometheus_text::encode(&mut page, &self.registry)?;
        Ok(page)
    }
}

/// The counters of a route, beside those of requests and attempts, that may ever count.
#[derive(Debug, Clone, Copy)]
pub struct ExpectedCounters {
    /// The codes of refusals.
    pub refusals: &'static [&'static str],
    /// Whether requests are observed only.
    pub observed: bool,
    /// Whether uncertain operations are looked up.
    pub lookups: bool,
}

/// An attempt in flight.
#[derive(Debug)]
pub struct InFlightGuard(Gauge);

impl Drop for InFlightGuard {
    fn drop(&mut self) {
        self.0.dec();
    }
}

/// The counters of one route.
#[derive(Debug, Clone)]
pub struct RouteMetrics {
    name: String,
    requests: [Counter; DispositionWord::ALL.len()],
    attempts: [Counter; Outcome::ALL.len()],
    refusals: Family<RefusalLabels, Counter>,
    observed: Family<RequestLabels, Counter>,
    lookups: Family<LookupLabels, Counter>,
    request_duration: Histogram,
    attempt_duration: Histogram,
}

impl RouteMetrics {
    /// Creates the expected counters with the value 0. A counter that appears with the value 1
    /// hides its first event from `rate()` (Prometheus, "Instrumentation", "Avoid missing
    /// metrics").
    #[must_use]
    pub fn start_at_zero(self, expected: ExpectedCounters) -> Self {
        let route = || self.name.clone();
        for &code in expected.refusals {
            drop(self.refusals.get_or_create(&RefusalLabels { route: route(), code }));
        }
        // What passes on a route that enforces is not observed.
        let observed = DispositionWord::ALL.into_iter().filter(|it| *it != DispositionWord::Passed);
        for disposition in observed.filter(|_| expected.observed) {
            let disposition = disposition.as_str();
            drop(self.observed.get_or_create(&RequestLabels { route: route(), disposition }));
        }
        for finding in Finding::ALL.into_iter().filter(|_| expected.lookups) {
            let finding = finding.as_str();
            drop(self.lookups.get_or_create(&LookupLabels { route: route(), finding }));
        }
        self
    }

    /// Counts a request that was answered.
    pub fn request(&self, disposition: DispositionWord, took: Duration) {
        // `ALL` is in the order of the discriminants, so every disposition has its counter.
        if let Some(counter) = self.requests.get(disposition as usize) {
            counter.inc();
        }
        self.request_duration.observe(took.as_secs_f64());
    }

    /// Counts an attempt that ended.
    pub fn attempt(&self, outcome: Outcome, took: Duration) {
        if let Some(counter) = self.attempts.get(outcome as usize) {
            counter.inc();
        }
        self.attempt_duration.observe(took.as_secs_f64());
    }

    /// Counts a request that was only observed, by the disposition that it would have had.
    pub fn observed(&self, disposition: DispositionWord) {
        let disposition = disposition.as_str();
        let labels = RequestLabels { route: self.name.clone(), disposition };
        self.observed.get_or_create(&labels).inc();
    }

    /// Counts a look-up of an uncertain operation.
    pub fn lookup(&self, finding: Finding) {
        let labels = LookupLabels { route: self.name.clone(), finding: finding.as_str() };
        self.lookups.get_or_create(&labels).inc();
    }

    /// Counts a refusal by its code.
    pub fn refusal(&self, code: &'static str) {
        self.refusals.get_or_create(&RefusalLabels { route: self.name.clone(), code }).inc();
    }
}
