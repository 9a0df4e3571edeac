//! The data plane: the path of a request, from select to respond.

mod guard;
mod identify;
mod json;
mod log;
mod outgoing;
mod receive;
mod respond;
mod route;
mod select;
mod selector;
mod service;

pub use identify::{Compared, EventRule, FingerprintOver, FingerprintRule, KeyRule};
pub use identify::{Identified, IdentifyError, Identity, InvalidReason, MissingReason};
pub use identify::{RequestView, Rules, identify};
pub use json::{Pointer, PointerError};
pub use route::{Limits, PathPattern, RouteSettings, WhenKeyMissing};
pub use selector::{Place, Selector, SelectorError};

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use bytes::Bytes;
use http::request::Parts;
use http::{HeaderValue, Request, Response, header};
use http_body::Body;
use tokio::sync::{Semaphore, SemaphorePermit};
use tokio::time::Instant;

use crate::budget::Budget;
use crate::clock::Clock;
use crate::idempotency::{Executor, Handling, Keyed};
use crate::telemetry::{Limit, Metrics, RouteMetrics};
use crate::upstream::{AnswerBody, TrustStore, TrustedProxies, Upstream};

use log::RequestLine;
use receive::Received;
use respond::{Answer, Refusal};
use route::Route;
use select::Routes;

/// Forwards each webhook once. Clones are one and the same.
#[derive(Debug, Clone)]
pub struct Proxy(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    routes: Routes<Arc<Route>>,
    all: Vec<Arc<Route>>,
    executor: Arc<Executor>,
    limits: Limits,
    trusted: TrustedProxies,
    budget: Budget,
    clock: Clock,
    metrics: Arc<Metrics>,
    /// Counts requests that no route took.
    no_route: RouteMetrics,
    in_flight: Semaphore,
    draining: AtomicBool,
}

/// What a proxy shares with the rest of the process.
#[derive(Debug, Clone)]
pub struct Parties {
    /// Does what is asked for, once.
    pub executor: Arc<Executor>,
    /// The memory for bodies.
    pub budget: Budget,
    /// Tells how long a request took.
    pub clock: Clock,
    /// Counts it.
    pub metrics: Arc<Metrics>,
    /// What upstreams' certificates are checked against.
    pub trust: TrustStore,
}

/// The metrics' name for requests that no route took.
const NO_ROUTE: &str = "none";

impl Proxy {
    /// A proxy with these routes.
    pub fn new(
        routes: Vec<RouteSettings>,
        limits: Limits,
        trusted: TrustedProxies,
        parties: Parties,
    ) -> Self {
        let Parties { executor, budget, clock, metrics, trust } = parties;
        let all: Vec<Arc<Route>> = routes
            .into_iter()
            .map(|settings| {
                let upstream = Upstream::new(&settings.upstream, &trust, clock.clone());
                let counters = metrics.route(&settings.name);
                let handling = Handling::new(settings.policy.clone(), upstream, counters);
                Arc::new(Route { settings, handling: Arc::new(handling) })
            })
            .collect();
        Self(Arc::new(Shared {
            routes: Routes::new(all.iter().cloned()),
            all,
            executor,
            in_flight: Semaphore::new(limits.requests_in_flight_max),
            limits,
            trusted,
            budget,
            clock,
            no_route: metrics.route(NO_ROUTE),
            metrics,
            draining: AtomicBool::new(false),
        }))
    }

    /// From now on new requests get 503 `draining`.
    pub fn drain(&self) {
        self.0.draining.store(true, Ordering::Release);
    }

    /// Closes upstream connections that have been idle for too long.
    pub fn close_idle(&self) {
        for route in &self.0.all {
            route.handling.upstream().close_idle();
        }
    }

    /// Answers one request.
    pub async fn handle<B: Body<Data = Bytes> + Unpin>(
        &self,
        request: Request<B>,
    ) -> Response<AnswerBody> {
        let shared = &*self.0;
        let (mut parts, mut body) = request.into_parts();
        let mut line = RequestLine::begin(&parts, shared.clock.clone());
        let mut route = None;
        let mut answer = match shared.answer(&mut parts, &mut body, &mut route).await {
            Ok(answer) => answer,
            Err(refusal) => respond::refused(&refusal),
        };
        // What was not read cannot be skipped: the connection has to end.
        if !body.is_end_stream() && parts.version < http::Version::HTTP_2 {
            let close = HeaderValue::from_static("close");
            answer.response.headers_mut().insert(header::CONNECTION, close);
        }
        let counters = route.as_ref().map_or(&shared.no_route, |route| route.handling.metrics());
        line.end(&answer, route.as_deref(), counters);
        answer.response
    }
}

impl Shared {
    /// The path of a request.
    async fn answer<B: Body<Data = Bytes> + Unpin>(
        &self,
        parts: &mut Parts,
        body: &mut B,
        taken_by: &mut Option<Arc<Route>>,
    ) -> Result<Answer, Refusal> {
        let arrived = Instant::now();
        let _place = self.admit()?;
        guard::head(parts)?;
        let selected = self.routes.select(parts)?;
        let route = &**taken_by.insert(Arc::clone(&selected.route));
        let (bytes_max, within) = (route.settings.request_bytes_max, self.limits.body_timeout);
        let received = receive::body(parts, body, bytes_max, within, &self.budget).await?;
        let view = RequestView::of(parts, &received.body);
        let identity = identify(&Rules::from(&route.settings), &view)?;
        if let Identity::Keyed(Identified { asked, .. }) = &identity
            && let Some(told) = self.executor.recall(asked)
        {
            return Ok(respond::with(told, &route.settings));
        }
        let request = outgoing::request(parts, &selected, &received, &self.trusted);
        let Received { memory, .. } = received;
        let disposition = match identity {
            Identity::Keyed(Identified { asked, forward_key }) => {
                let request = outgoing::carrying_key(request, &route.settings, &forward_key);
                let keyed = Keyed { asked, request, arrived, memory };
                self.executor.execute(keyed, &route.handling).await
            }
            Identity::Passed => {
                self.executor.pass((request, memory), arrived, &route.handling).await
            }
        };
        Ok(respond::with(disposition, &route.settings))
    }

    fn admit(&self) -> Result<SemaphorePermit<'_>, Refusal> {
        if self.draining.load(Ordering::Acquire) {
            return Err(Refusal::Draining);
        }
        self.in_flight.try_acquire().map_err(|_| {
            self.metrics.limit_reached(Limit::RequestsInFlight);
            Refusal::Overloaded
        })
    }
}

/// The route that would take a request; else the code and the detail of the refusal.
pub fn choose<'r>(
    routes: &'r [RouteSettings],
    parts: &Parts,
) -> Result<&'r RouteSettings, (&'static str, String)> {
    let chosen = || {
        guard::head(parts)?;
        Ok(Routes::new(routes).select(parts)?.route)
    };
    chosen().map_err(|refusal: Refusal| refusal.explained())
}
