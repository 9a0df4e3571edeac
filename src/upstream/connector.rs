//! Makes connections: resolves, connects, shakes hands. If one of these fails, nothing was sent.

use std::sync::Arc;
use std::time::Duration;

use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use tokio::time::timeout;

use super::observed::{ObservedStream, Transport};
use super::pool::{HttpConnection, Pool};
use super::race;
use super::resolver::Resolver;
use super::settings::{AnswerHeadLimits, DialSettings, Scheme, Settings};
use super::socket::Socket;
use super::trust::TrustStore;
use crate::operation::Reason;

/// The smallest read buffer that hyper's `max_buf_size` accepts. It panics if the buffer is
/// smaller.
const BUFFER_BYTES_MIN: usize = 8 * 1024;

/// Makes connections to one upstream.
#[derive(Debug)]
pub(super) struct Connector {
    host: String,
    port: u16,
    timeout: Duration,
    tls: Option<TrustStore>,
    resolver: Arc<dyn Resolver>,
    answer_head: AnswerHeadLimits,
}

impl Connector {
    pub(super) fn new(settings: &Settings, dialing: &DialSettings) -> Self {
        let authority = &settings.target.authority;
        // A URL has an IPv6 address in brackets (RFC 3986, 3.2.2). The resolver and TLS take the
        // address without them.
        let host = authority.host().trim_start_matches('[').trim_end_matches(']').to_owned();
        let port = authority.port_u16().unwrap_or(settings.target.scheme.default_port());
        let tls = match settings.target.scheme {
            Scheme::Http => None,
            Scheme::Https => Some(dialing.trust.clone()),
        };
        Self {
            host,
            port,
            timeout: settings.connect_timeout,
            tls,
            resolver: Arc::clone(&dialing.resolver),
            answer_head: dialing.answer_head,
        }
    }

    /// Makes a connection. `connect_timeout` bounds everything from resolving to the handshake.
    pub(super) async fn connect(&self, pool: &Pool) -> Result<HttpConnection, Reason> {
        timeout(self.timeout, self.dial(pool)).await.unwrap_or(Err(Reason::ConnectTimedOut))
    }

    async fn dial(&self, pool: &Pool) -> Result<HttpConnection, Reason> {
        let resolved = self.resolver.addresses(&self.host, self.port).await;
        let addresses = resolved.map_err(|_| Reason::NameNotFound)?;
        let tcp = race::connect(&addresses).await.map_err(|_| Reason::ConnectFailed)?;
        // Nagle's algorithm would hold the end of a request back until the server acknowledges its
        // beginning, and servers delay acknowledgements by tens of milliseconds.
        tcp.set_nodelay(true).map_err(|_| Reason::ConnectFailed)?;
        let address = tcp.peer_addr().map_err(|_| Reason::ConnectFailed)?;
        let stream = Socket::new(tcp);
        let socket = stream.shared();
        let stream = match &self.tls {
            None => ObservedStream::new(Transport::Plain(stream), false),
            Some(trust) => {
                let stream = trust.shake_hands(&self.host, stream).await;
                stream.map_err(|_| Reason::TlsFailed)?
            }
        };
        let observations = stream.observations();
        let AnswerHeadLimits { bytes_max, lines_max } = self.answer_head;
        // HTTP/1.1 has no handshake. hyper's `handshake` only sets the connection up and sends no
        // byte.
        let handshake = http1::Builder::new()
            .max_header_size(bytes_max)
            .max_headers(lines_max)
            .max_buf_size(bytes_max.max(BUFFER_BYTES_MIN))
            .handshake(TokioIo::new(stream))
            .await;
        let (sender, driver) = handshake.map_err(|_| Reason::ConnectFailed)?;
        Ok(HttpConnection {
            sender,
            driver: Box::pin(driver),
            socket,
            observations,
            reuse: pool.reuse_of(address),
            created_at: pool.now(),
            idle_max: pool.keepalive(),
        })
    }
}
