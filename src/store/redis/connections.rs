//! The connections to one server: those that calls share, and those that a call has for itself.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;
use redis::aio::MultiplexedConnection;
use tokio::runtime::{self, Handle};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::dial::{Dialer, Target};
use super::failure::Refusal;

/// The connections that calls share, one for each runtime.
///
/// A task of the runtime on which a connection was made writes its commands and reads its replies.
/// If a call on another runtime used the connection, the two threads would wake each other for
/// every command.
#[derive(Debug, Default)]
pub(super) struct SharedConnections {
    of_runtimes: Mutex<HashMap<runtime::Id, Arc<SharedConnection>>>,
    /// The number of connections that were made in the place of an earlier one.
    remade: AtomicU64,
}

/// The most calls at a time on one connection. A reply may hold a whole answer, and no budget counts
/// it before its call has it. So this bounds what many replays at once take of memory.
const CALLS_MAX: usize = 32;

/// The connection that all calls on one runtime share.
#[derive(Debug, Default)]
struct SharedConnection {
    latest: Mutex<LatestConnection>,
    /// The lock that is held while a connection is made, so that many calls at once make only one.
    dialing: tokio::sync::Mutex<()>,
}

#[derive(Debug, Default)]
struct LatestConnection {
    connection: Option<Limited>,
    /// The number of connections that were made so far.
    generation: u64,
}

/// A connection with the places of the calls that may use it at a time. They belong to the
/// connection, so calls that wait on one that is broken keep nobody from the next one.
#[derive(Debug, Clone)]
struct Limited {
    connection: MultiplexedConnection,
    places: Arc<Semaphore>,
}

/// A shared connection, and where it came from.
pub(super) struct Connected {
    pub(super) connection: MultiplexedConnection,
    pub(super) origin: Origin,
    /// The place of this call on the connection.
    pub(super) place: OwnedSemaphorePermit,
}

/// The place that a shared connection has in [`SharedConnections`].
pub(super) struct Origin {
    shared: Arc<SharedConnection>,
    generation: u64,
}

/// Connections for calls that wait for replicas, while no call uses them.
#[derive(Debug, Default)]
pub(super) struct IdleConnections {
    connections: Vec<MultiplexedConnection>,
    /// The number of times that all of them were closed.
    closed: u64,
}

impl SharedConnections {
    /// Returns the connection of this runtime, once it has a place for the call. If there is none,
    /// makes one.
    pub(super) async fn get(&self, dialer: &Dialer, target: &Target) -> Result<Connected, Refusal> {
        let (limited, origin) = self.current_or_new(dialer, target).await?;
        let place = limited.places.acquire_owned().await;
        let place = place.map_err(|_| Refusal::NotConnectedInTime)?;
        Ok(Connected { connection: limited.connection, origin, place })
    }

    async fn current_or_new(
        &self,
        dialer: &Dialer,
        target: &Target,
    ) -> Result<(Limited, Origin), Refusal> {
        let shared = self.of_this_runtime();
        if let Some(current) = shared.current() {
            return Ok(current);
        }
        let _one_at_a_time = shared.dialing.lock().await;
        // Another call may have made a connection while this call waited for its turn.
        if let Some(current) = shared.current() {
            return Ok(current);
        }
        let connection = dialer.connect(target).await?;
        let limited = Limited { connection, places: Arc::new(Semaphore::new(CALLS_MAX)) };
        let mut latest = shared.latest.lock();
        if latest.generation > 0 {
            self.remade.fetch_add(1, Ordering::Relaxed);
        }
        latest.generation += 1;
        latest.connection = Some(limited.clone());
        let origin = Origin { shared: Arc::clone(&shared), generation: latest.generation };
        Ok((limited, origin))
    }

    /// Returns the number of connections that were made in the place of an earlier one. A new
    /// connection may lead to another server, because a sentinel may name a new master.
    pub(super) fn remade(&self) -> u64 {
        self.remade.load(Ordering::Relaxed)
    }

    /// Gives up all connections. Calls that wait for a reply still get it.
    pub(super) fn hang_up(&self) {
        for shared in self.of_runtimes.lock().values() {
            shared.latest.lock().connection = None;
        }
    }

    fn of_this_runtime(&self) -> Arc<SharedConnection> {
        let mut of_runtimes = self.of_runtimes.lock();
        Arc::clone(of_runtimes.entry(Handle::current().id()).or_default())
    }
}

impl SharedConnection {
    fn current(self: &Arc<Self>) -> Option<(Limited, Origin)> {
        let latest = self.latest.lock();
        let limited = latest.connection.clone()?;
        Some((limited, Origin { shared: Arc::clone(self), generation: latest.generation }))
    }
}

impl Origin {
    /// Gives up the connection, unless a newer one has replaced it.
    pub(super) fn give_up(&self) {
        let mut latest = self.shared.latest.lock();
        if latest.generation == self.generation {
            latest.connection = None;
        }
    }
}

impl IdleConnections {
    /// Takes an idle connection, if there is one. Also returns how often all were closed so far.
    pub(super) fn take(&mut self) -> (Option<MultiplexedConnection>, u64) {
        (self.connections.pop(), self.closed)
    }

    /// Takes a connection back, unless all were closed since the call took it.
    pub(super) fn put(&mut self, connection: MultiplexedConnection, closed: u64) {
        if self.closed == closed {
            self.connections.push(connection);
        }
    }

    pub(super) fn close_all(&mut self) {
        self.connections.clear();
        self.closed += 1;
    }
}
