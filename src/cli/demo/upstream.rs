//! The sample upstream: counts how often it gets each event, and behaves as badly as upstreams do.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::State;
use axum::routing::get;
use bytes::Bytes;
use http::{HeaderMap, StatusCode, Uri};
use parking_lot::Mutex;
use tokio::net::TcpListener;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

/// Long enough for all copies of a burst to arrive meanwhile.
const SHORT_WORK: Duration = Duration::from_millis(100);
/// Longer than Adyen waits for an answer.
const LONG_WORK: Duration = Duration::from_secs(12);

/// The headers that may hold the id of an event.
const ID_HEADERS: [&str; 3] = ["x-github-delivery", "x-shopify-webhook-id", "x-idempotency-key"];
/// The JSON pointers that may hold the id of an event.
const ID_MEMBERS: [&str; 2] = ["/id", "/notificationItems/0/NotificationRequestItem/pspReference"];

/// The sample upstream. All clones share their counts.
#[derive(Debug, Clone, Default)]
pub(super) struct SampleUpstream {
    counts: Arc<Mutex<BTreeMap<String, usize>>>,
    hurried: CancellationToken,
}

impl SampleUpstream {
    /// Answers requests until the returned future is dropped.
    pub(super) async fn serve(self, listener: TcpListener) -> io::Result<()> {
        let router = Router::new().route("/count", get(count)).fallback(take).with_state(self);
        axum::serve(listener, router).await
    }

    /// Ends the work on all events, now and from now on. Otherwise the proxy would wait for its
    /// attempts in flight when the demo ends.
    pub(super) fn hurry(&self) {
        self.hurried.cancel();
    }

    async fn work_for(&self, time: Duration) {
        let _hurried = timeout(time, self.hurried.cancelled()).await;
    }

    /// How often the upstream got this event.
    pub(super) fn received(&self, event: &str) -> usize {
        self.counts.lock().get(event).copied().unwrap_or_default()
    }

    /// Counts an event, and gives how often it has come.
    fn count(&self, event: String) -> usize {
        let mut counts = self.counts.lock();
        let count = counts.entry(event).or_default();
        *count += 1;
        *count
    }
}

async fn count(State(upstream): State<SampleUpstream>) -> String {
    let mut table = String::new();
    for (event, count) in &*upstream.counts.lock() {
        // Writing to a string does not fail.
        let _written = writeln!(table, "{count:>4}  {event}");
    }
    table
}

async fn take(
    State(upstream): State<SampleUpstream>,
    uri: Uri,
    headers: HeaderMap,
    body: Bytes,
) -> (StatusCode, &'static str) {
    let count = upstream.count(id(&headers, &body));
    match uri.path() {
        "/webhooks/shopify" => upstream.work_for(SHORT_WORK).await,
        "/webhooks/adyen" => upstream.work_for(LONG_WORK).await,
        "/webhooks/transfers" => upstream.hurried.cancelled().await,
        "/webhooks/paypal" if count == 1 => {
            return (StatusCode::SERVICE_UNAVAILABLE, "the database restarts\n");
        }
        _ => {}
    }
    (StatusCode::OK, "[accepted]\n")
}

/// The id that the upstream counts an event by. It does not come from the proxy: a count that the
/// proxy could influence would prove nothing.
fn id(headers: &HeaderMap, body: &[u8]) -> String {
    let header = ID_HEADERS.iter().find_map(|name| headers.get(*name)?.to_str().ok());
    let member = || {
        let body: serde_json::Value = serde_json::from_slice(body).ok()?;
        let id = ID_MEMBERS.iter().find_map(|pointer| body.pointer(pointer))?;
        Some(id.as_str().map_or_else(|| id.to_string(), str::to_owned))
    };
    header.map(str::to_owned).or_else(member).unwrap_or_else(|| "without an id".to_owned())
}
