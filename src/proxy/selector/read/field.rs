//! A part that stands in a form or in the query.

use http::HeaderMap;
use http::header::CONTENT_TYPE;

use super::{Parts, checked};
use crate::operation::KeyPart;
use crate::proxy::selector::{InvalidReason, MissingReason};

/// The value of a field. If the field is repeated, all its values must be equal, blank ones too:
/// some servers read the first value and others the last.
pub(super) fn parts<'a>(pairs: &'a [u8], name: &str) -> Parts<'a> {
    let mut values = form_urlencoded::parse(pairs).filter(|(n, _)| n == name).map(|(_, v)| v);
    let first = values.next().ok_or(MissingReason::Absent)?;
    if values.any(|value| value != first) {
        return Err(InvalidReason::PartsDiffer.into());
    }
    // The decoder has replaced each byte that is not UTF-8 by this character. Two different values
    // could become one key.
    if first.contains(char::REPLACEMENT_CHARACTER) {
        return Err(InvalidReason::NotText.into());
    }
    Ok(vec![checked(KeyPart::Text(first))?])
}

/// Whether the request says that its body is a form. A request that names two kinds of body is
/// refused, whether they stand on one header line or on two: some servers take the first kind and
/// others the last (RFC 9110, 8.3).
pub(super) fn is_form(headers: &HeaderMap) -> Result<bool, InvalidReason> {
    let mut kinds = headers.get_all(CONTENT_TYPE).iter().map(|line| line.as_bytes().trim_ascii());
    let Some(kind) = kinds.next() else { return Ok(false) };
    if kinds.any(|other| other != kind) || is_list(kind) {
        return Err(InvalidReason::KindsDiffer);
    }
    let essence = kind.split(|byte| *byte == b';').next().unwrap_or_default().trim_ascii();
    Ok(essence.eq_ignore_ascii_case(b"application/x-www-form-urlencoded"))
}

/// Whether there is a comma outside quoted strings (RFC 9110, 5.6.4).
fn is_list(value: &[u8]) -> bool {
    let mut is_quoted = false;
    let mut is_escaped = false;
    value.iter().any(|byte| {
        let was_escaped = std::mem::take(&mut is_escaped);
        match byte {
            b'\\' => is_escaped = is_quoted && !was_escaped,
            b'"' if !was_escaped => is_quoted = !is_quoted,
            b',' => return !is_quoted,
            _ => {}
        }
        false
    })
}
