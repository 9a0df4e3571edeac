//! Reads forms byte for byte: what is not UTF-8 stays what it is.

use std::borrow::Cow;

use http::header::CONTENT_TYPE;
use percent_encoding::percent_decode;

use super::Signed;
use super::header;
use super::multipart;
use super::verdict::{Place, Reason};

/// A name and a value.
pub(super) type Field = (Vec<u8>, Vec<u8>);

/// A field of two bytes takes many times as much memory, before anything is verified. Receivers take
/// fewer: 1000 are the defaults of PHP (`max_input_vars`) and Django
/// (`DATA_UPLOAD_MAX_NUMBER_FIELDS`).
const FIELDS_MAX: usize = 4096;
const TOO_MANY: Reason = Reason::Body("a form with at most 4096 fields");

const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// The fields of a body, urlencoded or multipart; none if it says that it is something else.
///
/// # Errors
/// It has too many, or two types: a receiver may read it as the other one.
pub(super) fn of(signed: &Signed<'_>) -> Result<Vec<Field>, Reason> {
    let Some(value) = header::single(signed.headers, &CONTENT_TYPE)? else {
        return fields(signed.body);
    };
    if is(value, "multipart/form-data") {
        Ok(multipart::fields(value, signed.body).unwrap_or_default())
    } else if is(value, "application/x-www-form-urlencoded") {
        fields(signed.body)
    } else {
        Ok(Vec::new())
    }
}

/// Whether a content type is this one, whatever its parameters.
pub(super) fn is(content_type: &[u8], essence: &str) -> bool {
    let found = content_type.split(|byte| *byte == b';').next();
    found.is_some_and(|found| found.trim_ascii().eq_ignore_ascii_case(essence.as_bytes()))
}

/// The fields of an urlencoded form in the order in which they came.
///
/// # Errors
/// There are too many.
pub(super) fn fields(form: &[u8]) -> Result<Vec<Field>, Reason> {
    let form = form.strip_prefix(BYTE_ORDER_MARK).unwrap_or(form);
    let pairs = form.split(|byte| *byte == b'&').filter(|pair| !pair.is_empty());
    if pairs.clone().count() > FIELDS_MAX {
        return Err(TOO_MANY);
    }
    let field = |pair: &[u8]| {
        let equals = pair.iter().position(|byte| *byte == b'=').unwrap_or(pair.len());
        let (name, value) = pair.split_at_checked(equals).unwrap_or((pair, &[]));
        (decode(name), decode(value.strip_prefix(b"=").unwrap_or(value)))
    };
    Ok(pairs.map(field).collect())
}

/// Whether there is such a field, be it an empty one.
pub(super) fn has(fields: &[Field], name: &str) -> bool {
    fields.iter().any(|(found, _)| found == name.as_bytes())
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
        assert_eq!(fields(b"a=1&&b+c=%2B+%ff&d&=e&a=2=3"), Ok(expected.clone()));
        assert_eq!(fields(b"\xef\xbb\xbfa=1&&b+c=%2B+%ff&d&=e&a=2=3"), Ok(expected));
    }

    #[test]
    fn a_field_with_two_values_is_refused() {
        let fields = |form: &[u8]| fields(form).unwrap();
        assert_eq!(single(&fields(b"a=1&a=1"), "a"), Ok(Some(&b"1"[..])));
        assert_eq!(single(&fields(b"a="), "a"), Ok(None));
        let repeated = Reason::Repeated(Place::Field("a".to_owned()));
        assert_eq!(single(&fields(b"a=1&a=2"), "a"), Err(repeated));
    }

    #[test]
    fn a_form_has_an_end() {
        let form = |fields: usize| "a&".repeat(fields);
        assert_eq!(fields(form(FIELDS_MAX).as_bytes()).unwrap().len(), FIELDS_MAX);
        assert_eq!(fields(form(FIELDS_MAX + 1).as_bytes()), Err(TOO_MANY));
        assert!(TOO_MANY.to_string().contains(&FIELDS_MAX.to_string()));
    }
}
