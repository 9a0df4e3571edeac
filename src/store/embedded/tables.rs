//! The tables of the database, and their bytes.
//!
//! ```text
//! operations  operation id                          -> the record, see `codec`
//! unsettled   operation id                          -> `f` in flight, `u` uncertain
//! due         time of its end, big-endian ++ id     -> nothing
//! created     time of its claim, big-endian ++ id   -> nothing
//! keys        digest of its key ++ its row in `created` -> nothing
//! meta        `time`                                -> the label of the latest group: the latest
//!                                                      time of the store's clock, see `journal`
//! ```
//!
//! Every record that is not in flight has a row in `due` at its end or before. A row may be older
//! than that: the record decides. `unsettled` says at start what is not settled without reading
//! every record. Records are kept as `stuffing` says.

use std::cell::{Cell, RefCell};
use std::path::Path;

use fjall::{CompressionType, Database, Keyspace, KeyspaceCreateOptions, PersistMode};

use super::batch::Batch;
use super::contents::Contents;
use super::directory::Directory;
use super::journal::{Journals, LABEL_KEY};
use super::stuffing::unstuff;
use super::synced::Synced;
use super::{Durability, Error};
use crate::operation::{Operation, OperationId, State, Timestamp};
use crate::store::codec;
use crate::store::listing::KeyDigest;

/// Bytes of blocks of the database that are kept in memory.
const BLOCK_CACHE_BYTES: u64 = 32 * 1024 * 1024;

/// Bytes of journals; bounds how much is read again at start.
const JOURNALS_BYTES_MAX: u64 = 64 * 1024 * 1024;

/// Bytes of a table that are collected in memory before they are sorted into files. There may be a
/// few of these per table at a time.
const OPERATIONS_MEMORY_BYTES: u64 = 16 * 1024 * 1024;
const INDEX_MEMORY_BYTES: u64 = 4 * 1024 * 1024;

/// Threads that sort and merge files.
const WORKERS: usize = 2;

/// Files that are kept open.
const FILES_MAX: usize = 128;

/// Where a record stands, as far as the other tables tell.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Standing {
    Absent,
    Present {
        created_at: Timestamp,
        /// That of its key: with `created_at`, its row in `keys`.
        key: KeyDigest,
        /// Its row in `unsettled`.
        mark: Option<Mark>,
        /// Its row in `due`, or where one leads to that stands earlier.
        due: Option<Timestamp>,
    },
}

impl Standing {
    pub(super) fn of(operation: Option<&Operation>) -> Self {
        let Some(operation) = operation else {
            return Self::Absent;
        };
        let changes_at = operation.state.changes_at();
        let (mark, due) = match &operation.state {
            State::InFlight(_) => (Some(Mark::InFlight), None),
            State::Uncertain(_) => (Some(Mark::Uncertain), Some(changes_at)),
            State::Succeeded(_) | State::Failed(_) | State::Forgotten { .. } => {
                (None, Some(changes_at))
            }
        };
        let key = KeyDigest::of(&operation.asked.key);
        Self::Present { created_at: operation.created_at, key, mark, due }
    }

    pub(super) fn mark(self) -> Option<Mark> {
        match self {
            Self::Absent => None,
            Self::Present { mark, .. } => mark,
        }
    }

    pub(super) fn due(self) -> Option<Timestamp> {
        match self {
            Self::Absent => None,
            Self::Present { due, .. } => due,
        }
    }

    /// What its rows in `created` and `keys` tell.
    pub(super) fn found_by(self) -> Option<(Timestamp, KeyDigest)> {
        match self {
            Self::Absent => None,
            Self::Present { created_at, key, .. } => Some((created_at, key)),
        }
    }
}

/// What `unsettled` says of an operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Mark {
    InFlight,
    Uncertain,
}

/// A row of `due`, or of `created`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Dated {
    pub(super) at: Timestamp,
    pub(super) id: OperationId,
}

impl Dated {
    pub(super) fn to_bytes(self) -> [u8; 24] {
        let mut bytes = [0; 24];
        let (at, id) = bytes.split_at_mut(8);
        at.copy_from_slice(&self.at.0.to_be_bytes());
        id.copy_from_slice(self.id.as_bytes());
        bytes
    }

    /// Its row in `keys`.
    pub(super) fn keyed(self, KeyDigest(digest): KeyDigest) -> [u8; 32] {
        let mut bytes = [0; 32];
        let (key, place) = bytes.split_at_mut(8);
        key.copy_from_slice(&digest.to_be_bytes());
        place.copy_from_slice(&self.to_bytes());
        bytes
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
    /// As it is written down.
    contents: RefCell<Contents>,
    synced: Synced,
    /// The number of the latest group that was written; its sequence number is not lower.
    latest: Cell<u64>,
    // let go of last, when the database is closed
    directory: Directory,
}

/// Makes an empty database.
pub(super) fn create(path: &Path) -> Result<(), fjall::Error> {
    let (database, _) = open_database(path)?;
    database.persist(PersistMode::SyncAll)
}

fn open_database(path: &Path) -> Result<(Database, [Keyspace; 6]), fjall::Error> {
    let database = Database::builder(path)
        .cache_size(BLOCK_CACHE_BYTES)
        .max_journaling_size(JOURNALS_BYTES_MAX)
        .manual_journal_persist(true)
        // compressed, the bytes of a body could become a mark of the journal
        .journal_compression(CompressionType::None)
        .worker_threads(WORKERS)
        .max_cached_files(Some(FILES_MAX))
        .open()?;
    let table = |name, memory| {
        database.keyspace(name, || KeyspaceCreateOptions::default().max_memtable_size(memory))
    };
    let tables = [
        table("operations", OPERATIONS_MEMORY_BYTES)?,
        table("unsettled", INDEX_MEMORY_BYTES)?,
        table("due", INDEX_MEMORY_BYTES)?,
        table("created", INDEX_MEMORY_BYTES)?,
        table("meta", INDEX_MEMORY_BYTES)?,
        table("keys", INDEX_MEMORY_BYTES)?,
    ];
    Ok((database, tables))
}

impl Tables {
    /// Opens the database and writes down what it contains and how far it reaches.
    pub(super) fn open(
        directory: Directory,
        durability: Durability,
        journals: &Journals,
    ) -> Result<Self, fjall::Error> {
        let records = directory.records();
        let (database, tables) = open_database(&records)?;
        // the numbers of an emptied database may begin anew
        let latest = journals.reach();
        let synced = Synced::begin(&records, latest)?;
        let contents = Contents::of(&records, &journals.used())?;
        contents.write(&records)?;
        let contents = RefCell::new(contents);
        let latest = Cell::new(latest);
        let [operations, unsettled, due, created, meta, keys] = tables;
        Ok(Self {
            database,
            operations,
            unsettled,
            due,
            created,
            keys,
            meta,
            durability,
            contents,
            synced,
            latest,
            directory,
        })
    }

    /// Where it lies.
    pub(super) const fn directory(&self) -> &Directory {
        &self.directory
    }

    /// The latest time that was written down.
    pub(super) fn kept_time(&self) -> Result<Timestamp, fjall::Error> {
        let label = self.meta.get(LABEL_KEY)?;
        let kept = label.as_ref().and_then(|label| label.first_chunk());
        Ok(Timestamp(kept.map_or(0, |kept| u64::from_be_bytes(*kept))))
    }

    pub(super) fn read(&self, id: OperationId) -> Result<Option<Operation>, Error> {
        let found = self.operations.get(id.as_bytes()).map_err(failed)?;
        let decoded = found.map(|kept| codec::decode(&unstuff(&kept)?)).transpose();
        decoded.map_err(|corrupt| Error::Unreadable(id, corrupt))
    }

    /// What is not settled.
    pub(super) fn unsettled(
        &self,
    ) -> impl Iterator<Item = Result<(OperationId, Mark), fjall::Error>> {
        self.unsettled.iter().filter_map(|row| match row.into_inner() {
            Ok((key, mark)) => {
                let id = OperationId::from_bytes(key.as_ref().try_into().ok()?);
                let in_flight = mark.as_ref() == b"f";
                Some(Ok((id, if in_flight { Mark::InFlight } else { Mark::Uncertain })))
            }
            Err(error) => Some(Err(error)),
        })
    }

    /// Rows that are due at `until`, from `from` on, earliest first.
    pub(super) fn due(
        &self,
        from: Timestamp,
        until: Timestamp,
    ) -> impl Iterator<Item = Result<Dated, fjall::Error>> {
        let first = Dated { at: from, id: OperationId::from_bytes([0; 16]) };
        let last = Dated { at: until, id: OperationId::from_bytes([0xff; 16]) };
        let rows = self.due.range(first.to_bytes()..=last.to_bytes());
        rows.filter_map(|row| row.key().map(|key| Dated::from_bytes(&key)).transpose())
    }

    /// The rows of `created` behind this place, or from the newest one on; newest first.
    pub(super) fn created_before(
        &self,
        after: Option<Dated>,
    ) -> impl Iterator<Item = Result<Dated, fjall::Error>> {
        let rows = match after {
            Some(place) => self.created.range(..place.to_bytes()),
            None => self.created.iter(),
        };
        rows.rev().filter_map(|row| row.key().map(|key| Dated::from_bytes(&key)).transpose())
    }

    /// The same of `keys`, of the operations whose key has this digest.
    pub(super) fn keyed_before(
        &self,
        key: KeyDigest,
        after: Option<Dated>,
    ) -> impl Iterator<Item = Result<Dated, fjall::Error>> {
        let lowest = Dated { at: Timestamp(0), id: OperationId::from_bytes([0; 16]) };
        let highest = Dated { at: Timestamp(u64::MAX), id: OperationId::from_bytes([0xff; 16]) };
        let rows = lowest.keyed(key)..after.unwrap_or(highest).keyed(key);
        let rows = self.keys.range(rows).rev();
        rows.filter_map(|row| row.key().map(|key| Dated::from_keyed(&key)).transpose())
    }

    pub(super) fn batch(&self) -> Batch<'_> {
        Batch::new(self)
    }

    /// Writes down that a group was written, and to which journal, before anybody is told of the
    /// group. `sequence` is what its label says. That a journal holds a group is on disk before that
    /// is noted.
    pub(super) fn note_group(&self, sequence: u64) -> Result<(), fjall::Error> {
        let records = self.directory.records();
        let mut contents = self.contents.borrow_mut();
        let is_new = contents.note_group(&records, self.latest.replace(sequence))?;
        if is_new {
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

    /// Everything that was written is on disk when this returns, and noted.
    pub(super) fn close(&self) -> Result<(), fjall::Error> {
        self.sync()?;
        self.synced.note(self.latest.get())?;
        Ok(self.synced.sync()?)
    }

    fn sync(&self) -> Result<(), fjall::Error> {
        self.database.persist(PersistMode::SyncAll)
    }
}

pub(super) fn failed(error: fjall::Error) -> Error {
    Error::Failed(Box::new(error))
}
