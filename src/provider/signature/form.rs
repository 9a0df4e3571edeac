//! Reads forms byte for byte: what is not UTF-8 stays what it is.

use std::borrow::Cow;

use http::header::CONTENT_TYPE;
use percent_encoding::percent_decode;

use super::field::Field;
use super::header::{is_media_type, single};
use super::multipart;
use super::verdict::InvalidReason;
use crate::provider::ReceivedRequest;

/// A field of two bytes takes many times as much memory here, before anything is verified. Web
/// frameworks take fewer fields: the default of PHP (`max_input_vars`) and of Django
/// (`DATA_UPLOAD_MAX_NUMBER_FIELDS`) is 1000.
const FIELDS_MAX: usize = 4096;
const TOO_MANY: InvalidReason = InvalidReason::Body("a form with at most 4096 fields");

const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// The fields of a body, urlencoded or multipart. Empty if its content type is another one.
///
/// # Errors
/// The body has too many fields, or two content types: the upstream might read it as the other one.
pub(super) fn of(received: &ReceivedRequest<'_>) -> Result<Vec<Field>, InvalidReason> {
    let Some(value) = single(received.headers, &CONTENT_TYPE)? else {
        return fields(received.body);
    };
    if is_media_type(value, "multipart/form-data") {
        // A malformed one has no fields, so its signature is missing, and it is refused.
        Ok(multipart::fields(value, received.body).unwrap_or_default())
    } else if is_media_type(value, "application/x-www-form-urlencoded") {
        fields(received.body)
    } else {
        Ok(Vec::new())
    }
}

/// The fields of an urlencoded form in the order in which they came.
///
/// # Errors
/// There are too many.
pub(super) fn fields(form: &[u8]) -> Result<Vec<Field>, InvalidReason> {
    let form = form.strip_prefix(BYTE_ORDER_MARK).unwrap_or(form);
    let pairs = form.split(|byte| *byte == b'&').filter(|pair| !pair.is_empty());
    if pairs.clone().count() > FIELDS_MAX {
        return Err(TOO_MANY);
    }
    let field = |pair: &[u8]| {
        let equals = pair.iter().position(|byte| *byte == b'=').unwrap_or(pair.len());
        let (name, value) = pair.split_at_checked(equals).unwrap_or((pair, &[]));
        Field { name: decode(name), value: decode(value.strip_prefix(b"=").unwrap_or(value)) }
    };
    Ok(pairs.map(field).collect())
}

fn decode(text: &[u8]) -> Vec<u8> {
    // In a form `+` is a space (URL Standard, "application/x-www-form-urlencoded parsing"). It has
    // to be replaced first, because `%2B` is a `+`.
    let text: Cow<'_, [u8]> = if text.contains(&b'+') {
        text.iter().map(|byte| if *byte == b'+' { b' ' } else { *byte }).collect()
    } else {
        text.into()
    };
    percent_decode(&text).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_form_is_read_byte_for_byte() {
        let expected: [(&[u8], &[u8]); 5] =
            [(b"a", b"1"), (b"b c", b"+ \xff"), (b"d", b""), (b"", b"e"), (b"a", b"2=3")];
        let field =
            |(name, value): (&[u8], &[u8])| Field { name: name.to_vec(), value: value.to_vec() };
        let expected: Vec<_> = expected.map(field).into();
        assert_eq!(fields(b"a=1&&b+c=%2B+%ff&d&=e&a=2=3"), Ok(expected.clone()));
        assert_eq!(fields(b"\xef\xbb\xbfa=1&&b+c=%2B+%ff&d&=e&a=2=3"), Ok(expected));
    }

    #[test]
    fn a_form_has_an_end() {
        let form = |fields: usize| "a&".repeat(fields);
        assert_eq!(fields(form(FIELDS_MAX).as_bytes()).unwrap().len(), FIELDS_MAX);
        assert_eq!(fields(form(FIELDS_MAX + 1).as_bytes()), Err(TOO_MANY));
        assert!(TOO_MANY.to_string().contains(&FIELDS_MAX.to_string()));
    }
}
