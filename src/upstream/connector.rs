//! Makes connections: name, TCP, TLS. Whatever fails here, nothing was sent.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use rustls::{ClientConfig, RootCertStore};
use rustls_pki_types::ServerName;
use tokio::net::{TcpStream, lookup_host};
use tokio::time::timeout;
use tokio_rustls::TlsConnector;

use super::pool::Wire;
use super::settings::{Scheme, Settings};
use super::socket::{Counted, Socket, Stream, Written};
use crate::operation::Reason;

/// The longest head of an answer; what is longer is not an answer. It bounds what a connection
/// holds in memory, too.
const HEAD_BYTES_MAX: usize = 64 * 1024;

/// The certificates that upstreams are checked against.
#[derive(Debug, Clone)]
pub struct TrustStore(Arc<ClientConfig>);

impl TrustStore {
    /// The machine's own certificates; those of the web where it has none, as in a bare container.
    pub fn of_this_machine() -> Self {
        let mut roots = RootCertStore::empty();
        roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        if roots.is_empty() {
            roots.extend(webpki_roots::TLS_SERVER_ROOTS.iter().cloned());
        }
        Self::of(roots)
    }

    /// How connections are made that are not to an upstream but trust the same certificates.
    pub fn client_config(&self) -> ClientConfig {
        ClientConfig::clone(&self.0)
    }

    /// These certificates alone.
    pub fn of(roots: RootCertStore) -> Self {
        let mut config =
            ClientConfig::builder().with_root_certificates(roots).with_no_client_auth();
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        Self(Arc::new(config))
    }
}

/// Makes connections to one upstream.
#[derive(Debug)]
pub(super) struct Connector {
    host: String,
    port: u16,
    timeout: Duration,
    tls: Option<Arc<ClientConfig>>,
}

impl Connector {
    pub(super) fn new(settings: &Settings, trust: &TrustStore) -> Self {
        let authority = &settings.target.authority;
        let host = authority.host().trim_start_matches('[').trim_end_matches(']').to_owned();
        let port = authority.port_u16().unwrap_or(settings.target.scheme.default_port());
        let tls = match settings.target.scheme {
            Scheme::Http => None,
            Scheme::Https => Some(Arc::clone(&trust.0)),
        };
        Self { host, port, timeout: settings.connect_timeout, tls }
    }

    /// A new connection, within `connect_timeout` from name to handshake.
    pub(super) async fn connect(&self) -> Result<Wire, Reason> {
        timeout(self.timeout, self.dial()).await.unwrap_or(Err(Reason::ConnectTimedOut))
    }

    async fn dial(&self) -> Result<Wire, Reason> {
        let named = lookup_host((self.host.as_str(), self.port)).await;
        let addresses: Vec<_> = named.map_err(|_| Reason::NameNotFound)?.collect();
        let tcp = TcpStream::connect(&*addresses).await.map_err(|_| Reason::ConnectFailed)?;
        tcp.set_nodelay(true).map_err(|_| Reason::ConnectFailed)?;
        let socket = Socket::new(tcp);
        let stream = match &self.tls {
            None => Stream::Plain(socket.clone()),
            Some(config) => {
                let tls = self.shake_hands(Arc::clone(config), socket.clone()).await;
                Stream::Tls(Box::new(tls.map_err(|_| Reason::TlsFailed)?))
            }
        };
        let written = Written::default();
        let counted = TokioIo::new(Counted { stream, written: written.clone() });
        let handshake = http1::Builder::new()
            .max_header_size(HEAD_BYTES_MAX)
            .max_buf_size(HEAD_BYTES_MAX)
            .handshake(counted)
            .await;
        let (sender, connection) = handshake.map_err(|_| Reason::ConnectFailed)?;
        Ok(Wire { sender, connection: Box::pin(connection), socket, written })
    }

    async fn shake_hands(
        &self,
        config: Arc<ClientConfig>,
        socket: Socket,
    ) -> io::Result<tokio_rustls::client::TlsStream<Socket>> {
        let name = ServerName::try_from(self.host.clone()).map_err(io::Error::other)?;
        TlsConnector::from(config).connect(name, socket).await
    }
}
