//! Connections between two exchanges.

use std::fmt;
use std::pin::Pin;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use http_body_util::Full;
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;

use super::socket::{Counted, Socket, Written};
use crate::clock::Moment;

/// An open connection. It is driven by the exchange that uses it, not by a task of its own: to drop
/// it is to close it, and nothing is written afterwards.
pub(super) struct Wire {
    pub(super) sender: http1::SendRequest<Full<Bytes>>,
    pub(super) connection: Pin<Box<http1::Connection<TokioIo<Counted>, Full<Bytes>>>>,
    pub(super) socket: Socket,
    pub(super) written: Written,
}

impl fmt::Debug for Wire {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Wire").field("socket", &self.socket).finish_non_exhaustive()
    }
}

/// The idle connections of one upstream, the latest last.
#[derive(Debug)]
pub(super) struct Pool {
    idle: Mutex<Vec<(Moment, Wire)>>,
    keepalive: Duration,
}

/// Idle connections of one upstream at a time; further ones are closed.
const IDLE_MAX: usize = 256;

impl Pool {
    pub(super) const fn new(keepalive: Duration) -> Self {
        Self { idle: Mutex::new(Vec::new()), keepalive }
    }

    /// The connection that became idle last, if it is young enough and still open.
    pub(super) fn take(&self, now: Moment) -> Option<Wire> {
        loop {
            let (since, wire) = self.lock().pop()?;
            if since.until(now) < self.keepalive && wire.socket.is_quiet() {
                return Some(wire);
            }
        }
    }

    /// Keeps a connection for the next exchange.
    pub(super) fn put(&self, wire: Wire, now: Moment) {
        let mut idle = self.lock();
        if !self.keepalive.is_zero() && idle.len() < IDLE_MAX {
            idle.push((now, wire));
        }
    }

    /// Closes those that have been idle for too long.
    pub(super) fn close_idle(&self, now: Moment) {
        self.lock().retain(|(since, _)| since.until(now) < self.keepalive);
    }

    /// A list of idle connections is whole after any panic.
    fn lock(&self) -> MutexGuard<'_, Vec<(Moment, Wire)>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
