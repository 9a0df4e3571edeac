//! Who must receive it.
//!
//! One exchange has a connection to itself. Whether a byte of the request left is not guessed: the
//! connection counts what it wrote, above TLS, and is closed before the count is read.

mod body;
mod classify;
mod connection;
mod connector;
mod exchange;
mod headers;
mod pool;
mod settings;
mod socket;

pub use body::{AnswerBody, BrokeOff, Piece};
pub use classify::outcome;
pub use connection::{Connection, Progress, Sent};
pub use connector::TrustStore;
pub use exchange::{Answer, AnswerStream, Reading};
pub use headers::{Forwarding, TrustedProxies, answer_headers, request_headers, stored_headers};
pub use settings::{OutcomeRule, Scheme, Settings, StatusRange, Target};

use std::sync::Arc;

use bytes::Bytes;
use http::uri::PathAndQuery;
use http::{HeaderMap, Method};

use crate::clock::Clock;
use crate::operation::Reason;

use connector::Connector;
use pool::Pool;

/// One receiver: how to connect to it, and the connections that are idle.
#[derive(Debug)]
pub struct Upstream {
    connector: Connector,
    pool: Arc<Pool>,
    clock: Clock,
}

/// A request as the upstream gets it.
#[derive(Debug, Clone)]
pub struct Request {
    /// Its method.
    pub method: Method,
    /// Its target, byte for byte.
    pub target: PathAndQuery,
    /// Its headers, complete but for those of one attempt.
    pub headers: HeaderMap,
    /// Its body.
    pub body: Bytes,
}

impl Upstream {
    /// A receiver without connections yet.
    pub fn new(settings: &Settings, trust: &TrustStore, clock: Clock) -> Self {
        let connector = Connector::new(settings, trust);
        let pool = Arc::new(Pool::new(settings.keepalive));
        Self { connector, pool, clock }
    }

    /// A connection for one exchange: an idle one that is still open, else a new one. Fails only
    /// with reasons that prove that nothing was sent.
    pub async fn connect(&self) -> Result<Connection, Reason> {
        if let Some(wire) = self.pool.take(self.clock.moment()) {
            return Ok(Connection::reused(wire, Arc::clone(&self.pool), self.clock.clone()));
        }
        let wire = self.connector.connect().await?;
        Ok(Connection::fresh(wire, Arc::clone(&self.pool), self.clock.clone()))
    }

    /// Closes connections that have been idle for too long.
    pub fn close_idle(&self) {
        self.pool.close_idle(self.clock.moment());
    }
}
