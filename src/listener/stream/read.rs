//! The bytes from the peer to hyper.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::inbound::StopReason;
use super::state::{CloseState, PeerStream};
use crate::listener::refusal::EarlyRefusal;
use crate::telemetry::Limit;

/// The most bytes of one read on HTTP/1. hyper doubles its read buffer when a read fills it, from 8
/// KiB on. This number is one byte too small to make the buffer grow beyond 16 KiB.
const READ_BYTES_MAX: usize = 16 * 1024 - 1;

impl<I: AsyncRead + AsyncWrite + Unpin> PeerStream<I> {
    pub(super) fn poll_read_http1(
        &mut self,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        self.count_partial_head()?;
        let before = buffer.filled().len();
        ready!(self.poll_read_limited(context, buffer))?;
        self.note_read(buffer.filled().get(before..).unwrap_or_default());
        Poll::Ready(Ok(()))
    }

    /// Reads at most [`READ_BYTES_MAX`].
    fn poll_read_limited(
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

    fn note_read(&mut self, bytes: &[u8]) {
        if bytes.is_empty() {
            self.close = CloseState::PeerClosed;
            return;
        }
        // While a request is served, the bytes belong to its body, or to a pipelined request that
        // hyper reads later.
        if !self.timer.is_serving() {
            self.head.content_length.follow(bytes);
            self.head.bytes = self.head.bytes.saturating_add(bytes.len());
        }
        self.timer.head_began();
    }

    /// Gives h2 what it reads next, in this order: bytes that are ready, a pause after each head,
    /// new bytes, and at last the end.
    pub(super) fn poll_read_http2(
        &mut self,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        while let Some(http2) = &mut self.http2 {
            if http2.inbound.give(buffer) {
                return Poll::Ready(Ok(()));
            }
            // h2 would go on to the next head before it hands this request over. The memory of a
            // request is counted when it is handed over, so h2 is told once that nothing can be
            // read.
            if http2.inbound.take_head_given() {
                context.waker().wake_by_ref();
                return Poll::Pending;
            }
            if let Some(reason) = http2.inbound.stop_reason()
                && http2.end.is_none()
            {
                self.stop_reading(reason);
            } else if http2.end.is_some() {
                if let Some(ended) = ready!(self.poll_end(context)) {
                    return Poll::Ready(ended);
                }
            } else {
                ready!(self.poll_take(context, buffer));
            }
        }
        Poll::Ready(Ok(()))
    }

    /// Gives h2 the end. When h2 learns of the end, it forgets the requests that are being served.
    /// Those requests are complete and must be answered, so this waits for them. None if h2 has to
    /// read something first.
    fn poll_end(&mut self, context: &mut Context<'_>) -> Poll<Option<io::Result<()>>> {
        let Some(http2) = &mut self.http2 else { return Poll::Ready(Some(Ok(()))) };
        if http2.inbound.cancel_incomplete() {
            return Poll::Ready(None);
        }
        ready!(self.timer.poll_none_served(context));
        // h2 writes the rest of the last answers when it finds nothing to read.
        if !std::mem::replace(&mut http2.polled_for_last_write, true) {
            context.waker().wake_by_ref();
            return Poll::Pending;
        }
        // The write that waits for room wakes this task, and h2 reads again after it.
        if self.written.unflushed {
            return Poll::Pending;
        }
        if http2.inbound.provoke_goaway() {
            return Poll::Ready(None);
        }
        Poll::Ready(Some(http2.end.replace(Ok(())).unwrap_or(Ok(()))))
    }

    /// Reads bytes or the end. h2 does not get the bytes before they are sorted.
    fn poll_take(&mut self, context: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<()> {
        if let Some(http2) = &self.http2 {
            if http2.inbound.is_mid_frame() {
                self.timer.head_began();
            } else {
                self.timer.head_ended();
            }
        }
        let counted = self.count_partial_head();
        let Some(http2) = &mut self.http2 else { return Poll::Ready(()) };
        if let Err(no_memory) = counted {
            http2.end = Some(Err(no_memory));
            self.head.memory = None;
            return Poll::Ready(());
        }
        // The caller's buffer is used as space to read into, and given back empty.
        let before = buffer.filled().len();
        let read = ready!(Pin::new(&mut self.io).poll_read(context, buffer));
        let bytes = buffer.filled().get(before..).unwrap_or_default();
        if read.is_err() || bytes.is_empty() {
            http2.end = Some(read);
            self.close = CloseState::PeerClosed;
        } else {
            http2.inbound.take(bytes);
        }
        buffer.set_filled(before);
        Poll::Ready(())
    }

    fn stop_reading(&mut self, reason: StopReason) {
        match reason {
            StopReason::HeadTooLong => {
                let refusal = EarlyRefusal::HeadTooLarge(Limit::HeaderBytes);
                self.head_limits.record_refusal(refusal, self.peer);
            }
            // A peer that must close sends nothing more, so there is nothing to linger for.
            StopReason::PeerGoaway => self.close = CloseState::PeerClosed,
            // The GOAWAY that h2 writes about it is recorded when it is written.
            StopReason::NotHttp2 => {}
        }
        if let Some(http2) = &mut self.http2 {
            http2.end = Some(Ok(()));
        }
    }
}
