//! Two processes that share a store: the promises hold across both.

mod decide;
mod emptied;
mod faults;
mod memory;
mod races;
mod rolling;
mod server;
mod takeover;
mod unknown;
mod unreadable;
mod waiting;

use crate::support::{Builder, Onceward, Receiver};
use server::Server;

/// Makes a test of each promise, for each shared store.
macro_rules! on_every_server {
    ($($promise:ident)+) => {
        mod on_redis { $(
            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $promise() {
                super::$promise::<crate::support::RedisServer>().await;
            }
        )+ }
        mod on_postgres { $(
            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $promise() {
                super::$promise::<crate::support::PostgresServer>().await;
            }
        )+ }
    };
}
use on_every_server;

/// What a store's trouble, and an attempt that is cut off by it, may leave in the log.
const EXPECTED: [&str; 11] = [
    "nobody knows whether the operation was done",
    "superseded: the outcome of the attempt changed nothing",
    "a lease could not be renewed yet",
    "an outcome is not recorded yet",
    "no claim, so nothing is forwarded",
    "no claim: forwarded unprotected",
    "the store is not safe",
    "the store does not work",
    "expired records could not be removed yet",
    "answered before the outcome could be recorded",
    "a copy was refused, then the attempt failed",
];

/// What a proxy is told of its store by a test in which the store is always there: a busy machine
/// may be slow, and ten times the built-in timeout is no failure.
fn patient(server: &impl Server) -> String {
    format!("{}\ntimeout = \"20s\"", server.toml())
}

/// Two proxies in front of one receiver, on one store that is always there.
async fn two_patient_proxies<S: Server>(
    server: &S,
    receiver: &Receiver,
    defaults: &str,
) -> (Onceward, Onceward) {
    two_ready_proxies(&patient(server), receiver, defaults).await
}

/// Two proxies in front of one receiver, on one store that is there at first. A test waits until the
/// end of a call that it lets fail, so these proxies are less patient. Still they give a busy
/// machine three times the built-in timeout.
async fn two_tolerant_proxies<S: Server>(
    server: &S,
    receiver: &Receiver,
    defaults: &str,
) -> (Onceward, Onceward) {
    let store = format!("{}\ntimeout = \"6s\"", server.toml());
    two_ready_proxies(&store, receiver, defaults).await
}

/// The same with the built-in timeout.
async fn two_proxies<S: Server>(
    server: &S,
    receiver: &Receiver,
    defaults: &str,
) -> (Onceward, Onceward) {
    two_ready_proxies(&server.toml(), receiver, defaults).await
}

/// The store has been used by both: what it makes at first takes a busy server longer than one
/// call.
async fn two_ready_proxies(
    store: &str,
    receiver: &Receiver,
    defaults: &str,
) -> (Onceward, Onceward) {
    let (one, other) = two_unready_proxies(store, receiver, defaults).await;
    one.becomes_ready().await;
    other.becomes_ready().await;
    (one, other)
}

/// The same, whether or not their store is there.
async fn two_unready_proxies(
    store: &str,
    receiver: &Receiver,
    defaults: &str,
) -> (Onceward, Onceward) {
    let builder = expecting_trouble(Onceward::in_front_of(receiver).store(store));
    let builder = builder.defaults(defaults);
    (builder.clone().start().await, builder.start().await)
}

/// A proxy that may say what comes of a store's trouble.
fn expecting_trouble(builder: Builder) -> Builder {
    EXPECTED.into_iter().fold(builder, Builder::expects_log)
}
