//! Finds a `Content-Length` that is larger than hyper can hold.
//!
//! hyper refuses such a request itself. If the number is one of the two largest of 64 bits, hyper
//! answers 431, as for a head that is too large. If the number is larger still, hyper answers 400.
//! The answer should say that the body is too large.

use memchr::memchr;

/// The name of the header, with the colon after it.
const NAME: &[u8] = b"content-length:";

/// A `Content-Length` line with a valid number is shorter than this.
const LINE_BYTES_MAX: usize = 64;

/// The largest length that hyper accepts. hyper gives the two numbers above it other meanings
/// (`DecodedLength` in its `src/body/length.rs`).
const LENGTH_MAX: u64 = u64::MAX - 2;

/// Scans the lines of an HTTP/1 head as they are read.
#[derive(Debug)]
pub(super) struct ContentLengthScan {
    /// The beginning of the line that has not ended yet.
    line: [u8; LINE_BYTES_MAX],
    length: usize,
    is_too_large: bool,
}

impl Default for ContentLengthScan {
    fn default() -> Self {
        Self { line: [0; LINE_BYTES_MAX], length: 0, is_too_large: false }
    }
}

impl ContentLengthScan {
    /// Scans bytes that were read.
    pub(super) fn follow(&mut self, mut bytes: &[u8]) {
        while let Some(end) = memchr(b'\n', bytes) {
            let (line, rest) = bytes.split_at_checked(end + 1).unwrap_or((bytes, &[]));
            // Nearly every line arrives whole, and is not copied.
            let is_too_large = if self.length == 0 {
                is_length_too_large(line.get(..LINE_BYTES_MAX).unwrap_or(line))
            } else {
                self.keep(line);
                is_length_too_large(self.line.get(..self.length).unwrap_or(line))
            };
            self.is_too_large |= is_too_large;
            self.length = 0;
            bytes = rest;
        }
        self.keep(bytes);
    }

    /// Keeps a piece of a line. A line that is longer than the buffer is cut. It then does not
    /// parse as a length.
    fn keep(&mut self, piece: &[u8]) {
        let room = self.line.iter_mut().skip(self.length);
        let kept = room.zip(piece).map(|(to, from)| *to = *from).count();
        self.length += kept;
    }

    /// Whether a line had a length that is too large.
    pub(super) const fn is_too_large(&self) -> bool {
        self.is_too_large
    }
}

/// Whether a header line is a `Content-Length` that is too large.
fn is_length_too_large(line: &[u8]) -> bool {
    let value = line
        .split_at_checked(NAME.len())
        .filter(|(name, _)| name.eq_ignore_ascii_case(NAME))
        .and_then(|(_, value)| std::str::from_utf8(value.trim_ascii()).ok());
    let Some(value) = value else { return false };
    let is_number = !value.is_empty() && value.bytes().all(|byte| byte.is_ascii_digit());
    // A value of digits that does not parse is beyond 64 bits.
    let is_too_large = || value.parse().map_or(true, |length: u64| length > LENGTH_MAX);
    is_number && is_too_large()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_too_large(line: &str) -> bool {
        let whole = format!("POST / HTTP/1.1\r\n{line}\r\nhost: h\r\n\r\n");
        let found = |pieces: &mut dyn Iterator<Item = &[u8]>| {
            let mut length = ContentLengthScan::default();
            pieces.for_each(|piece| length.follow(piece));
            length.is_too_large()
        };
        let at_once = found(&mut std::iter::once(whole.as_bytes()));
        assert_eq!(found(&mut whole.as_bytes().chunks(1)), at_once, "{line}");
        at_once
    }

    #[test]
    fn a_length_is_too_large_where_hyper_cannot_hold_it() {
        for line in [
            "Content-Length: 18446744073709551615",
            "content-length:18446744073709551614\t",
            "CONTENT-LENGTH: 018446744073709551616",
            "Content-Length: 99999999999999999999999999",
        ] {
            assert!(is_too_large(line), "{line}");
        }
        for line in [
            "Content-Length: 18446744073709551613",
            "Content-Length: 5",
            "Content-Length:",
            "Content-Length: five",
            "Content-Length: -18446744073709551615",
            "X-Content-Length: 18446744073709551615",
            "Content-Length 18446744073709551615",
        ] {
            assert!(!is_too_large(line), "{line}");
        }
    }
}
