//! How the requests of one route are handled: its policy, its receivers and its places.

use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::Instant;

use super::policy::Policy;
use super::receiver::{Receiver, Receivers, Steps, StepsPolicy};
use crate::telemetry::RouteMetrics;
use crate::upstream::{DialSettings, Upstream};

/// How the requests of one route are handled.
#[derive(Debug)]
pub struct RouteHandler {
    pub(super) policy: Policy,
    pub(super) receivers: Receivers,
    pub(super) metrics: RouteMetrics,
    /// The places for attempts: `in_flight_max` of them.
    places: Arc<Semaphore>,
}

impl RouteHandler {
    /// Makes a handler that follows `policy`. On a route without steps, requests are forwarded to
    /// `upstream`. On a route with steps, `upstream` gets only the requests that are not
    /// deduplicated.
    pub fn new(
        policy: Policy,
        upstream: Upstream,
        steps: Option<&StepsPolicy>,
        metrics: RouteMetrics,
        dialing: &DialSettings,
    ) -> Self {
        let places = Arc::new(Semaphore::new(policy.in_flight_max));
        let receivers = if let Some(steps) = steps {
            Receivers::Steps(Steps::new(steps, upstream, dialing))
        } else {
            let timeout = policy.durations.attempt_timeout;
            let receiver = Receiver::new(upstream, timeout, &policy.receiver, &dialing.trust);
            Receivers::One(Box::new(receiver))
        };
        Self { policy, receivers, metrics, places }
    }

    /// The route's policy.
    pub const fn policy(&self) -> &Policy {
        &self.policy
    }

    /// The route's counters.
    pub const fn metrics(&self) -> &RouteMetrics {
        &self.metrics
    }

    /// The upstreams of the route.
    pub fn upstreams(&self) -> impl Iterator<Item = &Upstream> {
        self.receivers.upstreams().into_iter()
    }

    /// The time until which the sender of a request waits; none if it waits for the end of the
    /// attempt. `arrived` is the time at which the request arrived.
    pub(super) fn deadline(&self, arrived: Instant) -> Option<Instant> {
        self.policy.answer_within.map(|within| arrived + within)
    }

    /// A place for one more attempt; none if `in_flight_max` attempts are in flight.
    pub(super) fn place(&self) -> Option<OwnedSemaphorePermit> {
        Arc::clone(&self.places).try_acquire_owned().ok()
    }

    /// Waits for a place. The result is never none, because nobody closes the semaphore.
    pub(super) async fn next_place(&self) -> Option<OwnedSemaphorePermit> {
        Arc::clone(&self.places).acquire_owned().await.ok()
    }
}
