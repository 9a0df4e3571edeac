//! Lists of ids, as rows hold them: one behind the other.

use crate::operation::OperationId;

pub(super) fn to_bytes(ids: impl Iterator<Item = OperationId>) -> Vec<u8> {
    ids.flat_map(|id| *id.as_bytes()).collect()
}

/// Parses a list. Returns none if a part of an id is left over.
pub(super) fn from_bytes(bytes: &[u8]) -> Option<Vec<OperationId>> {
    let (ids, rest) = bytes.as_chunks();
    rest.is_empty().then(|| ids.iter().map(|id| OperationId::from_bytes(*id)).collect())
}
