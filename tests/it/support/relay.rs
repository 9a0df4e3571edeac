//! A relay in front of a server: it counts connections, and can terminate TLS.

use std::future::pending;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use rustls::ServerConfig;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt as _, copy, split};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio_rustls::TlsAcceptor;

/// Hands bytes on to a server and counts connections. When the server closes one, it is closed at
/// once, as TLS terminators do.
#[derive(Debug)]
pub struct Relay {
    pub port: u16,
    connections: Arc<AtomicUsize>,
    silence: watch::Sender<()>,
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

    /// Hands on no more bytes of the connections that there are, and leaves them open, as a network
    /// does that drops packets. New connections are served.
    pub fn goes_silent(&self) {
        self.silence.send_replace(());
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
        let silence = watch::Sender::new(());
        let silenced = silence.subscribe();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                count.fetch_add(1, Ordering::SeqCst);
                let accepted = accept.clone()(stream);
                let mut silenced = silenced.clone();
                silenced.mark_unchanged();
                tokio::spawn(async move {
                    let Some(stream) = accepted.await else { return };
                    let behind = TcpStream::connect(server).await.unwrap();
                    relay(stream, behind, silenced).await;
                });
            }
        });
        Self { port, connections, silence }
    }
}

async fn relay(
    here: impl AsyncRead + AsyncWrite,
    behind: TcpStream,
    mut silenced: watch::Receiver<()>,
) {
    let (mut asks, mut answers) = split(here);
    let (mut from_server, mut to_server) = behind.into_split();
    tokio::select! {
        _ended = copy(&mut asks, &mut to_server) => {}
        _ended = copy(&mut from_server, &mut answers) => {
            let _gone = answers.shutdown().await;
        }
        // Both sockets stay open until the test ends.
        Ok(()) = silenced.changed() => pending().await,
    }
}
