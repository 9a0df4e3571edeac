//! The state that the stream of an HTTP/2 connection keeps.

use std::io;

use super::inbound::{InboundFrames, StopReason};
use super::outbound::{OutboundEvent, OutboundFrames};
use crate::listener::refusal::EarlyRefusal;

/// The frames of both directions.
#[derive(Debug)]
pub(super) struct Http2 {
    pub(super) inbound: InboundFrames,
    outbound: OutboundFrames,
    /// The end of the bytes that are read, or the error that ended them. h2 gets it only after all
    /// complete requests were answered.
    pub(super) end: Option<io::Result<()>>,
    /// h2 was polled once more after the last request, to write the rest of the last answers.
    pub(super) polled_for_last_write: bool,
}

impl Http2 {
    /// The state of a connection on which only the preface was read. `head_bytes_max`: the most
    /// bytes of one head.
    pub(super) fn new(head_bytes_max: usize) -> Self {
        Self {
            inbound: InboundFrames::new(head_bytes_max),
            outbound: OutboundFrames::new(),
            end: None,
            polled_for_last_write: false,
        }
    }

    /// The bytes in memory of a frame and a head that have not ended.
    pub(super) fn unfinished_bytes(&self) -> usize {
        self.inbound.unfinished_bytes()
    }

    /// Follows the first `length` bytes that h2 wrote. Reports the requests that h2 refused itself.
    pub(super) fn follow_written<'b>(
        &mut self,
        length: usize,
        slices: impl IntoIterator<Item = &'b [u8]>,
        mut report: impl FnMut(EarlyRefusal),
    ) {
        let Self { inbound, outbound, .. } = self;
        let mut left = length;
        for slice in slices {
            let written = slice.get(..left).unwrap_or(slice);
            left -= written.len();
            outbound.follow(written, |event| match event {
                OutboundEvent::Reset(stream) => inbound.forget(stream),
                // `provoke_goaway` provoked this GOAWAY, and its reason was reported before.
                OutboundEvent::Refused(_)
                    if inbound.stop_reason() == Some(StopReason::HeadTooLong) => {}
                OutboundEvent::Refused(refusal) => report(refusal),
            });
        }
    }
}
