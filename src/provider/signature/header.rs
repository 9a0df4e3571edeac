//! Reads headers of which there must be one.

use http::{HeaderMap, HeaderName};

use super::verdict::{Place, Reason, Refused};

/// Signatures in one header. While secrets are rotated there are two or three.
pub(super) const ENTRIES_MAX: usize = 16;

/// The value without the space around it. None if there is no such header or it is empty.
pub(super) fn single<'a>(
    headers: &'a HeaderMap,
    name: &HeaderName,
) -> Result<Option<&'a [u8]>, Reason> {
    let mut values = headers.get_all(name).iter().map(|value| value.as_bytes().trim_ascii());
    let Some(first) = values.next() else {
        return Ok(None);
    };
    if values.any(|value| value != first) {
        return Err(Reason::Repeated(Place::Header(name.clone())));
    }
    Ok((!first.is_empty()).then_some(first))
}

/// The value of a header that holds the signature.
pub(super) fn signature<'a>(
    headers: &'a HeaderMap,
    name: &HeaderName,
) -> Result<&'a [u8], Refused> {
    let without = || Refused::without(Place::Header(name.clone()), headers.contains_key(name));
    single(headers, name)?.ok_or_else(without)
}

/// The value of a header that the signature covers.
pub(super) fn covered<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Result<&'a [u8], Reason> {
    single(headers, name)?.ok_or_else(|| Reason::Absent(Place::Header(name.clone())))
}

/// All lines of a header, without those that are empty.
pub(super) fn lines<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Vec<&'a [u8]> {
    let values = headers.get_all(name).iter().map(|value| value.as_bytes().trim_ascii());
    values.filter(|value| !value.is_empty()).collect()
}

/// The entries of a list, without the space around them. Some may be empty.
pub(super) fn entries<'a, 's>(
    value: &'a [u8],
    separators: &'s [u8],
) -> impl Iterator<Item = &'a [u8]> + use<'a, 's> {
    value.split(move |byte| separators.contains(byte)).map(<[u8]>::trim_ascii)
}
