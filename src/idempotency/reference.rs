//! References: a receiver's own name for an operation, such as the number of a payment. Operators
//! find the operation at the receiver by its reference.

use http::{HeaderMap, HeaderName};

use crate::json::{self, Found, Pointer};

/// The longest reference, in bytes. A longer one is ignored.
const BYTES_MAX: usize = 255;

/// Where the receiver's reference stands in an answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reference {
    /// In a header.
    Header(HeaderName),
    /// In a member of a JSON body.
    Member(Pointer),
}

impl Reference {
    /// Reads the reference. The result is none if the answer has no reference, or if the reference
    /// is blank, too long, or not a single text or number. A missing reference is never an error,
    /// because the outcome does not depend on it. `body` is none if the body is not kept.
    pub(super) fn read(&self, headers: &HeaderMap, body: Option<&[u8]>) -> Option<String> {
        let text = match self {
            Self::Header(name) => headers.get(name)?.to_str().ok()?.to_owned(),
            Self::Member(pointer) => {
                let Found::Values(values) = json::find(body?, pointer) else { return None };
                text(values.as_slice())?
            }
        };
        (!text.trim().is_empty() && text.len() <= BYTES_MAX).then_some(text)
    }
}

/// A JSON text, or a JSON number as it is written.
fn text(values: &[&str]) -> Option<String> {
    let [value] = values else { return None };
    match value.bytes().next()? {
        b'"' => serde_json::from_str(value).ok(),
        b'-' | b'0'..=b'9' => Some((*value).to_owned()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reference_is_a_text_or_a_number_as_written() {
        let id = Reference::Member("/id".parse().unwrap());
        let read = |body: &str| id.read(&HeaderMap::new(), Some(body.as_bytes()));
        assert_eq!(read(r#"{"id":"pay_\u0031"}"#).as_deref(), Some("pay_1"));
        let long = r#"{"id":12345678901234567890123}"#;
        assert_eq!(read(long).as_deref(), Some("12345678901234567890123"));
        for none in ["", "{}", r#"{"id":null}"#, r#"{"id":" "}"#, r#"{"id":{}}"#, r#"{"id":true}"#]
        {
            assert_eq!(read(none), None, "{none}");
        }
        let text = |length: usize| format!(r#"{{"id":"{}"}}"#, "x".repeat(length));
        assert!(read(&text(255)).is_some() && read(&text(256)).is_none());
        assert_eq!(id.read(&HeaderMap::new(), None), None);
    }

    #[test]
    fn a_header_is_a_reference_if_it_is_text() {
        let header = Reference::Header(HeaderName::from_static("x-id"));
        let read = |value: &[u8]| {
            let value = http::HeaderValue::from_bytes(value).unwrap();
            header.read(&HeaderMap::from_iter([(HeaderName::from_static("x-id"), value)]), None)
        };
        assert_eq!(read(b"pay_1").as_deref(), Some("pay_1"));
        assert_eq!(read(b"caf\xe9"), None);
        assert_eq!(read(b""), None);
    }
}
