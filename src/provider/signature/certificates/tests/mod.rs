//! Certificates from a real TLS server that stands in for the sender's hosts.

mod keys;
mod kept;
mod trusted;

use std::net::SocketAddr;
use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair};
use rustls::ServerConfig;
use rustls::crypto::ring;
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, PrivateKeyDer};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::sync::Semaphore;
use tokio_rustls::TlsAcceptor;

use super::fetch::Fetcher;
use super::{
    AGAIN_AFTER, CertificateError, Certificates, CertificatesInner, DEADLINE, FRESH_FOR, PAYPAL,
    SNS,
};
use crate::clock::Clock;
use crate::operation::Timestamp;

const HOST: &str = "api.paypal.com";
const URL: &[u8] = b"https://api.paypal.com/v1/notifications/certs/CERT-1";
const SNS_HOST: &str = "sns.us-east-1.amazonaws.com";
const SNS_URL: &[u8] = b"https://sns.us-east-1.amazonaws.com/SimpleNotificationService-1.pem";
const KEYS_HOST: &str = "production.plaid.com";
/// How long a test waits for what is about to happen.
const PATIENCE: Duration = Duration::from_mins(1);
/// 2030: within the lives of all certificates here that are to be valid.
const NOW: Timestamp = Timestamp(1_893_456_000_000);

/// An authority that is trusted for the connection and for what comes over it.
struct Authority {
    issuer: Issuer<'static, KeyPair>,
    der: CertificateDer<'static>,
}

impl Authority {
    fn new() -> Self {
        Self::named("An authority")
    }

    fn named(name: &str) -> Self {
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.distinguished_name.push(DnType::CommonName, name);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().unwrap();
        let der = params.self_signed(&key).unwrap().der().clone();
        Self { issuer: Issuer::new(params, key), der }
    }

    /// A certificate from one January to another, and its key, in PEM.
    fn issue(&self, names: &[&str], years: Range<i32>) -> (String, String) {
        let names: Vec<_> = names.iter().map(|name| (*name).to_owned()).collect();
        let mut params = CertificateParams::new(names).unwrap();
        params.not_before = rcgen::date_time_ymd(years.start, 1, 1);
        params.not_after = rcgen::date_time_ymd(years.end, 1, 1);
        let key = KeyPair::generate().unwrap();
        let certificate = params.signed_by(&key, &self.issuer).unwrap();
        (certificate.pem(), key.serialize_pem())
    }

    /// A certificate of an authority in between, and that one's own.
    fn chain(&self, names: &[&str]) -> String {
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.distinguished_name.push(DnType::CommonName, "In between");
        let key = KeyPair::generate().unwrap();
        let certificate = params.signed_by(&key, &self.issuer).unwrap();
        let between = Self { issuer: Issuer::new(params, key), der: certificate.der().clone() };
        between.issue(names, 2020..2040).0 + &certificate.pem()
    }
}

/// Answers requests with one answer at a time, when it is let.
struct Server {
    address: SocketAddr,
    answer: Arc<Mutex<String>>,
    served: Arc<AtomicUsize>,
    let_through: Arc<Semaphore>,
    task: tokio::task::JoinHandle<()>,
}

impl Drop for Server {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Server {
    async fn start(authority: &Authority, answer: String) -> Self {
        let (chain, key) = authority.issue(&[HOST, SNS_HOST, KEYS_HOST], 2020..2040);
        let chain = vec![CertificateDer::from_pem_slice(chain.as_bytes()).unwrap()];
        let key = PrivateKeyDer::from_pem_slice(key.as_bytes()).unwrap();
        let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(chain, key)
            .unwrap();
        let acceptor = TlsAcceptor::from(Arc::new(config));
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let served = Arc::new(AtomicUsize::new(0));
        let let_through = Arc::new(Semaphore::new(Semaphore::MAX_PERMITS));
        let answer = Arc::new(Mutex::new(answer));
        let count = Arc::clone(&served);
        let now = Arc::clone(&answer);
        let gate = Arc::clone(&let_through);
        let task = tokio::spawn(async move {
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                let acceptor = acceptor.clone();
                let now = Arc::clone(&now);
                let count = Arc::clone(&count);
                let gate = Arc::clone(&gate);
                tokio::spawn(async move {
                    let mut stream = acceptor.accept(stream).await.unwrap();
                    let mut head = Vec::new();
                    while !head.ends_with(b"\r\n\r\n") {
                        head.push(stream.read_u8().await.unwrap());
                    }
                    stream.read_exact(&mut vec![0; body_length(&head)]).await.unwrap();
                    count.fetch_add(1, Ordering::SeqCst);
                    gate.acquire().await.unwrap().forget();
                    let answer = now.lock().unwrap().clone();
                    // Who asked may be gone.
                    let _ = stream.write_all(answer.as_bytes()).await;
                    let _ = stream.shutdown().await;
                });
            }
        });
        Self { address, answer, served, let_through, task }
    }

    fn now_answers(&self, answer: String) {
        *self.answer.lock().unwrap() = answer;
    }

    fn served(&self) -> usize {
        self.served.load(Ordering::SeqCst)
    }

    /// Certificates that take this server for the sender's hosts.
    fn certificates(&self, authority: &Authority, clock: Clock) -> Certificates {
        let anchor = webpki::anchor_from_trusted_cert(&authority.der).unwrap().to_owned();
        let fetcher = Fetcher::trusting(vec![anchor], |builder| {
            let builder = builder.resolve(HOST, self.address);
            builder.resolve(SNS_HOST, self.address).resolve(KEYS_HOST, self.address)
        });
        Certificates(Arc::new(CertificatesInner::new(clock, fetcher.unwrap())))
    }
}

fn ok(body: &str) -> String {
    format!("HTTP/1.1 200 OK\r\nconnection: close\r\n\r\n{body}")
}

/// The result of one answer to the request for PayPal's certificate.
async fn outcome(authority: &Authority, answer: String) -> Result<(), CertificateError> {
    let server = Server::start(authority, answer).await;
    let certificates = server.certificates(authority, Clock::manual(NOW));
    certificates.get(&PAYPAL, URL, NOW).await.map(|_| ())
}

fn not_found() -> String {
    "HTTP/1.1 404 Not Found\r\nconnection: close\r\ncontent-length: 0\r\n\r\n".to_owned()
}

/// The length of the body that a request announces.
fn body_length(head: &[u8]) -> usize {
    let head = String::from_utf8_lossy(head).to_ascii_lowercase();
    let length = head.split("content-length: ").nth(1).and_then(|rest| rest.split("\r\n").next());
    length.map_or(0, |length| length.parse().unwrap())
}

/// Waits until the server was asked as often.
async fn asked(server: &Server, times: usize) {
    let reached = async {
        while server.served() < times {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(PATIENCE, reached).await.expect("it is asked");
    assert_eq!(server.served(), times);
}
