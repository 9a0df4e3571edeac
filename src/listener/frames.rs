//! Follows the frames of an HTTP/2 connection, to know whether one has begun and not ended, and
//! what h2 refuses by itself.

use super::refusal::Refusal;
use crate::telemetry::Limit;

/// A frame begins with its length (3 bytes), type, flags (1 byte each) and stream (4 bytes).
const HEADER: usize = 9;
/// As much of a payload is looked at: an error code, behind a stream in GOAWAY.
const BEGINNING: usize = 8;
const HEADERS: u8 = 0x1;
const RST_STREAM: u8 = 0x3;
const GOAWAY: u8 = 0x7;
const CONTINUATION: u8 = 0x9;
const END_STREAM: u8 = 0x1;
const END_HEADERS: u8 = 0x4;
/// Error codes (RFC 9113, section 7) that say nothing about what the peer did.
const NO_ERROR: u64 = 0x0;
const INTERNAL_ERROR: u64 = 0x2;
const CANCEL: u64 = 0x8;
const PROTOCOL_ERROR: u64 = 0x1;
const REFUSED_STREAM: u64 = 0x7;

/// Where in the sequence of frames one direction of a connection is.
#[derive(Debug, Default)]
pub(super) struct Frames {
    header: [u8; HEADER],
    header_read: usize,
    beginning: [u8; BEGINNING],
    payload_read: usize,
    payload_left: usize,
    in_head: bool,
}

/// A frame that has come to its end.
#[derive(Debug, Clone, Copy)]
pub(super) struct Frame {
    kind: u8,
    flags: u8,
    stream: u32,
    beginning: [u8; BEGINNING],
}

impl Frame {
    /// Whether a head, or trailers, ended with it.
    pub(super) const fn ends_head(self) -> bool {
        (self.kind == HEADERS || self.kind == CONTINUATION) && self.flags & END_HEADERS != 0
    }
}

impl Frames {
    /// Follows these bytes, and tells of the frames that end in them. Says whether the connection
    /// is now inside of a frame, or between the frames of one head: a peer that stays there makes
    /// everybody behind it wait.
    pub(super) fn follow(&mut self, mut bytes: &[u8], mut ended: impl FnMut(Frame)) -> bool {
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
                self.enter();
            }
            if self.payload_left == 0 {
                ended(self.frame());
            }
        }
        self.header_read > 0 || self.payload_left > 0 || self.in_head
    }

    /// Whether the end of a head is still to come.
    pub(super) const fn is_in_head(&self) -> bool {
        self.in_head
    }

    fn enter(&mut self) {
        let [a, b, c, kind, flags, ..] = self.header;
        self.header_read = 0;
        self.payload_read = 0;
        self.payload_left = usize::from(a) << 16 | usize::from(b) << 8 | usize::from(c);
        if kind == HEADERS || kind == CONTINUATION {
            self.in_head = flags & END_HEADERS == 0;
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

    const fn frame(&self) -> Frame {
        let [_, _, _, kind, flags, a, b, c, d] = self.header;
        let stream = u32::from_be_bytes([a, b, c, d]) & 0x7fff_ffff;
        Frame { kind, flags, stream, beginning: self.beginning }
    }
}

/// What is written on a connection: finds the refusals that h2 makes by itself.
#[derive(Debug, Default)]
pub(super) struct Written {
    frames: Frames,
    /// The stream that was last answered with a head alone.
    bare: u32,
}

impl Written {
    /// Follows what was written, and tells of what was refused.
    pub(super) fn follow(&mut self, bytes: &[u8], mut refused: impl FnMut(Refusal)) {
        let bare = &mut self.bare;
        self.frames.follow(bytes, |frame| {
            // The stream that a GOAWAY names comes before its code.
            let numbers = u64::from_be_bytes(frame.beginning);
            let refusal = match frame.kind {
                HEADERS if frame.flags & END_STREAM != 0 => {
                    *bare = frame.stream;
                    None
                }
                RST_STREAM => reset(numbers >> 32, frame.stream == *bare),
                GOAWAY => reset(numbers & u64::from(u32::MAX), false),
                _ => None,
            };
            refusal.into_iter().for_each(&mut refused);
        });
    }
}

/// Why h2 resets a stream. One whose head is too long it answers with a bare 431 just before.
const fn reset(code: u64, answered: bool) -> Option<Refusal> {
    match code {
        NO_ERROR | INTERNAL_ERROR | CANCEL => None,
        REFUSED_STREAM => Some(Refusal::Overloaded),
        PROTOCOL_ERROR if answered => Some(Refusal::HeadTooLarge(Limit::HeaderBytes)),
        _ => Some(Refusal::Malformed),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PING: &[u8] = b"\x00\x00\x08\x06\x00\x00\x00\x00\x0012345678";
    const SETTINGS: &[u8] = b"\x00\x00\x00\x04\x00\x00\x00\x00\x00";

    fn follow(frames: &mut Frames, bytes: &[u8]) -> bool {
        frames.follow(bytes, |_| {})
    }

    fn refused(bytes: &[u8]) -> Vec<Refusal> {
        let (mut written, mut refusals) = (Written::default(), Vec::new());
        for byte in bytes {
            written.follow(&[*byte], |refusal| refusals.push(refusal));
        }
        refusals
    }

    #[test]
    fn whole_frames_leave_nothing_open() {
        assert!(!follow(&mut Frames::default(), &[PING, SETTINGS, PING].concat()));
    }

    #[test]
    fn a_frame_is_open_until_its_last_byte() {
        let mut frames = Frames::default();
        for byte in &PING[..PING.len() - 1] {
            assert!(follow(&mut frames, &[*byte]));
        }
        assert!(!follow(&mut frames, b"8"));
    }

    #[test]
    fn a_head_is_open_until_its_last_continuation() {
        let mut frames = Frames::default();
        let mut heads = 0;
        assert!(follow(&mut frames, b"\x00\x00\x01\x01\x00\x00\x00\x00\x01h"));
        assert!(follow(&mut frames, b"\x00\x00\x01\x09\x00\x00\x00\x00\x01h"));
        assert!(frames.is_in_head());
        let end = b"\x00\x00\x01\x09\x04\x00\x00\x00\x01h";
        assert!(!frames.follow(end, |frame| heads += usize::from(frame.ends_head())));
        assert_eq!((heads, frames.is_in_head()), (1, false));
    }

    #[test]
    fn the_longest_frame_is_followed() {
        let mut frames = Frames::default();
        assert!(follow(&mut frames, b"\xff\xff\xff\x00\x00\x00\x00\x00\x01"));
        assert!(follow(&mut frames, &vec![0; 0xff_fffe]));
        assert!(!follow(&mut frames, &[0]));
    }

    #[test]
    fn what_h2_refuses_is_read_from_what_it_writes() {
        let bare = b"\x00\x00\x01\x01\x05\x00\x00\x00\x01\x88";
        let protocol = b"\x00\x00\x04\x03\x00\x00\x00\x00\x01\x00\x00\x00\x01";
        let too_large = [Refusal::HeadTooLarge(Limit::HeaderBytes)];
        assert_eq!(refused(&[&bare[..], protocol].concat()), too_large);
        assert_eq!(refused(protocol), [Refusal::Malformed]);
        let too_many = b"\x00\x00\x04\x03\x00\x00\x00\x00\x03\x00\x00\x00\x07";
        assert_eq!(refused(too_many), [Refusal::Overloaded]);
        let cancelled = b"\x00\x00\x04\x03\x00\x00\x00\x00\x03\x00\x00\x00\x08";
        assert_eq!(refused(cancelled), []);
        let goodbye = b"\x00\x00\x08\x07\x00\x00\x00\x00\x00\x00\x00\x00\x01\x00\x00\x00\x00";
        assert_eq!(refused(goodbye), []);
        let broken = b"\x00\x00\x08\x07\x00\x00\x00\x00\x00\x00\x00\x00\x01\x00\x00\x00\x01";
        assert_eq!(refused(broken), [Refusal::Malformed]);
    }
}
