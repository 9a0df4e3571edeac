//! Who must receive it.
//!
//! One exchange has a connection to itself. Whether a byte of the request left is not guessed: the
//! connection counts what it wrote, above TLS, and is closed before the count is read. A connection
//! is used again only where its address has shown that it keeps them open.

mod body;
mod classify;
mod connection;
mod connector;
mod exchange;
mod handler;
mod head;
mod headers;
mod names;
mod pool;
mod race;
mod settings;
mod socket;
mod standing;
#[cfg(test)]
mod tests;
mod trust;
mod witness;

pub use body::{AnswerBody, BrokeOff, Piece};
pub use classify::outcome;
pub use connection::{Connection, Progress, Sent};
pub use exchange::{Answer, AnswerStream, Reading};
pub use handler::Handler;
pub use headers::{
    Forwarding, TrustedProxies, answer_headers, may_be_added, request_headers, stored_headers,
};
pub use names::{Names, OfThisMachine};
pub use settings::{AnswerHead, OutcomeRule, Scheme, Settings, StatusRange, Target};
pub use trust::TrustStore;

use std::sync::Arc;

use bytes::Bytes;
use http::uri::PathAndQuery;
use http::{Extensions, HeaderMap, Method};

use crate::clock::Clock;
use crate::operation::Reason;

use connector::Connector;
use pool::Pool;

/// How connections are made, to whichever upstream.
#[derive(Debug, Clone)]
pub struct Dialing {
    /// What upstreams' certificates are checked against.
    pub trust: TrustStore,
    /// What tells the age of a connection.
    pub clock: Clock,
    /// What tells the addresses of a name.
    pub names: Arc<dyn Names>,
    /// How long the head of an answer may be.
    pub answer_head: AnswerHead,
}

/// One receiver: how to connect to it, and the connections that are idle.
#[derive(Debug)]
pub struct Upstream {
    connector: Connector,
    pool: Arc<Pool>,
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
    /// What layers and routers before the proxy know of it. Only a [`Handler`] gets them.
    pub extensions: Extensions,
}

impl Upstream {
    /// A receiver without connections yet.
    pub fn new(settings: &Settings, dialing: &Dialing) -> Self {
        let connector = Connector::new(settings, dialing);
        let Settings { keepalive, keepalive_max, .. } = *settings;
        let pool = Arc::new(Pool::new(keepalive, keepalive_max, dialing.clock.clone()));
        Self { connector, pool }
    }

    /// A connection for one exchange: an idle one that is still open, else a new one. Fails only
    /// with reasons that prove that nothing was sent.
    pub async fn connect(&self) -> Result<Connection, Reason> {
        if let Some(wire) = self.pool.take() {
            return Ok(Connection::reused(wire, Arc::clone(&self.pool)));
        }
        let wire = self.connector.connect(&self.pool).await?;
        Ok(Connection::fresh(wire, Arc::clone(&self.pool)))
    }

    /// Closes connections that have been idle for too long.
    pub fn close_idle(&self) {
        self.pool.close_idle();
    }
}
