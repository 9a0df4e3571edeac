//! Finds a `Content-Length` that no body can have.
//!
//! hyper refuses such a request by itself: with the status of a head that is too large where the
//! number is one of the two largest that it can hold, and as malformed where it is larger still.

/// A line with more than this before its end is none that says the length of a body.
const LINE_BYTES_MAX: usize = 64;

/// The largest length that hyper takes (`DecodedLength` in its `src/body/length.rs`).
const LENGTH_MAX: u64 = u64::MAX - 2;

/// Follows what is read on HTTP/1, line by line.
#[derive(Debug)]
pub(super) struct LengthLine {
    /// The beginning of the line that is still coming.
    line: [u8; LINE_BYTES_MAX],
    length: usize,
    is_too_great: bool,
}

impl Default for LengthLine {
    fn default() -> Self {
        Self { line: [0; LINE_BYTES_MAX], length: 0, is_too_great: false }
    }
}

impl LengthLine {
    /// Takes in what was read.
    pub(super) fn follow(&mut self, bytes: &[u8]) {
        for piece in bytes.split_inclusive(|byte| *byte == b'\n') {
            let room = self.line.iter_mut().skip(self.length);
            let kept = room.zip(piece).map(|(to, from)| *to = *from).count();
            self.length += kept;
            if piece.ends_with(b"\n") {
                self.is_too_great |= says_too_much(self.line.get(..self.length).unwrap_or(piece));
                self.length = 0;
            }
        }
    }

    /// Whether a line said that a body is longer than any can be.
    pub(super) const fn is_too_great(&self) -> bool {
        self.is_too_great
    }
}

fn says_too_much(line: &[u8]) -> bool {
    let Some((name, value)) = std::str::from_utf8(line).ok().and_then(|line| line.split_once(':'))
    else {
        return false;
    };
    let value = value.trim_ascii();
    let is_number = !value.is_empty() && value.bytes().all(|byte| byte.is_ascii_digit());
    // A number that does not parse is beyond what 64 bits hold.
    let is_too_great = || value.parse().map_or(true, |length: u64| length > LENGTH_MAX);
    name.eq_ignore_ascii_case("content-length") && is_number && is_too_great()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_too_great(line: &str) -> bool {
        let whole = format!("POST / HTTP/1.1\r\n{line}\r\nhost: h\r\n\r\n");
        let found = |pieces: &mut dyn Iterator<Item = &[u8]>| {
            let mut length = LengthLine::default();
            pieces.for_each(|piece| length.follow(piece));
            length.is_too_great()
        };
        let at_once = found(&mut std::iter::once(whole.as_bytes()));
        assert_eq!(found(&mut whole.as_bytes().chunks(1)), at_once, "{line}");
        at_once
    }

    #[test]
    fn a_length_is_too_great_where_hyper_cannot_hold_it() {
        for line in [
            "Content-Length: 18446744073709551615",
            "content-length:18446744073709551614\t",
            "CONTENT-LENGTH: 018446744073709551616",
            "Content-Length: 99999999999999999999999999",
        ] {
            assert!(is_too_great(line), "{line}");
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
            assert!(!is_too_great(line), "{line}");
        }
    }
}
