//! A sender on a bare connection: it can stop, hang up and lie at any byte.

use std::net::SocketAddr;
use std::time::Duration;

use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::timeout;

use super::Reply;

/// A connection to the proxy.
#[derive(Debug)]
pub struct RawSender(pub TcpStream);

impl RawSender {
    pub async fn connect(address: SocketAddr) -> Self {
        Self(TcpStream::connect(address).await.unwrap())
    }

    pub async fn writes(&mut self, bytes: &[u8]) {
        self.0.write_all(bytes).await.unwrap();
    }

    /// Everything until the proxy closes the connection.
    pub async fn reads_to_the_end(&mut self) -> Vec<u8> {
        let mut all = Vec::new();
        // A reset ends it too.
        let _reset = self.0.read_to_end(&mut all).await;
        all
    }

    /// Reads until these bytes have come.
    pub async fn reads_until(&mut self, needle: &[u8]) -> Vec<u8> {
        let mut all = Vec::new();
        while !all.windows(needle.len()).any(|window| window == needle) {
            assert_ne!(self.0.read_buf(&mut all).await.unwrap(), 0, "{all:?}");
        }
        all
    }

    /// Writes for as long as the other side takes it.
    pub async fn tries_to_write(&mut self, bytes: &[u8]) {
        let _closed = self.0.write_all(bytes).await;
    }

    /// Reads one answer that says how long it is; 1xx answers count as answers.
    pub async fn reads_reply(&mut self) -> Reply {
        let mut bytes = Vec::new();
        loop {
            if let Some(reply) = parse(&bytes) {
                return reply;
            }
            let read = timeout(Duration::from_secs(20), self.0.read_buf(&mut bytes)).await;
            let text = String::from_utf8_lossy(&bytes);
            assert_ne!(read.expect("an answer").unwrap(), 0, "it ends within an answer: `{text}`");
        }
    }

    /// The head of the next answer, and not a byte more; interim answers are skipped.
    pub async fn reads_head(&mut self) -> Reply {
        loop {
            let mut head = Vec::new();
            while !head.ends_with(b"\r\n\r\n") {
                head.push(self.0.read_u8().await.expect("a whole head"));
            }
            let reply = Reply::head(&head);
            if reply.status >= 200 {
                return reply;
            }
        }
    }

    /// The next answer, which says how long its body is.
    pub async fn reads_answer(&mut self) -> Reply {
        let mut reply = self.reads_head().await;
        let length = reply.header("content-length").map(|length| length.parse().unwrap());
        assert!(length.is_some() || [204, 304].contains(&reply.status), "no length: {reply:?}");
        reply.body = self.reads_exactly(length.unwrap_or_default()).await;
        reply
    }

    pub async fn reads_exactly(&mut self, bytes: usize) -> Vec<u8> {
        let mut read = vec![0; bytes];
        self.0.read_exact(&mut read).await.expect("as many bytes");
        read
    }

    /// Closes with RST instead of FIN.
    pub fn resets(self) {
        self.0.set_zero_linger().unwrap();
    }

    /// Closes in good order.
    pub fn hangs_up(self) {
        drop(self.0);
    }
}

/// The one answer that these bytes are; none if there is more to come.
fn parse(bytes: &[u8]) -> Option<Reply> {
    let mut lines = [httparse::EMPTY_HEADER; 100];
    let mut head = httparse::Response::new(&mut lines);
    let httparse::Status::Complete(end) = head.parse(bytes).unwrap() else { return None };
    let headers: HeaderMap = head
        .headers
        .iter()
        .map(|line| {
            let value = HeaderValue::from_bytes(line.value).unwrap();
            (line.name.parse::<HeaderName>().unwrap(), value)
        })
        .collect();
    let length = headers.get("content-length").map_or(0, |v| v.to_str().unwrap().parse().unwrap());
    let body = bytes.get(end..end + length)?.to_vec();
    assert_eq!(bytes.len(), end + length, "bytes behind the answer");
    Some(Reply { status: head.code.unwrap(), headers, body })
}
