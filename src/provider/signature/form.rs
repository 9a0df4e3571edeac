//! Reads `application/x-www-form-urlencoded` byte for byte: what is not UTF-8 stays what it is.

use std::borrow::Cow;

use percent_encoding::percent_decode;

use super::verdict::{Place, Reason};

/// A name and a value.
pub(super) type Field = (Vec<u8>, Vec<u8>);

/// The fields in the order in which they came.
pub(super) fn fields(form: &[u8]) -> Vec<Field> {
    let pairs = form.split(|byte| *byte == b'&').filter(|pair| !pair.is_empty());
    let field = |pair: &[u8]| {
        let equals = pair.iter().position(|byte| *byte == b'=').unwrap_or(pair.len());
        let (name, value) = pair.split_at_checked(equals).unwrap_or((pair, &[]));
        (decode(name), decode(value.strip_prefix(b"=").unwrap_or(value)))
    };
    pairs.map(field).collect()
}

/// The value of a field. None if there is no such field or it is empty.
pub(super) fn single<'a>(
    fields: &'a [Field],
    name: &'static str,
) -> Result<Option<&'a [u8]>, Reason> {
    let mut values = fields.iter().filter(|(found, _)| found == name.as_bytes());
    let Some((_, first)) = values.next() else {
        return Ok(None);
    };
    if values.any(|(_, value)| value != first) {
        return Err(Reason::Repeated(Place::Field(name)));
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
        let read = fields(b"a=1&&b+c=%2B+%ff&d&=e&a=2=3");
        let expected: [(&[u8], &[u8]); 5] =
            [(b"a", b"1"), (b"b c", b"+ \xff"), (b"d", b""), (b"", b"e"), (b"a", b"2=3")];
        let expected: Vec<_> = expected.map(|(n, v)| (n.to_vec(), v.to_vec())).into();
        assert_eq!(read, expected);
    }

    #[test]
    fn a_field_with_two_values_is_refused() {
        assert_eq!(single(&fields(b"a=1&a=1"), "a"), Ok(Some(&b"1"[..])));
        assert_eq!(single(&fields(b"a="), "a"), Ok(None));
        assert_eq!(single(&fields(b"a=1&a=2"), "a"), Err(Reason::Repeated(Place::Field("a"))));
    }
}
