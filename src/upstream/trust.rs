//! TLS to an upstream: whom it is checked against, and whether it asked who we are.

use std::cell::Cell;
use std::io;
use std::sync::Arc;

use rustls::client::ResolvesClientCert;
use rustls::sign::CertifiedKey;
use rustls::{ClientConfig, ProtocolVersion, RootCertStore, SignatureScheme};
use rustls_pki_types::ServerName;
use tokio_rustls::TlsConnector;

use super::socket::{Raw, Socket};
use super::witness::{Stream, Witnessed};

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
        let mut config = ClientConfig::builder()
            .with_root_certificates(roots)
            .with_client_cert_resolver(Arc::new(NoCertificate));
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        Self(Arc::new(config))
    }

    /// Shakes hands over a new connection.
    pub(super) async fn shake_hands(&self, host: &str, socket: Socket) -> io::Result<Witnessed> {
        let name = ServerName::try_from(host.to_owned()).map_err(io::Error::other)?;
        let connector = TlsConnector::from(Arc::clone(&self.0));
        let shaking = async {
            let tls = connector.connect(name, Raw::new(socket)).await?;
            Ok::<_, io::Error>((tls, ASKED.with(Cell::get)))
        };
        let (tls, asked) = ASKED.scope(Cell::new(false), shaking).await?;
        let latest = tls.get_ref().1.protocol_version() == Some(ProtocolVersion::TLSv1_3);
        Ok(Witnessed::new(Stream::Tls(Box::new(tls)), asked && latest))
    }
}

tokio::task_local! {
    /// Whether the server that a task shakes hands with asked for a certificate. A resolver for
    /// each connection could keep it as well, but rustls resumes no session under another one.
    static ASKED: Cell<bool>;
}

/// Has no certificate, and notes that one was asked for.
#[derive(Debug)]
struct NoCertificate;

impl ResolvesClientCert for NoCertificate {
    fn resolve(&self, _: &[&[u8]], _: &[SignatureScheme]) -> Option<Arc<CertifiedKey>> {
        let _not_an_upstream = ASKED.try_with(|asked| asked.set(true));
        None
    }

    fn has_certs(&self) -> bool {
        false
    }
}
