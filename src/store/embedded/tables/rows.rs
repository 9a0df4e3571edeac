//! The tables, and the bytes of their rows.
//!
//! ```text
//! records     operation id                              -> the place of the record in the log
//! unsettled   operation id, or number of a group        -> what is not settled, see `unsettled`
//! due         time, big-endian ++ number of a group     -> the ids that end at this time
//! created     time of its first claim, big-endian ++ id -> nothing
//! keys        digest of its key ++ its row in `created` -> nothing
//! ```
//!
//! In the log a row of `records` holds the record itself, see `codec` and `stuffing`. Every record
//! that is not in flight has a row in `due`, at the record's end or earlier. The record itself says
//! when it really ends, so an end that moves to later needs no new row. At a start, `unsettled`
//! shows which operations are not settled, so the store does not have to read every record.

use lsm_tree::Slice;

use crate::operation::{Operation, OperationId, Timestamp};
use crate::store::embedded::bytes::joined;
use crate::store::embedded::ids;
use crate::store::embedded::unsettled::Unsettled;
use crate::store::list::KeyDigest;

/// A table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::store::embedded) enum Table {
    Records = 0,
    Unsettled = 1,
    Due = 2,
    Created = 3,
    Keys = 4,
}

/// The number of tables.
pub(super) const TABLES: usize = 5;

impl Table {
    pub(super) const ALL: [Self; TABLES] =
        [Self::Records, Self::Unsettled, Self::Due, Self::Created, Self::Keys];

    /// Returns the table that rows of the log name.
    pub(in crate::store::embedded) fn from_number(number: u8) -> Option<Self> {
        Self::ALL.get(usize::from(number)).copied()
    }

    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Records => "records",
            Self::Unsettled => "unsettled",
            Self::Due => "due",
            Self::Created => "created",
            Self::Keys => "keys",
        }
    }

    /// Whether the key holds the number of a group, so that a removed row never comes back.
    pub(super) fn is_used_once(self, key: &[u8]) -> bool {
        self == Self::Due || (self == Self::Unsettled && key.len() == size_of::<u64>())
    }
}

/// The rows about a record in all tables except `records`.
#[derive(Debug, Clone, Copy)]
pub(in crate::store::embedded) struct IndexEntries {
    /// The time of its row in `created`.
    pub(in crate::store::embedded) created_at: Timestamp,
    /// The digest of its key, which together with `created_at` is its row in `keys`.
    pub(in crate::store::embedded) key: KeyDigest,
    /// What `unsettled` says of it.
    pub(in crate::store::embedded) unsettled: Option<Unsettled>,
    /// The time of its row in `due`. The table may have an earlier row instead.
    pub(in crate::store::embedded) due: Option<Timestamp>,
}

impl IndexEntries {
    pub(in crate::store::embedded) fn of(operation: &Operation) -> Self {
        let unsettled = Unsettled::of(operation);
        // The writer keeps all operations in flight in memory, so no table needs to hold the ends
        // of their leases.
        let is_in_flight = unsettled == Some(Unsettled::InFlight);
        let due = (!is_in_flight).then(|| operation.state.changes_at());
        let key = KeyDigest::of(&operation.subject.key);
        Self { created_at: operation.created_at, key, unsettled, due }
    }
}

/// A row of `created`, or the end of a record: a time and the id of an operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::store::embedded) struct TimeKey {
    pub(in crate::store::embedded) at: Timestamp,
    pub(in crate::store::embedded) id: OperationId,
}

impl TimeKey {
    pub(in crate::store::embedded) fn to_bytes(self) -> [u8; 24] {
        joined(&[&self.at.0.to_be_bytes(), self.id.as_bytes()])
    }

    /// Returns the row in `keys` that belongs to this row of `created`.
    pub(in crate::store::embedded) fn keyed(self, KeyDigest(digest): KeyDigest) -> [u8; 32] {
        joined(&[&digest.to_be_bytes(), &self.to_bytes()])
    }

    pub(super) fn from_keyed(bytes: &[u8]) -> Option<Self> {
        Self::from_bytes(bytes.get(8..)?)
    }

    pub(super) fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let (at, id) = bytes.split_first_chunk::<8>()?;
        let at = Timestamp(u64::from_be_bytes(*at));
        Some(Self { at, id: OperationId::from_bytes(id.try_into().ok()?) })
    }
}

/// A row of `due`.
pub(in crate::store::embedded) struct DueRow {
    pub(in crate::store::embedded) key: Slice,
    pub(in crate::store::embedded) at: Timestamp,
    pub(in crate::store::embedded) ids: Vec<OperationId>,
}

impl DueRow {
    /// Returns the key of the row that a group has for a time. No other row has this key.
    pub(in crate::store::embedded) fn key(at: Timestamp, group: u64) -> [u8; 16] {
        joined(&[&at.0.to_be_bytes(), &group.to_be_bytes()])
    }

    pub(super) fn from_bytes(key: Slice, value: &[u8]) -> Option<Self> {
        let at = Timestamp(u64::from_be_bytes(*key.first_chunk()?));
        Some(Self { key, at, ids: ids::from_bytes(value)? })
    }
}
