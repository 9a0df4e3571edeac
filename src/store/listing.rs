//! Lists of operations, newest first, a page at a time.

use std::sync::Arc;

use xxhash_rust::xxh3::xxh3_64;

use super::probe;
use crate::operation::{Key, Operation, OperationId, StateName, Timestamp};

/// Records that are looked at for one page, so that no list takes long: a page may hold fewer
/// operations than were asked for, or none, and still have a next one.
pub const SCANNED_MAX: usize = 10_000;

/// Which operations to list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListQuery {
    /// Those of this route only.
    pub route: Option<Arc<str>>,
    /// Those in this state only.
    pub state: Option<StateName>,
    /// Those with this key or event id only, see [`Key::searched`].
    pub key: Option<Arc<str>>,
    /// Those behind this place only.
    pub after: Option<ListPosition>,
    /// At most so many.
    pub limit: usize,
}

/// A place in a list: newer operations are before it. Operations of one millisecond stand in the
/// order of their ids, the highest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct ListPosition {
    /// When the operation there was created.
    pub created_at: Timestamp,
    /// Which one it is.
    pub id: OperationId,
}

/// A page of a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListPage {
    /// Newest first, each as it stands now.
    pub operations: Vec<Operation>,
    /// Where the list goes on; none at its end.
    pub next: Option<ListPosition>,
}

impl ListQuery {
    /// Whether an operation, as it stands now, is asked for. Those of probes never are.
    pub fn wants(&self, operation: &Operation) -> bool {
        !probe::is_throw_away(operation)
            && self.route.as_ref().is_none_or(|route| *route == operation.asked.route)
            && self.state.is_none_or(|state| state == operation.state.name())
            && self.key.as_deref().is_none_or(|key| {
                operation.asked.key.searched().is_some_and(|searched| searched == key)
            })
    }

    /// The digest under which the operations with this key are found.
    pub(super) fn key_digest(&self) -> Option<KeyDigest> {
        self.key.as_deref().map(KeyDigest::of_text)
    }
}

/// Leads from a key to its operations. Two keys may have one digest: the record decides.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct KeyDigest(pub(super) u64);

impl KeyDigest {
    /// That of an operation's key.
    pub(super) fn of(key: &Key) -> Self {
        Self::of_text(&key.searched().unwrap_or_default())
    }

    /// It is kept in stores, so it never changes.
    fn of_text(text: &str) -> Self {
        Self(xxh3_64(text.as_bytes()))
    }
}

impl ListPosition {
    /// No operation is older.
    pub(super) const FIRST: Self =
        Self { created_at: Timestamp(0), id: OperationId::from_bytes([0; 16]) };
    /// No operation is newer.
    pub(super) const BEHIND_ALL: Self =
        Self { created_at: Timestamp(u64::MAX), id: OperationId::from_bytes([0xff; 16]) };

    /// Where an operation stands.
    pub fn of(operation: &Operation) -> Self {
        Self { created_at: operation.created_at, id: operation.asked.id }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// It is written in stores: another one would find nothing.
    #[test]
    fn the_digest_of_a_key_is_what_it_was() {
        assert_eq!(KeyDigest::of_text(""), KeyDigest(0x2d06_8005_38d3_94c2));
        assert_eq!(KeyDigest::of_text("evt_6"), KeyDigest(0xc3ba_b252_9f40_9fce));
    }
}
