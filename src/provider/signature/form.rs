//! Reads forms byte for byte: what is not UTF-8 stays what it is.

use std::borrow::Cow;

use http::{HeaderValue, header};
use percent_encoding::percent_decode;

use super::Signed;
use super::multipart;
use super::verdict::{Place, Reason};

/// A name and a value.
pub(super) type Field = (Vec<u8>, Vec<u8>);

const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// The fields of a body, urlencoded or multipart; none if it says that it is something else.
pub(super) fn of(signed: &Signed<'_>) -> Vec<Field> {
    let value = signed.headers.get(header::CONTENT_TYPE).map(HeaderValue::as_bytes);
    let Some(value) = value else {
        return fields(signed.body);
    };
    if is(value, "multipart/form-data") {
        multipart::fields(value, signed.body).unwrap_or_default()
    } else if is(value, "application/x-www-form-urlencoded") {
        fields(signed.body)
    } else {
        Vec::new()
    }
}

/// Whether a content type is this one, whatever its parameters.
pub(super) fn is(content_type: &[u8], essence: &str) -> bool {
    let found = content_type.split(|byte| *byte == b';').next();
    found.is_some_and(|found| found.trim_ascii().eq_ignore_ascii_case(essence.as_bytes()))
}

/// The fields of an urlencoded form in the order in which they came.
pub(super) fn fields(form: &[u8]) -> Vec<Field> {
    let form = form.strip_prefix(BYTE_ORDER_MARK).unwrap_or(form);
    let pairs = form.split(|byte| *byte == b'&').filter(|pair| !pair.is_empty());
    let field = |pair: &[u8]| {
        let equals = pair.iter().position(|byte| *byte == b'=').unwrap_or(pair.len());
        let (name, value) = pair.split_at_checked(equals).unwrap_or((pair, &[]));
        (decode(name), decode(value.strip_prefix(b"=").unwrap_or(value)))
    };
    pairs.map(field).collect()
}

/// The value of a field. None if there is no such field or it is empty.
pub(super) fn single<'a>(fields: &'a [Field], name: &str) -> Result<Option<&'a [u8]>, Reason> {
    only(fields, name, Place::Field(name.to_owned()))
}

/// The same, in this place.
pub(super) fn only<'a>(
    fields: &'a [Field],
    name: &str,
    place: Place,
) -> Result<Option<&'a [u8]>, Reason> {
    let mut values = fields.iter().filter(|(found, _)| found == name.as_bytes());
    let Some((_, first)) = values.next() else {
        return Ok(None);
    };
    if values.any(|(_, value)| value != first) {
        return Err(Reason::Repeated(place));
    }
    Ok((!first.is_empty()).then_some(first))
}

fn decode(text: &[u8]) -> Vec<u8> {
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
        let expected: Vec<_> = expected.map(|(n, v)| (n.to_vec(), v.to_vec())).into();
        assert_eq!(fields(b"a=1&&b+c=%2B+%ff&d&=e&a=2=3"), expected);
        assert_eq!(fields(b"\xef\xbb\xbfa=1&&b+c=%2B+%ff&d&=e&a=2=3"), expected);
    }

    #[test]
    fn a_field_with_two_values_is_refused() {
        assert_eq!(single(&fields(b"a=1&a=1"), "a"), Ok(Some(&b"1"[..])));
        assert_eq!(single(&fields(b"a="), "a"), Ok(None));
        let repeated = Reason::Repeated(Place::Field("a".to_owned()));
        assert_eq!(single(&fields(b"a=1&a=2"), "a"), Err(repeated));
    }
}
