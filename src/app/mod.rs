//! A whole Onceward process as a value: [`App`] turns a configuration into running listeners and
//! background tasks.
#![doc = include_str!("../../docs/embedding.md")]

mod concerns;
mod descriptors;
mod start_error;
mod store;

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use axum::Router;
use hyper_util::service::TowerToHyperService;
use tokio::time::{MissedTickBehavior, interval, sleep, timeout};

use crate::admin::{self, Admin, Retentions};
use crate::budget::{Budget, Share};
use crate::clock::Clock;
use crate::config::Config;
use crate::idempotency::Executor;
use crate::listener::{self, Listener, Resources, Service, Shutdown, Workers};
use crate::provider::signature::Certificates;
use crate::proxy::{Dependencies, Proxy, RouteSettings};
use crate::store::{Measured, Store};
use crate::telemetry::Metrics;
use crate::upstream::{TrustStore, TrustedProxies};

use concerns::watch_concerns;
use descriptors::ConnectionLimits;
pub use start_error::StartError;
pub(crate) use store::open_store;
use store::{log_probe, sweep};

/// A whole Onceward process: the proxy, the control plane and the store.
///
/// [`App::start`] opens the store and binds both listeners. [`App::run`] serves until a future ends
/// and then drains: attempts in flight are finished, and their outcomes are recorded, before it
/// returns. To serve the proxy on an axum application's own port, see [`App::run_inside`].
///
/// ```no_run
/// use std::error::Error;
/// use std::path::Path;
///
/// use onceward::app::App;
/// use onceward::config::Config;
///
/// #[tokio::main]
/// async fn main() -> Result<(), Box<dyn Error>> {
///     let config = Config::from_file(Path::new("onceward.toml"), std::env::vars_os())?;
///     let app = App::start(config).await?;
///     println!("serving on http://{}", app.address()?);
///     app.run(async {
///         let _interrupted = tokio::signal::ctrl_c().await;
///     })
///     .await;
///     Ok(())
/// }
/// ```
///
/// An app logs through [`tracing`] and installs no subscriber, handles no signals, and raises the
/// number of files that the process may open as far as the system lets it.
#[derive(Debug)]
pub struct App {
    proxy: Proxy,
    admin: Admin,
    executor: Arc<Executor>,
    store: Arc<dyn Store>,
    resources: Resources,
    public: Listener,
    private: Listener,
    /// The codes of all concerns that this kind of store may have.
    concern_codes: Vec<&'static str>,
    drain_delay: Duration,
    shutdown_timeout: Duration,
}

/// How long the store may take to record outcomes after attempts were aborted.
const LAST_WRITES: Duration = Duration::from_secs(5);
/// How long senders have to read their answers after that.
const LAST_ANSWERS: Duration = Duration::from_secs(1);
/// The memory for requests to the control plane. It is not that of the proxy, so that an operator
/// can see what is wrong when the proxy has none left.
const CONTROL_BYTES_MAX: usize = 64 * 1024 * 1024;
/// The pause between two looks at idle upstream connections.
const CLOSE_IDLE_EVERY: Duration = Duration::from_secs(1);

impl App {
    /// Opens the store, binds the listeners, starts the threads for senders' connections, and logs
    /// what is unsafe. Nothing is served yet: connections wait in the kernel until [`App::run`].
    ///
    /// A store that does not work is no error if it may come back, such as a server that cannot be
    /// reached. Until then every request is refused with 503.
    ///
    /// Cancel safe: dropping the future closes what it has opened.
    ///
    /// # Errors
    ///
    /// An address that cannot be listened on, an embedded store that another process has open or
    /// that is damaged, and a secret or certificate that cannot be used. See [`StartError`].
    pub async fn start(config: Config) -> Result<Self, StartError> {
        let threads = threads(config.server.threads);
        let limits = ConnectionLimits::of(&config, threads);
        let Config { mut server, admin, store, mut routes } = config;
        server.listener.connections_max = limits.public;
        for route in &mut routes {
            let attempts = &mut route.policy.in_flight_max;
            *attempts = limits.attempts.min(*attempts);
        }
        let unverified = routes.iter().filter(|route| route.is_unverified());
        let unverified: Vec<_> = unverified.map(|route| Arc::clone(&route.name)).collect();
        let clock = Clock::system();
        let metrics = Arc::new(Metrics::new());
        let concern_codes = store.concern_codes();
        let store = open_store(store, clock.clone()).await?;
        let store: Arc<dyn Store> =
            Arc::new(Measured::new(store, clock.clone(), Arc::clone(&metrics)));
        log_probe(&*store).await;
        let budget = Budget::new(server.limits.buffered_bytes_max, Arc::clone(&metrics));
        let workers = Workers::start(threads).map_err(StartError::Threads)?;
        let resources =
            Resources { memory: budget.clone(), metrics: Arc::clone(&metrics), workers };
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
        let private_limits = listener::Limits {
            connections_max: limits.private,
            // Behind a reverse proxy all operators have one address.
            per_peer_max: Share::WHOLE,
            ..server.listener
        };
        let private = bind("admin.listen", admin.listen, private_limits)?;
        unverified.iter().for_each(log_unverified);
        let admin = Admin::new(admin::Dependencies {
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

    /// The address on which the proxy listens. With port 0 in the configuration, this has the port
    /// that the system chose.
    ///
    /// # Errors
    ///
    /// The system does not know the address of its own socket.
    pub fn address(&self) -> io::Result<SocketAddr> {
        self.public.local_addr()
    }

    /// The address on which the control plane listens.
    ///
    /// # Errors
    ///
    /// The system does not know the address of its own socket.
    pub fn admin_address(&self) -> io::Result<SocketAddr> {
        self.private.local_addr()
    }

    /// The proxy as a service, for the routes of another application: see [`App::run_inside`].
    pub fn proxy(&self) -> Proxy {
        self.proxy.clone()
    }

    /// The metrics. They can be read after the app has ended.
    pub fn metrics(&self) -> Arc<Metrics> {
        Arc::clone(&self.resources.metrics)
    }

    /// Serves until `stop` ends, and then drains.
    ///
    /// Connections from senders are served on threads of their own (`server.threads`), with all that
    /// their requests begin, such as connections to the store's server. The control plane and what
    /// is done from time to time run on the runtime that polls this future.
    ///
    /// While it drains, `/readyz` says so. For `server.drain_delay` requests are still served; then
    /// they are refused with 503, and attempts in flight are finished. After
    /// `server.shutdown_timeout` those that are left are aborted and recorded as uncertain. This
    /// returns some seconds after that at the latest, once the store is closed.
    ///
    /// Not cancel safe: the listeners run in tasks of their own, and dropping the future leaves
    /// them without anybody who could end them. End `stop` instead.
    pub async fn run(self, stop: impl Future<Output = ()>) {
        let proxy = self.proxy.clone();
        self.run_service(proxy, stop).await;
    }

    /// Serves an application's router in place of the proxy alone, until `stop` ends; then drains
    /// as [`App::run`] does. The router has [`App::proxy`] among its routes.
    ///
    /// ```no_run
    /// # async fn serve(app: onceward::app::App) {
    /// use axum::Router;
    /// use axum::routing::get;
    ///
    /// let router = Router::new()
    ///     .route("/", get(async || "the shop"))
    ///     // As the fallback the proxy sees the whole path. Nested, it would see only the rest of it,
    ///     // and no route of the configuration would match.
    ///     .fallback_service(app.proxy());
    /// app.run_inside(router, async {
    ///     let _interrupted = tokio::signal::ctrl_c().await;
    /// })
    /// .await;
    /// # }
    /// ```
    ///
    /// The router is served on the runtime that polls this future, and not on the threads of
    /// [`App::run`], because its handlers may need what only that runtime has, such as
    /// [`tokio::task::block_in_place`].
    ///
    /// Not cancel safe, like [`App::run`].
    pub async fn run_inside(mut self, router: Router, stop: impl Future<Output = ()>) {
        self.resources.workers = Workers::of_caller();
        self.run_service(TowerToHyperService::new(router), stop).await;
    }

    async fn run_service(self, service: impl Service, stop: impl Future<Output = ()>) {
        name_admin(&self.executor, &self.private);
        let open = Shutdown::default();
        let closing = Shutdown::default();
        let metrics = Arc::clone(&self.resources.metrics);
        let control = Resources {
            memory: Budget::for_control_plane(CONTROL_BYTES_MAX, Arc::clone(&metrics)),
            metrics: Arc::clone(&metrics),
            workers: Workers::of_caller(),
        };
        // Attempts outlive their connections, and the store may work on these threads until it is
        // closed.
        let workers = self.resources.workers.clone();
        let mut public = tokio::spawn(self.public.serve(service, open.clone(), self.resources));
        let router = TowerToHyperService::new(self.admin.router());
        let private = tokio::spawn(self.private.serve(router, closing.clone(), control));
        let sweep = tokio::spawn(sweep(Arc::clone(&self.store), Arc::clone(&metrics)));
        let concerns = watch_concerns(
            Arc::clone(&self.store),
            Arc::clone(&metrics),
            self.admin.clone(),
            self.concern_codes,
        );
        let concerns = tokio::spawn(concerns);
        let close_idle = tokio::spawn(close_idle(self.proxy.clone()));

        stop.await;
        let longest = self.drain_delay.saturating_add(self.shutdown_timeout);
        let in_flight = metrics.in_flight.get();
        tracing::info!(in_flight, ends_within = ?longest, "not ready from now on; draining");
        self.admin.drain(longest);
        sleep(self.drain_delay).await;
        self.proxy.drain();
        open.drain();
        let in_good_order = async {
            // The listener stays open meanwhile. A sender that comes now gets a 503 and sends
            // again; most senders count a refused connection as a worse failure.
            self.executor.finish().await;
            open.stop(self.shutdown_timeout);
            let _panicked = (&mut public).await;
            // Requests that arrived before the listener closed may have begun attempts since.
            self.executor.finish().await;
        };
        if timeout(self.shutdown_timeout, in_good_order).await.is_err() {
            let left = self.executor.under_way();
            tracing::warn!(left, "the time is over; what is left is recorded as it stands");
            // Attempts that may have reached their upstream are recorded as uncertain: better now
            // than by the end of their lease, which the next process would have to wait for.
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
        // The control plane goes last, so that an operator can watch the end.
        sweep.abort();
        concerns.abort();
        close_idle.abort();
        closing.stop(LAST_ANSWERS);
        let _panicked = private.await;
        self.store.close().await;
        drop(workers);
        tracing::info!("done");
    }
}

/// How many threads serve the senders' connections: as many as are configured, or one for each
/// processor that this process may use.
fn threads(configured: Option<NonZeroUsize>) -> NonZeroUsize {
    // A system that does not tell how many processors there are is served by one thread.
    let processors = || thread::available_parallelism().unwrap_or(NonZeroUsize::MIN);
    configured.unwrap_or_else(processors)
}

/// Logs that a route takes events from anybody.
fn log_unverified(route: &Arc<str>) {
    tracing::info!(
        route.name = &**route,
        "no signature is checked: who knows the URL can send events"
    );
}

/// The retentions of decisions: as long as the outcomes on the same route.
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

/// Lets the log say where the admin listener is, if commands do not find it by themselves.
fn name_admin(executor: &Executor, private: &Listener) {
    let Ok(mut address) = private.local_addr() else { return };
    if address.ip().is_unspecified() {
        address.set_ip(if address.is_ipv4() {
            IpAddr::V4(Ipv4Addr::LOCALHOST)
        } else {
            IpAddr::V6(Ipv6Addr::LOCALHOST)
        });
    }
    if address != admin::ADDRESS {
        executor.give_options_to_commands(format!(" --admin http://{address}"));
    }
}

/// The name of this process among those that share a store. Host and process id alone are not
/// enough: in containers many processes have the process id 1.
fn holder() -> Arc<str> {
    let mut random = [0; 4];
    // The name is for people, so it may do without random digits. Claims need random numbers and
    // fail without them.
    let _unnamed = getrandom::fill(&mut random);
    let host = rustix::system::uname();
    let host = host.nodename().to_string_lossy();
    format!("{host}-{}-{}", std::process::id(), hex::encode(random)).into()
}

/// Closes idle upstream connections.
async fn close_idle(proxy: Proxy) {
    let mut ticks = interval(CLOSE_IDLE_EVERY);
    // After a pause of the whole process, one look is enough.
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        proxy.close_idle();
    }
}
