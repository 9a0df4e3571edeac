//! The sample receiver: counts what it gets of each event, and behaves as badly as receivers do.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use axum::Router;
use axum::extract::State;
use axum::routing::get;
use bytes::Bytes;
use http::{HeaderMap, StatusCode, Uri};
use tokio::net::TcpListener;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

/// Longer than any copy of a burst needs to arrive.
const SHORT_WORK: Duration = Duration::from_millis(100);
/// Longer than its sender waits.
const LONG_WORK: Duration = Duration::from_secs(12);

/// Where an event's id stands.
const ID_HEADERS: [&str; 3] = ["x-github-delivery", "x-shopify-webhook-id", "x-idempotency-key"];
const ID_MEMBERS: [&str; 2] = ["/id", "/notificationItems/0/NotificationRequestItem/pspReference"];

/// How often each event came. Clones are one and the same.
#[derive(Debug, Clone, Default)]
pub(super) struct Receiver {
    counts: Arc<Mutex<BTreeMap<String, usize>>>,
    hurried: CancellationToken,
}

impl Receiver {
    /// Takes requests until it is dropped.
    pub(super) async fn serve(self, listener: TcpListener) -> io::Result<()> {
        let router = Router::new().route("/count", get(count)).fallback(take).with_state(self);
        axum::serve(listener, router).await
    }

    /// From now on it works without delay.
    pub(super) fn hurry(&self) {
        self.hurried.cancel();
    }

    async fn works_for(&self, time: Duration) {
        // Whether it had all its time matters to nobody.
        let _hurried = timeout(time, self.hurried.cancelled()).await;
    }

    /// How often this event came.
    pub(super) fn received(&self, event: &str) -> usize {
        self.counts().get(event).copied().unwrap_or_default()
    }

    fn count(&self, event: String) -> usize {
        let mut counts = self.counts();
        let count = counts.entry(event).or_default();
        *count += 1;
        *count
    }

    fn counts(&self) -> MutexGuard<'_, BTreeMap<String, usize>> {
        self.counts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

async fn count(State(receiver): State<Receiver>) -> String {
    let mut table = String::new();
    for (event, count) in &*receiver.counts() {
        // Writing to a string does not fail.
        let _written = writeln!(table, "{count:>4}  {event}");
    }
    table
}

async fn take(
    State(receiver): State<Receiver>,
    uri: Uri,
    headers: HeaderMap,
    body: Bytes,
) -> (StatusCode, &'static str) {
    let count = receiver.count(id(&headers, &body));
    match uri.path() {
        "/webhooks/shopify" => receiver.works_for(SHORT_WORK).await,
        "/webhooks/adyen" => receiver.works_for(LONG_WORK).await,
        "/webhooks/paypal" if count == 1 => {
            return (StatusCode::SERVICE_UNAVAILABLE, "the database restarts\n");
        }
        _ => {}
    }
    (StatusCode::OK, "[accepted]\n")
}

/// The receiver's own idea of which event this is: it does not ask the proxy.
fn id(headers: &HeaderMap, body: &[u8]) -> String {
    let header = ID_HEADERS.iter().find_map(|name| headers.get(*name)?.to_str().ok());
    let member = || {
        let body: serde_json::Value = serde_json::from_slice(body).ok()?;
        let id = ID_MEMBERS.iter().find_map(|pointer| body.pointer(pointer))?;
        Some(id.as_str().map_or_else(|| id.to_string(), str::to_owned))
    };
    header.map(str::to_owned).or_else(member).unwrap_or_else(|| "without an id".to_owned())
}
