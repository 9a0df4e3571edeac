//! The bytes of one connection: notes when they flow, and closes without cutting off the answer.
//!
//! It is also where hyper's own refusals are seen: on HTTP/1 it writes the answer that such a
//! request gets in the place of hyper's, which has no body; on HTTP/2 it notes what h2 resets.

mod arriving;
mod frames;
mod http2;
mod written;

use std::io;
use std::mem::MaybeUninit;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::{Buf, BufMut, Bytes, BytesMut};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, ReadBuf};
use tokio::time::{Sleep, sleep};

use super::heads::Heads;
use super::length::LengthLine;
use super::refusal::Refusal;
use super::watch::Watch;
use crate::budget::Reserved;
use http2::Http2;

/// What a sender may still write after the last answer, and for how long.
pub(super) const LINGER_BYTES_MAX: usize = 1024 * 1024;
const LINGER_TIMEOUT: Duration = Duration::from_secs(2);

/// The most that is read at a time on HTTP/1: just below the size to which hyper's buffer for the
/// next read may grow, so that it grows no further.
const READ_BYTES_MAX: usize = 16 * 1024 - 1;

/// How an answer of hyper's own begins: it is always one of HTTP/1.1, and none of an interim kind.
const OWN_ANSWER: &[u8] = b"HTTP/1.1 4";

/// What an HTTP/2 connection begins with (RFC 9113, 3.4).
const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// What a connection speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Protocol {
    /// HTTP/1.0 or HTTP/1.1.
    Http1,
    /// HTTP/2 with prior knowledge.
    Http2,
}

/// A connection's bytes.
#[derive(Debug)]
pub(super) struct Wire<I> {
    io: I,
    watch: Arc<Watch>,
    heads: Arc<Heads>,
    peer: SocketAddr,
    /// What was read to know the protocol.
    read_ahead: BytesMut,
    head: PartialHead,
    http2: Option<Http2>,
    written: WrittenSoFar,
    /// On HTTP/2, that nothing more is read, or why. It is held until nothing is served.
    held_end: Option<io::Result<()>>,
    ending: Ending,
}

/// What is in memory of a head that is still coming.
#[derive(Debug, Default)]
struct PartialHead {
    /// What was read since the last head ended, on HTTP/1.
    bytes: usize,
    /// Heads that had ended when something was last read.
    requests: usize,
    length: LengthLine,
    memory: Option<Reserved>,
}

/// What was written.
#[derive(Debug, Default)]
struct WrittenSoFar {
    /// Something was written since the last flush.
    unflushed: bool,
    /// Answers that are written as a whole.
    answers: usize,
    /// What is written in place of hyper's own answer.
    instead: Bytes,
}

/// How far the end of a connection has come.
#[derive(Debug)]
enum Ending {
    /// Both directions are open.
    Open,
    /// The peer has said that it sends no more.
    PeerDone,
    /// Nothing more is written; what the peer still writes is thrown away.
    Lingering { timer: Pin<Box<Sleep>>, bytes_left: usize },
}

impl<I: AsyncRead + AsyncWrite + Unpin> Wire<I> {
    pub(super) fn new(io: I, watch: Arc<Watch>, heads: Arc<Heads>, peer: SocketAddr) -> Self {
        Self {
            io,
            watch,
            heads,
            peer,
            read_ahead: BytesMut::with_capacity(PREFACE.len()),
            head: PartialHead::default(),
            http2: None,
            written: WrittenSoFar::default(),
            held_end: None,
            ending: Ending::Open,
        }
    }

    /// Reads until it is known what the peer speaks. No more than that is read, and none of it is
    /// lost.
    pub(super) async fn detect(&mut self) -> io::Result<Protocol> {
        while self.read_ahead.len() < PREFACE.len() {
            let missing = PREFACE.len() - self.read_ahead.len();
            let read = self.io.read_buf(&mut (&mut self.read_ahead).limit(missing)).await?;
            if read == 0 || !PREFACE.starts_with(&self.read_ahead) {
                self.head.bytes = self.read_ahead.len();
                self.head.length.follow(&self.read_ahead);
                return Ok(Protocol::Http1);
            }
        }
        self.http2 = Some(Http2::new(self.heads.list_bytes_max()));
        Ok(Protocol::Http2)
    }

    fn note_read(&mut self, bytes: &[u8]) {
        if bytes.is_empty() {
            self.ending = Ending::PeerDone;
            return;
        }
        if !self.watch.is_serving() {
            self.head.length.follow(bytes);
            self.head.bytes = self.head.bytes.saturating_add(bytes.len());
        }
        self.watch.head_began();
    }

    /// What was read of a head whose end has not come is in memory: it is counted before more is
    /// read.
    fn count_partial_head(&mut self) -> io::Result<()> {
        let requests = self.watch.requests();
        let bytes = match &self.http2 {
            Some(http2) => http2.held_bytes(),
            None if requests != self.head.requests || self.watch.is_serving() => {
                self.head.requests = requests;
                self.head.bytes = 0;
                self.head.length = LengthLine::default();
                0
            }
            None if self.head.bytes <= PREFACE.len() => 0,
            None => self.head.bytes,
        };
        let bytes = if bytes == 0 { 0 } else { Heads::of_partial(bytes) };
        let held = self.heads.hold(&mut self.head.memory, bytes);
        held.inspect_err(|_| self.heads.refused(Refusal::Overloaded, self.peer))
    }

    /// Reads, no more than so much at a time.
    fn poll_some(
        &mut self,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if buffer.remaining() <= READ_BYTES_MAX {
            return Pin::new(&mut self.io).poll_read(context, buffer);
        }
        let mut part = ReadBuf::new(buffer.initialize_unfilled_to(READ_BYTES_MAX));
        ready!(Pin::new(&mut self.io).poll_read(context, &mut part))?;
        let length = part.filled().len();
        buffer.advance(length);
        Poll::Ready(Ok(()))
    }

    fn poll_read_http1(
        &mut self,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        self.count_partial_head()?;
        let before = buffer.filled().len();
        ready!(self.poll_some(context, buffer))?;
        self.note_read(buffer.filled().get(before..).unwrap_or_default());
        Poll::Ready(Ok(()))
    }

    fn note_write<'b>(
        &mut self,
        written: &Poll<io::Result<usize>>,
        slices: impl IntoIterator<Item = &'b [u8]>,
    ) {
        self.written.unflushed = true;
        match written {
            Poll::Ready(Ok(length)) => {
                self.watch.wrote();
                self.follow_written(*length, slices);
            }
            Poll::Ready(Err(_)) => {}
            Poll::Pending => self.watch.write_blocked(),
        }
    }

    /// hyper answers a request that it cannot read by itself, without a body, and then closes. It
    /// reads a head only when the request before was answered and all of that answer was flushed.
    /// So what it writes while a request is served, or while the end of an answer waits in its
    /// buffer, is a part of that answer, whatever it looks like.
    fn replaces(&mut self, bytes: &[u8]) -> bool {
        let is_own = self.http2.is_none()
            && !self.watch.is_serving()
            && self.written.answers == self.watch.answers()
            && bytes.starts_with(OWN_ANSWER);
        if is_own {
            let status = bytes.get(9..12).unwrap_or_default();
            let refusal = if self.head.length.is_too_great() {
                Refusal::BodyTooLarge
            } else {
                Refusal::of_status(status, self.heads.passed(self.head.bytes))
            };
            self.heads.refused(refusal, self.peer);
            self.written.instead = refusal.on_the_wire();
        }
        is_own
    }

    /// Writes what stands in place of hyper's own answer.
    fn poll_instead(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        while !self.written.instead.is_empty() {
            let written = Pin::new(&mut self.io).poll_write(context, &self.written.instead);
            self.note_write(&written, []);
            match ready!(written)? {
                0 => return Poll::Ready(Err(io::ErrorKind::WriteZero.into())),
                length => self.written.instead.advance(length),
            }
        }
        Poll::Ready(Ok(()))
    }

    /// Throws away what the peer still writes. Closing a socket with unread bytes resets the
    /// connection, and a reset takes away an answer that the peer has not read yet.
    fn poll_linger(&mut self, context: &mut Context<'_>) -> Poll<()> {
        let Ending::Lingering { timer, bytes_left } = &mut self.ending else {
            return Poll::Ready(());
        };
        let mut space = [MaybeUninit::uninit(); 4096];
        while *bytes_left > 0 && timer.as_mut().poll(context).is_pending() {
            let mut unread = ReadBuf::uninit(&mut space);
            let read = ready!(Pin::new(&mut self.io).poll_read(context, &mut unread));
            if read.is_err() || unread.filled().is_empty() {
                break;
            }
            *bytes_left = bytes_left.saturating_sub(unread.filled().len());
        }
        Poll::Ready(())
    }
}

impl<I: AsyncRead + AsyncWrite + Unpin> AsyncRead for Wire<I> {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        if this.read_ahead.has_remaining() {
            let length = this.read_ahead.len().min(buffer.remaining());
            buffer.put_slice(&this.read_ahead.split_to(length));
            return Poll::Ready(Ok(()));
        }
        if this.http2.is_some() {
            this.poll_read_http2(context, buffer)
        } else {
            this.poll_read_http1(context, buffer)
        }
    }
}

impl<I: AsyncRead + AsyncWrite + Unpin> AsyncWrite for Wire<I> {
    fn poll_write(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        if this.replaces(bytes) {
            return Poll::Ready(Ok(bytes.len()));
        }
        let written = Pin::new(&mut this.io).poll_write(context, bytes);
        this.note_write(&written, [bytes]);
        this.unless_gone(written, bytes.len())
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        let length = slices.iter().map(|slice| slice.len()).sum();
        if slices.first().is_some_and(|head| this.replaces(head)) {
            return Poll::Ready(Ok(length));
        }
        let written = Pin::new(&mut this.io).poll_write_vectored(context, slices);
        this.note_write(&written, slices.iter().map(|slice| &**slice));
        this.unless_gone(written, length)
    }

    fn is_write_vectored(&self) -> bool {
        self.io.is_write_vectored()
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        ready!(this.poll_instead(context))?;
        ready!(Pin::new(&mut this.io).poll_flush(context))?;
        this.written.unflushed = false;
        this.written.answers = this.watch.answers();
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        if !matches!(this.ending, Ending::Lingering { .. }) {
            ready!(this.poll_instead(context))?;
            ready!(Pin::new(&mut this.io).poll_shutdown(context))?;
            if matches!(this.ending, Ending::PeerDone) || this.watch.closes_idle() {
                return Poll::Ready(Ok(()));
            }
            let timer = Box::pin(sleep(LINGER_TIMEOUT));
            this.ending = Ending::Lingering { timer, bytes_left: LINGER_BYTES_MAX };
            this.watch.closing();
        }
        this.poll_linger(context).map(Ok)
    }
}
