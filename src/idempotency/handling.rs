//! A route's part in the work: what it wants done, who receives, how much at a time.

use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::policy::Policy;
use crate::telemetry::RouteMetrics;
use crate::upstream::Upstream;

/// How the requests of one route are handled.
#[derive(Debug)]
pub struct Handling {
    pub(super) policy: Policy,
    pub(super) upstream: Upstream,
    pub(super) metrics: RouteMetrics,
    slots: Arc<Semaphore>,
}

impl Handling {
    /// Handles requests by `policy`, and forwards them to `upstream`.
    pub fn new(policy: Policy, upstream: Upstream, metrics: RouteMetrics) -> Self {
        let slots = Arc::new(Semaphore::new(policy.in_flight_max));
        Self { policy, upstream, metrics, slots }
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
    pub const fn upstream(&self) -> &Upstream {
        &self.upstream
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
