//! Joins the parts of keys and labels.

use std::mem;

/// Joins parts whose lengths add up to `N`.
pub(super) fn joined<const N: usize>(parts: &[&[u8]]) -> [u8; N] {
    let mut bytes = [0; N];
    let mut rest = bytes.as_mut_slice();
    for part in parts {
        let (place, behind) = mem::take(&mut rest).split_at_mut(part.len());
        place.copy_from_slice(part);
        rest = behind;
    }
    debug_assert!(rest.is_empty(), "the lengths of the parts add up");
    bytes
}
