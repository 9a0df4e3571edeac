//! A part that stands in a JSON body.

use std::borrow::Cow;

use super::{Parts, checked};
use crate::json::{self, Found, Pointer};
use crate::operation::KeyPart;
use crate::proxy::selector::{InvalidReason, MissingReason, Unread};

pub(super) fn parts<'a>(body: &'a [u8], pointer: &Pointer) -> Parts<'a> {
    match json::find(body, pointer) {
        Found::Values(texts) => values(&texts),
        Found::NotJson => Err(MissingReason::NotJson.into()),
        Found::Absent => Err(MissingReason::Absent.into()),
        Found::InSomeItems => Err(MissingReason::AbsentInSomeItems.into()),
        Found::Ambiguous => Err(InvalidReason::MemberTwice.into()),
        Found::TooMany => Err(InvalidReason::TooManyParts.into()),
    }
}

/// The parts of all items. Either every item has its part or no item has one, because a key made of
/// some of the items could be the key of another event.
fn values<'a>(texts: &[&'a str]) -> Parts<'a> {
    let mut parts = Vec::with_capacity(texts.len());
    for text in texts {
        match value(text) {
            Ok(part) => parts.push(part),
            Err(Unread::Missing(_)) => {}
            Err(invalid @ Unread::Invalid(_)) => return Err(invalid),
        }
    }
    match parts.len() {
        0 => Err(MissingReason::Blank.into()),
        some if some < texts.len() => Err(MissingReason::AbsentInSomeItems.into()),
        _ => Ok(parts),
    }
}

/// The part that a JSON value makes, as it is written in the body.
fn value(text: &str) -> Result<KeyPart<'_>, Unread> {
    let part = match text.bytes().next() {
        Some(b'{' | b'[') => return Err(InvalidReason::NotAValue.into()),
        Some(b'"') => KeyPart::Text(decoded(text)?),
        Some(b'n') | None => return Err(MissingReason::Blank.into()),
        Some(_) => KeyPart::Literal(text),
    };
    checked(part)
}

fn decoded(text: &str) -> Result<Cow<'_, str>, Unread> {
    if text.contains('\\') {
        let text = serde_json::from_str(text).map_err(|_| InvalidReason::NotText)?;
        return Ok(Cow::Owned(text));
    }
    let inner = text.strip_prefix('"').and_then(|text| text.strip_suffix('"'));
    Ok(Cow::Borrowed(inner.unwrap_or(text)))
}
