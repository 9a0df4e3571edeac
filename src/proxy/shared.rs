//! The state of a proxy, made from its settings.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use super::problem;
use super::receive::BodyReader;
use super::route::Route;
use super::select::Routes;
use super::settings::{Limits, RouteSettings};
use crate::budget::{Budget, PlaceSettings, Places, Share};
use crate::clock::Clock;
use crate::idempotency::Executor;
use crate::provider::signature::{Certificates, SecretError};
use crate::telemetry::{Limit, Metrics, RouteMetrics};
use crate::upstream::{DialSettings, SystemResolver, TrustStore, TrustedProxies};

/// The route label of metrics about requests that no route took.
const NO_ROUTE: &str = "none";

/// The parts of the process that a proxy works with.
#[derive(Debug, Clone)]
pub struct Dependencies {
    /// Claims and forwards operations.
    pub executor: Arc<Executor>,
    /// The memory for bodies.
    pub budget: Budget,
    /// Measures how long a request takes.
    pub clock: Clock,
    /// Counts requests.
    pub metrics: Arc<Metrics>,
    /// The authorities that may have issued an upstream's certificate.
    pub trust: TrustStore,
    /// The certificates that some senders sign with.
    pub certificates: Certificates,
}

/// The state of a proxy, shared by all requests.
#[derive(Debug)]
pub(super) struct Shared {
    pub(super) routes: Routes<Arc<Route>>,
    /// All routes, for work that is not about one request.
    pub(super) all: Vec<Arc<Route>>,
    pub(super) bodies: BodyReader,
    /// The places of requests whose body has arrived.
    pub(super) in_flight: Places,
    pub(super) executor: Arc<Executor>,
    pub(super) trusted: Arc<TrustedProxies>,
    pub(super) budget: Budget,
    pub(super) clock: Clock,
    /// The counters of requests that no route took.
    pub(super) no_route: RouteMetrics,
    pub(super) draining: AtomicBool,
}

impl Shared {
    /// The state of a proxy with these routes.
    ///
    /// # Errors
    ///
    /// A secret has a form that the route's provider does not issue.
    pub(super) fn new(
        routes: Vec<RouteSettings>,
        limits: Limits,
        trusted: TrustedProxies,
        dependencies: Dependencies,
    ) -> Result<Self, SecretError> {
        let Dependencies { executor, budget, clock, metrics, trust, certificates } = dependencies;
        let dialing = DialSettings {
            trust,
            clock: clock.clone(),
            resolver: Arc::new(SystemResolver),
            answer_head: limits.answer_head,
        };
        let route = |settings| Route::new(settings, &certificates, &dialing, &metrics);
        let routes: Result<Vec<_>, _> =
            routes.into_iter().map(|settings| route(settings).map(Arc::new)).collect();
        let all = routes?;
        let places = |limit, max| {
            let settings = PlaceSettings { limit, max, per_peer_max: limits.per_peer_max };
            Places::new(settings, Arc::clone(&metrics))
        };
        // A share of 1 limits nobody, so the peer of a request is not looked up.
        let trusted = Arc::new(trusted);
        let shares_are_limited = limits.per_peer_max != Share::WHOLE;
        let bodies = BodyReader {
            timeout: limits.body_timeout,
            rate_min: limits.body_rate_min,
            budget: budget.clone(),
            metrics: Arc::clone(&metrics),
            pending: places(Limit::BodiesPending, limits.bodies_pending_max),
            peers: shares_are_limited.then(|| Arc::clone(&trusted)),
        };
        Ok(Self {
            routes: Routes::new(all.iter().cloned()),
            all,
            bodies,
            in_flight: places(Limit::RequestsInFlight, limits.requests_in_flight_max),
            executor,
            trusted,
            budget,
            clock,
            no_route: metrics.route(NO_ROUTE).start_at_zero(problem::COUNTED_WITHOUT_ROUTE),
            draining: AtomicBool::new(false),
        })
    }
}
