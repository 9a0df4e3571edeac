//! The tables, and the bytes of their rows.
//!
//! ```text
//! records    operation id                             -> the place of the record in the log
//! unsettled  operation id, or number of a group       -> what is not settled, see `unsettled`
//! due        time, big-endian ++ number of a group    -> the ids that end at this time
//! created    time of its first claim, big-endian ++ id -> nothing
//! keys       digest of its key ++ its row in `created` -> nothing
//! ```
//!
//! In the log, a row of `records` has the record itself, see `codec` and `stuffing`.
//!
//! Every record that is not in flight has a row in `due`, at the record's end or earlier. The
//! record itself says when it really ends, so an end that moves to later needs no new row. At a
//! start, `unsettled` shows which operations are not settled, so the store does not have to read
//! every record.

use fjall::Slice;

use super::accounts::Life;
use crate::operation::{Operation, OperationId, Timestamp};
use crate::store::embedded::bytes::joined;
use crate::store::embedded::unsettled::Unsettled;
use crate::store::embedded::{ids, log};
use crate::store::list::KeyDigest;
use crate::store::probe;

/// A table. Its number is in the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::store::embedded) enum Table {
    Records = log::RECORDS as isize,
    Unsettled = 1,
    Due = 2,
    Created = 3,
    Keys = 4,
}

impl Table {
    pub(super) const ALL: [Self; 5] =
        [Self::Records, Self::Unsettled, Self::Due, Self::Created, Self::Keys];

    pub(in crate::store::embedded) const fn number(self) -> u8 {
        self as u8
    }

    pub(super) fn of_number(number: u8) -> Option<Self> {
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
    /// Whether a probe made the record.
    pub(in crate::store::embedded) is_throw_away: bool,
}

impl IndexEntries {
    pub(in crate::store::embedded) fn of(operation: &Operation) -> Self {
        let unsettled = Unsettled::of(operation);
        // The writer keeps all operations in flight in memory, so no table needs to hold the ends
        // of their leases.
        let is_in_flight = unsettled == Some(Unsettled::InFlight);
        let due = (!is_in_flight).then(|| operation.state.changes_at());
        let key = KeyDigest::of(&operation.subject.key);
        let is_throw_away = probe::is_throw_away(operation);
        Self { created_at: operation.created_at, key, unsettled, due, is_throw_away }
    }

    /// The life of a record that had these rows and is removed.
    pub(in crate::store::embedded) const fn life_ended(&self) -> Life {
        match self.is_throw_away {
            true => Life::ThrowAway,
            false => Life::Ended { created_at: self.created_at },
        }
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
