//! Reads a store of format 1, so that `carry` can carry its records over.
//!
//! Format 1 kept its records in the tables of a database, fjall, and wrote every change to the
//! journals of that database. This module opens such a store with all its checks for damage, and
//! changes nothing in it but what damage asks for. The database has no threads here, so it neither
//! sorts its files nor removes any. Whoever stops the carrying, the next start finds the same.
//!
//! ```text
//! operations  operation id                       -> the record, see `codec` and `stuffing`
//! unsettled   operation id, or number of a group -> what is not settled, see `unsettled`
//! meta        `time`                             -> the latest group's label, see `journal`
//! ```
//!
//! There are more tables, but their rows follow from the records.

mod carry;
mod contents;
mod journal;
#[cfg(test)]
pub(super) mod older;
mod synced;
#[cfg(test)]
mod tests;

pub(super) use carry::carry_over;

use std::fs;
use std::io;
use std::ops::Bound;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};

use fjall::{Database, Keyspace, KeyspaceCreateOptions, Slice};

use self::contents::Contents;
use self::journal::Check;
use self::journal::group::{LABEL_KEY, Label};
use super::filesystem::sync_directory;
use super::open_error::OpenError;
use super::settings::{Durability, IfDamaged};
use super::stuffing::unstuff;
use super::unsettled::{Unsettled, UnsettledRow};
use crate::operation::{Operation, OperationId, Timestamp};
use crate::store::codec::{self, Corrupt};

/// The most bytes that the journals have together. The database holds their rows in memory.
const JOURNALS_BYTES_MAX: u64 = 64 * 1024 * 1024;

/// The number of bytes of the database's files that are cached in memory.
const BLOCK_CACHE_BYTES: u64 = 8 * 1024 * 1024;

/// The most files that are kept open.
const FILES_MAX: usize = 128;

/// The folder of the database.
pub(super) fn records_folder(store: &Path) -> PathBuf {
    store.join("records")
}

/// The folder of a database that is not complete, or was not needed.
pub(super) fn unfinished_folder(store: &Path) -> PathBuf {
    store.join("records.new")
}

/// The records of a store of format 1.
pub(super) struct OldRecords {
    store: PathBuf,
    operations: Keyspace,
    unsettled: Keyspace,
    meta: Keyspace,
    /// Closed last.
    _database: Database,
}

/// A record of a store of format 1.
pub(super) struct OldRecord {
    pub(super) id: OperationId,
    /// The record, as it is kept.
    pub(super) kept: Slice,
    /// The operation. Nobody can say whether the operation of an unreadable record was done.
    pub(super) operation: Result<Operation, Corrupt>,
}

/// Opens the records of a store. Returns none if they are lost and that is accepted.
pub(super) fn open(
    store: &Path,
    durability: Durability,
    if_damaged: IfDamaged,
) -> Result<Option<OldRecords>, OpenError> {
    let io = |source| OpenError::Io { path: store.to_owned(), source };
    accept_noted_loss(store, if_damaged)?;
    let records = records_folder(store);
    if !find_records(store).map_err(io)? {
        if if_damaged == IfDamaged::Refuse {
            return Err(OpenError::RecordsGone { path: store.to_owned() });
        }
        log_all_lost(store, &records);
        return Ok(None);
    }
    let contents = read_contents(&records, if_damaged).map_err(io)?;
    let contents = contents.as_ref();
    // If the database were opened without a part of it, it would delete the files that it can no
    // longer assign to a table.
    if let Some(missing) = Contents::missing(contents, &records).map_err(io)? {
        if if_damaged == IfDamaged::Refuse {
            return Err(OpenError::Missing { store: store.to_owned(), missing });
        }
        log_all_lost(store, &missing);
        return Ok(None);
    }
    // The journals are checked before the database opens them, because the database would cut off
    // what it cannot read.
    let check = Check { store, records: &records, contents, durability, if_damaged };
    let journals = check.run()?;
    // The database panics on some bytes that it did not write. Such a panic is turned into an
    // error.
    let opened = catch_unwind(AssertUnwindSafe(|| OldRecords::open(store, &records)));
    let opened = opened.map_err(|_| OpenError::database(store, Unreadable))?;
    let opened = opened.map_err(|source| OpenError::database(store, source))?;
    // The check above found every group whole, so a journal that is shorter now has lost groups.
    if let Some(journal) = journals.cut_off().map_err(io)? {
        return Err(note_loss(store, journal));
    }
    Ok(Some(opened))
}

/// The database panicked on bytes that it cannot have written.
#[derive(Debug, thiserror::Error)]
#[error(
    "it holds bytes that it cannot have written; restore it (what was recorded after the copy may run \
     again), or remove its directory to begin anew (all may)"
)]
struct Unreadable;

/// The path of the file that says that a journal has lost complete groups. The store does not open
/// while this file exists.
fn noted_loss(store: &Path) -> PathBuf {
    store.join("damaged")
}

/// Notes durably that a journal has lost complete groups. The database has cut them off, so without
/// this note the next start might find nothing wrong.
fn note_loss(store: &Path, journal: &Path) -> OpenError {
    let path = store.to_owned();
    let says = format!("`{}` was damaged and has lost complete writes\n", journal.display());
    match fs::write(noted_loss(store), says).and_then(|()| sync_directory(store)) {
        Ok(()) => OpenError::Damaged { path },
        Err(source) => OpenError::Io { path, source },
    }
}

fn accept_noted_loss(store: &Path, if_damaged: IfDamaged) -> Result<(), OpenError> {
    let io = |source| OpenError::Io { path: store.to_owned(), source };
    if !noted_loss(store).try_exists().map_err(io)? {
        return Ok(());
    }
    if if_damaged == IfDamaged::Refuse {
        return Err(OpenError::Damaged { path: store.to_owned() });
    }
    fs::remove_file(noted_loss(store)).map_err(io)?;
    tracing::error!(
        store = %store.display(),
        "operations were lost with a damaged journal; they may run again"
    );
    Ok(())
}

/// Whether there is a database. If a crash came after the database was complete and before it got
/// its name, it gets its name now.
fn find_records(store: &Path) -> io::Result<bool> {
    let records = records_folder(store);
    let unfinished = unfinished_folder(store);
    if records.try_exists()? {
        return Ok(true);
    }
    if !Contents::exists(&unfinished)? {
        return Ok(false);
    }
    fs::rename(unfinished, records)?;
    sync_directory(store)?;
    Ok(true)
}

/// Reads the list of what the database must contain. A damaged list is an error or is removed.
fn read_contents(records: &Path, if_damaged: IfDamaged) -> io::Result<Option<Contents>> {
    match Contents::read(records) {
        Err(error)
            if error.kind() == io::ErrorKind::InvalidData && if_damaged == IfDamaged::Accept =>
        {
            tracing::error!(%error, "the list of the store's contents is damaged and ignored");
            Contents::remove(records)?;
            Ok(None)
        }
        read => read,
    }
}

fn log_all_lost(store: &Path, missing: &Path) {
    tracing::error!(
        store = %store.display(),
        missing = %missing.display(),
        "all records are lost with what is missing; all their operations may run again"
    );
}

impl OldRecords {
    fn open(store: &Path, records: &Path) -> Result<Self, fjall::Error> {
        let database = Database::builder(records)
            .cache_size(BLOCK_CACHE_BYTES)
            .max_journaling_size(JOURNALS_BYTES_MAX)
            .manual_journal_persist(true)
            .worker_threads_unchecked(0)
            .max_cached_files(Some(FILES_MAX))
            .open()?;
        let table = |name| database.keyspace(name, KeyspaceCreateOptions::default);
        let operations = table("operations")?;
        let unsettled = table("unsettled")?;
        let meta = table("meta")?;
        let store = store.to_owned();
        Ok(Self { store, operations, unsettled, meta, _database: database })
    }

    /// Returns the label of the latest group that was written. As long as it stays the same, the
    /// records do.
    pub(super) fn label(&self) -> Result<Vec<u8>, OpenError> {
        let label = self.meta.get(LABEL_KEY).map_err(|error| self.failed(error))?;
        Ok(label.map(|label| label.to_vec()).unwrap_or_default())
    }

    /// Returns the latest time of the store's clock that was written.
    pub(super) fn kept_time(&self) -> Result<Timestamp, OpenError> {
        Ok(Label::time_of(&self.label()?).unwrap_or_default())
    }

    /// About how many records there are. Those that were replaced may count several times.
    pub(super) fn approximate_count(&self) -> usize {
        self.operations.approximate_len()
    }

    /// Reads the records with higher ids than `after`, or all, in the order of their ids.
    pub(super) fn records_after(
        &self,
        after: Option<OperationId>,
    ) -> impl Iterator<Item = Result<OldRecord, OpenError>> {
        let from = after.map_or(Bound::Unbounded, |id| Bound::Excluded(*id.as_bytes()));
        self.operations.range::<[u8; 16], _>((from, Bound::Unbounded)).filter_map(|row| {
            match row.into_inner() {
                Ok((key, kept)) => {
                    let id = OperationId::from_bytes(key.as_ref().try_into().ok()?);
                    let operation = unstuff(&kept).and_then(|record| codec::decode(&record));
                    Some(Ok(OldRecord { id, kept, operation }))
                }
                Err(error) => Some(Err(self.failed(error))),
            }
        })
    }

    /// Returns what the store notes of an operation that is not settled. The record itself says it
    /// too, if it can be read.
    pub(super) fn unsettled(&self, id: OperationId) -> Result<Option<Unsettled>, OpenError> {
        let row = self.unsettled.get(id.as_bytes()).map_err(|error| self.failed(error))?;
        if let Some(value) = row
            && let Some(UnsettledRow::One(_, state)) =
                UnsettledRow::from_bytes(id.as_bytes(), &value)
        {
            return Ok(Some(state));
        }
        // The numbers of groups begin with zeros, and few ids do.
        for row in self.unsettled.prefix([0, 0]) {
            let (key, value) = row.into_inner().map_err(|error| self.failed(error))?;
            if let Some(UnsettledRow::Claims { ids, .. }) = UnsettledRow::from_bytes(&key, &value)
                && ids.contains(&id)
            {
                return Ok(Some(Unsettled::InFlight));
            }
        }
        Ok(None)
    }

    fn failed(&self, error: fjall::Error) -> OpenError {
        OpenError::database(&self.store, error)
    }
}
