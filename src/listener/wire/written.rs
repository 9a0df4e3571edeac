//! What h2 writes: finds the streams that it resets, and what it refuses by itself.

use super::frames::{CANCEL, FrameHead, GOAWAY, HEADER, HEADERS, RST_STREAM};
use crate::listener::refusal::Refusal;
use crate::telemetry::Limit;

/// As much of a payload is looked at: an error code, and in GOAWAY a stream before it and some
/// words behind it.
const BEGINNING: usize = 40;
/// Error codes (RFC 9113, section 7). The first ones say nothing about what the peer did.
const NO_ERROR: u32 = 0x0;
const INTERNAL_ERROR: u32 = 0x2;
const PROTOCOL_ERROR: u32 = 0x1;
const REFUSED_STREAM: u32 = 0x7;
/// h2 has no other reason for it than a field that does not end.
const COMPRESSION_ERROR: u32 = 0x9;
const ENHANCE_YOUR_CALM: u32 = 0xb;
/// What h2 says in GOAWAY to the sender of a head that it does not read to its end. With the same
/// code, and in other words, it ends connections that reset too many streams.
const HEAD_TOO_LARGE: [&[u8]; 2] = [b"header_list_way_too_large", b"too_many_continuations"];

/// Where in the sequence of written frames a connection is.
#[derive(Debug)]
pub(super) struct Written {
    header: [u8; HEADER],
    header_read: usize,
    beginning: [u8; BEGINNING],
    payload_read: usize,
    payload_left: usize,
    /// The stream that was last answered with a head alone.
    bare: u32,
}

/// What h2 has said.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Said {
    /// It has reset this stream.
    Reset(u32),
    /// It has refused a request, or all that come.
    Refused(Refusal),
}

impl Written {
    pub(super) const fn new() -> Self {
        Self {
            header: [0; HEADER],
            header_read: 0,
            beginning: [0; BEGINNING],
            payload_read: 0,
            payload_left: 0,
            bare: 0,
        }
    }

    /// Follows what was written, and tells what was said by it.
    pub(super) fn follow(&mut self, mut bytes: &[u8], mut said: impl FnMut(Said)) {
        while let Some((byte, rest)) = bytes.split_first() {
            if self.payload_left > 0 {
                bytes = self.follow_payload(bytes);
            } else {
                if let Some(place) = self.header.get_mut(self.header_read) {
                    *place = *byte;
                }
                self.header_read += 1;
                bytes = rest;
                if self.header_read < HEADER {
                    continue;
                }
                self.header_read = 0;
                self.payload_read = 0;
                self.payload_left = FrameHead::of(self.header).length;
                self.beginning.fill(0);
            }
            if self.payload_left == 0 {
                self.end(&mut said);
            }
        }
    }

    fn follow_payload<'b>(&mut self, bytes: &'b [u8]) -> &'b [u8] {
        let length = self.payload_left.min(bytes.len());
        let (payload, rest) = bytes.split_at_checked(length).unwrap_or_default();
        let places = self.beginning.iter_mut().skip(self.payload_read);
        places.zip(payload).for_each(|(place, byte)| *place = *byte);
        self.payload_read += length;
        self.payload_left -= length;
        rest
    }

    /// A frame came to its end.
    fn end(&mut self, said: &mut impl FnMut(Said)) {
        let frame = FrameHead::of(self.header);
        // The stream that a GOAWAY names comes before its code.
        let first = number(&self.beginning, 0);
        let second = number(&self.beginning, 4);
        let refusal = match frame.kind {
            HEADERS => {
                if frame.ends_stream() {
                    self.bare = frame.stream;
                }
                None
            }
            RST_STREAM => {
                said(Said::Reset(frame.stream));
                reset(first, frame.stream == self.bare)
            }
            GOAWAY => goodbye(second, self.beginning.get(8..).unwrap_or_default()),
            _ => None,
        };
        refusal.map(Said::Refused).into_iter().for_each(said);
    }
}

/// The number in four bytes from here on.
fn number(bytes: &[u8], from: usize) -> u32 {
    let bytes = bytes.get(from..).and_then(|bytes| bytes.first_chunk());
    bytes.map_or(0, |bytes| u32::from_be_bytes(*bytes))
}

/// Why h2 resets a stream. One whose head is too long it answers with a bare 431 just before.
const fn reset(code: u32, answered: bool) -> Option<Refusal> {
    match code {
        NO_ERROR | INTERNAL_ERROR | CANCEL => None,
        REFUSED_STREAM => Some(Refusal::Overloaded),
        PROTOCOL_ERROR if answered => Some(Refusal::HeadTooLarge(Limit::HeaderBytes)),
        _ => Some(Refusal::Malformed),
    }
}

/// Why h2 ends a connection.
fn goodbye(code: u32, words: &[u8]) -> Option<Refusal> {
    let head_too_large = code == COMPRESSION_ERROR
        || (code == ENHANCE_YOUR_CALM && HEAD_TOO_LARGE.iter().any(|it| words.starts_with(it)));
    if head_too_large {
        return Some(Refusal::HeadTooLarge(Limit::HeaderBytes));
    }
    reset(code, false)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TOO_LARGE: Refusal = Refusal::HeadTooLarge(Limit::HeaderBytes);

    /// However the bytes are cut.
    fn said(bytes: &[u8]) -> Vec<Said> {
        let followed = |pieces: usize| {
            let mut written = Written::new();
            let mut all = Vec::new();
            bytes.chunks(pieces).for_each(|piece| written.follow(piece, |said| all.push(said)));
            all
        };
        let all = followed(bytes.len());
        assert_eq!(followed(1), all);
        all
    }

    fn refused(bytes: &[u8]) -> Vec<Refusal> {
        let refusal = |said| match said {
            Said::Refused(refusal) => Some(refusal),
            Said::Reset(_) => None,
        };
        said(bytes).into_iter().filter_map(refusal).collect()
    }

    fn goodbye(code: u8, words: &[u8]) -> Vec<u8> {
        let length = u8::try_from(8 + words.len()).unwrap();
        [&[0, 0, length, 7, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, code], words].concat()
    }

    #[test]
    fn what_h2_refuses_is_read_from_what_it_writes() {
        let bare = b"\x00\x00\x01\x01\x05\x00\x00\x00\x01\x88";
        let protocol = b"\x00\x00\x04\x03\x00\x00\x00\x00\x01\x00\x00\x00\x01";
        assert_eq!(refused(&[&bare[..], protocol].concat()), [TOO_LARGE]);
        assert_eq!(said(protocol), [Said::Reset(1), Said::Refused(Refusal::Malformed)]);
        let too_many = b"\x00\x00\x04\x03\x00\x00\x00\x00\x03\x00\x00\x00\x07";
        assert_eq!(refused(too_many), [Refusal::Overloaded]);
        let cancelled = b"\x00\x00\x04\x03\x00\x00\x00\x00\x03\x00\x00\x00\x08";
        assert_eq!(said(cancelled), [Said::Reset(3)]);
    }

    #[test]
    fn a_goodbye_says_whether_a_head_was_too_large() {
        assert_eq!(refused(&goodbye(0, b"")), []);
        assert_eq!(refused(&goodbye(1, b"")), [Refusal::Malformed]);
        assert_eq!(refused(&goodbye(9, b"")), [TOO_LARGE]);
        assert_eq!(refused(&goodbye(11, b"too_many_resets")), [Refusal::Malformed]);
        for words in HEAD_TOO_LARGE {
            assert_eq!(refused(&goodbye(11, words)), [TOO_LARGE]);
            // What an earlier frame said is forgotten.
            let twice = [goodbye(11, words), goodbye(11, b"")].concat();
            assert_eq!(refused(&twice), [TOO_LARGE, Refusal::Malformed]);
        }
    }

    #[test]
    fn the_longest_frame_is_followed() {
        let longest = [&b"\xff\xff\xff\x00\x00\x00\x00\x00\x01"[..], &vec![0; 0xff_ffff]].concat();
        let mut written = Written::new();
        written.follow(&longest, |said| panic!("{said:?}"));
        let mut all = Vec::new();
        written.follow(&goodbye(1, b""), |said| all.push(said));
        assert_eq!(all, [Said::Refused(Refusal::Malformed)]);
    }
}
