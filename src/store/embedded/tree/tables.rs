//! The tables of the database, and the bytes of their rows.
//!
//! ```text
//! operations  operation id                             -> the record, see `codec` and `stuffing`
//! unsettled   operation id, or number of a group       -> what is not settled, see `unsettled`
//! due         time, big-endian ++ number of a group    -> the ids that end at this time
//!             time of its end, big-endian ++ id        -> nothing, in an older version
//! created     time of its first claim, big-endian ++ id -> nothing
//! keys        digest of its key ++ its row in `created` -> nothing
//! meta        `time`                                   -> the latest group's label, see `journal`
//! ```
//!
//! Every record that is not in flight has a row in `due`, at the record's end or earlier. The
//! record itself says when it really ends, so an end that moves to later needs no new row. At a
//! start, `unsettled` shows which operations are not settled, so the store does not have to read
//! every record.

use std::cell::{Cell, RefCell};

use fjall::{Database, Keyspace, PersistMode, Slice};

use super::bytes::joined;
use super::contents::Contents;
use super::database::{self, OpenDatabase};
use super::directory::Directory;
use super::ids;
use super::journal::Journals;
use super::journal::group::{LABEL_KEY, Label};
use super::settings::Durability;
use super::stuffing::unstuff;
use super::synced::SyncedNote;
use super::unsettled::{ClaimRows, Unsettled, UnsettledRow};
use crate::operation::{Operation, OperationId, Timestamp};
use crate::store::list::KeyDigest;
use crate::store::{Error, codec};
use crate::telemetry::chain;

/// The rows about a record in all tables except `operations`.
#[derive(Debug, Clone, Copy)]
pub(super) struct IndexEntries {
    /// The time of its row in `created`.
    pub(super) created_at: Timestamp,
    /// The digest of its key, which together with `created_at` is its row in `keys`.
    pub(super) key: KeyDigest,
    /// What `unsettled` says of it.
    pub(super) unsettled: Option<Unsettled>,
    /// The time of its row in `due`. The table may have an earlier row instead.
    pub(super) due: Option<Timestamp>,
}

impl IndexEntries {
    pub(super) fn of(operation: &Operation) -> Self {
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
pub(super) struct TimeKey {
    pub(super) at: Timestamp,
    pub(super) id: OperationId,
}

impl TimeKey {
    pub(super) fn to_bytes(self) -> [u8; 24] {
        joined(&[&self.at.0.to_be_bytes(), self.id.as_bytes()])
    }

    /// Returns the row in `keys` that belongs to this row of `created`.
    pub(super) fn keyed(self, KeyDigest(digest): KeyDigest) -> [u8; 32] {
        joined(&[&digest.to_be_bytes(), &self.to_bytes()])
    }

    fn from_keyed(bytes: &[u8]) -> Option<Self> {
        Self::from_bytes(bytes.get(8..)?)
    }

    fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let (at, id) = bytes.split_first_chunk::<8>()?;
        let at = Timestamp(u64::from_be_bytes(*at));
        Some(Self { at, id: OperationId::from_bytes(id.try_into().ok()?) })
    }
}

/// A row of `due`.
pub(super) struct DueRow {
    pub(super) key: Slice,
    pub(super) at: Timestamp,
    pub(super) ids: Vec<OperationId>,
}

impl DueRow {
    /// Returns the key of the row that a group has for a time. No other row has this key.
    pub(super) fn key(at: Timestamp, group: u64) -> [u8; 16] {
        joined(&[&at.0.to_be_bytes(), &group.to_be_bytes()])
    }

    fn from_bytes(key: Slice, value: &[u8]) -> Option<Self> {
        if let Some(TimeKey { at, id }) = TimeKey::from_bytes(&key) {
            return Some(Self { key, at, ids: vec![id] });
        }
        let at = Timestamp(u64::from_be_bytes(*key.first_chunk()?));
        Some(Self { key, at, ids: ids::from_bytes(value)? })
    }
}

/// The open database.
pub(super) struct Tables {
    pub(super) database: Database,
    pub(super) operations: Keyspace,
    pub(super) unsettled: Keyspace,
    pub(super) due: Keyspace,
    pub(super) created: Keyspace,
    pub(super) keys: Keyspace,
    pub(super) meta: Keyspace,
    pub(super) durability: Durability,
    /// The rows of `unsettled` that the operations in flight share.
    pub(super) claim_rows: RefCell<ClaimRows>,
    /// The list in the file `contents`.
    contents: RefCell<Contents>,
    synced: SyncedNote,
    /// A lower bound of the sequence number of the latest group that was written.
    latest: Cell<u64>,
    // Fields are dropped in the order of their declaration, so the database is closed before the
    // directory is unlocked.
    directory: Directory,
}

impl Tables {
    /// Opens the database, and notes what it contains and how far its journals reach.
    pub(super) fn open(
        directory: Directory,
        durability: Durability,
        journals: &Journals,
    ) -> Result<Self, fjall::Error> {
        let records = directory.records();
        let OpenDatabase { database, operations, unsettled, due, created, meta, keys } =
            database::open(&records)?;
        // This number may be lower than before, because the sequence numbers of an emptied database
        // begin anew.
        let latest = journals.reach();
        let synced = SyncedNote::begin(&records, latest)?;
        let contents = Contents::of(&records, &journals.used())?;
        contents.write(&records)?;
        let contents = RefCell::new(contents);
        let latest = Cell::new(latest);
        Ok(Self {
            database,
            operations,
            unsettled,
            due,
            created,
            keys,
            meta,
            durability,
            claim_rows: RefCell::default(),
            contents,
            synced,
            latest,
            directory,
        })
    }

    /// The store's directory.
    pub(super) const fn directory(&self) -> &Directory {
        &self.directory
    }

    /// Returns the latest time of the store's clock that was written. The store's clock continues
    /// from that time, so it never goes back, even if somebody set the machine's clock back.
    pub(super) fn kept_time(&self) -> Result<Timestamp, fjall::Error> {
        let label = self.meta.get(LABEL_KEY)?;
        Ok(label.and_then(|label| Label::time_of(&label)).unwrap_or_default())
    }

    /// Reads a record.
    pub(super) fn read(&self, id: OperationId) -> Result<Option<Operation>, Error> {
        let found = self.operations.get(id.as_bytes()).map_err(failed)?;
        found.map(|kept| decoded(id, &kept)).transpose()
    }

    /// Reads all records, in no particular order.
    pub(super) fn records(&self) -> impl Iterator<Item = Result<Operation, Error>> {
        self.operations.iter().filter_map(|row| match row.into_inner() {
            Ok((key, kept)) => {
                let id = OperationId::from_bytes(key.as_ref().try_into().ok()?);
                Some(decoded(id, &kept))
            }
            Err(error) => Some(Err(failed(error))),
        })
    }

    /// Returns the rows of `unsettled`.
    pub(super) fn unsettled(&self) -> impl Iterator<Item = Result<UnsettledRow, fjall::Error>> {
        self.unsettled.iter().filter_map(|row| match row.into_inner() {
            Ok((key, value)) => UnsettledRow::from_bytes(&key, &value).map(Ok),
            Err(error) => Some(Err(error)),
        })
    }

    /// Returns the rows of `due` with times from `from` to `until`, earliest first.
    pub(super) fn due(
        &self,
        from: Timestamp,
        until: Timestamp,
    ) -> impl Iterator<Item = Result<DueRow, fjall::Error>> {
        let first = from.0.to_be_bytes();
        let last = TimeKey { at: until, id: OperationId::from_bytes([0xff; 16]) };
        let rows = self.due.range(first.as_slice()..=last.to_bytes().as_slice());
        rows.filter_map(|row| match row.into_inner() {
            Ok((key, value)) => DueRow::from_bytes(key, &value).map(Ok),
            Err(error) => Some(Err(error)),
        })
    }

    /// Returns the rows of `created` that come after `after` in a list, newest first. Without
    /// `after` it returns all of them.
    pub(super) fn created_before(
        &self,
        after: Option<TimeKey>,
    ) -> impl Iterator<Item = Result<TimeKey, fjall::Error>> {
        let rows = match after {
            Some(position) => self.created.range(..position.to_bytes()),
            None => self.created.iter(),
        };
        rows.rev().filter_map(|row| row.key().map(|key| TimeKey::from_bytes(&key)).transpose())
    }

    /// Does the same as [`Self::created_before`], for the rows of `keys` with this digest.
    pub(super) fn keyed_before(
        &self,
        key: KeyDigest,
        after: Option<TimeKey>,
    ) -> impl Iterator<Item = Result<TimeKey, fjall::Error>> {
        let lowest = TimeKey { at: Timestamp(0), id: OperationId::from_bytes([0; 16]) };
        let highest = TimeKey { at: Timestamp(u64::MAX), id: OperationId::from_bytes([0xff; 16]) };
        let rows = lowest.keyed(key)..after.unwrap_or(highest).keyed(key);
        let rows = self.keys.range(rows).rev();
        rows.filter_map(|row| row.key().map(|key| TimeKey::from_keyed(&key)).transpose())
    }

    /// Notes that a group was written, and to which journal. This comes before any of the group's
    /// calls gets a reply. `sequence` is the number in its label.
    pub(super) fn note_group(&self, sequence: u64) -> Result<(), fjall::Error> {
        let records = self.directory.records();
        let mut contents = self.contents.borrow_mut();
        let is_new = contents.note_group(&records, self.latest.replace(sequence))?;
        if is_new {
            // The list must not name a journal as used before the journal's group is on disk.
            // Otherwise a loss of power in between would look like a damaged journal.
            self.sync()?;
            contents.write(&records)?;
        }
        if is_new || self.durability == Durability::Sync {
            self.synced.note(sequence)?;
        }
        if is_new {
            self.synced.sync()?;
        }
        Ok(())
    }

    /// Syncs all that was written, and notes how far it was synced.
    pub(super) fn close(&self) -> Result<(), fjall::Error> {
        self.sync()?;
        self.synced.note(self.latest.get())?;
        Ok(self.synced.sync()?)
    }

    /// Makes all that was written durable, whatever the settings ask for.
    pub(super) fn sync(&self) -> Result<(), fjall::Error> {
        self.database.persist(PersistMode::SyncAll)
    }
}

/// Reads a record of this operation.
fn decoded(id: OperationId, kept: &[u8]) -> Result<Operation, Error> {
    let record = unstuff(kept).and_then(|record| codec::decode(&record));
    record.map_err(|corrupt| Error::Unreadable(id, corrupt))
}

/// Returns what was read. If a record is unreadable, logs that it is kept, and returns none. Such a
/// record is never removed, because nobody can say whether its operation was done. But it is no
/// reason to refuse all others.
pub(super) fn unless_unreadable<T>(read: Result<T, Error>) -> Result<Option<T>, Error> {
    match read {
        Ok(found) => Ok(Some(found)),
        Err(error @ Error::Unreadable(id, _)) => {
            tracing::error!(operation.id = %id, error = %chain(&error), "a record is kept");
            Ok(None)
        }
        Err(error) => Err(error),
    }
}

/// Turns a failure of the database into a failure of the call.
pub(super) fn failed(error: fjall::Error) -> Error {
    Error::Failed(Box::new(error))
}
