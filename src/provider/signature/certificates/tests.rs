//! Certificates from a real TLS server that stands in for the sender's hosts.

use std::net::SocketAddr;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
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
use super::{AGAIN_AFTER, CertificateError, Certificates, FRESH_FOR, PAYPAL, SNS, Shared};
use crate::clock::Clock;
use crate::operation::Timestamp;

const HOST: &str = "api.paypal.com";
const URL: &[u8] = b"https://api.paypal.com/v1/notifications/certs/CERT-1";
const SNS_HOST: &str = "sns.us-east-1.amazonaws.com";
const SNS_URL: &[u8] = b"https://sns.us-east-1.amazonaws.com/SimpleNotificationService-1.pem";
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
}

impl Authority {
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

/// Answers every request with one answer, when it is let.
struct Server {
    address: SocketAddr,
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
        let (chain, key) = authority.issue(&[HOST, SNS_HOST], 2020..2040);
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
        let count = Arc::clone(&served);
        let gate = Arc::clone(&let_through);
        let task = tokio::spawn(async move {
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                let acceptor = acceptor.clone();
                let answer = answer.clone();
                let count = Arc::clone(&count);
                let gate = Arc::clone(&gate);
                tokio::spawn(async move {
                    let mut stream = acceptor.accept(stream).await.unwrap();
                    let mut head = Vec::new();
                    while !head.ends_with(b"\r\n\r\n") {
                        head.push(stream.read_u8().await.unwrap());
                    }
                    count.fetch_add(1, Ordering::SeqCst);
                    gate.acquire().await.unwrap().forget();
                    // Who asked may be gone.
                    let _ = stream.write_all(answer.as_bytes()).await;
                    let _ = stream.shutdown().await;
                });
            }
        });
        Self { address, served, let_through, task }
    }

    fn served(&self) -> usize {
        self.served.load(Ordering::SeqCst)
    }

    /// Certificates that take this server for the sender's hosts.
    fn certificates(&self, authority: &Authority, clock: Clock) -> Certificates {
        let anchor = webpki::anchor_from_trusted_cert(&authority.der).unwrap().to_owned();
        let fetcher = Fetcher::trusting(vec![anchor], |builder| {
            builder.resolve(HOST, self.address).resolve(SNS_HOST, self.address)
        });
        Certificates(Arc::new(Shared::new(clock, fetcher.unwrap())))
    }
}

fn ok(body: &str) -> String {
    format!("HTTP/1.1 200 OK\r\nconnection: close\r\n\r\n{body}")
}

/// What comes of one answer to the request for PayPal's certificate.
async fn outcome(authority: &Authority, answer: String) -> Result<(), CertificateError> {
    let server = Server::start(authority, answer).await;
    let certificates = server.certificates(authority, Clock::manual(NOW));
    certificates.get(&PAYPAL, URL, NOW).await.map(|_| ())
}

/// Waits until the server was asked as often.
async fn asked(server: &Server, times: usize) {
    while server.served() < times {
        tokio::task::yield_now().await;
    }
    assert_eq!(server.served(), times);
}

#[tokio::test]
async fn a_certificate_is_fetched_once_and_again_after_a_day() {
    let authority = Authority::new();
    let (pem, _) = authority.issue(&["messageverificationcerts.paypal.com"], 2020..2040);
    let server = Server::start(&authority, ok(&pem)).await;
    let clock = Clock::manual(NOW);
    let certificates = server.certificates(&authority, clock.clone());
    for _ in 0..3 {
        assert!(certificates.get(&PAYPAL, URL, NOW).await.is_ok());
    }
    assert_eq!(server.served(), 1);
    clock.advance(FRESH_FOR.saturating_sub(Duration::from_millis(1)));
    assert!(certificates.clone().get(&PAYPAL, URL, NOW).await.is_ok());
    assert_eq!(server.served(), 1);
    clock.advance(Duration::from_millis(1));
    assert!(certificates.get(&PAYPAL, URL, NOW).await.is_ok());
    asked(&server, 2).await;
}

/// A host that does not answer costs no event: what is there is used while it is in force.
#[tokio::test]
async fn an_old_certificate_is_used_while_it_is_fetched_again() {
    let authority = Authority::new();
    let (pem, _) = authority.issue(&["a.paypal.com"], 2020..2040);
    let server = Server::start(&authority, ok(&pem)).await;
    let clock = Clock::manual(NOW);
    let certificates = server.certificates(&authority, clock.clone());
    assert!(certificates.get(&PAYPAL, URL, NOW).await.is_ok());
    server.let_through.forget_permits(Semaphore::MAX_PERMITS);
    clock.advance(FRESH_FOR * 30);
    for _ in 0..10 {
        assert!(certificates.get(&PAYPAL, URL, NOW).await.is_ok());
    }
    // One asks again, and after a while another one.
    asked(&server, 2).await;
    clock.advance(AGAIN_AFTER);
    assert!(certificates.get(&PAYPAL, URL, NOW).await.is_ok());
    asked(&server, 3).await;
    // Once it has ended itself, it is not used whatever its host does.
    server.let_through.add_permits(10);
    let end = Timestamp(rcgen::date_time_ymd(2040, 1, 2).unix_timestamp().unsigned_abs() * 1000);
    let ended = certificates.get(&PAYPAL, URL, end).await.map(|_| ());
    assert_eq!(ended, Err(CertificateError::Untrusted("it has expired")));
}

/// Before it ends there is time to find the next one.
#[tokio::test]
async fn a_certificate_is_fetched_again_an_hour_before_it_ends() {
    let authority = Authority::new();
    let (pem, _) = authority.issue(&["a.paypal.com"], 2020..2031);
    let server = Server::start(&authority, ok(&pem)).await;
    let clock = Clock::manual(NOW);
    let certificates = server.certificates(&authority, clock.clone());
    let end = rcgen::date_time_ymd(2031, 1, 1).unix_timestamp().unsigned_abs() * 1000;
    let before = Timestamp(end - 90 * 60 * 1000);
    assert!(certificates.get(&PAYPAL, URL, before).await.is_ok());
    clock.advance(Duration::from_millis(30 * 60 * 1000 - 1));
    assert!(certificates.get(&PAYPAL, URL, before).await.is_ok());
    assert_eq!(server.served(), 1);
    clock.advance(Duration::from_millis(1));
    assert!(certificates.get(&PAYPAL, URL, before).await.is_ok());
    asked(&server, 2).await;
}

/// URLs that somebody makes up wait for each other, and never before one that is known.
#[tokio::test]
async fn made_up_urls_take_no_room_of_those_by_which_messages_were_signed() {
    let authority = Authority::new();
    let (pem, _) = authority.issue(&["sns.amazonaws.com"], 2020..2040);
    let silent = Server::start(&authority, ok(&pem)).await;
    silent.let_through.forget_permits(Semaphore::MAX_PERMITS);
    let genuine = Server::start(&authority, ok(&pem)).await;
    let anchor = webpki::anchor_from_trusted_cert(&authority.der).unwrap().to_owned();
    let fetcher = Fetcher::trusting(vec![anchor], |builder| {
        builder.resolve(HOST, silent.address).resolve(SNS_HOST, genuine.address)
    });
    let certificates = Certificates(Arc::new(Shared::new(Clock::manual(NOW), fetcher.unwrap())));
    let made_up = |number: usize| {
        let certificates = certificates.clone();
        tokio::spawn(async move {
            let url = format!("https://{HOST}/v1/notifications/certs/CERT-{number}");
            certificates.get(&PAYPAL, url.as_bytes(), NOW).await.map(|_| ())
        })
    };
    let all: Vec<_> = (0..200).map(made_up).collect();
    asked(&silent, 4).await;
    certificates.confirm(SNS_URL);
    assert!(certificates.get(&SNS, SNS_URL, NOW).await.is_ok());
    // They do not pile up: most are told at once to come again.
    let told: Vec<_> = futures_util::future::join_all(all).await;
    let too_many = Err(CertificateError::Unreachable("too many others are asked for"));
    let refused = told.into_iter().filter(|told| *told.as_ref().unwrap() == too_many).count();
    assert!(refused >= 150, "{refused}");
}

#[tokio::test]
async fn copies_at_the_same_moment_share_one_fetch() {
    let authority = Authority::new();
    let (pem, _) = authority.issue(&["a.paypal.com"], 2020..2040);
    let server = Server::start(&authority, ok(&pem)).await;
    server.let_through.forget_permits(Semaphore::MAX_PERMITS);
    let certificates = server.certificates(&authority, Clock::manual(NOW));
    let gets = (0..20).map(|_| certificates.get(&PAYPAL, URL, NOW));
    let all = futures_util::future::join_all(gets);
    let release = async {
        while server.served() == 0 {
            tokio::task::yield_now().await;
        }
        server.let_through.add_permits(20);
    };
    let (all, ()) = tokio::join!(all, release);
    assert!(all.iter().all(Result::is_ok));
    assert_eq!(server.served(), 1);
}

#[tokio::test]
async fn a_fetch_that_is_dropped_leaves_nobody_waiting() {
    let authority = Authority::new();
    let (pem, _) = authority.issue(&["a.paypal.com"], 2020..2040);
    let server = Server::start(&authority, ok(&pem)).await;
    server.let_through.forget_permits(Semaphore::MAX_PERMITS);
    let certificates = server.certificates(&authority, Clock::manual(NOW));
    let dropped = {
        let certificates = certificates.clone();
        tokio::spawn(async move { certificates.get(&PAYPAL, URL, NOW).await.map(|_| ()) })
    };
    while server.served() == 0 {
        tokio::task::yield_now().await;
    }
    let waiting = {
        let certificates = certificates.clone();
        tokio::spawn(async move { certificates.get(&PAYPAL, URL, NOW).await.map(|_| ()) })
    };
    dropped.abort();
    assert!(dropped.await.unwrap_err().is_cancelled());
    server.let_through.add_permits(2);
    assert_eq!(waiting.await.unwrap(), Ok(()));
}

#[tokio::test]
async fn only_a_certificate_of_paypals_in_force_is_trusted() {
    let authority = Authority::new();
    let stranger = Authority::named("A stranger");
    let untrusted = |why| Err(CertificateError::Untrusted(why));
    let theirs = "it is not for the sender's name";
    let both = ["a.paypal.com", "evil.test"];
    for (pem, expected) in [
        (authority.issue(&["paypal.com"], 2020..2040).0, Ok(())),
        (authority.issue(&["evil.test"], 2020..2040).0, untrusted(theirs)),
        (authority.issue(&["evilpaypal.com"], 2020..2040).0, untrusted(theirs)),
        (authority.issue(&["a.paypal.com.evil.test"], 2020..2040).0, untrusted(theirs)),
        (authority.issue(&both, 2020..2040).0, untrusted(theirs)),
        (authority.issue(&[], 2020..2040).0, untrusted(theirs)),
        (authority.issue(&["a.paypal.com"], 2015..2017).0, untrusted("it has expired")),
        (authority.issue(&["a.paypal.com"], 2035..2040).0, untrusted("it is not valid yet")),
        // Who signed it is not to be known.
        (stranger.issue(&["a.paypal.com"], 2020..2040).0, Ok(())),
        (stranger.issue(&["a.paypal.com"], 2015..2017).0, untrusted("it has expired")),
        (stranger.chain(&["a.paypal.com"]), untrusted("nobody we trust has signed it")),
        (authority.chain(&["a.paypal.com"]), Ok(())),
    ] {
        assert_eq!(outcome(&authority, ok(&pem)).await, expected);
    }
}

#[tokio::test]
async fn what_is_no_certificate_is_refused() {
    let authority = Authority::new();
    let not = |what| Err(CertificateError::NotACertificate(what));
    let (_, key) = authority.issue(&[], 2020..2040);
    for (answer, expected) in [
        (ok(""), not("no certificate")),
        (ok("<html>"), not("no certificate")),
        (ok(&key), not("no certificate")),
        (ok("-----BEGIN CERTIFICATE-----\n%%\n-----END CERTIFICATE-----\n"), not("not PEM")),
        (
            ok("-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"),
            not("a certificate that cannot be read"),
        ),
        (ok(&"x".repeat(64 * 1024)), not("larger than a certificate")),
    ] {
        assert_eq!(outcome(&authority, answer).await, expected);
    }
}

#[tokio::test]
async fn a_host_without_the_certificate_and_one_that_is_ill_are_told_apart() {
    let authority = Authority::new();
    let answer = |status: &str, more: &str| {
        format!("HTTP/1.1 {status}\r\nconnection: close\r\ncontent-length: 0\r\n{more}\r\n")
    };
    let result = outcome(&authority, answer("404 Not Found", "")).await.unwrap_err();
    assert_eq!(result, CertificateError::Status(404));
    assert!(!result.may_pass());
    for status in ["500 Oops", "503 Service Unavailable", "429 Too Many Requests"] {
        let result = outcome(&authority, answer(status, "")).await.unwrap_err();
        assert!(result.may_pass(), "{status}");
    }
    let elsewhere = "location: https://evil.test/\r\n";
    let result = outcome(&authority, answer("302 Found", elsewhere)).await;
    assert_eq!(result, Err(CertificateError::Status(302)));
}

#[tokio::test]
async fn a_failure_is_not_kept() {
    let authority = Authority::new();
    let server = Server::start(&authority, ok("<html>")).await;
    let certificates = server.certificates(&authority, Clock::manual(NOW));
    for expected in 1..=3 {
        assert!(certificates.get(&PAYPAL, URL, NOW).await.is_err());
        assert_eq!(server.served(), expected);
    }
}

#[tokio::test]
async fn a_server_that_cannot_prove_its_name_is_not_believed() {
    let authority = Authority::new();
    let (pem, _) = authority.issue(&["a.paypal.com"], 2020..2040);
    let server = Server::start(&Authority::new(), ok(&pem)).await;
    let certificates = server.certificates(&authority, Clock::manual(NOW));
    let result = certificates.get(&PAYPAL, URL, NOW).await.map(|_| ());
    assert_eq!(result, Err(CertificateError::Unreachable("no connection")));
}

#[tokio::test]
async fn sns_sends_its_certificate_without_a_chain() {
    let authority = Authority::new();
    let (pem, _) = Authority::new().issue(&["sns.amazonaws.com"], 2020..2040);
    let server = Server::start(&authority, ok(&pem)).await;
    let certificates = server.certificates(&authority, Clock::manual(NOW));
    assert!(certificates.get(&SNS, SNS_URL, NOW).await.is_ok());
    // What is good enough for one sender is not for another.
    let result = certificates.get(&PAYPAL, SNS_URL, NOW).await.map(|_| ());
    assert_eq!(result, Err(CertificateError::Url("PayPal")));
}

#[tokio::test]
async fn a_certificate_of_sns_is_in_force() {
    let authority = Authority::new();
    for (years, why) in [(2015..2017, "it has expired"), (2035..2040, "it is not valid yet")] {
        let (pem, _) = authority.issue(&["sns.amazonaws.com"], years);
        let server = Server::start(&authority, ok(&pem)).await;
        let certificates = server.certificates(&authority, Clock::manual(NOW));
        let result = certificates.get(&SNS, SNS_URL, NOW).await.map(|_| ());
        assert_eq!(result, Err(CertificateError::Untrusted(why)));
    }
}

#[tokio::test(start_paused = true)]
async fn a_host_that_does_not_answer_is_not_waited_for() {
    let authority = Authority::new();
    let server = Server::start(&authority, ok("")).await;
    server.let_through.forget_permits(Semaphore::MAX_PERMITS);
    let certificates = server.certificates(&authority, Clock::manual(NOW));
    let started = tokio::time::Instant::now();
    let result = certificates.get(&PAYPAL, URL, NOW).await.map(|_| ());
    assert_eq!(result, Err(CertificateError::Unreachable("it took too long")));
    assert!(started.elapsed() <= super::DEADLINE + Duration::from_millis(100));
}
