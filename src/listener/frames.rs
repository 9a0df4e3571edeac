//! Follows the frames of an HTTP/2 connection, to know whether one has begun and not ended.

/// A frame begins with its length (3 bytes), type, flags (1 byte each) and stream (4 bytes).
const HEADER: usize = 9;
const HEADERS: u8 = 0x1;
const CONTINUATION: u8 = 0x9;
const END_HEADERS: u8 = 0x4;

/// Where in the sequence of frames a connection is.
#[derive(Debug, Default)]
pub(super) struct Frames {
    header: [u8; HEADER],
    header_read: usize,
    payload_left: usize,
    in_head: bool,
}

impl Frames {
    /// Follows these bytes. Says whether the connection is now inside of a frame, or between the
    /// frames of one head: a peer that stays there makes everybody behind it wait.
    pub(super) fn follow(&mut self, mut bytes: &[u8]) -> bool {
        while let Some((byte, rest)) = bytes.split_first() {
            if self.payload_left > 0 {
                let skipped = self.payload_left.min(bytes.len());
                self.payload_left -= skipped;
                bytes = bytes.get(skipped..).unwrap_or_default();
            } else {
                if let Some(place) = self.header.get_mut(self.header_read) {
                    *place = *byte;
                }
                self.header_read += 1;
                if self.header_read == HEADER {
                    self.enter();
                }
                bytes = rest;
            }
        }
        self.header_read > 0 || self.payload_left > 0 || self.in_head
    }

    fn enter(&mut self) {
        let [a, b, c, kind, flags, ..] = self.header;
        self.header_read = 0;
        self.payload_left = usize::from(a) << 16 | usize::from(b) << 8 | usize::from(c);
        if kind == HEADERS || kind == CONTINUATION {
            self.in_head = flags & END_HEADERS == 0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PING: &[u8] = b"\x00\x00\x08\x06\x00\x00\x00\x00\x0012345678";
    const SETTINGS: &[u8] = b"\x00\x00\x00\x04\x00\x00\x00\x00\x00";

    #[test]
    fn whole_frames_leave_nothing_open() {
        assert!(!Frames::default().follow(&[PING, SETTINGS, PING].concat()));
    }

    #[test]
    fn a_frame_is_open_until_its_last_byte() {
        let mut frames = Frames::default();
        for byte in &PING[..PING.len() - 1] {
            assert!(frames.follow(&[*byte]));
        }
        assert!(!frames.follow(b"8"));
    }

    #[test]
    fn a_head_is_open_until_its_last_continuation() {
        let mut frames = Frames::default();
        assert!(frames.follow(b"\x00\x00\x01\x01\x00\x00\x00\x00\x01h"));
        assert!(frames.follow(b"\x00\x00\x01\x09\x00\x00\x00\x00\x01h"));
        assert!(!frames.follow(b"\x00\x00\x01\x09\x04\x00\x00\x00\x01h"));
    }

    #[test]
    fn the_longest_frame_is_followed() {
        let mut frames = Frames::default();
        assert!(frames.follow(b"\xff\xff\xff\x00\x00\x00\x00\x00\x01"));
        assert!(frames.follow(&vec![0; 0xff_fffe]));
        assert!(!frames.follow(&[0]));
    }
}
