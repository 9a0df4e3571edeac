//! Connections on real sockets, with a resolver that the test controls.

mod addresses;
mod reuse;
mod tls;

use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use http::{HeaderMap, Method};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

use super::*;
use crate::clock::Clock;

/// A resolver whose addresses the test sets.
#[derive(Debug, Default, Clone)]
struct FixedResolver(Arc<Mutex<Vec<SocketAddr>>>);

impl FixedResolver {
    fn of(addresses: impl Into<Vec<SocketAddr>>) -> Self {
        Self(Arc::new(Mutex::new(addresses.into())))
    }

    fn moves_to(&self, address: SocketAddr) {
        *self.0.lock().unwrap() = vec![address];
    }
}

#[async_trait]
impl Resolver for FixedResolver {
    async fn addresses(&self, _: &str, _: u16) -> io::Result<Vec<SocketAddr>> {
        Ok(self.0.lock().unwrap().clone())
    }
}

const GREATEST_AGE: Duration = Duration::from_secs(30);

fn upstream(resolver: &FixedResolver, clock: &Clock) -> Upstream {
    let settings = Settings {
        target: Target {
            scheme: Scheme::Http,
            authority: "receiver.example".parse().unwrap(),
            path: None,
        },
        connect_timeout: Duration::from_secs(20),
        keepalive: Duration::from_mins(1),
        keepalive_max: GREATEST_AGE,
        preserve_host: true,
    };
    let dialing = DialSettings {
        trust: TrustStore::of(rustls::RootCertStore::empty()),
        clock: clock.clone(),
        resolver: Arc::new(resolver.clone()),
        answer_head: AnswerHeadLimits { bytes_max: 16 << 10, lines_max: 100 },
    };
    Upstream::new(&settings, &dialing)
}

fn request() -> Request {
    Request {
        method: Method::POST,
        target: "/".parse().unwrap(),
        headers: HeaderMap::new(),
        body: "body".into(),
        handler: None,
    }
}

/// Reads one request and answers it. `head` holds further header lines.
async fn answers(stream: &mut TcpStream, head: &str) {
    let _request = stream.read(&mut [0; 1024]).await.unwrap();
    let answer = format!("HTTP/1.1 200 OK\r\n{head}content-length: 0\r\n\r\n");
    stream.write_all(answer.as_bytes()).await.unwrap();
}

/// Makes an exchange and reads the answer to its end.
async fn exchanges(upstream: &Upstream) {
    let connection = upstream.connect().await.unwrap();
    let sent = connection.send(request(), &Progress::default()).await;
    let SendResult::Answered(mut answer) = sent else { panic!("{sent:?}") };
    assert!(matches!(answer.stream.chunk().await, Ok(None)));
}

/// A server that keeps connections open and says so. Returns its address, and the number of
/// connections that were made to it.
async fn server() -> (SocketAddr, Arc<Mutex<usize>>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let made = Arc::new(Mutex::new(0));
    let count = Arc::clone(&made);
    tokio::spawn(async move {
        loop {
            let (mut stream, _) = listener.accept().await.unwrap();
            *count.lock().unwrap() += 1;
            tokio::spawn(async move {
                while stream.readable().await.is_ok() && !at_its_end(&stream).await {
                    answers(&mut stream, "keep-alive: timeout=600\r\n").await;
                }
            });
        }
    });
    (address, made)
}

async fn at_its_end(stream: &TcpStream) -> bool {
    !matches!(stream.peek(&mut [0]).await, Ok(1..))
}
