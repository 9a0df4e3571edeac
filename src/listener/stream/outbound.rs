//! The frames that h2 writes. They show which streams h2 resets, and which requests h2 refuses
//! itself. Nothing else reports these.

use super::frames::{CANCEL, FrameHeader, GOAWAY, HEADER, HEADERS, RST_STREAM};
use crate::listener::refusal::EarlyRefusal;
use crate::telemetry::Limit;

/// How many bytes of a payload are kept. They hold an error code. In GOAWAY a stream comes before
/// the code and a text after it.
const BEGINNING: usize = 40;
/// Error codes (RFC 9113, 7). The first two do not mean an error of the peer.
const NO_ERROR: u32 = 0x0;
const INTERNAL_ERROR: u32 = 0x2;
const PROTOCOL_ERROR: u32 = 0x1;
const REFUSED_STREAM: u32 = 0x7;
/// h2 uses this code for one reason only: a field does not end, so the head is too large.
const COMPRESSION_ERROR: u32 = 0x9;
const ENHANCE_YOUR_CALM: u32 = 0xb;
/// h2's texts in GOAWAY for a head that it does not read to its end. h2 uses the same code with
/// other texts for connections that reset too many streams.
const HEAD_TOO_LARGE: [&[u8]; 2] = [b"header_list_way_too_large", b"too_many_continuations"];

/// The position in the sequence of frames that h2 writes.
#[derive(Debug)]
pub(super) struct OutboundFrames {
    header: [u8; HEADER],
    header_read: usize,
    beginning: [u8; BEGINNING],
    payload_read: usize,
    payload_left: usize,
    /// The stream that was last answered with a head only.
    answered_without_body: u32,
}

/// What h2 did, as far as its frames show.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum OutboundEvent {
    /// h2 reset this stream.
    Reset(u32),
    /// h2 refused a request, or with GOAWAY all further requests.
    Refused(EarlyRefusal),
}

impl OutboundFrames {
    pub(super) const fn new() -> Self {
        Self {
            header: [0; HEADER],
            header_read: 0,
            beginning: [0; BEGINNING],
            payload_read: 0,
            payload_left: 0,
            answered_without_body: 0,
        }
    }

    /// Follows bytes that were written, and reports the events in them.
    pub(super) fn follow(&mut self, mut bytes: &[u8], mut report: impl FnMut(OutboundEvent)) {
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
                self.payload_left = FrameHeader::of(self.header).length;
                self.beginning.fill(0);
            }
            if self.payload_left == 0 {
                self.frame_ended(&mut report);
            }
        }
    }

    /// Keeps the beginning of a payload, and skips the rest. Returns the bytes after the payload.
    fn follow_payload<'b>(&mut self, bytes: &'b [u8]) -> &'b [u8] {
        let length = self.payload_left.min(bytes.len());
        let (payload, rest) = bytes.split_at_checked(length).unwrap_or_default();
        let places = self.beginning.iter_mut().skip(self.payload_read);
        places.zip(payload).for_each(|(place, byte)| *place = *byte);
        self.payload_read += length;
        self.payload_left -= length;
        rest
    }

    fn frame_ended(&mut self, report: &mut impl FnMut(OutboundEvent)) {
        let frame = FrameHeader::of(self.header);
        // RST_STREAM begins with its code. In GOAWAY a stream comes before the code (RFC 9113,
        // 6.8).
        let first = number(&self.beginning, 0);
        let second = number(&self.beginning, 4);
        let refusal = match frame.kind {
            HEADERS => {
                if frame.ends_stream() {
                    self.answered_without_body = frame.stream;
                }
                None
            }
            RST_STREAM => {
                report(OutboundEvent::Reset(frame.stream));
                refusal_of_reset(first, frame.stream == self.answered_without_body)
            }
            GOAWAY => refusal_of_goaway(second, self.beginning.get(8..).unwrap_or_default()),
            _ => None,
        };
        refusal.map(OutboundEvent::Refused).into_iter().for_each(report);
    }
}

/// The number in the four bytes at an index.
fn number(bytes: &[u8], from: usize) -> u32 {
    let bytes = bytes.get(from..).and_then(|bytes| bytes.first_chunk());
    bytes.map_or(0, |bytes| u32::from_be_bytes(*bytes))
}

/// The refusal that a reset of a stream means. `answered`: whether h2 has just answered the stream
/// with a head only. h2 answers like that with 431, and only for a head that is too large.
const fn refusal_of_reset(code: u32, answered: bool) -> Option<EarlyRefusal> {
    match code {
        NO_ERROR | INTERNAL_ERROR | CANCEL => None,
        REFUSED_STREAM => Some(EarlyRefusal::Overloaded),
        PROTOCOL_ERROR if answered => Some(EarlyRefusal::HeadTooLarge(Limit::HeaderBytes)),
        _ => Some(EarlyRefusal::Malformed),
    }
}

/// The refusal that the end of a connection means.
fn refusal_of_goaway(code: u32, text: &[u8]) -> Option<EarlyRefusal> {
    let head_too_large = code == COMPRESSION_ERROR
        || (code == ENHANCE_YOUR_CALM && HEAD_TOO_LARGE.iter().any(|it| text.starts_with(it)));
    if head_too_large {
        return Some(EarlyRefusal::HeadTooLarge(Limit::HeaderBytes));
    }
    refusal_of_reset(code, false)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TOO_LARGE: EarlyRefusal = EarlyRefusal::HeadTooLarge(Limit::HeaderBytes);

    /// The events in these bytes. They are the same however the bytes are cut.
    fn events(bytes: &[u8]) -> Vec<OutboundEvent> {
        let followed = |pieces: usize| {
            let mut written = OutboundFrames::new();
            let mut all = Vec::new();
            bytes.chunks(pieces).for_each(|piece| written.follow(piece, |event| all.push(event)));
            all
        };
        let all = followed(bytes.len());
        assert_eq!(followed(1), all);
        all
    }

    fn refused(bytes: &[u8]) -> Vec<EarlyRefusal> {
        let refusal = |event| match event {
            OutboundEvent::Refused(refusal) => Some(refusal),
            OutboundEvent::Reset(_) => None,
        };
        events(bytes).into_iter().filter_map(refusal).collect()
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
        assert_eq!(
            events(protocol),
            [OutboundEvent::Reset(1), OutboundEvent::Refused(EarlyRefusal::Malformed)]
        );
        let too_many = b"\x00\x00\x04\x03\x00\x00\x00\x00\x03\x00\x00\x00\x07";
        assert_eq!(refused(too_many), [EarlyRefusal::Overloaded]);
        let cancelled = b"\x00\x00\x04\x03\x00\x00\x00\x00\x03\x00\x00\x00\x08";
        assert_eq!(events(cancelled), [OutboundEvent::Reset(3)]);
    }

    #[test]
    fn a_goodbye_says_whether_a_head_was_too_large() {
        assert_eq!(refused(&goodbye(0, b"")), []);
        assert_eq!(refused(&goodbye(1, b"")), [EarlyRefusal::Malformed]);
        assert_eq!(refused(&goodbye(9, b"")), [TOO_LARGE]);
        assert_eq!(refused(&goodbye(11, b"too_many_resets")), [EarlyRefusal::Malformed]);
        for words in HEAD_TOO_LARGE {
            assert_eq!(refused(&goodbye(11, words)), [TOO_LARGE]);
            // The text of an earlier frame is forgotten.
            let twice = [goodbye(11, words), goodbye(11, b"")].concat();
            assert_eq!(refused(&twice), [TOO_LARGE, EarlyRefusal::Malformed]);
        }
    }

    #[test]
    fn the_longest_frame_is_followed() {
        let longest = [&b"\xff\xff\xff\x00\x00\x00\x00\x00\x01"[..], &vec![0; 0xff_ffff]].concat();
        let mut written = OutboundFrames::new();
        written.follow(&longest, |event| panic!("{event:?}"));
        let mut all = Vec::new();
        written.follow(&goodbye(1, b""), |event| all.push(event));
        assert_eq!(all, [OutboundEvent::Refused(EarlyRefusal::Malformed)]);
    }
}
