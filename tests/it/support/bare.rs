//! A receiver on bare connections, for what no `Act` does: it can answer early, drip and vanish.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinHandle;

use super::Seen;
use super::receiver::read;

/// A receiver whose connections are each in the hands of a closure.
#[derive(Debug)]
pub struct BareReceiver {
    pub address: SocketAddr,
    count: watch::Receiver<usize>,
    accepting: JoinHandle<()>,
}

/// One of its connections.
#[derive(Debug)]
pub struct Bare {
    pub stream: TcpStream,
    /// Which one it is.
    pub connection: usize,
    buffer: Vec<u8>,
    counted: Arc<watch::Sender<usize>>,
}

impl Drop for BareReceiver {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

impl BareReceiver {
    pub async fn that<T>(talk: impl Fn(Bare) -> T + Send + 'static) -> Self
    where
        T: Future<Output = ()> + Send + 'static,
    {
        Self::on(TcpListener::bind("127.0.0.1:0").await.unwrap(), talk)
    }

    pub fn on<T>(listener: TcpListener, talk: impl Fn(Bare) -> T + Send + 'static) -> Self
    where
        T: Future<Output = ()> + Send + 'static,
    {
        let address = listener.local_addr().unwrap();
        let (counted, count) = watch::channel(0);
        let counted = Arc::new(counted);
        let accepting = tokio::spawn(async move {
            let mut connection = 0;
            while let Ok((stream, _)) = listener.accept().await {
                let (buffer, counted) = (Vec::new(), Arc::clone(&counted));
                tokio::spawn(talk(Bare { stream, connection, buffer, counted }));
                connection += 1;
            }
        });
        Self { address, count, accepting }
    }

    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Waits until it has counted this many.
    pub async fn has_counted(&self, count: usize) {
        let mut counted = self.count.clone();
        let enough = counted.wait_for(|so_far| *so_far >= count);
        let waited = tokio::time::timeout(Duration::from_secs(20), enough).await;
        assert!(waited.is_ok(), "the receiver has not counted {count}");
    }

    #[track_caller]
    pub fn was_called(&self, times: usize) {
        assert_eq!(*self.count.borrow(), times, "the receiver's own count");
    }
}

impl Bare {
    /// Reads one whole request, and counts it.
    pub async fn reads_request(&mut self) -> Option<Seen> {
        let seen = read(&mut self.stream, &mut self.buffer, self.connection).await?;
        self.counts();
        Some(seen)
    }

    /// One more has come.
    pub fn counts(&self) {
        self.counted.send_modify(|count| *count += 1);
    }

    /// Whether the proxy still took the bytes.
    pub async fn writes(&mut self, bytes: &[u8]) -> bool {
        self.stream.write_all(bytes).await.is_ok()
    }

    /// Writes byte after byte, with a pause after each, until the proxy closes the connection.
    pub async fn drips(&mut self, bytes: &[u8], pause: Duration) {
        self.writes_slowly(bytes.chunks(1).cycle(), pause).await;
    }

    /// Writes the same piece again and again, with a pause after each, until the proxy closes the
    /// connection.
    pub async fn repeats(&mut self, piece: &[u8], pause: Duration) {
        self.writes_slowly(std::iter::repeat(piece), pause).await;
    }

    async fn writes_slowly<'b>(&mut self, pieces: impl Iterator<Item = &'b [u8]>, pause: Duration) {
        for piece in pieces {
            if !self.writes(piece).await {
                return;
            }
            // It is slow: that is what is tested.
            tokio::time::sleep(pause).await;
        }
    }

    /// Waits until the proxy closes the connection.
    pub async fn is_closed(&mut self) {
        let mut rest = [0; 4096];
        while self.stream.read(&mut rest).await.is_ok_and(|read| read > 0) {}
    }

    /// Closes with RST instead of FIN.
    pub fn resets(self) {
        self.stream.set_zero_linger().unwrap();
    }
}
