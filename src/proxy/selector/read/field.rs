//! A part that stands in a form or in the query.

use http::HeaderMap;
use http::header::CONTENT_TYPE;

use super::{Parts, checked};
use crate::operation::KeyPart;
use crate::proxy::selector::{InvalidReason, MissingReason};

/// The values of one field must be equal, blank ones too: first-wins and last-wins readers
/// disagree about which one is meant.
pub(super) fn parts<'a>(pairs: &'a [u8], name: &str) -> Parts<'a> {
    let mut values = form_urlencoded::parse(pairs).filter(|(n, _)| n == name).map(|(_, v)| v);
    let first = values.next().ok_or(MissingReason::Absent)?;
    if values.any(|value| value != first) {
        return Err(InvalidReason::PartsDiffer.into());
    }
    // Every byte that is no UTF-8 was replaced by this: different ones would become one key.
    if first.contains(char::REPLACEMENT_CHARACTER) {
        return Err(InvalidReason::NotText.into());
    }
    Ok(vec![checked(KeyPart::Text(first))?])
}

/// Whether the request says that its body is a form. One that names two kinds of body is read as
/// the first by some receivers and as the last by others (RFC 9110, 8.3), whether the two stand on
/// lines of their own or on one.
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
