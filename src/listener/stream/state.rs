//! The state of a stream, and how its protocol is detected.

use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;

use bytes::{BufMut, Bytes, BytesMut};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite};
use tokio::time::Sleep;

use super::http2::Http2;
use crate::budget::Reserved;
use crate::listener::content_length::ContentLengthScan;
use crate::listener::head_limits::HeadLimits;
use crate::listener::refusal::EarlyRefusal;
use crate::listener::timer::ConnectionTimer;

/// What an HTTP/2 connection begins with (RFC 9113, 3.4). No HTTP/1 request begins like this.
const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// The protocol of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::listener) enum Protocol {
    /// HTTP/1.0 or HTTP/1.1.
    Http1,
    /// HTTP/2 with prior knowledge (RFC 9113, 3.3).
    Http2,
}

/// The stream of one connection.
#[derive(Debug)]
pub(in crate::listener) struct PeerStream<I> {
    pub(super) io: I,
    pub(super) timer: Arc<ConnectionTimer>,
    pub(super) head_limits: Arc<HeadLimits>,
    pub(super) peer: SocketAddr,
    /// Bytes that were read to detect the protocol, and that hyper has not read.
    pub(super) read_ahead: BytesMut,
    pub(super) head: HeadProgress,
    /// None on HTTP/1.
    pub(super) http2: Option<Http2>,
    pub(super) written: WriteState,
    pub(super) close: CloseState,
}

/// A head that is still arriving.
#[derive(Debug, Default)]
pub(super) struct HeadProgress {
    /// On HTTP/1: how many bytes were read since the last head ended.
    pub(super) bytes: usize,
    /// On HTTP/1: how many heads had ended when the memory was last counted.
    requests: usize,
    pub(super) content_length: ContentLengthScan,
    pub(super) memory: Option<Reserved>,
}

/// The state of the writing side.
#[derive(Debug, Default)]
pub(super) struct WriteState {
    /// Bytes were written since the last flush.
    pub(super) unflushed: bool,
    /// How many answers were written and flushed as a whole.
    pub(super) answers: usize,
    /// The answer that is written in place of hyper's own.
    pub(super) replacement: Bytes,
}

/// How far the connection has been closed.
#[derive(Debug)]
pub(super) enum CloseState {
    /// Both directions are open.
    Open,
    /// The peer has closed its sending side.
    PeerClosed,
    /// Our sending side is closed. What the peer still sends is read and discarded.
    Lingering { timer: Pin<Box<Sleep>>, bytes_left: usize },
}

impl<I: AsyncRead + AsyncWrite + Unpin> PeerStream<I> {
    pub(in crate::listener) fn new(
        io: I,
        timer: Arc<ConnectionTimer>,
        head_limits: Arc<HeadLimits>,
        peer: SocketAddr,
    ) -> Self {
        Self {
            io,
            timer,
            head_limits,
            peer,
            read_ahead: BytesMut::with_capacity(PREFACE.len()),
            head: HeadProgress::default(),
            http2: None,
            written: WriteState::default(),
            close: CloseState::Open,
        }
    }

    /// Reads until the protocol is known. It reads no further than that, and hyper gets every byte.
    ///
    /// hyper-util's `auto` builder detects the protocol, too, but no timer of hyper's runs while it
    /// does so.
    pub(in crate::listener) async fn detect(&mut self) -> io::Result<Protocol> {
        while self.read_ahead.len() < PREFACE.len() {
            let missing = PREFACE.len() - self.read_ahead.len();
            let read = self.io.read_buf(&mut (&mut self.read_ahead).limit(missing)).await?;
            if read == 0 || !PREFACE.starts_with(&self.read_ahead) {
                self.head.bytes = self.read_ahead.len();
                self.head.content_length.follow(&self.read_ahead);
                return Ok(Protocol::Http1);
            }
        }
        self.http2 = Some(Http2::new(self.head_limits.list_bytes_max()));
        Ok(Protocol::Http2)
    }

    /// Counts the memory of a head that has not ended. It is called before each read, so a head
    /// cannot outgrow the budget unnoticed.
    pub(super) fn count_partial_head(&mut self) -> io::Result<()> {
        let requests = self.timer.requests();
        let bytes = match &self.http2 {
            Some(http2) => http2.unfinished_bytes(),
            // The head has ended. The request carries its own reservation from here on.
            None if requests != self.head.requests || self.timer.is_serving() => {
                self.head.requests = requests;
                self.head.bytes = 0;
                self.head.content_length = ContentLengthScan::default();
                0
            }
            // A few bytes are not worth a reservation. An idle connection has none.
            None if self.head.bytes <= PREFACE.len() => 0,
            None => self.head.bytes,
        };
        let bytes = if bytes == 0 { 0 } else { HeadLimits::memory_of_partial(bytes) };
        let reserved = self.head_limits.reserve_partial(&mut self.head.memory, bytes);
        reserved.inspect_err(|_| {
            self.head_limits.record_refusal(EarlyRefusal::Overloaded, self.peer);
        })
    }
}
