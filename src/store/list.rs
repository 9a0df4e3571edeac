//! Lists of operations, newest first, one page at a time.

use std::sync::Arc;

use xxhash_rust::xxh3::xxh3_64;

use super::probe;
use crate::operation::{Key, Operation, OperationId, StateName, Timestamp};

/// The most records that a store reads for one page, so that no list takes long. A page may
/// therefore hold fewer operations than its limit, or none, and another page may still follow.
pub(super) const SCANNED_MAX: usize = 10_000;

/// Which operations to list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListQuery {
    /// Only the operations of this route.
    pub route: Option<Arc<str>>,
    /// Only the operations in this state.
    pub state: Option<StateName>,
    /// Only the operations with this key or event id, see [`Key::searched`].
    pub key: Option<Arc<str>>,
    /// Only the operations after this position, which is the `next` of the page before.
    pub after: Option<ListPosition>,
    /// The most operations on one page.
    pub limit: usize,
}

/// A position in a list. The newest operation is first; operations of one millisecond are ordered
/// by their ids, the highest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct ListPosition {
    /// The time at which the operation was created.
    pub created_at: Timestamp,
    /// The operation's id.
    pub id: OperationId,
}

/// One page of a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListPage {
    /// The operations as they are now, newest first.
    pub operations: Vec<Operation>,
    /// The position after which the next page begins. The last page has none.
    pub next: Option<ListPosition>,
}

impl ListQuery {
    /// Whether the query asks for this operation. The operation must be given as it is now. A list
    /// never shows the throw-away operations of probes, because no sender sent them.
    pub fn matches(&self, operation: &Operation) -> bool {
        !probe::is_throw_away(operation)
            && self.route.as_ref().is_none_or(|route| *route == operation.subject.route)
            && self.state.is_none_or(|state| state == operation.state.name())
            && self.key.as_deref().is_none_or(|key| {
                operation.subject.key.searched().is_some_and(|searched| searched == key)
            })
    }

    /// The digest under which stores index the operations with the query's key.
    pub(super) fn key_digest(&self) -> Option<KeyDigest> {
        self.key.as_deref().map(KeyDigest::of_text)
    }
}

/// A digest of an operation's key, by which stores index the operation. Two keys may have the same
/// digest, so only the record says which key an operation has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct KeyDigest(pub(super) u64);

impl KeyDigest {
    /// The digest of an operation's key.
    pub(super) fn of(key: &Key) -> Self {
        Self::of_text(&key.searched().unwrap_or_default())
    }

    /// The digest of a key as text. Stores keep digests, so this function must never change.
    fn of_text(text: &str) -> Self {
        Self(xxh3_64(text.as_bytes()))
    }
}

impl ListPosition {
    /// A position after every operation.
    pub(super) const OLDEST: Self =
        Self { created_at: Timestamp(0), id: OperationId::from_bytes([0; 16]) };
    /// A position before every operation.
    pub(super) const NEWEST: Self =
        Self { created_at: Timestamp(u64::MAX), id: OperationId::from_bytes([0xff; 16]) };

    /// The position of an operation.
    pub fn of(operation: &Operation) -> Self {
        Self { created_at: operation.created_at, id: operation.subject.id }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Stores keep digests. If the function changed, they would no longer find any operation by its
    /// key.
    #[test]
    fn the_digest_of_a_key_is_what_it_was() {
        assert_eq!(KeyDigest::of_text(""), KeyDigest(0x2d06_8005_38d3_94c2));
        assert_eq!(KeyDigest::of_text("evt_6"), KeyDigest(0xc3ba_b252_9f40_9fce));
    }
}
