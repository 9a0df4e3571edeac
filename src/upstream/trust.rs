//! TLS to an upstream: checks the server's certificate, and notes whether the server asked for a
//! client certificate.

use std::cell::Cell;
use std::io;
use std::sync::Arc;

use rustls::client::ResolvesClientCert;
use rustls::sign::CertifiedKey;
use rustls::{ClientConfig, ProtocolVersion, RootCertStore, SignatureScheme};
use rustls_pki_types::ServerName;
use tokio_rustls::TlsConnector;

use super::observed::{ObservedStream, Transport};
use super::socket::{CountingSocket, Socket};

/// The root certificates that upstreams are checked against. Clones share the certificates, and the
/// sessions that TLS can resume.
#[derive(Debug, Clone)]
pub struct TrustStore(Arc<ClientConfig>);

impl TrustStore {
    /// The machine's root certificates. If there are none, as in a bare container image, it is
    /// Mozilla's list, which is compiled in.
    pub fn of_this_machine() -> Self {
        let mut roots = RootCertStore::empty();
        // One certificate that does not parse must not take the others away.
        roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        if roots.is_empty() {
            roots.extend(webpki_roots::TLS_SERVER_ROOTS.iter().cloned());
        }
        Self::of(roots)
    }

    /// A configuration with the same roots, for connections that go elsewhere than to an upstream.
    pub fn client_config(&self) -> ClientConfig {
        ClientConfig::clone(&self.0)
    }

    /// A store of these root certificates only.
    pub fn of(roots: RootCertStore) -> Self {
        let mut config = ClientConfig::builder()
            .with_root_certificates(roots)
            .with_client_cert_resolver(Arc::new(NoCertificate));
        // An exchange has its connection to itself, so HTTP/2 would gain nothing. A server that
        // chose HTTP/2 would get the wrong protocol.
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        Self(Arc::new(config))
    }

    /// Shakes hands over a new connection. Fails if the certificate is not trusted, is for another
    /// name, or the handshake breaks off.
    pub(super) async fn shake_hands(
        &self,
        host: &str,
        socket: Socket,
    ) -> io::Result<ObservedStream> {
        let name = ServerName::try_from(host.to_owned()).map_err(io::Error::other)?;
        let connector = TlsConnector::from(Arc::clone(&self.0));
        let handshake = async {
            let tls = connector.connect(name, CountingSocket::new(socket)).await?;
            Ok::<_, io::Error>((tls, CERTIFICATE_REQUESTED.with(Cell::get)))
        };
        let (tls, requested) = CERTIFICATE_REQUESTED.scope(Cell::new(false), handshake).await?;
        // With TLS 1.2 the server has checked the client's certificate before its `Finished` (RFC
        // 5246, 7.3), so a handshake that has succeeded rules a refusal out. Only with TLS 1.3 can
        // a refusal still come.
        let is_tls13 = tls.get_ref().1.protocol_version() == Some(ProtocolVersion::TLSv1_3);
        Ok(ObservedStream::new(Transport::Tls(Box::new(tls)), requested && is_tls13))
    }
}

tokio::task_local! {
    /// Whether the server of the handshake in this task asked for a client certificate.
    ///
    /// A resolver for each connection could keep this note, too. But rustls resumes a session only
    /// under the same resolver, so every connection would need a full handshake.
    static CERTIFICATE_REQUESTED: Cell<bool>;
}

/// Offers no certificate, and notes that the server asked for one.
#[derive(Debug)]
struct NoCertificate;

impl ResolvesClientCert for NoCertificate {
    fn resolve(&self, _: &[&[u8]], _: &[SignatureScheme]) -> Option<Arc<CertifiedKey>> {
        // Connections made with `client_config` run outside the scope, where nobody reads the note.
        let _outside_the_scope = CERTIFICATE_REQUESTED.try_with(|requested| requested.set(true));
        None
    }

    fn has_certs(&self) -> bool {
        false
    }
}
