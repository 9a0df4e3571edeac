//! Connections between two exchanges.

use std::collections::HashMap;
use std::fmt;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Waker};
use std::time::Duration;

use bytes::Bytes;
use http_body_util::Full;
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use tokio::time::timeout;

use super::socket::Socket;
use super::standing::{SHOWN_AFTER, Standing};
use super::witness::{Witness, Witnessed};
use crate::clock::{Clock, Moment};

/// An open connection. It is driven by the exchange that uses it, not by a task of its own: to drop
/// it is to close it, and nothing is written afterwards.
pub(super) struct Wire {
    pub(super) sender: http1::SendRequest<Full<Bytes>>,
    pub(super) connection: Pin<Box<http1::Connection<TokioIo<Witnessed>, Full<Bytes>>>>,
    pub(super) socket: Socket,
    pub(super) witness: Witness,
    /// That of the address it goes to.
    pub(super) standing: Arc<Standing>,
    pub(super) made: Moment,
    /// The longest it may be idle.
    pub(super) idle_max: Duration,
}

impl fmt::Debug for Wire {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Wire").field("socket", &self.socket).finish_non_exhaustive()
    }
}

impl Wire {
    /// Whether an idle connection is open, and without an answer to nothing. TLS may have had
    /// something to say for itself, such as a new session ticket.
    fn is_open(&mut self) -> bool {
        let mut cx = Context::from_waker(Waker::noop());
        self.socket.is_quiet()
            || (self.connection.as_mut().poll(&mut cx).is_pending() && self.socket.is_quiet())
    }

    /// Waits until an idle connection is no longer open.
    async fn closes(&mut self) {
        while self.is_open() {
            self.socket.stirs().await;
        }
    }
}

/// The idle connections of one upstream, the latest last, and how its addresses stand.
#[derive(Debug)]
pub(super) struct Pool {
    idle: Mutex<Vec<Idle>>,
    standings: Mutex<HashMap<SocketAddr, Arc<Standing>>>,
    keepalive: Duration,
    keepalive_max: Duration,
    clock: Clock,
}

#[derive(Debug)]
struct Idle {
    since: Moment,
    wire: Wire,
}

/// Idle connections of one upstream at a time; further ones are closed.
const IDLE_MAX: usize = 256;
/// Addresses of one upstream that are remembered although nothing is connected to them.
const ADDRESSES_MAX: usize = 64;

impl Pool {
    pub(super) fn new(keepalive: Duration, keepalive_max: Duration, clock: Clock) -> Self {
        Self {
            idle: Mutex::default(),
            standings: Mutex::default(),
            keepalive,
            keepalive_max,
            clock,
        }
    }

    pub(super) const fn keepalive(&self) -> Duration {
        self.keepalive
    }

    pub(super) fn now(&self) -> Moment {
        self.clock.moment()
    }

    /// How an address stands.
    pub(super) fn standing(&self, address: SocketAddr) -> Arc<Standing> {
        let mut standings = whole(&self.standings);
        if standings.len() >= ADDRESSES_MAX {
            standings.retain(|_, standing| Arc::strong_count(standing) > 1);
        }
        Arc::clone(standings.entry(address).or_default())
    }

    /// The connection that became idle last, if it is young enough and still open.
    pub(super) fn take(&self) -> Option<Wire> {
        let now = self.now();
        loop {
            let mut idle = whole(&self.idle).pop()?;
            if self.may_be_used(&idle, now) {
                if idle.wire.is_open() {
                    return Some(idle.wire);
                }
                idle.wire.standing.closed(now);
            }
        }
    }

    /// Keeps a connection for the next exchange, or finds out whether its address keeps any.
    pub(super) fn put(self: &Arc<Self>, wire: Wire) {
        let idle = Idle { since: self.now(), wire };
        if idle.wire.standing.is_proven() {
            self.keep(idle);
        } else if !idle.wire.idle_max.is_zero() && idle.wire.standing.begins_trial(idle.since) {
            tokio::spawn(watch(Arc::clone(self), idle));
        }
    }

    fn keep(&self, idle: Idle) {
        let may_be_used = self.may_be_used(&idle, self.now());
        let mut all = whole(&self.idle);
        if may_be_used && all.len() < IDLE_MAX {
            all.push(idle);
        }
    }

    /// Closes those that have been idle for too long, and finds those that were closed.
    pub(super) fn close_idle(&self) {
        let now = self.now();
        whole(&self.idle).retain_mut(|idle| {
            let may_be_used = self.may_be_used(idle, now);
            let open = may_be_used && idle.wire.is_open();
            if may_be_used && !open {
                idle.wire.standing.closed(now);
            }
            open
        });
    }

    fn may_be_used(&self, Idle { since, wire }: &Idle, now: Moment) -> bool {
        wire.standing.is_proven()
            && since.until(now) < wire.idle_max
            && wire.made.until(now) < self.keepalive_max
    }
}

/// Watches a connection to an address on probation; if it stays open, it is the first to be used
/// again.
async fn watch(pool: Arc<Pool>, mut idle: Idle) {
    let closed = timeout(SHOWN_AFTER, idle.wire.closes()).await.is_ok();
    // A busy machine may have come to the timer first.
    let stayed_open = !closed && idle.wire.is_open();
    idle.wire.standing.ends_trial(stayed_open, pool.now());
    if stayed_open {
        pool.keep(idle);
    }
}

/// What the locks here hold is whole after any panic.
fn whole<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
