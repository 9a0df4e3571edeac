//! The composition root: a configuration in, running listeners and background loops out.
#![doc = include_str!("../../docs/embedding.md")]

mod concerns;
mod descriptors;

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use hyper_util::service::TowerToHyperService;
use tokio::time::{MissedTickBehavior, interval, sleep, timeout};

use crate::admin::{self, Admin, Retentions};
use crate::budget::{Budget, Share};
use crate::clock::Clock;
use crate::config::Config;
use crate::idempotency::Executor;
use crate::listener::{self, Listener, Resources, Service, Shutdown};
use crate::provider::signature::{Certificates, CertificatesError, SecretError};
use crate::proxy::{Dependencies, Proxy, RouteSettings};
use crate::store::{self, Measured, Store, embedded, memory, postgres, redis};
use crate::telemetry::{Metrics, chain};
use crate::upstream::{TrustStore, TrustedProxies};

use descriptors::Shares;

/// Everything that makes up a running process.
#[derive(Debug)]
pub struct App {
    proxy: Proxy,
    admin: Admin,
    executor: Arc<Executor>,
    store: Arc<dyn Store>,
    resources: Resources,
    public: Listener,
    private: Listener,
    /// What may make the store unsafe.
    concern_codes: Vec<&'static str>,
    drain_delay: Duration,
    shutdown_timeout: Duration,
}

/// The process cannot start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// An address cannot be listened on.
    #[error("cannot listen on `{address}` (`{key}`)")]
    Listen {
        /// The setting.
        key: &'static str,
        /// Its value.
        address: SocketAddr,
        /// Why.
        source: io::Error,
    },
    /// The embedded store cannot be opened.
    #[error("the store cannot be opened")]
    Store(#[source] embedded::OpenError),
    /// A secret cannot be what its sender gives out.
    #[error("a route's signatures cannot be checked")]
    Secret(#[source] SecretError),
    /// Senders' certificates cannot be fetched.
    #[error("senders' certificates cannot be fetched")]
    Certificates(#[source] CertificatesError),
    /// Nothing can be connected to the store's server.
    #[error("the store cannot be used")]
    Server(#[source] store::SetupError),
}

/// How long outcomes may take to be recorded after attempts were ended by force.
const LAST_WRITES: Duration = Duration::from_secs(5);
/// How long their senders have to take the answer.
const LAST_ANSWERS: Duration = Duration::from_secs(1);
/// The pause between two passes of expiry, and how much one pass does.
const SWEEP_EVERY: Duration = Duration::from_secs(1);
const SWEEP_RECORDS: usize = 1000;
/// Memory for requests to the control plane.
const CONTROL_BYTES_MAX: usize = 64 * 1024 * 1024;
/// The pause between two looks at idle upstream connections.
const CLOSE_IDLE_EVERY: Duration = Duration::from_secs(1);

impl App {
    /// Opens the store and binds the listeners. Nothing is served yet.
    pub async fn start(config: Config) -> Result<Self, StartError> {
        let shares = Shares::of(&config);
        let Config { mut server, admin, store, mut routes } = config;
        server.listener.connections_max = shares.public;
        for route in &mut routes {
            let attempts = &mut route.policy.in_flight_max;
            *attempts = shares.attempts.min(*attempts);
        }
        let unverified = routes.iter().filter(|route| route.is_unverified());
        let unverified: Vec<_> = unverified.map(|route| Arc::clone(&route.name)).collect();
        let clock = Clock::system();
        let metrics = Arc::new(Metrics::new());
        let concern_codes = store.concern_codes();
        let store = open(store, clock.clone()).await?;
        let store: Arc<dyn Store> =
            Arc::new(Measured::new(store, clock.clone(), Arc::clone(&metrics)));
        tell_whether_it_works(&*store).await;
        let budget = Budget::new(server.limits.buffered_bytes_max, Arc::clone(&metrics));
        let resources = Resources { memory: budget.clone(), metrics: Arc::clone(&metrics) };
        let retentions = retentions(&routes, admin.retention);
        let executor = Executor::new(
            Arc::clone(&store),
            holder(),
            clock.clone(),
            Arc::clone(&metrics),
            budget.clone(),
        );
        let certificates = Certificates::new(clock.clone()).map_err(StartError::Certificates)?;
        let dependencies = Dependencies {
            executor: Arc::clone(&executor),
            budget,
            clock: clock.clone(),
            metrics: Arc::clone(&metrics),
            trust: TrustStore::of_this_machine(),
            certificates,
        };
        let trusted = TrustedProxies(server.trusted_proxies);
        let proxy =
            Proxy::new(routes, server.limits, trusted, dependencies).map_err(StartError::Secret)?;
        let public = bind("server.listen", server.listen, server.listener.clone())?;
        let limits = listener::Limits {
            connections_max: shares.private,
            per_peer_max: Share::WHOLE,
            ..server.listener
        };
        let private = bind("admin.listen", admin.listen, limits)?;
        unverified.iter().for_each(tell_unverified);
        let admin = Admin::new(admin::Parties {
            store: Arc::clone(&store),
            metrics: Arc::clone(&metrics),
            clock,
            token: admin.token,
            retentions,
        });
        Ok(Self {
            proxy,
            admin,
            executor,
            store,
            resources,
            public,
            private,
            concern_codes,
            drain_delay: server.drain_delay,
            shutdown_timeout: server.shutdown_timeout,
        })
    }

    /// Where requests are taken.
    pub fn address(&self) -> io::Result<SocketAddr> {
        self.public.local_addr()
    }

    /// Where the control plane is.
    pub fn admin_address(&self) -> io::Result<SocketAddr> {
        self.private.local_addr()
    }

    /// The data plane, to be served by somebody else.
    pub fn proxy(&self) -> Proxy {
        self.proxy.clone()
    }

    /// What is counted. It outlives the app.
    pub fn metrics(&self) -> Arc<Metrics> {
        Arc::clone(&self.resources.metrics)
    }

    /// Serves until `asked_to_stop` ends, then lets what is in flight end in good order.
    pub async fn run(self, asked_to_stop: impl Future<Output = ()>) {
        let proxy = self.proxy.clone();
        self.run_service(proxy, asked_to_stop).await;
    }

    /// The same for an application that has [`App::proxy`] among its own routes: its router is
    /// served in place of the proxy alone.
    pub async fn run_inside(self, router: Router, asked_to_stop: impl Future<Output = ()>) {
        self.run_service(TowerToHyperService::new(router), asked_to_stop).await;
    }

    async fn run_service(self, service: impl Service, asked_to_stop: impl Future<Output = ()>) {
        let (open, closing) = (Shutdown::default(), Shutdown::default());
        let metrics = Arc::clone(&self.resources.metrics);
        let control = Resources {
            memory: Budget::for_control_plane(CONTROL_BYTES_MAX, Arc::clone(&metrics)),
            metrics: Arc::clone(&metrics),
        };
        let mut public = tokio::spawn(self.public.serve(service, open.clone(), self.resources));
        let router = TowerToHyperService::new(self.admin.router());
        let private = tokio::spawn(self.private.serve(router, closing.clone(), control));
        let sweep = tokio::spawn(sweep(Arc::clone(&self.store), Arc::clone(&metrics)));
        let concerns = concerns::tell(
            Arc::clone(&self.store),
            Arc::clone(&metrics),
            self.admin.clone(),
            self.concern_codes,
        );
        let concerns = tokio::spawn(concerns);
        let close_idle = tokio::spawn(close_idle(self.proxy.clone()));

        asked_to_stop.await;
        let longest = self.drain_delay.saturating_add(self.shutdown_timeout);
        let in_flight = metrics.in_flight.get();
        tracing::info!(in_flight, ends_within = ?longest, "not ready from now on; draining");
        self.admin.drain(longest);
        sleep(self.drain_delay).await;
        self.proxy.drain();
        open.drain();
        let in_good_order = async {
            // The listener stays open meanwhile: who comes now is told to come back, not cut off.
            self.executor.finish().await;
            open.stop(self.shutdown_timeout);
            let _panicked = (&mut public).await;
            // What came in at the last moment.
            self.executor.finish().await;
        };
        if timeout(self.shutdown_timeout, in_good_order).await.is_err() {
            let left = self.executor.under_way();
            tracing::warn!(left, "the time is over; what is left is recorded as it stands");
            self.executor.abort();
            if timeout(LAST_WRITES, self.executor.finish()).await.is_err() {
                let left = self.executor.under_way();
                tracing::error!(left, "outcomes could not be recorded; their operations are held");
            }
            open.stop(LAST_ANSWERS);
            if !public.is_finished() {
                let _cut_off = timeout(LAST_ANSWERS, public).await;
            }
        }
        sweep.abort();
        concerns.abort();
        close_idle.abort();
        closing.stop(LAST_ANSWERS);
        let _panicked = private.await;
        self.store.close().await;
        tracing::info!("done");
    }
}

/// Says that a route takes events from anybody.
fn tell_unverified(route: &Arc<str>) {
    tracing::info!(
        route.name = &**route,
        "no signature is checked: who knows the URL can send events"
    );
}

/// A store that does not work is no reason not to start: it may come back.
async fn tell_whether_it_works(store: &dyn Store) {
    if let Err(error) = store.probe().await {
        tracing::error!(
            error = %chain(&error),
            "the store does not work; requests are refused until it does"
        );
    }
}

/// Opens a store without blocking the runtime.
pub(crate) async fn open(
    settings: store::Settings,
    clock: Clock,
) -> Result<Arc<dyn Store>, StartError> {
    match settings {
        store::Settings::Memory => {
            tracing::warn!("the store is in memory: what is remembered is lost with this process");
            Ok(Arc::new(memory::Memory::new(clock)))
        }
        store::Settings::Redis(settings) => {
            redis::open(&settings, clock).map_err(StartError::Server)
        }
        store::Settings::Postgres(settings) => {
            postgres::open(&settings, clock).map_err(StartError::Server)
        }
        store::Settings::Embedded(settings) => {
            let opened =
                tokio::task::spawn_blocking(move || embedded::open(&settings, clock)).await;
            match opened {
                Ok(Ok(store)) => Ok(Arc::new(store)),
                Ok(Err(error)) => Err(StartError::Store(error)),
                Err(panicked) => std::panic::resume_unwind(panicked.into_panic()),
            }
        }
    }
}

/// How long a decision is remembered: as long as an outcome on the same route.
fn retentions(routes: &[RouteSettings], otherwise: Duration) -> Retentions {
    let of_route = |route: &RouteSettings| (route.name.clone(), route.policy.durations.retention);
    Retentions { routes: routes.iter().map(of_route).collect(), otherwise }
}

fn bind(
    key: &'static str,
    address: SocketAddr,
    limits: listener::Limits,
) -> Result<Listener, StartError> {
    let bound = Listener::bind(address, limits);
    bound.map_err(|source| StartError::Listen { key, address, source })
}

/// Names this process among those that share a store.
fn holder() -> Arc<str> {
    let mut random = [0; 4];
    // Without random numbers no claim is made either; the name is for people.
    let _unnamed = getrandom::fill(&mut random);
    let host = rustix::system::uname();
    let host = host.nodename().to_string_lossy();
    format!("{host}-{}-{}", std::process::id(), hex::encode(random)).into()
}

/// Forgets what is past its retention, a bounded pass at a time.
async fn sweep(store: Arc<dyn Store>, metrics: Arc<Metrics>) {
    let mut ticks = interval(SWEEP_EVERY);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        loop {
            match store.sweep(SWEEP_RECORDS).await {
                Ok(swept) => {
                    metrics.holds_ended.inc_by(swept.holds_ended as u64);
                    if !swept.more {
                        break;
                    }
                }
                Err(error) => {
                    tracing::warn!(error = %chain(&error), "expired records could not be removed yet");
                    break;
                }
            }
        }
    }
}

/// Closes idle upstream connections.
async fn close_idle(proxy: Proxy) {
    let mut ticks = interval(CLOSE_IDLE_EVERY);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        proxy.close_idle();
    }
}
