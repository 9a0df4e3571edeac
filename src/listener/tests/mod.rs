//! Tests of connections as their peers see them.

mod limits;
mod sockets;
mod speaks;
mod workers;

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper::client::conn::http2::SendRequest;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, DuplexStream, duplex};
use tokio::net::TcpStream;
use tokio::time::{Instant, sleep};

use super::connection::{self, ServerContext};
use super::{Limits, Resources, Service, Shutdown, Workers};
use crate::budget::{Budget, Share};
use crate::telemetry::{Limit, Metrics};

const SECOND: Duration = Duration::from_secs(1);
const GET: &[u8] = b"GET / HTTP/1.1\r\nhost: h\r\n\r\n";

fn limits() -> Limits {
    Limits {
        connections_max: 100,
        per_peer_max: Share::WHOLE,
        trusted_proxies: Vec::new(),
        header_bytes_max: 16 * 1024,
        header_lines_max: 256,
        header_timeout: 10 * SECOND,
        idle_timeout: 75 * SECOND,
        write_timeout: 30 * SECOND,
    }
}

/// More memory than any test needs.
fn resources(metrics: &Arc<Metrics>) -> Resources {
    let metrics = Arc::clone(metrics);
    let memory = Budget::new(1 << 30, Arc::clone(&metrics));
    Resources { memory, metrics, workers: Workers::of_caller() }
}

/// Listeners without sockets: on a paused clock their time limits are exact.
#[derive(Default)]
struct Server {
    shutdown: Shutdown,
    metrics: Arc<Metrics>,
}

impl Server {
    /// Opens a connection whose pipe holds `buffered` bytes in each direction.
    fn open<S: Service>(&self, service: S, buffered: usize) -> DuplexStream {
        let shutdown = self.shutdown.clone();
        let resources = resources(&self.metrics);
        let context = Arc::new(ServerContext::new(&limits(), shutdown, &resources));
        let (here, there) = duplex(buffered);
        let peer = "192.0.2.1:1".parse().unwrap();
        tokio::spawn(connection::serve(context, there, peer, service));
        here
    }

    /// Opens an HTTP/2 connection. It takes no more of an answer than the test reads.
    async fn open_http2<S: Service>(&self, service: S) -> SendRequest<Full<Bytes>> {
        let io = TokioIo::new(self.open(service, 1 << 20));
        let (sender, connection) = hyper::client::conn::http2::Builder::new(TokioExecutor::new())
            .timer(TokioTimer::new())
            .initial_stream_window_size(1000)
            .keep_alive_interval(5 * SECOND)
            .keep_alive_while_idle(true)
            .handshake(io)
            .await
            .unwrap();
        tokio::spawn(connection);
        sender
    }

    fn reached(&self, limit: Limit) -> bool {
        let counter = format!("limits_reached_total{{limit=\"{}\"}} 1", limit.as_str());
        self.metrics.prometheus().unwrap().contains(&counter)
    }
}

/// Waits until the condition holds, to the millisecond. Returns how long that took.
async fn until(mut holds: impl AsyncFnMut() -> bool) -> Duration {
    let start = Instant::now();
    while !holds().await {
        assert!(start.elapsed() < 200 * SECOND, "it never holds");
        sleep(Duration::from_millis(1)).await;
    }
    start.elapsed()
}

fn text(text: &'static str) -> Response<Full<Bytes>> {
    Response::new(Full::from(text))
}

/// A service that answers at once.
fn quick() -> impl Service {
    service_fn(|request: Request<Incoming>| async move {
        request.into_body().collect().await.ok();
        Ok::<_, Infallible>(text("ok"))
    })
}

/// A service that answers after this time.
fn slow(after: Duration) -> impl Service {
    service_fn(move |_: Request<Incoming>| async move {
        sleep(after).await;
        Ok::<_, Infallible>(text("at last"))
    })
}

/// A service that answers with this many bytes.
fn large(length: usize) -> impl Service {
    service_fn(move |_: Request<Incoming>| async move {
        Ok::<_, Infallible>(Response::new(Full::from(vec![b'x'; length])))
    })
}

fn get() -> Request<Full<Bytes>> {
    Request::get("http://h/").body(Full::default()).unwrap()
}

/// Reads until an answer ends with this text.
async fn read_answer(io: &mut DuplexStream, end: &str) -> String {
    let mut read = Vec::new();
    while !read.ends_with(end.as_bytes()) {
        let byte = io.read_u8().await.expect("the answer is whole");
        read.push(byte);
    }
    String::from_utf8(read).unwrap()
}

/// Reads until the connection is closed. Returns how long that took.
async fn closed_after(io: &mut DuplexStream) -> Duration {
    let start = Instant::now();
    io.read_to_end(&mut Vec::new()).await.unwrap();
    start.elapsed()
}

/// The timer has steps of a millisecond.
fn assert_close(actual: Duration, expected: Duration) {
    let late = actual.checked_sub(expected);
    assert!(late.is_some_and(|late| late < Duration::from_millis(3)), "{actual:?}, {expected:?}");
}
