//! The proxy made with the library, inside the test's own process: on a clock that stands still,
//! and with certificates that need not be fetched.

use std::net::SocketAddr;
use std::sync::Arc;

use onceward::budget::Budget;
use onceward::clock::Clock;
use onceward::config::Config;
use onceward::idempotency::Executor;
use onceward::listener::{Listener, Resources, Shutdown, Workers};
use onceward::provider::signature::Certificates;
use onceward::proxy::{Dependencies, Proxy};
use onceward::store::{Measured, memory::Memory};
use onceward::telemetry::Metrics;
use onceward::upstream::{TrustStore, TrustedProxies};
use rustls::RootCertStore;
use tokio::task::JoinHandle;

use super::onceward::{client, send};
use super::scraper::metric;
use super::{Event, Reply};

/// A proxy on a socket of its own.
#[derive(Debug)]
pub struct Inside {
    pub address: SocketAddr,
    pub clock: Clock,
    metrics: Arc<Metrics>,
    serving: JoinHandle<()>,
    client: reqwest::Client,
}

impl Inside {
    /// Serves the routes of `toml`, with `secrets` as the environment.
    pub fn with(
        toml: &str,
        secrets: &[(&str, &str)],
        clock: Clock,
        certificates: Certificates,
    ) -> Self {
        let client = client();
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), toml).unwrap();
        let own = |(name, value): &(&str, &str)| ((*name).into(), (*value).into());
        let config = Config::from_file(file.path(), secrets.iter().map(own)).unwrap();
        let metrics = Arc::new(Metrics::new());
        let store = Arc::new(Memory::new(clock.clone()));
        let store = Arc::new(Measured::new(store, clock.clone(), Arc::clone(&metrics)));
        let budget = Budget::new(config.server.limits.buffered_bytes_max, Arc::clone(&metrics));
        let executor = Executor::new(
            store,
            "a holder".into(),
            clock.clone(),
            Arc::clone(&metrics),
            budget.clone(),
        );
        let resources = Resources {
            memory: budget.clone(),
            metrics: Arc::clone(&metrics),
            workers: Workers::of_caller(),
        };
        let dependencies = Dependencies {
            executor,
            budget,
            clock: clock.clone(),
            metrics: Arc::clone(&metrics),
            trust: TrustStore::of(RootCertStore::empty()),
            certificates,
        };
        let trusted = TrustedProxies(Vec::new());
        let proxy = Proxy::new(config.routes, config.server.limits, trusted, dependencies).unwrap();
        let here = "127.0.0.1:0".parse().unwrap();
        let listener = Listener::bind(here, config.server.listener).unwrap();
        let address = listener.local_addr().unwrap();
        let shutdown = Shutdown::default();
        let serving = tokio::spawn(listener.serve(proxy, shutdown, resources));
        Self { address, clock, metrics, serving, client }
    }

    pub async fn sends(&self, event: Event) -> Reply {
        send(&self.client, self.address, event).await.expect("an answer")
    }

    /// A line of the metrics; 0 if absent.
    pub fn metric(&self, line: &str) -> f64 {
        metric(&self.metrics.prometheus().unwrap(), line)
    }
}

impl Drop for Inside {
    fn drop(&mut self) {
        self.serving.abort();
    }
}
