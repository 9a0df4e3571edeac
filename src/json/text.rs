//! Decides whether a body is one JSON text, for every reader.
//!
//! A tree of `serde_json` is stricter: it refuses more than 128 levels, numbers beyond a double,
//! and escapes that stand for no character. All of these are valid JSON (RFC 8259), and a sender
//! may use them in members that nobody reads here. So only the grammar counts.

use std::cell::OnceCell;

use serde::de::IgnoredAny;

/// The deepest nesting of a body that is read. RFC 8259, 9 lets a parser set this limit.
pub(crate) const DEPTH_MAX: usize = 1024;

/// The byte order mark in UTF-8. RFC 8259, 8.1 lets a parser ignore it instead of failing.
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// A body that may be JSON. It is checked once, when the first of its values is looked for.
#[derive(Debug)]
pub struct Document<'b> {
    body: &'b [u8],
    text: OnceCell<Option<&'b str>>,
}

impl<'b> Document<'b> {
    /// A body that has not been checked yet.
    pub const fn new(body: &'b [u8]) -> Self {
        Self { body, text: OnceCell::new() }
    }

    /// The bytes of the body.
    pub const fn bytes(&self) -> &'b [u8] {
        self.body
    }

    /// The text of the body. None if it is not JSON in UTF-8, or if it is nested too deeply.
    pub(super) fn text(&self) -> Option<&'b str> {
        *self.text.get_or_init(|| json(self.body))
    }
}

/// The text of a body that is JSON in UTF-8, without a byte order mark.
///
/// Escapes that stand for no character and numbers of any size are allowed; only a reader of that
/// value may find fault with them. `NaN`, control characters in a string, and anything after the
/// value are not JSON.
fn json(body: &[u8]) -> Option<&str> {
    let text = std::str::from_utf8(strip_byte_order_mark(body)).ok()?;
    // `IgnoredAny` checks the grammar, and skips values without recursion.
    serde_json::from_str::<IgnoredAny>(text).ok()?;
    (depth(text) <= DEPTH_MAX).then_some(text)
}

/// A body without a UTF-8 byte order mark at its start.
pub(crate) fn strip_byte_order_mark(body: &[u8]) -> &[u8] {
    body.strip_prefix(BYTE_ORDER_MARK).unwrap_or(body)
}

/// The deepest nesting of objects and arrays in a text that is known to be JSON.
fn depth(text: &str) -> usize {
    let mut deepest = 0_usize;
    let mut open = 0_usize;
    let mut in_text = false;
    let mut escaped = false;
    for byte in text.bytes() {
        if in_text {
            in_text = escaped || byte != b'"';
            escaped = byte == b'\\' && !escaped;
            continue;
        }
        match byte {
            b'"' => in_text = true,
            b'{' | b'[' => {
                open += 1;
                deepest = deepest.max(open);
            }
            b'}' | b']' => open = open.saturating_sub(1),
            _ => {}
        }
    }
    deepest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn brackets_in_texts_are_no_levels() {
        assert_eq!(depth(r#"{"[[":"]\"[{","a":[1]}"#), 2);
        assert_eq!(depth("1"), 0);
    }

    #[test]
    fn the_deepest_body_has_as_many_levels_as_are_allowed() {
        let nested = |levels: usize| format!("{}{}", "[".repeat(levels), "]".repeat(levels));
        assert!(json(nested(DEPTH_MAX).as_bytes()).is_some());
        assert!(json(nested(DEPTH_MAX + 1).as_bytes()).is_none());
    }

    #[test]
    fn one_byte_order_mark_is_skipped() {
        assert_eq!(json(b"\xef\xbb\xbf{}"), Some("{}"));
        assert_eq!(json(b"\xef\xbb\xbf\xef\xbb\xbf{}"), None);
    }
}
