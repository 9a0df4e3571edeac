//! The connections to one server: those that calls share, and those that a call has for itself.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use parking_lot::Mutex;
use redis::aio::MultiplexedConnection;
use tokio::runtime::{self, Handle};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, timeout_at};

use super::dial::{Dialer, Target};
use super::failure::NotRun;

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

/// The most calls at a time on one connection, but for renewals. A reply may hold a whole answer,
/// and no budget counts it before its call has it. So this bounds what many replays at once take of
/// memory on each thread.
const CALLS_MAX: usize = 32;

/// The connection that all calls on one runtime share.
#[derive(Debug, Default)]
struct SharedConnection {
    latest: Mutex<Option<Arc<LimitedConnection>>>,
    was_made: AtomicBool,
    /// The lock that is held while a connection is made, so that many calls at once make only one.
    dialing: tokio::sync::Mutex<()>,
}

/// A connection with the places of the calls that may use it at a time. They belong to the
/// connection, so calls that wait on one that is broken keep nobody from the next one.
#[derive(Debug)]
struct LimitedConnection {
    connection: MultiplexedConnection,
    places: Arc<Semaphore>,
}

/// A shared connection with a place for one call.
pub(super) struct Connected {
    shared: Arc<SharedConnection>,
    limited: Arc<LimitedConnection>,
    /// None for a renewal, which needs no place.
    _place: Option<OwnedSemaphorePermit>,
}

/// Connections for calls that wait for replicas, while no call uses them.
#[derive(Debug, Default)]
pub(super) struct ReplicaConnections {
    connections: Vec<MultiplexedConnection>,
    /// The number of times that all of them were closed.
    closed: u64,
}

impl SharedConnections {
    /// Returns the connection of this runtime, once it has a place for the call. If there is no
    /// connection, makes one. A call that is urgent needs no place.
    pub(super) async fn get(
        &self,
        dialer: &Dialer,
        target: &Target,
        is_urgent: bool,
        until: Instant,
    ) -> Result<Connected, NotRun> {
        let shared = self.of_this_runtime();
        loop {
            let connected = timeout_at(until, self.current_or_new(&shared, dialer, target)).await;
            let limited = connected.unwrap_or(Err(NotRun::NotConnectedInTime))?;
            if is_urgent {
                return Ok(Connected { shared, limited, _place: None });
            }
            let place = timeout_at(until, Arc::clone(&limited.places).acquire_owned()).await;
            match place.map_err(|_| NotRun::TooManyCalls)? {
                Ok(place) => return Ok(Connected { shared, limited, _place: Some(place) }),
                // The connection was given up while this call waited.
                Err(_closed) => {}
            }
        }
    }

    async fn current_or_new(
        &self,
        shared: &SharedConnection,
        dialer: &Dialer,
        target: &Target,
    ) -> Result<Arc<LimitedConnection>, NotRun> {
        if let Some(current) = shared.current() {
            return Ok(current);
        }
        let _one_at_a_time = shared.dialing.lock().await;
        // Another call may have made a connection while this call waited for its turn.
        if let Some(current) = shared.current() {
            return Ok(current);
        }
        let connection = dialer.connect(target).await?;
        let places = Arc::new(Semaphore::new(CALLS_MAX));
        let limited = Arc::new(LimitedConnection { connection, places });
        if shared.was_made.swap(true, Ordering::Relaxed) {
            self.remade.fetch_add(1, Ordering::Relaxed);
        }
        *shared.latest.lock() = Some(Arc::clone(&limited));
        Ok(limited)
    }

    /// Returns the number of connections that were made in the place of an earlier one. A new
    /// connection may lead to another server, because a sentinel may name a new master.
    pub(super) fn remade(&self) -> u64 {
        self.remade.load(Ordering::Relaxed)
    }

    /// Gives up all connections. Calls that wait for a reply still get it.
    pub(super) fn hang_up(&self) {
        for shared in self.of_runtimes.lock().values() {
            if let Some(limited) = shared.latest.lock().take() {
                limited.places.close();
            }
        }
    }

    fn of_this_runtime(&self) -> Arc<SharedConnection> {
        let mut of_runtimes = self.of_runtimes.lock();
        Arc::clone(of_runtimes.entry(Handle::current().id()).or_default())
    }
}

impl SharedConnection {
    fn current(&self) -> Option<Arc<LimitedConnection>> {
        self.latest.lock().clone()
    }
}

impl Connected {
    pub(super) fn connection(&self) -> MultiplexedConnection {
        self.limited.connection.clone()
    }

    /// Gives up the connection, unless a newer one has replaced it. Calls that wait for a place on
    /// it go on to the next one.
    pub(super) fn give_up(&self) {
        self.shared.latest.lock().take_if(|latest| Arc::ptr_eq(latest, &self.limited));
        self.limited.places.close();
    }
}

impl ReplicaConnections {
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
