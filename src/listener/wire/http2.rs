//! The bytes of an HTTP/2 connection: h2 gets them frame by frame, and hears of the end of them when
//! all that is complete was answered.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::arriving::{Arriving, Over};
use super::written::{Said, Written};
use super::{Ending, Wire};
use crate::listener::refusal::Refusal;
use crate::telemetry::Limit;

/// Both directions of an HTTP/2 connection.
#[derive(Debug)]
pub(super) struct Http2 {
    arriving: Arriving,
    written: Written,
    /// h2 has had the time to write what it has of the last answers.
    last_written: bool,
}

impl Http2 {
    /// So much is taken of one head.
    pub(super) fn new(head_bytes_max: usize) -> Self {
        let arriving = Arriving::new(head_bytes_max);
        Self { arriving, written: Written::new(), last_written: false }
    }

    /// What is in memory of what has not come to its end.
    pub(super) fn held_bytes(&self) -> usize {
        self.arriving.held_bytes()
    }
}

impl<I: AsyncRead + AsyncWrite + Unpin> Wire<I> {
    pub(super) fn poll_read_http2(
        &mut self,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        while let Some(Http2 { arriving, last_written, .. }) = &mut self.http2 {
            if arriving.give(buffer) {
                return Poll::Ready(Ok(()));
            }
            // h2 would go on to the next head before it hands this one over. So it is made to believe
            // for once that there is no more: the memory of a request is counted when it is handed over.
            if arriving.take_head_given() {
                context.waker().wake_by_ref();
                return Poll::Pending;
            }
            if let Some(over) = arriving.over()
                && self.held_end.is_none()
            {
                self.end_because(over);
            } else if let Some(end) = &mut self.held_end {
                // When h2 hears of the end it forgets the requests that are being served. They are
                // complete, and are to be answered for all that.
                if arriving.cancel_incomplete() {
                    continue;
                }
                ready!(self.watch.poll_unserved(context));
                if !std::mem::replace(last_written, true) {
                    // What h2 has of the last answers it writes when there is nothing to read.
                    context.waker().wake_by_ref();
                    return Poll::Pending;
                }
                if self.written.unflushed {
                    // Whoever waits for room to write reads again then.
                    return Poll::Pending;
                }
                if !arriving.provoke_goodbye() {
                    return Poll::Ready(std::mem::replace(end, Ok(())));
                }
            } else {
                ready!(self.poll_take(context, buffer));
            }
        }
        Poll::Ready(Ok(()))
    }

    /// Reads what is not given to h2 before it is looked at, or the end.
    fn poll_take(&mut self, context: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<()> {
        if let Some(Http2 { arriving, .. }) = &self.http2 {
            if arriving.is_within() { self.watch.head_began() } else { self.watch.head_ended() }
        }
        if let Err(no_memory) = self.count_partial_head() {
            self.held_end = Some(Err(no_memory));
            self.head.memory = None;
            return Poll::Ready(());
        }
        let before = buffer.filled().len();
        let read = ready!(Pin::new(&mut self.io).poll_read(context, buffer));
        let bytes = buffer.filled().get(before..).unwrap_or_default();
        if read.is_err() || bytes.is_empty() {
            self.held_end = Some(read);
            self.ending = Ending::PeerDone;
        } else if let Some(Http2 { arriving, .. }) = &mut self.http2 {
            arriving.take(bytes);
        }
        buffer.set_filled(before);
        Poll::Ready(())
    }

    fn end_because(&mut self, over: Over) {
        match over {
            Over::HeadTooLong => {
                self.heads.refused(Refusal::HeadTooLarge(Limit::HeaderBytes), self.peer);
            }
            Over::GivenUp => self.ending = Ending::PeerDone,
            Over::Broken => {}
        }
        self.held_end = Some(Ok(()));
    }

    /// On HTTP/2 a peer that takes nothing more is found out by reading, which comes to its end:
    /// a failed write would end what is read and not served yet.
    pub(super) fn unless_gone(
        &self,
        written: Poll<io::Result<usize>>,
        length: usize,
    ) -> Poll<io::Result<usize>> {
        match written {
            Poll::Ready(Err(_)) if self.http2.is_some() => Poll::Ready(Ok(length)),
            Poll::Ready(_) | Poll::Pending => written,
        }
    }

    /// Finds in what was written the streams that h2 resets and what it refuses by itself.
    pub(super) fn follow_written<'b>(
        &mut self,
        length: usize,
        slices: impl IntoIterator<Item = &'b [u8]>,
    ) {
        let Some(Http2 { arriving, written: follower, .. }) = &mut self.http2 else { return };
        let mut left = length;
        for slice in slices {
            let written = slice.get(..left).unwrap_or(slice);
            left -= written.len();
            follower.follow(written, |said| match said {
                Said::Reset(stream) => arriving.forget(stream),
                // The reason for this goodbye was told.
                Said::Refused(_) if arriving.over() == Some(Over::HeadTooLong) => {}
                Said::Refused(refusal) => self.heads.refused(refusal, self.peer),
            });
        }
    }
}
