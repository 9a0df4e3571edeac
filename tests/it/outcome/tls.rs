//! Over TLS: what fails in the handshake was never sent.

use std::io::{Read as _, Write as _};
use std::sync::Arc;

use rustls::crypto::cipher::{OutboundChunks, OutboundPlainMessage};
use rustls::version::{TLS12, TLS13};
use rustls::{
    AlertDescription, ConnectionTrafficSecrets, ContentType, ProtocolVersion, ServerConfig,
    ServerConnection,
};
use tokio::io::AsyncReadExt as _;

use super::{HELD, answered, is_held, never_sent, standing, uncertain};
use crate::support::{
    Act, Answer, Authority, BareReceiver, Builder, ClientCertificate, Onceward, Receiver, Relay,
    event,
};

/// A proxy whose upstream speaks TLS at this port, and that trusts this authority.
fn proxy(port: u16, trusted: &Authority) -> Builder {
    Onceward::in_front_of_url(&format!("https://localhost:{port}"))
        .variable("SSL_CERT_FILE", trusted.file().to_str().unwrap())
}

/// Terminates TLS in front of a receiver.
async fn in_front_of(receiver: &Receiver, config: ServerConfig) -> u16 {
    Relay::over_tls(receiver.address, config).await.port
}

#[tokio::test]
async fn an_upstream_with_a_trusted_certificate_is_spoken_to_over_tls() {
    let receiver = Receiver::that_answers(200, "over tls").await;
    let authority = Authority::new();
    let config = authority.server("localhost", ClientCertificate::NotAsked);
    let port = in_front_of(&receiver, config).await;
    let onceward = proxy(port, &authority).start().await;
    for id in ["evt_1", "evt_2"] {
        let reply = onceward.sends(event(id)).await;
        reply.is_executed(200);
        assert_eq!(reply.text(), "over tls");
        assert_eq!(standing(&onceward, &reply).await, answered(1, "succeeded", 200));
        onceward.sends(event(id)).await.is_replayed(200);
    }
    receiver.was_called(2);
}

/// What counts is what was handed to TLS, not what it wrote for its handshake.
#[tokio::test]
async fn a_close_after_the_request_is_uncertain_over_tls_too() {
    let receiver = Receiver::that(|_, _| Act::Close).await;
    let authority = Authority::new();
    let config = authority.server("localhost", ClientCertificate::NotAsked);
    let port = in_front_of(&receiver, config).await;
    let onceward = proxy(port, &authority).expects_log(HELD).start().await;
    let reply = onceward.sends(event("evt_1")).await;
    reply.is_executed_as("upstream-broken", 502).comes_back();
    assert_eq!(standing(&onceward, &reply).await, uncertain("connection-lost", None));
    is_held(&onceward, event("evt_1")).await;
    receiver.was_called(1);
}

#[tokio::test]
async fn a_certificate_that_is_not_trusted_is_a_failure() {
    let receiver = Receiver::that_answers(200, "ok").await;
    let config = Authority::new().server("localhost", ClientCertificate::NotAsked);
    let port = in_front_of(&receiver, config).await;
    let onceward = proxy(port, &Authority::new()).start().await;
    fails_to_shake_hands(&onceward).await;
    receiver.was_called(0);
}

#[tokio::test]
async fn a_certificate_for_another_name_is_a_failure() {
    let receiver = Receiver::that_answers(200, "ok").await;
    let authority = Authority::new();
    let config = authority.server("receiver.example", ClientCertificate::NotAsked);
    let port = in_front_of(&receiver, config).await;
    let onceward = proxy(port, &authority).start().await;
    fails_to_shake_hands(&onceward).await;
    receiver.was_called(0);
}

#[tokio::test]
async fn an_upstream_that_speaks_no_tls_is_a_failure() {
    let receiver = BareReceiver::that(|mut bare| async move {
        let _hello = bare.stream.read(&mut [0; 1024]).await;
        bare.writes(&Answer::new(400, "speak HTTP").raw()).await;
    })
    .await;
    let url = format!("https://{}", receiver.address);
    let onceward = Onceward::in_front_of_url(&url).start().await;
    fails_to_shake_hands(&onceward).await;
}

async fn fails_to_shake_hands(onceward: &Onceward) {
    is_never_sent(onceward, "tls-failed").await;
}

async fn is_never_sent(onceward: &Onceward, reason: &str) {
    for attempt in [1, 2] {
        let reply = onceward.sends(event("evt_1")).await;
        reply.is_executed_as("upstream-unreachable", 502);
        assert_eq!(standing(onceward, &reply).await, never_sent(attempt, reason));
    }
}

/// With TLS 1.3 the refusal comes when the request may have left, with TLS 1.2 before.
#[tokio::test]
async fn a_server_that_wants_a_certificate_that_nobody_has_is_a_failure() {
    for (version, reason) in [(&TLS13, "client-certificate-refused"), (&TLS12, "tls-failed")] {
        let receiver = Receiver::that_answers(200, "ok").await;
        let authority = Authority::new();
        let config = authority.server("localhost", ClientCertificate::Required(version));
        let port = in_front_of(&receiver, config).await;
        let onceward = proxy(port, &authority).start().await;
        is_never_sent(&onceward, reason).await;
        receiver.was_called(0);
    }
}

/// It asked for a certificate and went on without one: then it is a server like any other.
#[tokio::test]
async fn a_close_by_a_server_that_asked_for_a_certificate_is_uncertain() {
    let receiver = Receiver::that(|_, _| Act::Close).await;
    let authority = Authority::new();
    let config = authority.server("localhost", ClientCertificate::Asked);
    let port = in_front_of(&receiver, config).await;
    let onceward = proxy(port, &authority).expects_log(HELD).start().await;
    let reply = onceward.sends(event("evt_1")).await;
    reply.is_executed_as("upstream-broken", 502).comes_back();
    assert_eq!(standing(&onceward, &reply).await, uncertain("connection-lost", None));
    is_held(&onceward, event("evt_1")).await;
    receiver.was_called(1);
}

/// Begins to answer, and sends an alert in the same piece: rustls has no wish to send one, so it is
/// written with the keys of the connection.
fn answers_and_alerts(mut stream: std::net::TcpStream, config: Arc<ServerConfig>) {
    let mut tls = ServerConnection::new(config).unwrap();
    let mut request = [0; 1024];
    while tls.reader().read(&mut request).is_err() {
        while tls.wants_write() {
            tls.write_tls(&mut stream).unwrap();
        }
        if tls.read_tls(&mut stream).unwrap() == 0 {
            return;
        }
        tls.process_new_packets().unwrap();
    }
    let mut piece = Vec::new();
    tls.writer().write_all(b"HTTP/1.1 200 OK\r\ncontent-le").unwrap();
    while tls.wants_write() {
        tls.write_tls(&mut piece).unwrap();
    }
    let suite = tls.negotiated_cipher_suite().unwrap().tls13().unwrap();
    let (number, secrets) = tls.dangerous_extract_secrets().unwrap().tx;
    let ConnectionTrafficSecrets::Aes256Gcm { key, iv } = secrets else { panic!("{suite:?}") };
    let fatal = [2, AlertDescription::AccessDenied.into()];
    let alert = OutboundPlainMessage {
        typ: ContentType::Alert,
        version: ProtocolVersion::TLSv1_2,
        payload: OutboundChunks::Single(&fatal),
    };
    piece.extend(suite.aead_alg.encrypter(key, iv).encrypt(alert, number).unwrap().encode());
    stream.write_all(&piece).unwrap();
    let _closed = stream.read_to_end(&mut Vec::new());
}

/// Only a refusal before any data proves that nothing was taken.
#[tokio::test]
async fn an_answer_that_has_begun_in_front_of_a_refusal_is_uncertain() {
    let authority = Authority::new();
    let mut config = authority.server("localhost", ClientCertificate::Asked);
    config.enable_secret_extraction = true;
    let config = Arc::new(config);
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let config = Arc::clone(&config);
            std::thread::spawn(|| answers_and_alerts(stream.unwrap(), config));
        }
    });
    let onceward = proxy(port, &authority).expects_log(HELD).start().await;
    let reply = onceward.sends(event("evt_1")).await;
    reply.is_executed_as("upstream-broken", 502).comes_back();
    assert_eq!(standing(&onceward, &reply).await, uncertain("connection-lost", None));
    is_held(&onceward, event("evt_1")).await;
}
