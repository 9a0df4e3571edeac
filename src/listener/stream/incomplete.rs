//! The requests on an HTTP/2 connection whose head h2 has, and whose end has not arrived.

use std::collections::BTreeSet;
use std::mem;

use bytes::BytesMut;

use super::frames::{CANCEL, FrameHeader, RST_STREAM, write_header};

/// The streams of incomplete requests. The set is bounded, because h2 resets streams beyond its
/// limit.
#[derive(Debug, Default)]
pub(super) struct IncompleteRequests(BTreeSet<u32>);

impl IncompleteRequests {
    /// Notes that h2 gets a head, or trailers, which end their stream.
    pub(super) fn note_head(&mut self, header: FrameHeader) {
        if header.ends_stream() {
            self.forget(header.stream);
        } else {
            self.0.insert(header.stream);
        }
    }

    /// Notes that a request is complete, or that h2 has reset its stream.
    pub(super) fn forget(&mut self, stream: u32) {
        self.0.remove(&stream);
    }

    /// If the request of this stream is incomplete, tells h2 that the peer has cancelled it,
    /// whatever code the peer gave. Returns whether it was incomplete.
    ///
    /// For hyper a reset with `NO_ERROR` is the end of a body, as it is in a client whose server
    /// has answered early (RFC 9113, 8.1). From a sender it would make a whole event of half a
    /// body.
    pub(super) fn cancel(&mut self, stream: u32, ready: &mut BytesMut) -> bool {
        let is_incomplete = self.0.remove(&stream);
        if is_incomplete {
            write_cancel(ready, stream);
        }
        is_incomplete
    }

    /// Tells h2 that the peer has cancelled all incomplete requests. Returns whether there were
    /// any.
    pub(super) fn cancel_all(&mut self, ready: &mut BytesMut) -> bool {
        let all = mem::take(&mut self.0);
        for &stream in &all {
            write_cancel(ready, stream);
        }
        !all.is_empty()
    }
}

fn write_cancel(ready: &mut BytesMut, stream: u32) {
    write_header(ready, FrameHeader { length: 4, kind: RST_STREAM, flags: 0, stream });
    ready.extend_from_slice(&CANCEL.to_be_bytes());
}
