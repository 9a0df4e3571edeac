//! Reads from a request the parts that a selector names.

mod field;
mod header;
mod member;

use sha2::{Digest, Sha256};

use super::{Place, Selector};
use crate::json;
use crate::operation::KeyPart;
use crate::provider::signature::{Carried, CarriedValue, Unusable};
use crate::proxy::selector::{InvalidReason, MissingReason, RequestView, Unread};

/// The longest part, in bytes of its decoded text. Event Grid topics, links and SNS ARNs are parts
/// too, and they may be longer than 255 bytes.
const PART_BYTES_MAX: usize = 4 * 1024;

/// The parts at one place.
pub(in crate::proxy) type Parts<'a> = Result<Vec<KeyPart<'a>>, Unread>;

impl Selector {
    /// The parts in their order: one part, or one for each item of `*`. The first place that has a
    /// value counts.
    ///
    /// Texts are not trimmed. Only a header is read without the whitespace around its value,
    /// because that whitespace is no part of the value (RFC 9110, 5.5). JSON numbers and booleans
    /// are [`KeyPart::Literal`], so that `1` and `"1"` are two keys; everything else is text.
    ///
    /// # Errors
    ///
    /// [`Unread::Missing`] if the value is absent, null, empty or blank, or if the body is not of
    /// the kind that the selector reads. An optional selector then gives no parts instead. If only
    /// some items of `*` have the value, even an optional selector fails, because a key made of
    /// those items could be the key of another event. [`Unread::Invalid`] if the value is present
    /// and cannot be used.
    pub(in crate::proxy) fn read<'a>(&self, request: &RequestView<'a>) -> Parts<'a> {
        let mut missing = None;
        for place in &self.places {
            match place.read(request) {
                Err(Unread::Missing(reason)) if reason.is_allowed_if_optional() => {
                    missing.get_or_insert(reason);
                }
                found => return found,
            }
        }
        match missing {
            Some(reason) if !self.optional => Err(reason.into()),
            Some(_) | None => Ok(Vec::new()),
        }
    }
}

impl Place {
    fn read<'a>(&self, request: &RequestView<'a>) -> Parts<'a> {
        match self {
            Self::Header(name) => header::parts(request.headers, name),
            Self::Json(pointer) => member::parts(&request.body, pointer),
            Self::Form(name) if field::is_form(request.headers)? => {
                field::parts(json::strip_byte_order_mark(request.body.bytes()), name)
            }
            Self::Form(_) => Err(MissingReason::NotAForm.into()),
            Self::Query(name) => field::parts(request.query.unwrap_or_default().as_bytes(), name),
            Self::Signature(name) => carried(request.carried, name),
            Self::Body => Ok(vec![KeyPart::Text(body_digest(request.body.bytes())?.into())]),
        }
    }
}

/// The SHA-256 of the body. All empty bodies have the same digest, so the digest of an empty body
/// is no part of a key.
pub(in crate::proxy) fn body_digest(body: &[u8]) -> Result<String, Unread> {
    if body.is_empty() {
        return Err(MissingReason::EmptyBody.into());
    }
    Ok(hex::encode(Sha256::digest(body)))
}

/// A value that came with the signature.
fn carried<'a>(carried: &'a Carried, name: &str) -> Parts<'a> {
    let part = match carried.get(name).ok_or(MissingReason::Absent)? {
        Ok(CarriedValue::Text(text)) => KeyPart::Text(text.into()),
        Ok(CarriedValue::Literal(literal)) => KeyPart::Literal(literal),
        Err(Unusable::NotAValue) => return Err(InvalidReason::NotAValue.into()),
        Err(Unusable::NotText) => return Err(InvalidReason::NotText.into()),
        Err(Unusable::Differs) => return Err(InvalidReason::PartsDiffer.into()),
    };
    Ok(vec![checked(part)?])
}

/// The part, unless it is blank or too long. A blank part would give many events the same key.
fn checked(part: KeyPart<'_>) -> Result<KeyPart<'_>, Unread> {
    let text = part.as_str();
    if text.trim().is_empty() {
        return Err(MissingReason::Blank.into());
    }
    if text.len() > PART_BYTES_MAX {
        return Err(InvalidReason::TooLong.into());
    }
    Ok(part)
}

#[cfg(test)]
mod tests;
