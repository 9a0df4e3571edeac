//! The frames of HTTP/2 (RFC 9113, section 4.1).

use bytes::BytesMut;

/// A frame begins with its length (3 bytes), type, flags (1 byte each) and stream (4 bytes).
pub(super) const HEADER: usize = 9;
/// The longest payload that h2 takes: it announces nothing above what RFC 9113, 6.5.2 has.
pub(super) const PAYLOAD_MAX: usize = 16 * 1024;
pub(super) const DATA: u8 = 0x0;
pub(super) const HEADERS: u8 = 0x1;
pub(super) const RST_STREAM: u8 = 0x3;
pub(super) const GOAWAY: u8 = 0x7;
pub(super) const CONTINUATION: u8 = 0x9;
pub(super) const END_STREAM: u8 = 0x1;
pub(super) const END_HEADERS: u8 = 0x4;
/// The code of a stream that nobody needs any more (RFC 9113, section 7).
pub(super) const CANCEL: u32 = 0x8;

/// How a frame begins.
#[derive(Debug, Clone, Copy)]
pub(super) struct FrameHead {
    pub(super) length: usize,
    pub(super) kind: u8,
    pub(super) flags: u8,
    pub(super) stream: u32,
}

impl FrameHead {
    pub(super) fn of([a, b, c, kind, flags, stream @ ..]: [u8; HEADER]) -> Self {
        let length = usize::from(a) << 16 | usize::from(b) << 8 | usize::from(c);
        let stream = u32::from_be_bytes(stream) & 0x7fff_ffff;
        Self { length, kind, flags, stream }
    }

    /// Whether a head, or trailers, end with it.
    pub(super) const fn ends_head(self) -> bool {
        self.flags & END_HEADERS != 0
    }

    /// Whether nothing comes behind it on its stream.
    pub(super) const fn ends_stream(self) -> bool {
        (self.kind == DATA || self.kind == HEADERS) && self.flags & END_STREAM != 0
    }
}

/// Appends the beginning of a frame.
pub(super) fn begin(bytes: &mut BytesMut, FrameHead { length, kind, flags, stream }: FrameHead) {
    let [.., a, b, c] = length.to_be_bytes();
    bytes.extend_from_slice(&[a, b, c, kind, flags]);
    bytes.extend_from_slice(&stream.to_be_bytes());
}
