//! The store in PostgreSQL, under test; and what only it promises.

mod concerns;
mod faults;
mod groups;
mod pooler;
mod server_side;
mod tables;
mod tls;

use std::sync::Arc;
use std::time::Duration;

use onceward::clock::Clock;
use onceward::operation::Timestamp;
use onceward::secret::Secret;
use onceward::store::postgres::{self, Settings};
use onceward::store::{Certificates, Store, WhenEmptied};

use super::Harness;
use super::support::{granted, order};
use crate::support::{PostgresServer, until};

pub(super) struct OnPostgres {
    server: PostgresServer,
    store: Arc<dyn Store>,
    clock: Clock,
}

impl Harness for OnPostgres {
    async fn start() -> Self {
        let server = PostgresServer::with_clock();
        let clock = Clock::manual(Timestamp(server.clock().millis()));
        let store = postgres::open(&settings(&server.url()), clock.clone()).unwrap();
        is_listening(&server, &*store).await;
        Self { server, store, clock }
    }

    fn store(&self) -> Arc<dyn Store> {
        Arc::clone(&self.store)
    }

    async fn another(&self) -> Arc<dyn Store> {
        let settings = settings(&self.server.url());
        let another = postgres::open(&settings, self.clock.clone()).unwrap();
        is_listening(&self.server, &*another).await;
        another
    }

    async fn pass(&self, time: Duration) {
        self.server.clock().advance(time);
        self.clock.advance(time);
    }
}

/// What a store is opened with, on the database at `url`.
pub(super) fn settings(url: &str) -> Settings {
    Settings {
        url: Secret::new(url.to_owned()),
        listen_url: None,
        schema: "onceward".to_owned(),
        connections_max: 8,
        timeout: Duration::from_secs(10),
        certificates: Certificates::default(),
        when_emptied: WhenEmptied::Continue,
    }
}

/// A server, and a store on it, by this machine's clock.
pub(super) struct Served {
    pub(super) server: PostgresServer,
    pub(super) store: Arc<dyn Store>,
}

impl Served {
    pub(super) async fn start() -> Self {
        Self::with(&[]).await
    }

    /// On a server with these settings.
    pub(super) async fn with(server: &[&str]) -> Self {
        let server = PostgresServer::with(server);
        let store = open(&settings(&server.url()));
        // From its first answer on a store knows the server's time.
        granted(&*store, &order("first of all")).await;
        Self { server, store }
    }

    /// Another process.
    pub(super) fn another(&self) -> Arc<dyn Store> {
        open(&settings(&self.server.url()))
    }
}

/// A store on this machine's clock.
pub(super) fn open(settings: &Settings) -> Arc<dyn Store> {
    postgres::open(settings, Clock::system()).unwrap()
}

/// Waits until the store hears of ends at once: before, all who wait are woken.
pub(super) async fn is_listening(server: &PostgresServer, store: &dyn Store) {
    let id = order("somebody else's").id;
    let mut watch = store.watch(id).await.unwrap();
    assert_eq!(store.get(id).await.unwrap(), None);
    let client = server.client().await;
    let listens = "SELECT count(*) FROM pg_stat_activity \
        WHERE query = 'LISTEN onceward_ended' AND state = 'idle'";
    until("the store listens", async || {
        client.query_one(listens, &[]).await.unwrap().get::<_, i64>(0) > 0
    })
    .await;
    for _ in 0..3 {
        client.execute("SELECT pg_notify('onceward_ended', $1)", &[&id.to_string()]).await.unwrap();
        watch.ended().await;
    }
}
