//! The URL of a look-up, with placeholders for the key, the operation id and the event id.
//!
//! A sender chooses the key, but must not choose the target of the request. So all characters
//! except the unreserved ones are percent-encoded. No look-up is made for a value that makes an
//! empty segment or a dot segment.

use std::fmt::{self, Write as _};
use std::str::FromStr;

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use reqwest::Url;

use crate::operation::OperationId;

/// All characters but the unreserved ones of RFC 3986, section 2.3.
const RESERVED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// `http://host/path/{key}?query`, with `{key}`, `{operation}` and `{event_id}` in path and query.
#[derive(Clone, PartialEq, Eq)]
pub struct UrlTemplate {
    pieces: Vec<Piece>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Piece {
    Literal(String),
    Key,
    Operation,
    EventId,
}

/// The values of the placeholders.
#[derive(Debug, Clone, Copy)]
pub(super) struct LookupValues<'a> {
    /// The key as one text; empty if it has several parts.
    pub(super) key: &'a str,
    pub(super) operation: OperationId,
    /// The event's id; empty if the key does not come from an event.
    pub(super) event_id: &'a str,
}

/// Why a text is not the URL of a look-up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum UrlTemplateError {
    /// The text is not a URL, or it is a URL that a look-up must not have.
    #[error("expected an `http` or `https` URL without user, dot segments or fragment")]
    NotAUrl,
    /// A placeholder stands in the scheme or the host. A key must not choose the server.
    #[error("expected placeholders only in the path and the query")]
    InAuthority,
    /// A brace has no partner, or a placeholder has an unknown name.
    #[error("expected `{{key}}`, `{{operation}}` or `{{event_id}}`")]
    Placeholder,
}

impl UrlTemplate {
    /// Whether the URL has a place for the event's id.
    pub(super) fn names_the_event(&self) -> bool {
        self.pieces.contains(&Piece::EventId)
    }

    /// The URL for these values; none if one of them is empty or would change the path.
    pub(super) fn of(&self, values: &LookupValues<'_>) -> Option<Url> {
        let operation = values.operation.to_string();
        let mut text = String::new();
        for piece in &self.pieces {
            let value = match piece {
                Piece::Literal(literal) => {
                    text.push_str(literal);
                    continue;
                }
                Piece::Key => values.key,
                Piece::Operation => &operation,
                Piece::EventId => values.event_id,
            };
            if value.is_empty() {
                return None;
            }
            write!(text, "{}", utf8_percent_encode(value, RESERVED)).ok()?;
        }
        parsed(&text)
    }
}

/// Parses a text without placeholders. None if the URL would not be sent as it is written.
fn parsed(text: &str) -> Option<Url> {
    let url = Url::parse(text).ok()?;
    let is_allowed = matches!(url.scheme(), "http" | "https")
        && url.has_host()
        && url.username().is_empty()
        && url.password().is_none()
        && url.fragment().is_none();
    // The parser removes dot segments, turns `\` into `/` and more (WHATWG URL Standard). The URL
    // must be sent as it is written.
    let (_, rest) = text.split_once("://")?;
    let path_begins = rest.find(['/', '?']);
    let path = path_begins.and_then(|at| rest.get(at..)).unwrap_or("/");
    let written = if path.starts_with('?') { format!("/{path}") } else { path.to_owned() };
    let sent = match url.query() {
        Some(query) => format!("{}?{query}", url.path()),
        None => url.path().to_owned(),
    };
    (is_allowed && sent == written).then_some(url)
}

impl FromStr for UrlTemplate {
    type Err = UrlTemplateError;

    fn from_str(text: &str) -> Result<Self, UrlTemplateError> {
        let (scheme, rest) = text.split_once("://").ok_or(UrlTemplateError::NotAUrl)?;
        let path_begins = rest.find(['/', '?']).unwrap_or(rest.len());
        let authority = rest.get(..path_begins).unwrap_or_default();
        if scheme.contains('{') || authority.contains(['{', '}']) {
            return Err(UrlTemplateError::InAuthority);
        }
        let mut pieces = Vec::new();
        let mut rest = text;
        while let Some((literal, placeholder)) = rest.split_once('{') {
            let (name, after) = placeholder.split_once('}').ok_or(UrlTemplateError::Placeholder)?;
            pieces.push(Piece::Literal(literal.to_owned()));
            pieces.push(match name {
                "key" => Piece::Key,
                "operation" => Piece::Operation,
                "event_id" => Piece::EventId,
                _ => return Err(UrlTemplateError::Placeholder),
            });
            rest = after;
        }
        if rest.contains('}') {
            return Err(UrlTemplateError::Placeholder);
        }
        pieces.push(Piece::Literal(rest.to_owned()));
        let template = Self { pieces };
        let operation = OperationId::from_bytes([0; 16]);
        let plain = LookupValues { key: "k", operation, event_id: "e" };
        template.of(&plain).ok_or(UrlTemplateError::NotAUrl)?;
        Ok(template)
    }
}

impl fmt::Display for UrlTemplate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.pieces.iter().try_for_each(|piece| match piece {
            Piece::Literal(literal) => f.write_str(literal),
            Piece::Key => f.write_str("{key}"),
            Piece::Operation => f.write_str("{operation}"),
            Piece::EventId => f.write_str("{event_id}"),
        })
    }
}

/// Shows nothing of the URL, because its query may hold a secret.
impl fmt::Debug for UrlTemplate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("UrlTemplate(..)")
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const TEMPLATE: &str = "http://127.0.0.1:3000/internal/events/{key}";

    fn of(template: &str, key: &str) -> Option<String> {
        let operation = OperationId::from_bytes([1; 16]);
        let values = LookupValues { key, operation, event_id: "evt_1" };
        template.parse::<UrlTemplate>().unwrap().of(&values).map(String::from)
    }

    #[test]
    fn placeholders_are_filled_in() {
        let all = "https://h.example/a/{event_id}/{operation}?k={key}&b=1";
        let filled = "https://h.example/a/evt_1/op_01010101010101010101010101010101?k=a%20b&b=1";
        assert_eq!(of(all, "a b").as_deref(), Some(filled));
        assert_eq!(of("http://h?k={key}", "1").as_deref(), Some("http://h/?k=1"));
        assert_eq!(of("http://h/x{key}y", "1").as_deref(), Some("http://h/x1y"));
    }

    #[test]
    fn a_hostile_key_is_one_encoded_segment() {
        for (key, segment) in [
            ("../admin", "..%2Fadmin"),
            ("?a=b", "%3Fa%3Db"),
            ("#x", "%23x"),
            ("@evil.example", "%40evil.example"),
            ("%2f", "%252f"),
            ("%2e%2e", "%252e%252e"),
            ("\\evil", "%5Cevil"),
            ("a\r\nHost: evil", "a%0D%0AHost%3A%20evil"),
            ("\u{0}\t\u{e9}", "%00%09%C3%A9"),
            ("...", "..."),
        ] {
            let url = format!("http://127.0.0.1:3000/internal/events/{segment}");
            assert_eq!(of(TEMPLATE, key), Some(url), "{key:?}");
        }
        let long = "x".repeat(255);
        assert!(of(TEMPLATE, &long).unwrap().ends_with(&long));
    }

    #[test]
    fn a_key_that_makes_another_path_is_not_asked_for() {
        for key in [".", "..", ""] {
            assert_eq!(of(TEMPLATE, key), None, "{key:?}");
        }
        assert_eq!(of("http://h/a/.{key}/b", "."), None);
        assert_eq!(of("http://h/a/{key}{key}", "."), None);
        // There the key is not a segment of its own.
        assert!(of("http://h/a/x{key}", "..").is_some() && of("http://h/?k={key}", "..").is_some());
    }

    #[test]
    fn a_text_that_is_no_template_says_why() {
        for (text, error) in [
            ("", UrlTemplateError::NotAUrl),
            ("/events/{key}", UrlTemplateError::NotAUrl),
            ("ftp://h/{key}", UrlTemplateError::NotAUrl),
            ("http://user:pass@h/{key}", UrlTemplateError::NotAUrl),
            ("http://user@h/{key}", UrlTemplateError::NotAUrl),
            ("http://h/a/../{key}", UrlTemplateError::NotAUrl),
            ("http://h/%2e/{key}", UrlTemplateError::NotAUrl),
            ("http://h/{key}#f", UrlTemplateError::NotAUrl),
            ("http://h /{key}", UrlTemplateError::NotAUrl),
            ("{key}://h/", UrlTemplateError::InAuthority),
            ("http://{key}/", UrlTemplateError::InAuthority),
            ("http://{key}@h/", UrlTemplateError::InAuthority),
            ("http://h:{key}/", UrlTemplateError::InAuthority),
            ("http://h/{key", UrlTemplateError::Placeholder),
            ("http://h/key}", UrlTemplateError::Placeholder),
            ("http://h/{id}", UrlTemplateError::Placeholder),
            ("http://h/{{key}}", UrlTemplateError::Placeholder),
        ] {
            assert_eq!(text.parse::<UrlTemplate>(), Err(error), "{text}");
        }
    }

    proptest! {
        #[test]
        fn no_key_changes_host_path_or_number_of_segments(key in "\\PC{0,20}|[./?#@%\\\\:\r\n]{0,6}") {
            if let Some(url) = of(TEMPLATE, &key) {
                let url = Url::parse(&url).unwrap();
                prop_assert_eq!(url.host_str(), Some("127.0.0.1"));
                prop_assert_eq!(url.port(), Some(3000));
                prop_assert!(url.query().is_none() && url.fragment().is_none());
                let segments: Vec<_> = url.path_segments().unwrap().collect();
                prop_assert_eq!(segments.len(), 3);
                prop_assert_eq!(&segments[..2], ["internal", "events"]);
                let decoded = percent_encoding::percent_decode_str(segments[2]).decode_utf8();
                prop_assert_eq!(decoded.unwrap(), key);
            }
        }
    }
}
