//! The fields of a form, urlencoded or multipart.

use super::verdict::{InvalidReason, Location};

/// A field of a form. Bytes that are not UTF-8 stay as they are.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Field {
    pub(super) name: Vec<u8>,
    pub(super) value: Vec<u8>,
}

/// Whether there is a field of this name, even an empty one.
pub(super) fn has(fields: &[Field], name: &str) -> bool {
    fields.iter().any(|field| field.name == name.as_bytes())
}

/// The value of a field of a form. None if there is no such field or it is empty.
///
/// # Errors
/// The field occurs more than once, with different values.
pub(super) fn single<'a>(
    fields: &'a [Field],
    name: &str,
) -> Result<Option<&'a [u8]>, InvalidReason> {
    single_at(fields, name, Location::Field(name.to_owned()))
}

/// The value of a field, or of a parameter of a query, which messages place at `location`.
///
/// # Errors
/// The field occurs more than once, with different values.
pub(super) fn single_at<'a>(
    fields: &'a [Field],
    name: &str,
    location: Location,
) -> Result<Option<&'a [u8]>, InvalidReason> {
    let mut values =
        fields.iter().filter(|field| field.name == name.as_bytes()).map(|field| &*field.value);
    let Some(first) = values.next() else {
        return Ok(None);
    };
    // Frameworks differ in whether they take the first value or the last.
    if values.any(|value| value != first) {
        return Err(InvalidReason::Repeated(location));
    }
    Ok((!first.is_empty()).then_some(first))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_field_with_two_values_is_refused() {
        let fields = |values: &[&str]| -> Vec<Field> {
            let field =
                |value: &&str| Field { name: b"a".to_vec(), value: value.as_bytes().to_vec() };
            values.iter().map(field).collect()
        };
        assert_eq!(single(&fields(&["1", "1"]), "a"), Ok(Some(&b"1"[..])));
        assert_eq!(single(&fields(&[""]), "a"), Ok(None));
        let repeated = InvalidReason::Repeated(Location::Field("a".to_owned()));
        assert_eq!(single(&fields(&["1", "2"]), "a"), Err(repeated));
    }
}
