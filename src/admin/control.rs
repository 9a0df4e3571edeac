//! What every call of the control plane works with.

use std::collections::HashMap;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use super::failures::Failures;
use super::store_health::StoreHealth;
use crate::clock::{Clock, Moment};
use crate::secret::Secret;
use crate::store::{Concern, Store};
use crate::telemetry::Metrics;

/// How long a decision is remembered.
#[derive(Debug, Clone)]
pub struct Retentions {
    /// The retention of each configured route, by the route's name.
    pub routes: HashMap<Arc<str>, Duration>,
    /// The retention of operations whose route is not configured any more.
    pub otherwise: Duration,
}

/// What the control plane is made of.
#[derive(Debug)]
pub struct Dependencies {
    /// The store whose operations are shown and decided about.
    pub store: Arc<dyn Store>,
    /// The metrics that `/metrics` shows.
    pub metrics: Arc<Metrics>,
    /// The clock that calls and wrong tokens are timed by.
    pub clock: Clock,
    /// See [`Settings::token`](super::Settings::token).
    pub token: Option<Secret>,
    /// How long decisions are remembered.
    pub retentions: Retentions,
}

/// The control plane. All clones share one state.
#[derive(Debug, Clone)]
pub struct Admin(pub(super) Arc<Shared>);

/// The state that all clones share.
#[derive(Debug)]
pub(super) struct Shared {
    pub(super) store: Arc<dyn Store>,
    pub(super) metrics: Arc<Metrics>,
    pub(super) token: Option<Secret>,
    pub(super) failures: Failures,
    pub(super) health: StoreHealth,
    pub(super) clock: Clock,
    pub(super) retentions: Retentions,
    /// When the attempts in flight have ended at the latest; set once the process drains.
    pub(super) drained_by: OnceLock<Moment>,
}

impl Retentions {
    /// The retention of operations of the route with this name.
    pub(super) fn of(&self, route: &str) -> Duration {
        self.routes.get(route).copied().unwrap_or(self.otherwise)
    }

    /// The names of the configured routes, if this is none of them.
    ///
    /// A list of a misspelt route is empty like that of a route without operations. A route that
    /// was renamed or removed still has operations, so a name alone is no mistake: ask only where
    /// nothing was found.
    pub(super) fn routes_if_unknown(&self, route: &str) -> Option<Vec<String>> {
        if self.routes.contains_key(route) {
            return None;
        }
        let mut names: Vec<String> = self.routes.keys().map(ToString::to_string).collect();
        names.sort_unstable();
        Some(names)
    }
}

impl Admin {
    /// Builds the control plane. It serves nothing until its router is served.
    pub fn new(dependencies: Dependencies) -> Self {
        let Dependencies { store, metrics, clock, token, retentions } = dependencies;
        Self(Arc::new(Shared {
            failures: Failures::new(clock.clone()),
            health: StoreHealth::new(Arc::clone(&store), clock.clone()),
            drained_by: OnceLock::new(),
            store,
            metrics,
            token,
            clock,
            retentions,
        }))
    }

    /// Replaces the concerns about the store that `/readyz` warns of.
    pub fn set_concerns(&self, concerns: &[Concern]) {
        self.0.health.set_concerns(concerns);
    }

    /// Makes `/readyz` say that the process is not ready from now on, and that its attempts in
    /// flight end within this time. Only the first call counts.
    pub fn drain(&self, within: Duration) {
        // A second signal does not give the attempts in flight more time.
        let _already_draining = self.0.drained_by.set(self.0.clock.moment().plus(within));
    }
}
