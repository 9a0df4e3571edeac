//! The metrics, and what a route holds of them so that the path of a request looks nothing up.

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
use super::labels::{Disposition, Limit, StoreCall};
use crate::operation::Outcome;
use crate::operation::state::Finding;

/// Everything that is measured.
#[derive(Debug)]
pub struct Metrics {
    registry: Registry,
    requests: Family<Requests, Counter>,
    attempts: Family<Attempts, Counter>,
    refusals: Family<Refusals, Counter>,
    observed: Family<Requests, Counter>,
    lookups: Family<Lookups, Counter>,
    limits: Family<Limits, Counter>,
    concerns: Family<Concerns, Gauge>,
    clock_skews: ClockSkews,
    store: [Histogram; StoreCall::ALL.len()],
    attempt_duration: Histogram,
    request_duration: Histogram,
    /// Attempts that run now.
    pub in_flight: Gauge,
    /// Operations that are held; read from the store when asked for, and no number if it cannot say.
    pub uncertain: Gauge<f64, AtomicU64>,
    /// Settles whose claim was no longer current.
    pub superseded: Counter,
    /// Settles whose record was gone.
    pub record_lost: Counter,
    /// Outcomes that were given up because their record cannot be read.
    pub unrecorded: Counter,
    /// A copy was refused, then the attempt failed: a sender that does not retry has lost it.
    pub refused_then_failed: Counter,
    /// Operations given up, still uncertain, because `hold_for` has passed.
    pub holds_ended: Counter,
    /// Requests forwarded unprotected because the store failed.
    pub unprotected: Counter,
    /// Open connections.
    pub connections: Gauge,
    /// Bytes of bodies in memory.
    pub buffered_bytes: Gauge,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Requests {
    route: String,
    disposition: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Attempts {
    route: String,
    outcome: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Lookups {
    route: String,
    finding: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Refusals {
    route: String,
    code: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Limits {
    limit: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Concerns {
    concern: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Call {
    call: &'static str,
}

/// From 100 microseconds to about 100 seconds.
fn durations() -> Histogram {
    Histogram::new(exponential_buckets(0.0001, 4.0, 11))
}

impl Default for Metrics {
    fn default() -> Self {
        Self::new()
    }
}

impl Metrics {
    /// A registry with every family in it.
    pub fn new() -> Self {
        let store = Family::<Call, Histogram>::new_with_constructor(durations);
        let calls =
            StoreCall::ALL.map(|call| store.get_or_create(&Call { call: call.as_str() }).clone());
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
        for limit in Limit::ALL {
            drop(metrics.limits.get_or_create(&Limits { limit: limit.as_str() }));
        }
        metrics.register_requests(store);
        metrics.register_operations();
        metrics
    }

    fn register_requests(&mut self, store: Family<Call, Histogram>) {
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
        let (help, duration) = ("From the claim to the outcome", self.attempt_duration.clone());
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

    /// What the route of this name holds of the metrics.
    pub fn route(&self, name: &str) -> RouteMetrics {
        let requests = Disposition::ALL.map(|disposition| {
            let (route, disposition) = (name.to_owned(), disposition.as_str());
            self.requests.get_or_create(&Requests { route, disposition }).clone()
        });
        let attempts = Outcome::ALL.map(|outcome| {
            let (route, outcome) = (name.to_owned(), outcome.as_str());
            self.attempts.get_or_create(&Attempts { route, outcome }).clone()
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

    /// A limit was reached.
    pub fn limit_reached(&self, limit: Limit) {
        self.limits.get_or_create(&Limits { limit: limit.as_str() }).inc();
    }

    /// The store is, or is no longer, unsafe in some respect.
    pub fn store_concern(&self, concern: &'static str, is_so: bool) {
        self.concerns.get_or_create(&Concerns { concern }).set(i64::from(is_so));
    }

    /// What a route shows of the clock.
    pub fn clock_skew(&self, route: &str) -> ClockSkew {
        self.clock_skews.of(route)
    }

    /// Whether the clock seems to be wrong to any route.
    pub fn clock_is_suspected(&self) -> bool {
        self.clock_skews.are_suspected()
    }

    /// A call to the store took this long.
    pub fn store_call(&self, call: StoreCall, took: Duration) {
        if let Some(histogram) = self.store.get(call as usize) {
            histogram.observe(took.as_secs_f64());
        }
    }

    /// Counts an attempt that runs until the guard is dropped.
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

    /// All metrics in the Prometheus text format 0.0.4.
    pub fn prometheus(&self) -> Result<String, std::fmt::Error> {
        let mut page = String::new();
        prometheus_text::encode(&mut page, &self.registry)?;
        Ok(page)
    }
}

/// What a route may count beside its requests and attempts.
#[derive(Debug, Clone, Copy)]
pub struct MayCount {
    /// Refusals with these codes.
    pub refusals: &'static [&'static str],
    /// Requests that are only observed.
    pub observed: bool,
    /// Look-ups of uncertain operations.
    pub lookups: bool,
}

/// An attempt that runs.
#[derive(Debug)]
pub struct InFlightGuard(Gauge);

impl Drop for InFlightGuard {
    fn drop(&mut self) {
        self.0.dec();
    }
}

/// A route's own counters.
#[derive(Debug, Clone)]
pub struct RouteMetrics {
    name: String,
    requests: [Counter; Disposition::ALL.len()],
    attempts: [Counter; Outcome::ALL.len()],
    refusals: Family<Refusals, Counter>,
    observed: Family<Requests, Counter>,
    lookups: Family<Lookups, Counter>,
    request_duration: Histogram,
    attempt_duration: Histogram,
}

impl RouteMetrics {
    /// Has all this counted from 0, before it happens: of a counter that begins with 1 a rate misses
    /// the first event (Prometheus, "Instrumentation", "Avoid missing metrics").
    #[must_use]
    pub fn from_zero(self, may: MayCount) -> Self {
        let route = || self.name.clone();
        for &code in may.refusals {
            drop(self.refusals.get_or_create(&Refusals { route: route(), code }));
        }
        for disposition in Disposition::ALL.into_iter().filter(|_| may.observed) {
            let disposition = disposition.as_str();
            drop(self.observed.get_or_create(&Requests { route: route(), disposition }));
        }
        for finding in Finding::ALL.into_iter().filter(|_| may.lookups) {
            let finding = finding.as_str();
            drop(self.lookups.get_or_create(&Lookups { route: route(), finding }));
        }
        self
    }

    /// A request was answered.
    pub fn request(&self, disposition: Disposition, took: Duration) {
        if let Some(counter) = self.requests.get(disposition as usize) {
            counter.inc();
        }
        self.request_duration.observe(took.as_secs_f64());
    }

    /// An attempt ended.
    pub fn attempt(&self, outcome: Outcome, took: Duration) {
        if let Some(counter) = self.attempts.get(outcome as usize) {
            counter.inc();
        }
        self.attempt_duration.observe(took.as_secs_f64());
    }

    /// A request was forwarded that would have become this.
    pub fn observed(&self, disposition: Disposition) {
        let (route, disposition) = (self.name.clone(), disposition.as_str());
        self.observed.get_or_create(&Requests { route, disposition }).inc();
    }

    /// A receiver was asked about an uncertain operation.
    pub fn lookup(&self, finding: Finding) {
        let (route, finding) = (self.name.clone(), finding.as_str());
        self.lookups.get_or_create(&Lookups { route, finding }).inc();
    }

    /// A request was refused with this code.
    pub fn refusal(&self, code: &'static str) {
        self.refusals.get_or_create(&Refusals { route: self.name.clone(), code }).inc();
    }
}
