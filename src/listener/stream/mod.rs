//! The stream between hyper and the socket of one connection.
//!
//! The stream tells the timer when bytes flow, counts the memory of a head that is still arriving,
//! and closes a connection without cutting off its last answer.
//!
//! It also sees the requests that hyper and h2 refuse themselves. On HTTP/1 it replaces their
//! answer, which has no body. On HTTP/2 it counts and logs what h2 refused.
//!
//! | file | what it does |
//! | --- | --- |
//! | `state.rs` | the state of a stream; detects the protocol |
//! | `read.rs`, `write.rs` | the two directions |
//! | `http2.rs`, `inbound.rs`, `outbound.rs` | what an HTTP/2 stream keeps: frames in and out |
//! | `partial_head.rs`, `incomplete.rs` | a head whose last frame has not arrived; the requests whose end has not |
//! | `frames.rs` | the header of a frame |

mod frames;
mod http2;
mod inbound;
mod incomplete;
mod outbound;
mod partial_head;
mod read;
mod state;
mod write;

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Buf;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

pub(super) use state::{PeerStream, Protocol};

impl<I: AsyncRead + AsyncWrite + Unpin> AsyncRead for PeerStream<I> {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        // The bytes that showed the protocol belong to the first head.
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

impl<I: AsyncRead + AsyncWrite + Unpin> AsyncWrite for PeerStream<I> {
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
        this.without_write_error(written, bytes.len())
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
        this.without_write_error(written, length)
    }

    fn is_write_vectored(&self) -> bool {
        self.io.is_write_vectored()
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        ready!(this.poll_replacement(context))?;
        ready!(Pin::new(&mut this.io).poll_flush(context))?;
        this.written.unflushed = false;
        this.written.answers = this.timer.answers();
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.get_mut().poll_close(context)
    }
}
