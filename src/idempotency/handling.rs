//! A route's part in the work: what it wants done, who receives, how much at a time.

use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::lookup::Lookup;
use super::policy::Policy;
use super::steps::{Steps, StepsPolicy};
use crate::telemetry::RouteMetrics;
use crate::upstream::{Dialing, TrustStore, Upstream};

/// How the requests of one route are handled.
#[derive(Debug)]
pub struct Handling {
    pub(super) policy: Policy,
    pub(super) upstream: Upstream,
    pub(super) lookup: Option<Lookup>,
    /// The receivers, where there are several.
    pub(super) steps: Option<Steps>,
    pub(super) metrics: RouteMetrics,
    slots: Arc<Semaphore>,
}

impl Handling {
    /// Handles requests by `policy`, and forwards them to `upstream`. Who is asked about uncertain
    /// operations is checked against `trust`.
    pub fn new(
        policy: Policy,
        upstream: Upstream,
        metrics: RouteMetrics,
        trust: &TrustStore,
    ) -> Self {
        let slots = Arc::new(Semaphore::new(policy.in_flight_max));
        let lookup = policy.lookup.clone().map(|settings| Lookup::new(settings, trust));
        Self { policy, upstream, lookup, steps: None, metrics, slots }
    }

    /// The same for a route with several receivers. What is not deduplicated goes to `upstream`.
    #[must_use]
    pub fn with_steps(self, policy: &StepsPolicy, dialing: &Dialing) -> Self {
        Self { steps: Some(Steps::new(policy, dialing)), ..self }
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
        let of_steps = self.steps.iter().flat_map(Steps::upstreams);
        std::iter::once(&self.upstream).chain(of_steps)
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
