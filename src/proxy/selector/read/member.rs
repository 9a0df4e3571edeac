//! A part that stands in a JSON body.

use super::{Parts, checked};
use crate::json::{self, Document, Found, Pointer, Scalar};
use crate::operation::KeyPart;
use crate::proxy::selector::{InvalidReason, MissingReason, Unread};

pub(super) fn parts<'a>(body: &Document<'a>, pointer: &Pointer) -> Parts<'a> {
    match body.find(pointer) {
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
    let part = match json::scalar(text) {
        Scalar::Text(text) => KeyPart::Text(text),
        Scalar::Literal(literal) => KeyPart::Literal(literal),
        Scalar::Null => return Err(MissingReason::Blank.into()),
        Scalar::Composite => return Err(InvalidReason::NotAValue.into()),
        Scalar::NotText => return Err(InvalidReason::NotText.into()),
    };
    checked(part)
}
