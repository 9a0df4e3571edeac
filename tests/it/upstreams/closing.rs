//! Servers that close after an answer without saying so cost no event.

use super::server::Server;
use super::{HELD, in_front_of, localhost, lost_of};
use crate::support::{Authority, Relay};

const EVENTS: usize = 1_000;
const SENDERS: [usize; 3] = [1, 8, 32];

/// How many events were held, with 1, 8 and 32 senders.
async fn held_by(url: &str, authority: &Authority) -> [usize; 3] {
    let mut held = [0; 3];
    for (senders, held) in SENDERS.into_iter().zip(&mut held) {
        let onceward = in_front_of(url)
            .variable("SSL_CERT_FILE", authority.file().to_str().unwrap())
            .expects_log(HELD)
            .start()
            .await;
        *held = lost_of(&onceward, EVENTS, senders).await;
    }
    held
}

async fn none_is_held(plain: &Server, tls_port: u16, authority: &Authority) {
    let in_the_clear = held_by(&format!("http://{}", plain.address), authority).await;
    let over_tls = held_by(&format!("https://localhost:{tls_port}"), authority).await;
    assert_eq!([in_the_clear, over_tls], [[0; 3]; 2], "held of {EVENTS} each");
}

/// unbit/uwsgi, `plugins/http/http.c`: without `--http-keepalive` the router ends the session when
/// the application has answered, whatever the answer says. Over TLS: behind a terminator that
/// closes when the router does.
#[tokio::test]
async fn no_event_is_held_in_front_of_uwsgis_http_router() {
    let authority = Authority::new();
    let server = Server::uwsgi().await;
    let terminator = Relay::over_tls(server.address, localhost(&authority)).await;
    none_is_held(&server, terminator.port, &authority).await;
}

/// Over TLS: uvicorn's own.
#[tokio::test]
async fn no_event_is_held_in_front_of_uvicorn_without_keep_alive() {
    let authority = Authority::new();
    let signed = authority.signs("localhost");
    let without = "--timeout-keep-alive 0";
    let over_tls = Server::uvicorn(&format!(
        "{without} --ssl-certfile {} --ssl-keyfile {}",
        signed.certificate.display(),
        signed.key.display(),
    ))
    .await;
    let plain = Server::uvicorn(without).await;
    none_is_held(&plain, over_tls.address.port(), &authority).await;
}
