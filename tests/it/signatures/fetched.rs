//! A certificate that a running process fetches from a real server over TLS.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use rustls::ServerConfig;
use rustls_pki_types::pem::PemObject as _;
use rustls_pki_types::{CertificateDer, PrivateKeyDer};
use tempfile::TempDir;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;

use super::certificates::Signed as Messages;
use crate::support::{Authority, Onceward, Receiver};

const HOST: &str = "sns.us-east-2.amazonaws.com";

/// Stands in for the sender's host, as long as the test runs.
struct Host {
    address: SocketAddr,
    served: Arc<AtomicUsize>,
    task: tokio::task::JoinHandle<()>,
}

impl Drop for Host {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Host {
    /// Answers every request with this.
    async fn that_serves(authority: &Authority, body: String) -> Self {
        let files = authority.signs(HOST);
        let chain = vec![CertificateDer::from_pem_file(&files.certificate).unwrap()];
        let key = PrivateKeyDer::from_pem_file(&files.key).unwrap();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(chain, key)
            .unwrap();
        let acceptor = TlsAcceptor::from(Arc::new(config));
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let served = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&served);
        let task = tokio::spawn(async move {
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                // Who does not trust us hangs up.
                let Ok(mut stream) = acceptor.accept(stream).await else { continue };
                let mut head = Vec::new();
                while !head.ends_with(b"\r\n\r\n") {
                    head.push(stream.read_u8().await.unwrap());
                }
                count.fetch_add(1, Ordering::SeqCst);
                let answer = format!("HTTP/1.1 200 OK\r\nconnection: close\r\n\r\n{body}");
                stream.write_all(answer.as_bytes()).await.unwrap();
                let _ = stream.shutdown().await;
            }
        });
        Self { address, served, task }
    }
}

/// The library that leads the sender's names to this machine.
fn names(directory: &TempDir) -> PathBuf {
    let library = directory.path().join("names.so");
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/support/names.c");
    let mut cc = Command::new("cc");
    cc.args(["-shared", "-fPIC", "-O2", "-o"]).arg(&library).arg(source);
    assert!(cc.status().expect("a C compiler is installed").success());
    library
}

/// The machine's own store of authorities counts, beside that of the web.
#[tokio::test]
async fn a_certificate_is_fetched_from_a_host_that_the_machine_trusts() {
    let messages = Messages::sns();
    let receiver = Receiver::that_answers(200, "ok").await;
    let authority = Authority::new();
    let stranger = Authority::new();
    let directory = TempDir::new().unwrap();
    let library = names(&directory);
    let host = Host::that_serves(&authority, messages.certificate_pem.clone()).await;
    let port = host.address.port().to_string();
    let start = async |trusted: &Authority| {
        Onceward::in_front_of(&receiver)
            .variable("THE_SECRET", &messages.secret)
            .variable("LD_PRELOAD", &library.display().to_string())
            .variable("TEST_HTTPS_PORT", &port)
            .variable("SSL_CERT_FILE", &trusted.file().display().to_string())
            .routes(&format!("{}tolerance = \"3650d\"\n", super::hooks("sns")))
            .start()
            .await
    };
    let message = |id: &str| messages.to_subscription(id, "arn:s1");
    let onceward = start(&authority).await;
    onceward.sends(message("notification-v2")).await.is_executed(200);
    onceward.sends(message("notification-v1")).await.is_replayed(200);
    let forged = message("notification-v2").rewritten(|body| body["Message"] = "forged".into());
    onceward.sends(forged).await.is_refused(401, "signature-invalid");
    assert_eq!(host.served.load(Ordering::SeqCst), 1);
    // Nobody vouches for the host: its certificate is not taken.
    let onceward = start(&stranger).await;
    let undecided = onceward.sends(message("notification-v2")).await;
    undecided.is_refused(503, "signature-undecided").comes_back();
    assert_eq!(host.served.load(Ordering::SeqCst), 1);
    receiver.was_called(1);
}
