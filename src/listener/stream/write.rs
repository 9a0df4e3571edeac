//! The bytes from hyper to the peer, and the end of a connection.

use std::io;
use std::mem::MaybeUninit;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Buf;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::sleep;

use super::state::{CloseState, PeerStream};
use crate::listener::refusal::EarlyRefusal;
use crate::listener::settings::LINGER_BYTES_MAX;

/// For how long a peer may still write after the last answer.
const LINGER_TIMEOUT: Duration = Duration::from_secs(2);

/// How an answer of hyper's own begins. It is always HTTP/1.1, and always a client error.
const OWN_ANSWER: &[u8] = b"HTTP/1.1 4";

impl<I: AsyncRead + AsyncWrite + Unpin> PeerStream<I> {
    pub(super) fn note_write<'b>(
        &mut self,
        written: &Poll<io::Result<usize>>,
        slices: impl IntoIterator<Item = &'b [u8]>,
    ) {
        self.written.unflushed = true;
        match written {
            Poll::Ready(Ok(length)) => {
                self.timer.wrote();
                let Self { http2, head_limits, peer, .. } = self;
                if let Some(http2) = http2 {
                    let report = |refusal| head_limits.record_refusal(refusal, *peer);
                    http2.follow_written(*length, slices, report);
                }
            }
            Poll::Ready(Err(_)) => {}
            Poll::Pending => self.timer.write_blocked(),
        }
    }

    /// The result of a write as h2 gets it: a failed write counts as a successful one.
    ///
    /// An error would end the connection at once, together with requests that were read and not
    /// served yet. A peer that takes no more bytes is noticed by the reading side, which then comes
    /// to its end.
    pub(super) fn without_write_error(
        &self,
        written: Poll<io::Result<usize>>,
        length: usize,
    ) -> Poll<io::Result<usize>> {
        match written {
            Poll::Ready(Err(_)) if self.http2.is_some() => Poll::Ready(Ok(length)),
            Poll::Ready(_) | Poll::Pending => written,
        }
    }

    /// Whether hyper is writing an answer of its own, to a request that it cannot read. Such an
    /// answer has no body, and hyper closes the connection after it. It is discarded, and
    /// Onceward's answer is written in its place.
    ///
    /// hyper reads a head only after the previous request was answered and the whole answer was
    /// flushed. So all that hyper writes while a request is served, or while the end of an answer
    /// waits in its buffer, is a part of that answer.
    pub(super) fn replaces(&mut self, bytes: &[u8]) -> bool {
        let is_own = self.http2.is_none()
            && !self.timer.is_serving()
            && self.written.answers == self.timer.answers()
            && bytes.starts_with(OWN_ANSWER);
        if is_own {
            let status = bytes.get(9..12).unwrap_or_default();
            let refusal = if self.head.content_length.is_too_large() {
                EarlyRefusal::BodyTooLarge
            } else {
                EarlyRefusal::of_status(status, self.head_limits.exceeded_by(self.head.bytes))
            };
            self.head_limits.record_refusal(refusal, self.peer);
            self.written.replacement = refusal.http1_bytes();
        }
        is_own
    }

    /// Writes the answer that replaces hyper's own.
    pub(super) fn poll_replacement(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        while !self.written.replacement.is_empty() {
            let written = Pin::new(&mut self.io).poll_write(context, &self.written.replacement);
            self.note_write(&written, []);
            match ready!(written)? {
                0 => return Poll::Ready(Err(io::ErrorKind::WriteZero.into())),
                length => self.written.replacement.advance(length),
            }
        }
        Poll::Ready(Ok(()))
    }

    /// Closes the connection in a way that lets the peer read the last answer.
    pub(super) fn poll_close(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        if !matches!(self.close, CloseState::Lingering { .. }) {
            ready!(self.poll_replacement(context))?;
            ready!(Pin::new(&mut self.io).poll_shutdown(context))?;
            // If the peer sends nothing more or waits for no answer, there is no reason to linger.
            if matches!(self.close, CloseState::PeerClosed) || self.timer.closed_idle() {
                return Poll::Ready(Ok(()));
            }
            let timer = Box::pin(sleep(LINGER_TIMEOUT));
            self.close = CloseState::Lingering { timer, bytes_left: LINGER_BYTES_MAX };
            self.timer.stop();
        }
        self.poll_linger(context).map(Ok)
    }

    /// Reads and discards what the peer still sends. Closing a socket with unread bytes resets the
    /// connection, and a reset can take away an answer that the peer has not read yet (RFC 9112,
    /// 9.6).
    fn poll_linger(&mut self, context: &mut Context<'_>) -> Poll<()> {
        let CloseState::Lingering { timer, bytes_left } = &mut self.close else {
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
