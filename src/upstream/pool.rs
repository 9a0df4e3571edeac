//! Keeps idle connections between two exchanges.

use std::collections::HashMap;
use std::fmt;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Waker};
use std::time::Duration;

use bytes::Bytes;
use http_body_util::Full;
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use parking_lot::Mutex;
use tokio::runtime::{self, Handle};
use tokio::time::timeout;

use super::observed::{Observations, ObservedStream};
use super::reuse::{Reuse, TRIAL};
use super::socket::SharedSocket;
use crate::clock::{Clock, Moment};

/// The most idle connections of one upstream. Further ones are closed.
const IDLE_MAX: usize = 256;
/// The most addresses of one upstream that are remembered without a connection to them. A name may
/// move often, as behind a load balancer, and must not make the table grow for ever.
const ADDRESSES_MAX: usize = 64;

/// An open HTTP/1.1 connection.
///
/// The exchange that uses the connection drives it. The connection has no task of its own, so
/// dropping it closes it, and nothing is written after that.
pub(super) struct HttpConnection {
    pub(super) sender: http1::SendRequest<Full<Bytes>>,
    pub(super) driver: Pin<Box<http1::Connection<TokioIo<ObservedStream>, Full<Bytes>>>>,
    pub(super) socket: SharedSocket,
    pub(super) observations: Observations,
    /// Whether connections to the same address are used again.
    pub(super) reuse: Arc<Reuse>,
    pub(super) created_at: Moment,
    /// The longest time for which it may be idle.
    pub(super) idle_max: Duration,
}

impl fmt::Debug for HttpConnection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HttpConnection").field("socket", &self.socket).finish_non_exhaustive()
    }
}

impl HttpConnection {
    /// Whether an idle connection is open and has received nothing that nobody asked for.
    fn is_open(&mut self) -> bool {
        let mut context = Context::from_waker(Waker::noop());
        // Bytes that arrived may be TLS's own, such as a new session ticket (RFC 8446, 4.6.1).
        // Polling the driver lets rustls consume them. If the socket is quiet afterwards, nothing
        // else had arrived.
        self.socket.is_quiet()
            || (self.driver.as_mut().poll(&mut context).is_pending() && self.socket.is_quiet())
    }

    /// Waits until an idle connection is no longer open.
    async fn closed(&mut self) {
        while self.is_open() {
            self.socket.readable().await;
        }
    }
}

/// The idle connections of one upstream, and what is known about the reuse of connections to its
/// addresses.
#[derive(Debug)]
pub(super) struct Pool {
    idle: Mutex<IdleConnections>,
    addresses: Mutex<HashMap<SocketAddr, Arc<Reuse>>>,
    keepalive: Duration,
    keepalive_max: Duration,
    clock: Clock,
}

/// Idle connections by the runtime that watches their sockets, the most recently used last. On
/// another runtime, each byte that arrives would wake one thread to wake another.
#[derive(Debug, Default)]
struct IdleConnections(HashMap<runtime::Id, Vec<Idle>>);

impl IdleConnections {
    fn add(&mut self, idle: Idle) {
        if self.0.values().map(Vec::len).sum::<usize>() < IDLE_MAX {
            self.0.entry(Handle::current().id()).or_default().push(idle);
        }
    }

    fn take(&mut self) -> Option<Idle> {
        self.0.get_mut(&Handle::current().id())?.pop()
    }
}

#[derive(Debug)]
struct Idle {
    since: Moment,
    connection: HttpConnection,
}

impl Pool {
    pub(super) fn new(keepalive: Duration, keepalive_max: Duration, clock: Clock) -> Self {
        Self {
            idle: Mutex::default(),
            addresses: Mutex::default(),
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

    /// What is known about reuse of connections to an address.
    pub(super) fn reuse_of(&self, address: SocketAddr) -> Arc<Reuse> {
        let mut addresses = self.addresses.lock();
        if addresses.len() >= ADDRESSES_MAX {
            addresses.retain(|_, reuse| Arc::strong_count(reuse) > 1);
        }
        Arc::clone(addresses.entry(address).or_default())
    }

    /// The connection that became idle last on this runtime, if it is young enough and still open.
    ///
    /// The last one is taken and not the first, because it is the least likely to reach the
    /// server's idle timeout.
    pub(super) fn take(&self) -> Option<HttpConnection> {
        let now = self.now();
        loop {
            let mut idle = self.idle.lock().take()?;
            if self.may_be_used(&idle, now) {
                if idle.connection.is_open() {
                    return Some(idle.connection);
                }
                idle.connection.reuse.record_close(now);
            }
        }
    }

    /// Keeps a connection for the next exchange, or watches it to learn whether its address keeps
    /// connections open.
    pub(super) fn put(self: &Arc<Self>, connection: HttpConnection) {
        let idle = Idle { since: self.now(), connection };
        let reuse = &idle.connection.reuse;
        if reuse.is_proven() {
            self.keep(idle);
        } else if !idle.connection.idle_max.is_zero() && reuse.begin_trial(idle.since) {
            tokio::spawn(watch(Arc::clone(self), idle));
        }
    }

    fn keep(&self, idle: Idle) {
        if self.may_be_used(&idle, self.now()) {
            self.idle.lock().add(idle);
        }
    }

    /// Closes connections that have been idle for too long, and drops those that the server closed.
    pub(super) fn close_idle(&self) {
        let now = self.now();
        let stays_open = |idle: &mut Idle| {
            let may_be_used = self.may_be_used(idle, now);
            let is_open = may_be_used && idle.connection.is_open();
            if may_be_used && !is_open {
                idle.connection.reuse.record_close(now);
            }
            is_open
        };
        self.idle.lock().0.retain(|_, of_runtime| {
            of_runtime.retain_mut(stays_open);
            !of_runtime.is_empty()
        });
    }

    fn may_be_used(&self, Idle { since, connection }: &Idle, now: Moment) -> bool {
        connection.reuse.is_proven()
            && since.until(now) < connection.idle_max
            && connection.created_at.until(now) < self.keepalive_max
    }
}

/// Watches an idle connection to an address on trial. If it stays open, it is the first connection
/// to the address that is kept for reuse.
async fn watch(pool: Arc<Pool>, mut idle: Idle) {
    let was_closed = timeout(TRIAL, idle.connection.closed()).await.is_ok();
    // On a busy machine the timer may fire before the event of a close was delivered, so the kernel
    // is asked once more.
    let stayed_open = !was_closed && idle.connection.is_open();
    idle.connection.reuse.end_trial(stayed_open, pool.now());
    if stayed_open {
        pool.keep(idle);
    }
}
