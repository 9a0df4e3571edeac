//! A server over TLS that stands in for a sender's host.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio_rustls::TlsAcceptor;

use super::{Authority, ClientCertificate};

/// As long as the test runs.
#[derive(Debug)]
pub struct TlsHost {
    pub address: SocketAddr,
    served: Arc<AtomicUsize>,
    /// One permit for each request that is left without an answer.
    pub left_open: Arc<Semaphore>,
    task: tokio::task::JoinHandle<()>,
}

/// A request that came, its head in lower case.
#[derive(Debug)]
pub struct Asked {
    pub head: String,
    pub body: Vec<u8>,
}

/// What makes an answer, head and body; none: there is none.
type Answers = Arc<dyn Fn(&Asked) -> Option<String> + Send + Sync>;

/// What each connection has of the host.
#[derive(Clone)]
struct Serving {
    acceptor: TlsAcceptor,
    answers: Answers,
    served: Arc<AtomicUsize>,
    left_open: Arc<Semaphore>,
}

impl Drop for TlsHost {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl TlsHost {
    /// A host of this name, for which the authority vouches.
    pub async fn that_answers(
        authority: &Authority,
        name: &str,
        answers: impl Fn(&Asked) -> Option<String> + Send + Sync + 'static,
    ) -> Self {
        let config = authority.server(name, ClientCertificate::NotAsked);
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let served = Arc::new(AtomicUsize::new(0));
        let left_open = Arc::new(Semaphore::new(0));
        let serving = Serving {
            acceptor: TlsAcceptor::from(Arc::new(config)),
            answers: Arc::new(answers),
            served: Arc::clone(&served),
            left_open: Arc::clone(&left_open),
        };
        let task = tokio::spawn(async move {
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                tokio::spawn(serving.clone().serves(stream));
            }
        });
        Self { address, served, left_open, task }
    }

    pub fn was_asked(&self, times: usize) {
        assert_eq!(self.served.load(Ordering::SeqCst), times);
    }
}

impl Serving {
    async fn serves(self, stream: TcpStream) {
        // Who does not trust us hangs up.
        let Ok(mut stream) = self.acceptor.accept(stream).await else { return };
        let asked = Asked::read(&mut stream).await;
        self.served.fetch_add(1, Ordering::SeqCst);
        let Some(answer) = (self.answers)(&asked) else {
            self.left_open.add_permits(1);
            std::future::pending::<()>().await;
            return;
        };
        // Who asked may be gone.
        let _ = stream.write_all(answer.as_bytes()).await;
        let _ = stream.shutdown().await;
    }
}

impl Asked {
    async fn read(stream: &mut (impl AsyncRead + Unpin)) -> Self {
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            head.push(stream.read_u8().await.unwrap());
        }
        let head = String::from_utf8(head).unwrap().to_ascii_lowercase();
        let length = head.split("content-length: ").nth(1);
        let length = length.map_or(0, |rest| rest.split("\r\n").next().unwrap().parse().unwrap());
        let mut body = vec![0; length];
        stream.read_exact(&mut body).await.unwrap();
        Self { head, body }
    }
}
