//! A server that wants a certificate which nobody has.

use super::in_front_of;
use super::server::Server;
use crate::support::{Authority, event};

/// OpenSSL behind gunicorn: TLS 1.3, where the refusal comes after the handshake. The first copy
/// and the second are each an attempt, as nothing was taken.
#[tokio::test]
async fn a_server_that_refuses_for_want_of_a_certificate_has_taken_nothing() {
    let authority = Authority::new();
    let signed = authority.signs("localhost");
    let server = Server::gunicorn(&format!(
        "--certfile {} --keyfile {} --ca-certs {} --cert-reqs 2",
        signed.certificate.display(),
        signed.key.display(),
        authority.file().display(),
    ))
    .await;
    let onceward = in_front_of(&format!("https://localhost:{}", server.address.port()))
        .variable("SSL_CERT_FILE", authority.file().to_str().unwrap())
        .start()
        .await;
    for number in 1..=50 {
        let reply = onceward.sends(event("evt_1")).await;
        reply.is_executed_as("upstream-unreachable", 502);
        let operation = onceward.operation(&reply.operation()).await.unwrap();
        let attempt = operation["attempts"].as_array().unwrap().last().unwrap();
        assert_eq!(attempt["number"], number, "{operation:#}");
        assert_eq!(attempt["outcome"], "failed", "{operation:#}");
        assert_eq!(attempt["sent"], false, "{operation:#}");
        assert_eq!(attempt["reason"], "client-certificate-refused", "{operation:#}");
    }
}
