//! A part that stands in a header.

use std::borrow::Cow;

use http::{HeaderMap, HeaderName};
use percent_encoding::percent_decode_str;

use super::{Parts, checked};
use crate::operation::KeyPart;
use crate::proxy::selector::{InvalidReason, MissingReason, Unread};

/// The beginning of the headers that carry the attributes of a `CloudEvents` event.
const CLOUD_EVENT: &str = "ce-";

pub(super) fn parts<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Parts<'a> {
    let mut lines = headers.get_all(name).iter().map(|line| line.as_bytes().trim_ascii());
    let first = lines.next().ok_or(MissingReason::Absent)?;
    if lines.any(|line| line != first) {
        return Err(InvalidReason::PartsDiffer.into());
    }
    let text = std::str::from_utf8(first).map_err(|_| InvalidReason::NotText)?;
    let part = if name.as_str().starts_with(CLOUD_EVENT) { attribute(text)? } else { text.into() };
    Ok(vec![checked(part)?])
}

/// The value of a `CloudEvents` attribute in a header: its double quotes are removed and its
/// percent-encoding is decoded ("HTTP Protocol Binding for `CloudEvents`", 3.1.3.2). Older senders
/// quote values, or write spaces as they are.
fn attribute(text: &str) -> Result<KeyPart<'_>, Unread> {
    let quoted = text.strip_prefix('"').and_then(|text| text.strip_suffix('"'));
    let unquoted = quoted.map_or(Cow::Borrowed(text), unescaped);
    let decoded = percent_decode_str(&unquoted).decode_utf8();
    let decoded = decoded.map_err(|_| InvalidReason::NotText)?;
    Ok(if decoded == text { text.into() } else { KeyPart::Text(decoded.into_owned().into()) })
}

/// The text of a quoted string, in which `\` escapes the character after it (RFC 9110, 5.6.4).
fn unescaped(inside: &str) -> Cow<'_, str> {
    if !inside.contains('\\') {
        return Cow::Borrowed(inside);
    }
    let mut characters = inside.chars();
    let next = || match characters.next() {
        Some('\\') => characters.next(),
        character => character,
    };
    std::iter::from_fn(next).collect()
}
