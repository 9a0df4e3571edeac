//! Servers that keep connections open are spoken to on the same ones again.

use std::net::SocketAddr;
use std::time::Duration;

use axum::Router;
use axum::routing::post;
use tokio::net::TcpListener;
use tokio::time::timeout;

use super::server::Server;
use super::{in_front_of, localhost, lost_of};
use crate::support::{Authority, Onceward, Relay, event};

const EVENTS: usize = 100;
/// Of so many events. A machine that stands still for longer than `keepalive` makes one necessary.
const NEW_CONNECTIONS: usize = 10;

/// Sends events until one needs no new connection, then counts those that a hundred more need.
async fn reuses(relay: &Relay, onceward: &Onceward) {
    let proven = async {
        for number in 0.. {
            let before = relay.connections();
            onceward.sends(event(&format!("first_{number}"))).await.is_executed(200);
            if relay.connections() == before {
                return;
            }
        }
    };
    timeout(Duration::from_mins(1), proven).await.expect("a connection is used again");
    let before = relay.connections();
    assert_eq!(lost_of(onceward, EVENTS, 1).await, 0);
    let new = relay.connections() - before;
    assert!(new <= NEW_CONNECTIONS, "{new} new connections for {EVENTS} events");
}

async fn is_reused(server: SocketAddr) {
    let relay = Relay::to(server).await;
    let onceward = in_front_of(&format!("http://127.0.0.1:{}", relay.port)).start().await;
    reuses(&relay, &onceward).await;
    let authority = Authority::new();
    let relay = Relay::over_tls(server, localhost(&authority)).await;
    let onceward = in_front_of(&format!("https://localhost:{}", relay.port))
        .variable("SSL_CERT_FILE", authority.file().to_str().unwrap())
        .start()
        .await;
    reuses(&relay, &onceward).await;
}

#[tokio::test]
async fn connections_to_nginx_are_used_again() {
    is_reused(Server::nginx().await.address).await;
}

#[tokio::test]
async fn connections_to_gunicorns_threads_are_used_again() {
    is_reused(Server::gunicorn("--worker-class gthread --threads 4").await.address).await;
}

#[tokio::test]
async fn connections_to_hypercorn_are_used_again() {
    is_reused(Server::hypercorn().await.address).await;
}

#[tokio::test]
async fn connections_to_uvicorn_are_used_again() {
    is_reused(Server::uvicorn("").await.address).await;
}

#[tokio::test]
async fn connections_to_express_are_used_again() {
    is_reused(Server::express().await.address).await;
}

#[tokio::test]
async fn connections_to_axum_are_used_again() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let router = Router::new().route("/hooks", post(async || "ok"));
    tokio::spawn(async move { axum::serve(listener, router).await });
    is_reused(address).await;
}

/// The age counts, however busy a connection is.
#[tokio::test]
async fn a_connection_is_not_used_again_beyond_its_greatest_age() {
    let server = Server::nginx().await;
    let relay = Relay::to(server.address).await;
    let onceward = in_front_of(&format!("http://127.0.0.1:{}", relay.port))
        .defaults("keepalive_max = \"2s\"")
        .start()
        .await;
    reuses(&relay, &onceward).await;
    let before = relay.connections();
    let renewed = async {
        for number in 0.. {
            onceward.sends(event(&format!("second_{number}"))).await.is_executed(200);
            if relay.connections() > before {
                return;
            }
        }
    };
    timeout(Duration::from_mins(1), renewed).await.expect("a new connection");
}
