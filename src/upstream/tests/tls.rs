//! Tests of what is known about a stream above TLS.

use std::pin::Pin;
use std::task::{Context, Poll};

use rustls::server::WebPkiClientVerifier;
use rustls::version::{TLS12, TLS13};
use rustls::{AlertDescription, ProtocolVersion, RootCertStore, ServerConfig};
use rustls_pki_types::{CertificateDer, PrivateKeyDer};
use tokio::io::{AsyncRead, AsyncWrite, DuplexStream, ReadBuf, duplex, join, sink};

use super::super::observed::{ObservedStream, Transport};
use super::super::socket::{CountingSocket, Socket};
use super::*;

/// A socket that takes a number of further bytes, one write at a time, and is closed after them.
#[derive(Debug)]
struct Closing {
    stream: DuplexStream,
    takes: Arc<Mutex<Option<usize>>>,
}

impl AsyncRead for Closing {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(cx, buf)
    }
}

impl AsyncWrite for Closing {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let takes = self.takes.lock().unwrap().as_mut().map(std::mem::take);
        match takes {
            None => Pin::new(&mut self.stream).poll_write(cx, bytes),
            Some(0) => Poll::Ready(Err(io::ErrorKind::BrokenPipe.into())),
            Some(takes) => Poll::Ready(Ok(takes.min(bytes.len()))),
        }
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}

/// A certificate for `localhost`, and its key.
struct Made {
    certificate: CertificateDer<'static>,
    key: PrivateKeyDer<'static>,
}

fn made() -> Made {
    let _there_is_one = rustls::crypto::ring::default_provider().install_default();
    let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let key = PrivateKeyDer::try_from(made.signing_key.serialize_der()).unwrap();
    Made { certificate: made.cert.der().clone(), key }
}

fn trusting(certificate: &CertificateDer<'static>) -> RootCertStore {
    let mut roots = RootCertStore::empty();
    roots.add(certificate.clone()).unwrap();
    roots
}

/// Shakes hands with a server, over a socket that is closed after `takes` further bytes.
async fn shaken_over_one_that_takes(takes: usize) -> ObservedStream<Closing> {
    let Made { certificate, key } = made();
    let client = rustls::ClientConfig::builder()
        .with_root_certificates(trusting(&certificate))
        .with_no_client_auth();
    let server = ServerConfig::builder()
        .with_no_client_auth()
        .with_single_cert(vec![certificate], key)
        .unwrap();
    let (here, there) = duplex(1 << 16);
    let limit = Arc::new(Mutex::new(None));
    let socket = Closing { stream: here, takes: Arc::clone(&limit) };
    let acceptor = tokio_rustls::TlsAcceptor::from(Arc::new(server));
    let connector = tokio_rustls::TlsConnector::from(Arc::new(client));
    let name = "localhost".try_into().unwrap();
    let both =
        tokio::join!(acceptor.accept(there), connector.connect(name, CountingSocket::new(socket)));
    *limit.lock().unwrap() = Some(takes);
    // The server's side is no longer needed.
    ObservedStream::new(Transport::Tls(Box::new(both.1.unwrap())), false)
}

/// A record that was sent may have been read, even if the write that it was part of failed.
#[tokio::test]
async fn what_tls_sent_of_a_write_that_failed_counts_as_written() {
    for (takes, written) in [(0, false), (1, true), (1000, true), (17_000, true)] {
        let mut stream = shaken_over_one_that_takes(takes).await;
        let observations = stream.observations();
        stream.write_all(&vec![b'x'; 40_000]).await.unwrap();
        assert!(observations.write_failed(), "{takes}");
        assert_eq!(observations.bytes_written() > 0, written, "{takes}");
    }
}

/// If an answer ends with its connection, its end and its loss would look the same.
#[tokio::test]
async fn an_end_behind_a_write_that_failed_is_a_reset() {
    let (here, there) = duplex(1024);
    drop(there);
    let socket = Closing { stream: here, takes: Arc::new(Mutex::new(Some(0))) };
    let mut stream = ObservedStream::new(Transport::Plain(socket), false);
    assert_eq!(stream.read(&mut [0; 8]).await.unwrap(), 0);
    stream.write_all(b"request").await.unwrap();
    assert_eq!(stream.observations().bytes_written(), 0);
    let ended = stream.read(&mut [0; 8]).await.unwrap_err();
    assert_eq!(ended.kind(), io::ErrorKind::ConnectionReset);
}

/// With TLS 1.2 the server has looked at the certificate before the handshake ended (RFC 5246,
/// section 7.3): an alert that comes later says nothing about the certificate.
#[tokio::test]
async fn only_a_server_with_tls_1_3_that_asked_for_a_certificate_may_still_refuse_it() {
    for (version, asks) in [(&TLS13, true), (&TLS13, false), (&TLS12, true), (&TLS12, false)] {
        let Made { certificate, key } = made();
        let trusted = trusting(&certificate);
        let asked = WebPkiClientVerifier::builder(Arc::new(trusted.clone()));
        let server = ServerConfig::builder_with_protocol_versions(&[version]);
        let server = if asks {
            server.with_client_cert_verifier(asked.allow_unauthenticated().build().unwrap())
        } else {
            server.with_no_client_auth()
        };
        let server = server.with_single_cert(vec![certificate], key).unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let here = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
        let there = listener.accept().await.unwrap().0;
        let trust = TrustStore::of(trusted);
        let shaken = tokio::join!(
            tokio_rustls::TlsAcceptor::from(Arc::new(server)).accept(there),
            trust.shake_hands("localhost", Socket::new(here)),
        );
        let may_refuse = shaken.1.unwrap().may_refuse_certificate();
        assert_eq!(may_refuse, asks && version.version == ProtocolVersion::TLSv1_3, "{version:?}");
    }
}

/// A stream that reads these bytes and then an alert.
#[derive(Debug)]
struct Alerts {
    before: &'static [u8],
    alert: AlertDescription,
}

impl AsyncRead for Alerts {
    fn poll_read(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if self.before.is_empty() {
            let received = rustls::Error::AlertReceived(self.alert);
            return Poll::Ready(Err(io::Error::new(io::ErrorKind::InvalidData, received)));
        }
        buf.put_slice(std::mem::take(&mut self.before));
        Poll::Ready(Ok(()))
    }
}

async fn refuses(alert: AlertDescription, asked: bool, before: &'static [u8]) -> bool {
    let socket = join(Alerts { before, alert }, sink());
    let mut stream = ObservedStream::new(Transport::Plain(socket), asked);
    stream.read_to_end(&mut Vec::new()).await.unwrap_err();
    stream.observations().certificate_refused()
}

/// RFC 8446, 6.2.
#[tokio::test]
async fn only_an_alert_about_a_certificate_that_was_asked_for_proves_that_nothing_was_taken() {
    for alert in [
        AlertDescription::CertificateRequired,
        AlertDescription::BadCertificate,
        AlertDescription::UnsupportedCertificate,
        AlertDescription::CertificateRevoked,
        AlertDescription::CertificateExpired,
        AlertDescription::CertificateUnknown,
        AlertDescription::UnknownCA,
        AlertDescription::AccessDenied,
    ] {
        assert!(refuses(alert, true, b"").await, "{alert:?}");
        assert!(!refuses(alert, false, b"").await, "{alert:?}: nobody asked");
        assert!(!refuses(alert, true, b"HTTP/1.1 200").await, "{alert:?}: data came before");
    }
    for alert in [
        AlertDescription::CloseNotify,
        AlertDescription::InternalError,
        AlertDescription::DecryptError,
        AlertDescription::HandshakeFailure,
        AlertDescription::UserCanceled,
    ] {
        assert!(!refuses(alert, true, b"").await, "{alert:?}");
    }
}
