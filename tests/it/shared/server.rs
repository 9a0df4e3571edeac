//! The server of a shared store, as far as all of them are alike.

use crate::support::{PostgresServer, RedisServer};

pub(super) trait Server: Sized + Send + Sync {
    /// A new one, empty.
    fn start() -> impl Future<Output = Self> + Send;
    /// How a proxy is told of it.
    fn toml(&self) -> String;
    /// It answers nobody from now on, and keeps all connections.
    fn pauses(&self);
    /// It answers again.
    fn goes_on(&self);
    /// `kill -9`.
    fn is_killed(&mut self) -> impl Future<Output = ()> + Send;
    /// Somebody takes from it all that it has.
    fn is_emptied(&self) -> impl Future<Output = ()> + Send;
    /// It runs again, at the same place, with what it had on disk.
    fn starts_again(&mut self) -> impl Future<Output = ()> + Send;
}

impl Server for RedisServer {
    /// One that has written down what it says it has.
    async fn start() -> Self {
        Self::start_with(&["--appendonly", "yes", "--appendfsync", "always"]).await
    }

    fn toml(&self) -> String {
        format!("[store.redis]\nurls = [\"{}\"]", self.url())
    }

    fn pauses(&self) {
        Self::pauses(self);
    }

    fn goes_on(&self) {
        Self::goes_on(self);
    }

    async fn is_emptied(&self) {
        self.does("FLUSHALL").await;
    }

    async fn is_killed(&mut self) {
        self.dies().await;
    }

    async fn starts_again(&mut self) {
        self.comes_back().await;
    }
}

impl Server for PostgresServer {
    async fn start() -> Self {
        Self::start()
    }

    fn toml(&self) -> String {
        format!("[store.postgres]\nurl = \"{}\"\nconnections_max = 4", self.url())
    }

    fn pauses(&self) {
        Self::pauses(self);
    }

    fn goes_on(&self) {
        Self::goes_on(self);
    }

    async fn is_emptied(&self) {
        self.execute("DROP SCHEMA onceward CASCADE").await;
    }

    async fn is_killed(&mut self) {
        self.crashes();
    }

    async fn starts_again(&mut self) {
        Self::starts_again(self);
    }
}
