//! Keys that a running process asks a real server over TLS for, as Plaid's API gives them out.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use futures_util::future::join_all;
use ring::rand::SystemRandom;
use ring::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair as _};
use rustls::ServerConfig;
use rustls_pki_types::pem::PemObject as _;
use rustls_pki_types::{CertificateDer, PrivateKeyDer};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;
use tokio::sync::Semaphore;
use tokio_rustls::TlsAcceptor;

use crate::support::{Authority, Event, Onceward, Receiver, signing};

const SECRET: &str = "5c0client:5ec4e7of5c0client";
/// As many questions for ids of which nobody knows are open at a time.
const QUESTIONS_MAX: u32 = 4;

/// Whoever signs. Its keys are those whose ids begin with `key-`.
struct Signer {
    pair: EcdsaKeyPair,
    random: SystemRandom,
}

impl Signer {
    fn new() -> Self {
        let random = SystemRandom::new();
        let algorithm = &ECDSA_P256_SHA256_FIXED_SIGNING;
        let pkcs8 = EcdsaKeyPair::generate_pkcs8(algorithm, &random).unwrap();
        let pair = EcdsaKeyPair::from_pkcs8(algorithm, pkcs8.as_ref(), &random).unwrap();
        Self { pair, random }
    }

    fn key(&self, id: &str) -> Value {
        let point = self.pair.public_key().as_ref();
        let coordinate = |bytes: &[u8]| URL_SAFE_NO_PAD.encode(bytes);
        json!({ "request_id": "r", "key": {
            "alg": "ES256", "crv": "P-256", "kid": id, "kty": "EC", "use": "sig",
            "x": coordinate(&point[1..33]), "y": coordinate(&point[33..]),
            "created_at": 1, "expired_at": null,
        } })
    }

    /// An event, signed now with the key of this id.
    fn signs(&self, event: &str, id: &str) -> Event {
        let event = Event::json(&json!({
            "webhook_type": "PAYMENT_INITIATION", "webhook_code": "PAYMENT_STATUS_UPDATE",
            "payment_id": event, "new_payment_status": "PAYMENT_STATUS_EXECUTED",
            "timestamp": "2026-11-05T10:00:05.350Z",
        }));
        let header = json!({ "alg": "ES256", "kid": id, "typ": "JWT" });
        let digest = hex::encode(Sha256::digest(&event.body));
        let claims = json!({ "iat": signing::now(), "request_body_sha256": digest });
        let part = |part: Value| URL_SAFE_NO_PAD.encode(part.to_string());
        let signed = format!("{}.{}", part(header), part(claims));
        let signature = self.pair.sign(&self.random, signed.as_bytes()).unwrap();
        let token = format!("{signed}.{}", URL_SAFE_NO_PAD.encode(signature));
        event.header("plaid-verification", &token)
    }
}

/// Stands in for the API, as long as the test runs.
struct Api {
    address: SocketAddr,
    asked: Arc<AtomicUsize>,
    /// One permit for each question that is left without an answer.
    left_open: Arc<Semaphore>,
    task: tokio::task::JoinHandle<()>,
}

impl Drop for Api {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Api {
    async fn of(signer: Arc<Signer>, authority: &Authority) -> Self {
        let files = authority.signs("127.0.0.1");
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
        let asked = Arc::new(AtomicUsize::new(0));
        let left_open = Arc::new(Semaphore::new(0));
        let count = Arc::clone(&asked);
        let open = Arc::clone(&left_open);
        let task = tokio::spawn(async move {
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                let acceptor = acceptor.clone();
                let signer = Arc::clone(&signer);
                let count = Arc::clone(&count);
                let open = Arc::clone(&open);
                tokio::spawn(async move {
                    // Who does not trust us hangs up.
                    let Ok(mut stream) = acceptor.accept(stream).await else { return };
                    let question = question(&mut stream).await;
                    count.fetch_add(1, Ordering::SeqCst);
                    let Some(answer) = answer(&signer, &question) else {
                        open.add_permits(1);
                        std::future::pending::<()>().await;
                        return;
                    };
                    stream.write_all(answer.as_bytes()).await.unwrap();
                    let _ = stream.shutdown().await;
                });
            }
        });
        Self { address, asked, left_open, task }
    }

    fn was_asked(&self, times: usize) {
        assert_eq!(self.asked.load(Ordering::SeqCst), times);
    }

    /// A proxy with the preset that asks here, and trusts whom this authority vouches for.
    async fn proxy(&self, receiver: &Receiver, trusted: &Authority) -> Onceward {
        let routes = format!(
            "{}[providers.plaid.signature]\n\
             url = \"https://{}/webhook_verification_key/get\"\n",
            super::hooks("plaid"),
            self.address
        );
        Onceward::in_front_of(receiver)
            .variable("THE_SECRET", SECRET)
            .variable("SSL_CERT_FILE", &trusted.file().display().to_string())
            .routes(&routes)
            .start()
            .await
    }
}

/// The body of a request, which has to be what the API wants.
async fn question(stream: &mut (impl AsyncRead + Unpin)) -> Value {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(stream.read_u8().await.unwrap());
    }
    let head = String::from_utf8(head).unwrap().to_ascii_lowercase();
    assert!(head.starts_with("post /webhook_verification_key/get http/1.1\r\n"), "{head}");
    assert!(head.contains("content-type: application/json\r\n"), "{head}");
    let length = head.split("content-length: ").nth(1).unwrap();
    let length = length.split("\r\n").next().unwrap().parse().unwrap();
    let mut body = vec![0; length];
    stream.read_exact(&mut body).await.unwrap();
    serde_json::from_slice(&body).unwrap()
}

/// None: there is no answer to ids that begin with `slow-`.
fn answer(signer: &Signer, question: &Value) -> Option<String> {
    assert_eq!(question["client_id"], "5c0client");
    assert_eq!(question["secret"], "5ec4e7of5c0client");
    let id = question["key_id"].as_str().unwrap();
    if id.starts_with("slow-") {
        return None;
    }
    let known = id.starts_with("key-");
    let status = if known { "200 OK" } else { "400 Bad Request" };
    let unknown = json!({ "error_code": "INVALID_WEBHOOK_VERIFICATION_KEY_ID" });
    let body = if known { signer.key(id) } else { unknown }.to_string();
    let length = body.len();
    Some(format!(
        "HTTP/1.1 {status}\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n{body}"
    ))
}

#[tokio::test]
async fn a_key_is_asked_for_once_and_made_up_ids_do_not_come_in_between() {
    let signer = Arc::new(Signer::new());
    let authority = Authority::new();
    let receiver = Receiver::that_answers(200, "ok").await;
    let api = Api::of(Arc::clone(&signer), &authority).await;
    let onceward = api.proxy(&receiver, &authority).await;

    onceward.sends(signer.signs("d1", "key-1")).await.is_executed(200);
    onceward.sends(signer.signs("d1", "key-1")).await.is_replayed(200);
    let forged = Signer::new().signs("d2", "key-1");
    onceward.sends(forged).await.is_refused(401, "signature-invalid");
    api.was_asked(1);
    for _ in 0..3 {
        let unknown = signer.signs("d2", "made-up");
        onceward.sends(unknown).await.is_refused(401, "signature-invalid");
    }
    api.was_asked(2);

    // More than may wait, each for another key that nobody gives out.
    let slow = (0..48).map(|number| signer.signs("d2", &format!("slow-{number}")));
    let flood = join_all(slow.map(|event| onceward.sends(event)));
    let genuine = async {
        api.left_open.acquire_many(QUESTIONS_MAX).await.unwrap().forget();
        onceward.sends(signer.signs("d3", "key-1")).await
    };
    let (refused, executed) = tokio::join!(flood, genuine);
    executed.is_executed(200);
    for reply in refused {
        reply.is_refused(503, "signature-undecided").comes_back();
    }
    // The next key is asked for as if nothing had been.
    onceward.sends(signer.signs("d4", "key-2")).await.is_executed(200);
    receiver.was_called(3);
    let log = format!("{:?}", onceward.log());
    assert!(!log.contains("5ec4e7of5c0client") && !log.contains("eyJ"), "{log}");
}

#[tokio::test]
async fn without_the_api_nothing_is_decided() {
    let signer = Arc::new(Signer::new());
    let authority = Authority::new();
    let receiver = Receiver::that_answers(200, "ok").await;
    let api = Api::of(Arc::clone(&signer), &authority).await;
    // Nobody vouches for the server: it is not given the secret.
    let onceward = api.proxy(&receiver, &Authority::new()).await;
    for _ in 0..2 {
        let reply = onceward.sends(signer.signs("d1", "key-1")).await;
        reply.is_refused(503, "signature-undecided").comes_back();
    }
    // What is wrong without a key is refused without one.
    let other = Event { body: b"{}".to_vec(), ..signer.signs("d1", "key-1") };
    onceward.sends(other).await.is_refused(401, "signature-invalid");
    api.was_asked(0);
    receiver.was_called(0);
}
