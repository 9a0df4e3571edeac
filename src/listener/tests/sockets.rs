//! Tests that need real sockets, because they are about the kernel's queue and about resets. Their
//! time limits are short.

use std::io;
use std::net::SocketAddr;

use http::StatusCode;
use tokio::task::JoinHandle;
use tokio::time::timeout;

use super::*;
use crate::listener::Listener;

/// The longest wait of a test. It is reached only if something is broken.
pub(super) const PATIENCE: Duration = Duration::from_secs(20);

pub(super) struct Running {
    address: SocketAddr,
    shutdown: Shutdown,
    metrics: Arc<Metrics>,
    served: JoinHandle<()>,
}

impl Running {
    fn start<S: Service>(service: S, limits: Limits) -> Self {
        Self::start_on(Workers::of_caller(), service, limits)
    }

    pub(super) fn start_on<S: Service>(workers: Workers, service: S, limits: Limits) -> Self {
        let listener = Listener::bind("127.0.0.1:0".parse().unwrap(), limits).unwrap();
        let address = listener.local_addr().unwrap();
        let shutdown = Shutdown::default();
        let metrics = Arc::new(Metrics::new());
        let resources = Resources { workers, ..resources(&metrics) };
        let served = listener.serve(service, shutdown.clone(), resources);
        Self { address, shutdown, metrics, served: tokio::spawn(served) }
    }

    pub(super) async fn connect(&self) -> TcpStream {
        TcpStream::connect(self.address).await.unwrap()
    }

    /// Sends one request on a connection of its own.
    pub(super) async fn ask(&self) -> String {
        let mut stream = self.connect().await;
        stream.write_all(b"GET / HTTP/1.0\r\n\r\n").await.unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.unwrap();
        answer
    }
}

/// A service that refuses requests without reading the body.
fn refusing() -> impl Service {
    service_fn(|_: Request<Incoming>| async move {
        let mut response = text("too large");
        *response.status_mut() = StatusCode::PAYLOAD_TOO_LARGE;
        response.headers_mut().insert("connection", "close".parse().unwrap());
        Ok::<_, Infallible>(response)
    })
}

#[tokio::test]
async fn a_sender_that_writes_before_it_reads_gets_to_see_an_early_answer() {
    let server = Running::start(refusing(), limits());
    for _ in 0..20 {
        let mut stream = server.connect().await;
        let head = "POST / HTTP/1.1\r\nhost: h\r\ncontent-length: 819200\r\n\r\n";
        stream.write_all(head.as_bytes()).await.unwrap();
        for _ in 0..100 {
            stream.write_all(&[b'x'; 8192]).await.expect("no reset while it writes");
            tokio::task::yield_now().await;
        }
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.expect("no reset before the answer is read");
        assert!(answer.starts_with("HTTP/1.1 413 "), "{answer}");
        assert!(answer.contains("connection: close"), "{answer}");
        assert!(answer.ends_with("too large"), "{answer}");
    }
}

#[tokio::test]
async fn a_head_that_is_too_long_gets_to_see_why() {
    let server = Running::start(quick(), limits());
    for head in ["x: y\r\n".repeat(100_000), format!("x: {}", "y".repeat(500_000))] {
        let mut stream = server.connect().await;
        stream.write_all(b"GET / HTTP/1.1\r\nhost: h\r\n").await.unwrap();
        stream.write_all(head.as_bytes()).await.expect("no reset while it writes");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.expect("no reset before the answer is read");
        assert!(answer.starts_with("HTTP/1.1 431 "), "{answer}");
    }
}

#[tokio::test]
async fn lingering_ends_though_the_sender_does_not() {
    let server = Running::start(refusing(), limits());
    let stream = server.connect().await;
    let (mut reader, mut writer) = stream.into_split();
    writer
        .write_all(b"POST / HTTP/1.1\r\nhost: h\r\ncontent-length: 9999999999\r\n\r\n")
        .await
        .unwrap();
    let endless = async { while writer.write_all(&[b'x'; 8192]).await.is_ok() {} };
    timeout(PATIENCE, endless).await.expect("the connection is closed after 1 MiB");
    reader.read_to_end(&mut Vec::new()).await.ok();
}

#[tokio::test]
async fn an_early_refusal_sends_no_100_continue() {
    let ask = b"POST / HTTP/1.1\r\nhost: h\r\ncontent-length: 2\r\nexpect: 100-continue\r\n\r\n";
    let refuses = Running::start(refusing(), limits());
    let mut stream = refuses.connect().await;
    stream.write_all(ask).await.unwrap();
    let mut answer = vec![0; 12];
    stream.read_exact(&mut answer).await.unwrap();
    assert_eq!(answer, b"HTTP/1.1 413");

    let accepts = Running::start(quick(), limits());
    let mut stream = accepts.connect().await;
    stream.write_all(ask).await.unwrap();
    let mut answer = vec![0; 25];
    stream.read_exact(&mut answer).await.unwrap();
    assert_eq!(answer, b"HTTP/1.1 100 Continue\r\n\r\n");
    stream.write_all(b"xx").await.unwrap();
    stream.read_exact(&mut answer).await.unwrap();
    assert!(answer.starts_with(b"HTTP/1.1 200 OK"));
}

#[tokio::test]
async fn connections_beyond_the_maximum_wait_in_the_kernel() {
    let server = Running::start(quick(), Limits { connections_max: 2, ..limits() });
    let held = [server.connect().await, server.connect().await];
    let third = async { server.ask().await };
    tokio::pin!(third);
    while !server.metrics.prometheus().unwrap().contains("{limit=\"connections_max\"} 1") {
        tokio::select! {
            biased;
            _ = &mut third => panic!("served beyond the maximum"),
            () = tokio::task::yield_now() => {}
        }
    }
    assert_eq!(server.metrics.connections.get(), 2);
    drop(held);
    let answer = timeout(PATIENCE, third).await.expect("a place became free");
    assert!(answer.ends_with("ok"), "{answer}");
}

#[tokio::test]
async fn slow_connections_do_not_hurt_others() {
    let limits =
        Limits { connections_max: 1000, header_timeout: Duration::from_millis(500), ..limits() };
    let server = Running::start(quick(), limits);
    let mut slow = Vec::new();
    for n in 0..500 {
        let mut stream = server.connect().await;
        if n % 2 == 0 {
            stream.write_all(b"GET / HTT").await.unwrap();
        }
        slow.push(stream);
    }
    let start = Instant::now();
    for _ in 0..20 {
        assert!(server.ask().await.ends_with("ok"));
    }
    assert!(start.elapsed() < Duration::from_secs(2));
    for mut stream in slow {
        let read = timeout(PATIENCE, stream.read_to_end(&mut Vec::new())).await;
        match read.expect("every slow connection is closed") {
            Ok(bytes) => assert_eq!(bytes, 0),
            Err(error) => assert_eq!(error.kind(), io::ErrorKind::ConnectionReset),
        }
    }
    until(async || server.metrics.connections.get() == 0).await;
}

#[tokio::test]
async fn stopping_ends_with_the_last_connection_or_at_the_deadline() {
    let server = Running::start(slow(Duration::from_millis(200)), limits());
    let mut stream = server.connect().await;
    stream.write_all(GET).await.unwrap();
    until(async || server.metrics.connections.get() == 1).await;
    server.shutdown.stop(PATIENCE);
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    assert!(answer.ends_with("at last"), "{answer}");
    drop(stream);
    timeout(PATIENCE, server.served).await.expect("it does not wait for the deadline").unwrap();
    assert!(TcpStream::connect(server.address).await.is_err());

    let server = Running::start(slow(3600 * SECOND), limits());
    let mut stream = server.connect().await;
    stream.write_all(GET).await.unwrap();
    until(async || server.metrics.connections.get() == 1).await;
    server.shutdown.stop(Duration::from_millis(100));
    timeout(PATIENCE, server.served).await.expect("it ends at the deadline").unwrap();
    stream.read_to_end(&mut Vec::new()).await.ok();
    assert_eq!(server.metrics.connections.get(), 0);
}
