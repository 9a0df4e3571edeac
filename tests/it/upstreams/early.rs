//! Servers that answer before they have read the request, and close.

use super::server::Server;
use super::{HELD, in_front_of};
use crate::support::Event;

const MIB: usize = 1 << 20;
const ROUNDS: usize = 10;

/// Sends events that the server refuses by their head alone.
async fn counts(server: &Server) {
    let onceward = in_front_of(&format!("http://{}", server.address))
        .defaults("request_bytes_max = \"32MiB\"")
        .expects_log(HELD)
        .start()
        .await;
    for size in [4 * MIB, 12 * MIB, 24 * MIB] {
        for round in 0..ROUNDS {
            let mut event = Event::bytes(vec![b'x'; size]).keyed(&format!("{size}_{round}"));
            "/hooks/early".clone_into(&mut event.path);
            let reply = onceward.sends(event).await;
            assert_eq!(reply.is_executed(413).text(), "too large", "{size} bytes");
        }
    }
}

/// Not through its HTTP router: that loses the answer itself when the worker stops reading.
#[tokio::test]
async fn uwsgis_early_answer_to_a_large_request_counts() {
    counts(&Server::uwsgi_worker().await).await;
}

#[tokio::test]
async fn hypercorns_early_answer_to_a_large_request_counts() {
    counts(&Server::hypercorn().await).await;
}

#[tokio::test]
async fn gunicorns_early_answer_to_a_large_request_counts() {
    counts(&Server::gunicorn("").await).await;
    counts(&Server::gunicorn("--worker-class gthread --threads 4").await).await;
}
