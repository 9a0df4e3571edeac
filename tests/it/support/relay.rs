//! A relay in front of a server: it counts connections, and can terminate TLS.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use rustls::ServerConfig;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt as _, copy, split};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;

/// Hands bytes on to a server and counts connections. When the server closes one, it is closed at
/// once, as TLS terminators do.
#[derive(Debug)]
pub struct Relay {
    pub port: u16,
    connections: Arc<AtomicUsize>,
}

impl Relay {
    pub async fn to(server: SocketAddr) -> Self {
        Self::accepting(server, |stream| async { Some(stream) }).await
    }

    /// Speaks TLS with its clients.
    pub async fn over_tls(server: SocketAddr, config: ServerConfig) -> Self {
        let acceptor = TlsAcceptor::from(Arc::new(config));
        Self::accepting(server, move |stream| {
            let acceptor = acceptor.clone();
            // A client that does not trust the certificate ends the handshake.
            async move { acceptor.accept(stream).await.ok() }
        })
        .await
    }

    /// How many connections have been made.
    pub fn connections(&self) -> usize {
        self.connections.load(Ordering::SeqCst)
    }

    async fn accepting<S, T>(
        server: SocketAddr,
        accept: impl Fn(TcpStream) -> T + Clone + Send + 'static,
    ) -> Self
    where
        S: AsyncRead + AsyncWrite + Send + 'static,
        T: Future<Output = Option<S>> + Send + 'static,
    {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let connections = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&connections);
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                count.fetch_add(1, Ordering::SeqCst);
                let accepted = accept.clone()(stream);
                tokio::spawn(async move {
                    let Some(stream) = accepted.await else { return };
                    let behind = TcpStream::connect(server).await.unwrap();
                    relay(stream, behind).await;
                });
            }
        });
        Self { port, connections }
    }
}

async fn relay(here: impl AsyncRead + AsyncWrite, behind: TcpStream) {
    let (mut asks, mut answers) = split(here);
    let (mut from_server, mut to_server) = behind.into_split();
    tokio::select! {
        _ended = copy(&mut asks, &mut to_server) => {}
        _ended = copy(&mut from_server, &mut answers) => {
            let _gone = answers.shutdown().await;
        }
    }
}
