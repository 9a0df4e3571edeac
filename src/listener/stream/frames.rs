//! The header of an HTTP/2 frame (RFC 9113, 4.1).

use bytes::BytesMut;

/// The length of a frame's header: length (3 bytes), type and flags (1 byte each), stream (4
/// bytes).
pub(super) const HEADER: usize = 9;
/// The longest payload that h2 accepts: the initial value of `SETTINGS_MAX_FRAME_SIZE` (RFC 9113,
/// 6.5.2). h2 announces no larger one.
pub(super) const PAYLOAD_MAX: usize = 16 * 1024;
pub(super) const DATA: u8 = 0x0;
pub(super) const HEADERS: u8 = 0x1;
pub(super) const RST_STREAM: u8 = 0x3;
pub(super) const GOAWAY: u8 = 0x7;
pub(super) const CONTINUATION: u8 = 0x9;
pub(super) const END_STREAM: u8 = 0x1;
pub(super) const END_HEADERS: u8 = 0x4;
/// The error code of a stream that is no longer needed (RFC 9113, 7).
pub(super) const CANCEL: u32 = 0x8;

/// The header of a frame, parsed.
#[derive(Debug, Clone, Copy)]
pub(super) struct FrameHeader {
    pub(super) length: usize,
    pub(super) kind: u8,
    pub(super) flags: u8,
    pub(super) stream: u32,
}

impl FrameHeader {
    pub(super) fn of([a, b, c, kind, flags, stream @ ..]: [u8; HEADER]) -> Self {
        let length = usize::from(a) << 16 | usize::from(b) << 8 | usize::from(c);
        // The first bit is reserved, and is ignored on receipt.
        let stream = u32::from_be_bytes(stream) & 0x7fff_ffff;
        Self { length, kind, flags, stream }
    }

    /// Whether the head or the trailers that the frame belongs to end with it.
    pub(super) const fn ends_head(self) -> bool {
        self.flags & END_HEADERS != 0
    }

    /// Whether the frame is the last one of its stream in this direction.
    pub(super) const fn ends_stream(self) -> bool {
        (self.kind == DATA || self.kind == HEADERS) && self.flags & END_STREAM != 0
    }
}

/// Writes the header of a frame.
pub(super) fn write_header(
    bytes: &mut BytesMut,
    FrameHeader { length, kind, flags, stream }: FrameHeader,
) {
    let [.., a, b, c] = length.to_be_bytes();
    bytes.extend_from_slice(&[a, b, c, kind, flags]);
    bytes.extend_from_slice(&stream.to_be_bytes());
}
