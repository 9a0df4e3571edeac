//! The control plane, on its own listener: health, metrics, what is remembered, and what a person
//! decides about it.

mod body;
mod decide;
mod failures;
mod guard;
mod health;
mod json;
mod listing;
mod many;
mod operations;
mod problem;
mod store;

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use axum::Router;
use axum::middleware::from_fn_with_state;
use axum::routing::{get, post};

use crate::clock::{Clock, Moment};
use crate::secret::Secret;
use crate::store::{Concern, Store};
use crate::telemetry::Metrics;

use failures::Failures;
use health::Health;
use problem::Problem;

/// Where the control plane listens, and who may use it.
#[derive(Debug, Clone)]
pub struct Settings {
    /// The address.
    pub listen: SocketAddr,
    /// What every call but `/livez` and `/readyz` must bring; none only on loopback.
    pub token: Option<Secret>,
    /// How long a decision is remembered where the operation's route is not configured any more.
    pub retention: Duration,
}

/// How long a decision is remembered.
#[derive(Debug, Clone)]
pub struct Retentions {
    /// By the name of the route: as long as an outcome there.
    pub routes: HashMap<Arc<str>, Duration>,
    /// On any other route, which was configured once.
    pub otherwise: Duration,
}

/// What the control plane is made of.
#[derive(Debug)]
pub struct Parties {
    /// What is shown and decided about.
    pub store: Arc<dyn Store>,
    /// What is counted.
    pub metrics: Arc<Metrics>,
    /// What failures of callers are counted by, and the time of a call.
    pub clock: Clock,
    /// See [`Settings::token`].
    pub token: Option<Secret>,
    /// How long decisions are remembered.
    pub retentions: Retentions,
}

/// What the control plane knows of the process. Clones are one and the same.
#[derive(Debug, Clone)]
pub struct Admin(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    store: Arc<dyn Store>,
    metrics: Arc<Metrics>,
    token: Option<Secret>,
    failures: Failures,
    health: Health,
    /// What the time of a call is limited by.
    clock: Clock,
    retentions: Retentions,
    /// When attempts in flight have ended at the latest, once the process ends.
    drained_by: OnceLock<Moment>,
}

impl Retentions {
    fn of(&self, route: &str) -> Duration {
        self.routes.get(route).copied().unwrap_or(self.otherwise)
    }
}

impl Admin {
    /// Shows the store and the metrics to whoever has the token, and takes decisions from them.
    pub fn new(parties: Parties) -> Self {
        let Parties { store, metrics, clock, token, retentions } = parties;
        Self(Arc::new(Shared {
            failures: Failures::new(clock.clone()),
            health: Health::new(Arc::clone(&store), clock.clone()),
            drained_by: OnceLock::new(),
            store,
            metrics,
            token,
            clock,
            retentions,
        }))
    }

    /// What makes the store unsafe now, for whoever asks how it is.
    pub fn has_seen(&self, concerns: &[Concern]) {
        self.0.health.has_seen(concerns);
    }

    /// From now on the process is not ready. What is in flight ends within this time.
    pub fn drain(&self, within: Duration) {
        let _drains_already = self.0.drained_by.set(self.0.clock.moment().plus(within));
    }

    /// All calls of the control plane.
    pub fn router(&self) -> Router {
        let guarded = Router::new()
            .route("/metrics", get(health::metrics))
            .route("/api/operations", get(operations::list))
            .route("/api/operations/resolve", post(many::resolve))
            .route("/api/operations/{id}", get(operations::show).delete(decide::forget))
            .route("/api/operations/{id}/resolve", post(decide::resolve))
            .route("/api/store/acknowledge", post(store::acknowledge))
            .method_not_allowed_fallback(|| async { Problem::MethodNotAllowed })
            .fallback(|| async { Problem::NotFound })
            .layer(from_fn_with_state(self.clone(), guard::check));
        // Health is asked for by machines that have no token, and tells nothing else.
        Router::new()
            .route("/livez", get(health::live))
            .route("/readyz", get(health::ready))
            .merge(guarded)
            .with_state(self.clone())
    }
}
