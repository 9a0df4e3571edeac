//! A route's part in the work: what it wants done, who receives, how much at a time.

use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::policy::Policy;
use super::receiver::{Receiver, Receivers, Steps, StepsPolicy};
use crate::telemetry::RouteMetrics;
use crate::upstream::{Dialing, Upstream};

/// How the requests of one route are handled.
#[derive(Debug)]
pub struct RouteHandler {
    pub(super) policy: Policy,
    pub(super) receivers: Receivers,
    pub(super) metrics: RouteMetrics,
    slots: Arc<Semaphore>,
}

impl RouteHandler {
    /// Handles requests by `policy`. They are forwarded to `upstream`, or on a route with steps to the
    /// receivers of those; then `upstream` gets what is not deduplicated.
    pub fn new(
        policy: Policy,
        upstream: Upstream,
        steps: Option<&StepsPolicy>,
        metrics: RouteMetrics,
        dialing: &Dialing,
    ) -> Self {
        let slots = Arc::new(Semaphore::new(policy.in_flight_max));
        let receivers = match steps {
            Some(steps) => Receivers::Steps(Steps::new(steps, upstream, dialing)),
            None => Receivers::One(Box::new(Receiver::of_route(&policy, upstream, &dialing.trust))),
        };
        Self { policy, receivers, metrics, slots }
    }

    /// What the route wants done with its operations.
    pub const fn policy(&self) -> &Policy {
        &self.policy
    }

    /// The route's counters.
    pub const fn metrics(&self) -> &RouteMetrics {
        &self.metrics
    }

    /// Who receives its requests.
    pub fn upstreams(&self) -> impl Iterator<Item = &Upstream> {
        self.receivers.upstreams().into_iter()
    }

    /// The right to make one more attempt at a time; none if `in_flight_max` are under way.
    pub(super) fn slot(&self) -> Option<OwnedSemaphorePermit> {
        Arc::clone(&self.slots).try_acquire_owned().ok()
    }

    /// The same, once there is one. Nobody closes this semaphore.
    pub(super) async fn next_slot(&self) -> Option<OwnedSemaphorePermit> {
        Arc::clone(&self.slots).acquire_owned().await.ok()
    }
}
