//! Sends one request to one upstream, and proves afterwards whether a byte of it was sent.
//!
//! Onceward may send a request again only if no byte of it can have reached the upstream. This
//! module does not guess that. Each exchange has an HTTP/1.1 connection to itself. The connection
//! counts every byte that it writes, above TLS. The count is read after the connection was closed.
//! An exchange ends in one of four ways, see [`SendResult`].
//!
//! Nothing here repeats a request that was begun, and nothing follows a redirect. An idle
//! connection is used again only if its address has shown that it keeps connections open.
//!
//! | file | what it does |
//! | --- | --- |
//! | `settings.rs`, `request.rs` | what the operator configures; the request to be sent |
//! | `resolver.rs`, `race.rs`, `connector.rs` | name to addresses, addresses to TCP, TCP to HTTP |
//! | `trust.rs` | TLS, and whether the server asked for a client certificate |
//! | `socket.rs`, `observed.rs` | the stream under HTTP: counts what was written |
//! | `pool.rs`, `reuse.rs` | idle connections, and which addresses deserve them |
//! | `connection.rs`, `head.rs` | one exchange up to the head of its answer |
//! | `progress.rs` | how an exchange ended, and whether a byte was written |
//! | `handler.rs`, `handler_call.rs`, `handler_body.rs` | a handler of the same process in place of the upstream |
//! | `answer.rs`, `body.rs` | the body of an answer: from the upstream, and to the sender |
//! | `headers.rs`, `outcome.rs` | headers in both directions; the outcome that a status means |

mod answer;
mod body;
mod connection;
mod connector;
mod handler;
mod handler_body;
mod handler_call;
mod head;
mod headers;
mod observed;
mod outcome;
mod pool;
mod progress;
mod race;
mod request;
mod resolver;
mod reuse;
mod settings;
mod socket;
#[cfg(test)]
mod tests;
mod trust;

pub use answer::{AnswerStream, BodyRead, UpstreamAnswer};
pub use body::{BodyError, Chunk, ResponseBody};
pub use connection::Connection;
pub use handler::{Handler, HandlerCall};
pub use handler_call::ReadyHandler;
pub use headers::{
    ForwardingContext, TrustedProxies, answer_headers, may_be_added, request_headers,
    stored_headers,
};
pub use outcome::{OutcomeRule, StatusRange};
pub use progress::{Progress, SendResult};
pub use request::Request;
pub use resolver::{Resolver, SystemResolver};
pub use settings::{AnswerHeadLimits, DialSettings, Scheme, Settings, Target};
pub use trust::TrustStore;

use std::sync::Arc;

use crate::operation::Reason;

use connector::Connector;
use pool::Pool;

/// One upstream: how to connect to it, and its idle connections.
#[derive(Debug)]
pub struct Upstream {
    connector: Connector,
    pool: Arc<Pool>,
}

impl Upstream {
    /// An upstream without connections. Nothing is resolved or connected before the first request.
    pub fn new(settings: &Settings, dialing: &DialSettings) -> Self {
        let connector = Connector::new(settings, dialing);
        let Settings { keepalive, keepalive_max, .. } = *settings;
        let pool = Arc::new(Pool::new(keepalive, keepalive_max, dialing.clock.clone()));
        Self { connector, pool }
    }

    /// A connection for one exchange: an idle one that is still open, or a new one.
    ///
    /// Every error proves that nothing was sent. Dropping the future closes a connection that is
    /// being made.
    pub async fn connect(&self) -> Result<Connection, Reason> {
        if let Some(idle) = self.pool.take() {
            return Ok(Connection::reused(idle, Arc::clone(&self.pool)));
        }
        let new = self.connector.connect(&self.pool).await?;
        Ok(Connection::fresh(new, Arc::clone(&self.pool)))
    }

    /// Closes connections that have been idle for too long.
    pub fn close_idle(&self) {
        self.pool.close_idle();
    }
}
