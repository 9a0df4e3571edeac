//! The bytes of one connection: notes when they flow, and closes without cutting off the answer.

use std::io;
use std::mem::MaybeUninit;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::{Buf, BufMut, BytesMut};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, ReadBuf};
use tokio::time::{Sleep, sleep};

use super::frames::Frames;
use super::watch::Watch;

/// What a sender may still write after the last answer, and for how long.
const LINGER_BYTES_MAX: usize = 1024 * 1024;
const LINGER_TIMEOUT: Duration = Duration::from_secs(2);

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
    /// What was read to know the protocol.
    read_ahead: BytesMut,
    frames: Option<Frames>,
    /// On HTTP/2, that the peer sends no more, or why; not yet told to whoever reads.
    held_end: Option<io::Result<()>>,
    ending: Ending,
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
    pub(super) fn new(io: I, watch: Arc<Watch>) -> Self {
        let read_ahead = BytesMut::with_capacity(PREFACE.len());
        Self { io, watch, read_ahead, frames: None, held_end: None, ending: Ending::Open }
    }

    /// Reads until it is known what the peer speaks. No more than that is read, and none of it is
    /// lost.
    pub(super) async fn detect(&mut self) -> io::Result<Protocol> {
        while self.read_ahead.len() < PREFACE.len() {
            let missing = PREFACE.len() - self.read_ahead.len();
            let read = self.io.read_buf(&mut (&mut self.read_ahead).limit(missing)).await?;
            if read == 0 || !PREFACE.starts_with(&self.read_ahead) {
                return Ok(Protocol::Http1);
            }
        }
        self.frames = Some(Frames::default());
        Ok(Protocol::Http2)
    }

    fn note_read(&mut self, bytes: &[u8]) {
        if bytes.is_empty() {
            self.ending = Ending::PeerDone;
            return;
        }
        match self.frames.as_mut().map(|frames| frames.follow(bytes)) {
            Some(false) => self.watch.head_ended(),
            Some(true) | None => self.watch.head_began(),
        }
    }

    /// h2 forgets the requests that it has not handed over yet, and those that are being served,
    /// when it hears of the end. They are complete, and are to be answered for all that.
    fn poll_held_end(&mut self, context: &Context<'_>) -> Poll<io::Result<()>> {
        ready!(self.watch.poll_unserved(context));
        self.ending = Ending::PeerDone;
        Poll::Ready(self.held_end.take().unwrap_or(Ok(())))
    }

    /// On HTTP/2 a peer that takes nothing more is found out by reading, which comes to its end:
    /// a failed write would end what is read and not served yet.
    fn unless_gone(
        &self,
        written: Poll<io::Result<usize>>,
        length: usize,
    ) -> Poll<io::Result<usize>> {
        match written {
            Poll::Ready(Err(_)) if self.frames.is_some() => Poll::Ready(Ok(length)),
            Poll::Ready(_) | Poll::Pending => written,
        }
    }

    fn note_write(&self, written: &Poll<io::Result<usize>>) {
        match written {
            Poll::Ready(Ok(_)) => self.watch.wrote(),
            Poll::Ready(Err(_)) => {}
            Poll::Pending => self.watch.write_blocked(),
        }
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
        if this.held_end.is_some() {
            return this.poll_held_end(context);
        }
        let before = buffer.filled().len();
        let read = ready!(Pin::new(&mut this.io).poll_read(context, buffer));
        let bytes = buffer.filled().get(before..).unwrap_or_default();
        let ends = read.is_err() || bytes.is_empty();
        if ends && this.frames.is_some() && matches!(this.ending, Ending::Open) {
            this.held_end = Some(read);
            // Once more, when what was read before has been looked at.
            context.waker().wake_by_ref();
            return Poll::Pending;
        }
        read?;
        this.note_read(bytes);
        Poll::Ready(Ok(()))
    }
}

impl<I: AsyncRead + AsyncWrite + Unpin> AsyncWrite for Wire<I> {
    fn poll_write(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        let written = Pin::new(&mut this.io).poll_write(context, bytes);
        this.note_write(&written);
        this.unless_gone(written, bytes.len())
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        let written = Pin::new(&mut this.io).poll_write_vectored(context, slices);
        this.note_write(&written);
        this.unless_gone(written, slices.iter().map(|slice| slice.len()).sum())
    }

    fn is_write_vectored(&self) -> bool {
        self.io.is_write_vectored()
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().io).poll_flush(context)
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        if !matches!(this.ending, Ending::Lingering { .. }) {
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
