//! The data plane: the path of a request, from select to respond.

mod guard;
mod host;
mod identify;
mod log;
mod outgoing;
mod paths;
mod problem;
mod receive;
mod refusal;
mod respond;
mod route;
mod select;
mod selector;
mod service;
mod skew;
mod verify;

pub use host::{HostError, canonical_host};
pub use identify::{Compared, EventRule, FingerprintOver, FingerprintRule, KeyRule, KeySource};
pub use identify::{Identified, IdentifyError, Identity, InvalidReason, MissingReason, Passing};
pub use identify::{RequestView, Rules, Unread, identify, scope};
pub use json::{Pointer, PointerError};
pub use route::{Limits, Mode, PathPattern, RefusalBody, RouteSettings, WhenKeyMissing};
pub use select::{choose, misread};
pub use selector::{Place, Selector, SelectorError};
pub use verify::{Opened, Sender};

use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use bytes::Bytes;
use http::request::Parts;
use http::{HeaderValue, Request, Response, header};
use http_body::Body;

use crate::budget::{Budget, Held, PlaceSettings, Places, Reserved, Share};
use crate::clock::Clock;
use crate::idempotency::{Disposition, Executor, KeyedRequest, RouteHandler};
use crate::json;
use crate::listener::{HeadMemory, Peer};
use crate::operation::RequestMode;
use crate::provider::signature::{Certificates, SecretError};
use crate::telemetry::{self, Limit, Metrics, RouteMetrics};
use crate::upstream::{AnswerBody, Dialing, OfThisMachine, TrustStore, TrustedProxies, Upstream};

use log::{RequestLine, Told};
use outgoing::{Receiver, ToSteps};
use receive::Received;
use refusal::Refusal;
use respond::Answer;
use route::Route;
use select::{Routes, Selected};

/// Forwards each webhook once. Clones are one and the same.
#[derive(Debug, Clone)]
pub struct Proxy(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    routes: Routes<Arc<Route>>,
    all: Vec<Arc<Route>>,
    executor: Arc<Executor>,
    limits: Limits,
    trusted: Arc<TrustedProxies>,
    budget: Budget,
    clock: Clock,
    metrics: Arc<Metrics>,
    /// Counts requests that no route took.
    no_route: RouteMetrics,
    in_flight: Places,
    pending: Places,
    draining: AtomicBool,
}

/// What a proxy shares with the rest of the process.
#[derive(Debug, Clone)]
pub struct Dependencies {
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
    /// The certificates by which some senders sign.
    pub certificates: Certificates,
}

/// The metrics' name for requests that no route took.
const NO_ROUTE: &str = "none";

impl Proxy {
    /// A proxy with these routes.
    ///
    /// # Errors
    ///
    /// A secret that cannot be what its sender gives out.
    pub fn new(
        routes: Vec<RouteSettings>,
        limits: Limits,
        trusted: TrustedProxies,
        dependencies: Dependencies,
    ) -> Result<Self, SecretError> {
        let Dependencies { executor, budget, clock, metrics, trust, certificates } = dependencies;
        let dialing = Dialing {
            trust,
            clock: clock.clone(),
            names: Arc::new(OfThisMachine),
            answer_head: limits.answer_head,
        };
        let all: Result<Vec<Arc<Route>>, SecretError> = routes
            .into_iter()
            .map(|settings| {
                let upstream = Upstream::new(&settings.upstream, &dialing);
                let counters = metrics.route(&settings.name).from_zero(settings.may_count());
                let steps = settings.steps.as_ref();
                let policy = settings.policy.clone();
                let handler = RouteHandler::new(policy, upstream, steps, counters, &dialing);
                let sender = Sender::of(&settings, &certificates)?;
                let sender = sender.map(|sender| sender.watched(&settings.name, &metrics));
                Ok(Arc::new(Route { settings, handler: Arc::new(handler), sender }))
            })
            .collect();
        let all = all?;
        let places = |limit, max| {
            let settings = PlaceSettings { limit, max, per_peer_max: limits.per_peer_max };
            Places::new(settings, Arc::clone(&metrics))
        };
        Ok(Self(Arc::new(Shared {
            routes: Routes::new(all.iter().cloned()),
            all,
            executor,
            in_flight: places(Limit::RequestsInFlight, limits.requests_in_flight_max),
            pending: places(Limit::BodiesPending, limits.bodies_pending_max),
            limits,
            trusted: Arc::new(trusted),
            budget,
            clock,
            no_route: metrics.route(NO_ROUTE).from_zero(problem::COUNTED_WITHOUT_ROUTE),
            metrics,
            draining: AtomicBool::new(false),
        })))
    }

    /// From now on new requests get 503 `draining`.
    pub fn drain(&self) {
        self.0.draining.store(true, Ordering::Release);
    }

    /// Closes upstream connections that have been idle for too long.
    pub fn close_idle(&self) {
        for route in &self.0.all {
            route.handler.upstreams().for_each(Upstream::close_idle);
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
        let mut told = Told::default();
        let mut answer = match shared.answer(&mut parts, &mut body, &mut told).await {
            Ok(answer) => answer,
            Err(refusal) => respond::refused(&refusal),
        };
        if let Some(route) = &told.route {
            respond::bare(&mut answer, &route.settings);
        }
        // What was not read cannot be skipped: the connection has to end. A body in chunks does not
        // say itself that it has ended.
        let is_read = told.is_received || body.is_end_stream();
        if !is_read && parts.version < http::Version::HTTP_2 {
            let close = HeaderValue::from_static("close");
            answer.response.headers_mut().insert(header::CONNECTION, close);
        }
        let counters = told.route.as_ref();
        let counters = counters.map_or(&shared.no_route, |route| route.handler.metrics());
        line.end(&answer, &told, counters);
        answer.response
    }
}

impl Shared {
    /// The path of a request.
    async fn answer<B: Body<Data = Bytes> + Unpin>(
        &self,
        parts: &mut Parts,
        body: &mut B,
        told: &mut Told,
    ) -> Result<Answer, Refusal> {
        let read = guard::head(parts).map_err(Refusal::from);
        let named = read.and_then(|()| self.routes.named(parts));
        told.route = named.as_ref().ok().cloned();
        if self.draining.load(Ordering::Acquire) {
            return Err(Refusal::Draining);
        }
        let selected = self.routes.select(named?, parts)?;
        let route = &*selected.route;
        let peer = self.limited_peer(parts);
        let received = self.receive(route, parts, body, peer).await?;
        told.is_received = true;
        let place = self.in_flight.take(peer).ok_or(Refusal::Overloaded)?;
        let disposition = self.dispose(&selected, parts, received, told).await?;
        let memory = self.memory_of_replay(&disposition)?;
        let mut answer = respond::with(disposition, &route.settings, told.from);
        let held = Held { memory, place: Some(place) };
        answer.response = answer.response.map(|body| body.holding(held));
        Ok(answer)
    }

    /// What becomes of a request that is complete.
    async fn dispose(
        &self,
        selected: &Selected<Arc<Route>>,
        parts: &mut Parts,
        mut received: Received,
        told: &mut Told,
    ) -> Result<Disposition, Refusal> {
        let route = &*selected.route;
        let (opened, identity) = match route.settings.mode {
            Mode::Enforce => self.enforced(route, parts, &received).await?,
            Mode::Observe => self.observed(route, parts, &received).await,
            Mode::Pass => (Opened::default(), Identity::Passed(Passing::Mode)),
        };
        told.from = identity.key_source();
        if let Identity::Keyed(Identified { asked, .. }) = &identity {
            told.asked = Some(Arc::clone(asked));
            if route.settings.mode == Mode::Enforce
                && let Some(known) = self.executor.recall(asked, &route.handler)
            {
                return Ok(known);
            }
        }
        let steps = match &identity {
            Identity::Keyed(Identified { asked, .. }) => {
                ToSteps::new(parts, selected, &mut received, &self.trusted, asked.id)?
            }
            Identity::Passed(_) => None,
        };
        let to = Receiver { selected, upstream: &route.settings.upstream };
        let Received { body, memory, arrived } = received;
        let request = outgoing::request(parts, to, &body, &self.trusted);
        let request = outgoing::vouched_for(request, opened.verified.clone());
        Ok(match identity {
            Identity::Keyed(Identified { asked, key, forward_key, .. }) => {
                let header = route.settings.policy.forward_key.as_ref();
                let request = outgoing::carrying_key(request, header, &forward_key);
                let steps = steps.map(|steps| steps.vouched_for(opened.verified));
                let keyed = KeyedRequest { asked, key, request, steps, arrived, memory };
                match route.settings.mode {
                    Mode::Observe => self.executor.observe(keyed, &route.handler).await,
                    Mode::Enforce | Mode::Pass => {
                        self.executor.execute(keyed, &route.handler).await
                    }
                }
            }
            Identity::Passed(_) => {
                self.executor.pass(request, memory, arrived, &route.handler).await
            }
        })
    }

    /// The whole body. While it is waited for the request has a place among the pending ones alone:
    /// who sends slowly takes no place from those who are served.
    async fn receive<B: Body<Data = Bytes> + Unpin>(
        &self,
        route: &Route,
        parts: &Parts,
        body: &mut B,
        peer: Option<IpAddr>,
    ) -> Result<Received, Refusal> {
        let bounds = receive::Bounds {
            bytes_max: route.settings.request_bytes_max,
            timeout: self.limits.body_timeout,
            rate_min: self.limits.body_rate_min,
        };
        let means = receive::Means {
            budget: &self.budget,
            metrics: &self.metrics,
            pending: &self.pending,
            peer,
        };
        let mut received = receive::body(parts, body, bounds, means).await?;
        if let Some(head) = parts.extensions.get::<HeadMemory>().and_then(HeadMemory::take) {
            received.memory.absorb(head);
        }
        Ok(received)
    }

    /// Whose share of the places it takes, where shares are limited.
    fn limited_peer(&self, parts: &Parts) -> Option<IpAddr> {
        let Peer(peer) = parts.extensions.get::<Peer>()?;
        let is_limited = self.limits.per_peer_max != Share::WHOLE;
        is_limited.then(|| self.trusted.client(peer.ip(), &parts.headers))
    }

    /// A replay is in memory for as long as its sender takes to read it.
    fn memory_of_replay(&self, disposition: &Disposition) -> Result<Option<Reserved>, Refusal> {
        match disposition {
            Disposition::Replayed { answer, .. } => {
                self.budget.reserve(answer.weight()).map(Some).map_err(|_| Refusal::Overloaded)
            }
            Disposition::Executed { .. }
            | Disposition::Passed(_)
            | Disposition::InFlight { .. }
            | Disposition::Uncertain { .. }
            | Disposition::Mismatched { .. }
            | Disposition::Overloaded
            | Disposition::StoreUnavailable => Ok(None),
        }
    }

    /// Verify and identify: who sent it, and what it is about.
    async fn enforced(
        &self,
        route: &Route,
        head: &Parts,
        received: &Received,
    ) -> Result<(Opened, Identity), Refusal> {
        let opened = self.open(route, head, received).await?;
        let identity = identity(route, head, received, &opened)?;
        Ok((opened, identity))
    }

    /// The same, but what would be refused is only reported.
    async fn observed(
        &self,
        route: &Route,
        head: &Parts,
        received: &Received,
    ) -> (Opened, Identity) {
        match self.open(route, head, received).await {
            Ok(opened) => {
                let identity = identity(route, head, received, &opened);
                let identity = identity.unwrap_or_else(|refusal| {
                    report(route, &refusal);
                    Identity::Passed(Passing::Observed)
                });
                (opened, identity)
            }
            Err(refusal) => {
                report(route, &refusal);
                (Opened::default(), Identity::Passed(Passing::Observed))
            }
        }
    }

    async fn open(
        &self,
        route: &Route,
        head: &Parts,
        received: &Received,
    ) -> Result<Opened, Refusal> {
        Ok(match &route.sender {
            Some(sender) => sender.open(head, &received.body, self.clock.wall()).await?,
            None => Opened::default(),
        })
    }
}

fn identity(
    route: &Route,
    head: &Parts,
    received: &Received,
    opened: &Opened,
) -> Result<Identity, Refusal> {
    if let Some(handshake) = &opened.handshake {
        return Ok(Identity::Passed(Passing::Handshake(handshake.clone())));
    }
    let request = RequestView::of(head, &received.body, &opened.carried);
    let mut rules = Rules::from(&route.settings);
    if let RequestMode::Observe { genuine } = &mut rules.mode {
        *genuine = opened.verified.is_some();
    }
    Ok(identify(&rules, &request)?)
}

/// Notes a refusal that is not made.
fn report(route: &Route, refusal: &Refusal) {
    let (code, detail) = refusal.explained();
    route.handler.metrics().observed(telemetry::Disposition::Refused);
    tracing::info!(
        route.name = %route.settings.name,
        observed = code,
        detail,
        "forwarded all the same: the route only observes"
    );
}
