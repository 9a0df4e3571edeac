//! Reads the headers of signatures.

use http::{HeaderMap, HeaderName};

use super::verdict::{InvalidReason, Location, SignatureError};

/// The value of a header without the white space around it. None if there is no such header or it
/// is empty.
///
/// # Errors
/// The header occurs more than once, with different values: the upstream might read another one
/// than the check did.
pub(super) fn single<'a>(
    headers: &'a HeaderMap,
    name: &HeaderName,
) -> Result<Option<&'a [u8]>, InvalidReason> {
    let mut values = headers.get_all(name).iter().map(|value| value.as_bytes().trim_ascii());
    let Some(first) = values.next() else {
        return Ok(None);
    };
    if values.any(|value| value != first) {
        return Err(InvalidReason::Repeated(Location::Header(name.clone())));
    }
    Ok((!first.is_empty()).then_some(first))
}

/// The value of a header that holds the signature.
pub(super) fn signature<'a>(
    headers: &'a HeaderMap,
    name: &HeaderName,
) -> Result<&'a [u8], SignatureError> {
    let without =
        || SignatureError::without(Location::Header(name.clone()), headers.contains_key(name));
    single(headers, name)?.ok_or_else(without)
}

/// The value of a header that the signature covers.
pub(super) fn covered<'a>(
    headers: &'a HeaderMap,
    name: &HeaderName,
) -> Result<&'a [u8], InvalidReason> {
    single(headers, name)?.ok_or_else(|| InvalidReason::Absent(Location::Header(name.clone())))
}

/// All lines of a header, without those that are empty.
pub(super) fn lines<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Vec<&'a [u8]> {
    let values = headers.get_all(name).iter().map(|value| value.as_bytes().trim_ascii());
    values.filter(|value| !value.is_empty()).collect()
}

/// The entries of a list, without the white space around them. Some may be empty.
pub(super) fn entries<'a, 's>(
    value: &'a [u8],
    separators: &'s [u8],
) -> impl Iterator<Item = &'a [u8]> + use<'a, 's> {
    value.split(move |byte| separators.contains(byte)).map(<[u8]>::trim_ascii)
}

/// Whether a content type is this media type, whatever its parameters.
pub(super) fn is_media_type(content_type: &[u8], media_type: &str) -> bool {
    let found = content_type.split(|byte| *byte == b';').next();
    found.is_some_and(|found| found.trim_ascii().eq_ignore_ascii_case(media_type.as_bytes()))
}
