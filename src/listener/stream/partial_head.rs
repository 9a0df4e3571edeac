//! A head whose CONTINUATION frames are still arriving.

use bytes::BytesMut;

use super::frames::{CONTINUATION, END_HEADERS, FrameHeader, PAYLOAD_MAX, write_header};

/// A head whose CONTINUATION frames are still arriving.
#[derive(Debug)]
pub(super) struct PartialHead {
    header: FrameHeader,
    /// The HEADERS frame of the head, as it arrived.
    first: BytesMut,
    /// The payloads of its CONTINUATION frames.
    rest: BytesMut,
    length: usize,
}

impl PartialHead {
    pub(super) fn begin(header: FrameHeader, first: BytesMut) -> Self {
        Self { header, first, rest: BytesMut::new(), length: header.length }
    }

    /// The header of its HEADERS frame.
    pub(super) const fn header(&self) -> FrameHeader {
        self.header
    }

    /// The bytes that it has in memory.
    pub(super) fn bytes(&self) -> usize {
        self.first.len() + self.rest.len()
    }

    /// Whether this frame continues it. No other frame may stand between the frames of one head
    /// (RFC 9113, 6.10).
    pub(super) const fn is_continued_by(&self, header: FrameHeader) -> bool {
        header.kind == CONTINUATION && header.stream == self.header.stream
    }

    /// The bytes of the head that have arrived, with this frame. An empty frame counts as one byte.
    /// Otherwise a peer could send empty frames for ever.
    pub(super) fn length_with(&self, header: FrameHeader) -> usize {
        self.length.saturating_add(header.length.max(1))
    }

    /// Adds the payload of a CONTINUATION frame.
    pub(super) fn add(&mut self, header: FrameHeader, payload: &[u8]) {
        self.length = self.length_with(header);
        self.rest.extend_from_slice(payload);
    }

    /// Writes the head in as few frames as possible.
    pub(super) fn write(mut self, frames: &mut BytesMut) {
        frames.extend_from_slice(&self.first);
        loop {
            let piece = self.rest.split_to(self.rest.len().min(PAYLOAD_MAX));
            let flags = if self.rest.is_empty() { END_HEADERS } else { 0 };
            let header =
                FrameHeader { length: piece.len(), kind: CONTINUATION, flags, ..self.header };
            write_header(frames, header);
            frames.extend_from_slice(&piece);
            if self.rest.is_empty() {
                return;
            }
        }
    }
}
