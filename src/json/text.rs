//! Whether a body is one JSON text: the one place that decides it, for every reader.
//!
//! serde's own types are stricter in some ways and laxer in others: a tree ends at 128 levels and
//! at numbers beyond a double, and wants every escape to stand for a character. A sender may
//! rightly send all of these where nobody looks, so only the grammar counts here.

use serde::de::IgnoredAny;

/// The deepest nesting of a body that is read. RFC 8259 (section 9) leaves the limit to the reader.
pub(crate) const DEPTH_MAX: usize = 1024;

/// RFC 8259 (section 8.1) lets a reader skip it instead of treating it as an error.
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// The text of a body that is JSON in UTF-8, without a byte order mark.
///
/// Escapes that stand for no character and numbers of any size are grammar: they are for whoever
/// reads that very value. `NaN`, control characters in a text and anything behind the value are not.
pub(crate) fn json(body: &[u8]) -> Option<&str> {
    let body = body.strip_prefix(BYTE_ORDER_MARK).unwrap_or(body);
    let text = std::str::from_utf8(body).ok()?;
    serde_json::from_str::<IgnoredAny>(text).ok()?;
    (depth(text) <= DEPTH_MAX).then_some(text)
}

/// How many objects and arrays stand within each other. Only for a text that is JSON.
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
