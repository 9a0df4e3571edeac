//! Makes connections: name, TCP, TLS. Whatever fails here, nothing was sent.

use std::sync::Arc;
use std::time::Duration;

use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use tokio::time::timeout;

use super::Dialing;
use super::names::Names;
use super::pool::{Pool, Wire};
use super::race;
use super::settings::{AnswerHead, Scheme, Settings};
use super::socket::Socket;
use super::trust::TrustStore;
use super::witness::{Stream, Witnessed};
use crate::operation::Reason;

/// hyper takes no smaller buffer.
const BUFFER_BYTES_MIN: usize = 8 * 1024;

/// Makes connections to one upstream.
#[derive(Debug)]
pub(super) struct Connector {
    host: String,
    port: u16,
    timeout: Duration,
    tls: Option<TrustStore>,
    names: Arc<dyn Names>,
    answer_head: AnswerHead,
}

impl Connector {
    pub(super) fn new(settings: &Settings, dialing: &Dialing) -> Self {
        let authority = &settings.target.authority;
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
            names: Arc::clone(&dialing.names),
            answer_head: dialing.answer_head,
        }
    }

    /// A new connection, within `connect_timeout` from name to handshake.
    pub(super) async fn connect(&self, pool: &Pool) -> Result<Wire, Reason> {
        timeout(self.timeout, self.dial(pool)).await.unwrap_or(Err(Reason::ConnectTimedOut))
    }

    async fn dial(&self, pool: &Pool) -> Result<Wire, Reason> {
        let named = self.names.addresses(&self.host, self.port).await;
        let addresses = named.map_err(|_| Reason::NameNotFound)?;
        let tcp = race::connect(&addresses).await.map_err(|_| Reason::ConnectFailed)?;
        tcp.set_nodelay(true).map_err(|_| Reason::ConnectFailed)?;
        let address = tcp.peer_addr().map_err(|_| Reason::ConnectFailed)?;
        let socket = Socket::new(tcp);
        let stream = match &self.tls {
            None => Witnessed::new(Stream::Plain(socket.clone()), false),
            Some(trust) => {
                let shaken = trust.shake_hands(&self.host, socket.clone()).await;
                shaken.map_err(|_| Reason::TlsFailed)?
            }
        };
        let witness = stream.witness();
        let AnswerHead { bytes_max, lines_max } = self.answer_head;
        let handshake = http1::Builder::new()
            .max_header_size(bytes_max)
            .max_headers(lines_max)
            .max_buf_size(bytes_max.max(BUFFER_BYTES_MIN))
            .handshake(TokioIo::new(stream))
            .await;
        let (sender, connection) = handshake.map_err(|_| Reason::ConnectFailed)?;
        Ok(Wire {
            sender,
            connection: Box::pin(connection),
            socket,
            witness,
            standing: pool.standing(address),
            made: pool.now(),
            idle_max: pool.keepalive(),
        })
    }
}
