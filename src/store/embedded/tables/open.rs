//! A start: the database as it was at the mark, and the rows that the log has behind it.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::accounts::{Accounts, RecordChange};
use super::database::Database;
use super::ingest::{Ingester, Worker};
use super::mark::{self, Mark};
use super::memory::{ForeignRow, Memory, Span};
use super::rows::Table;
use super::{Life, RUN_ROWS, Tables, stored_record};
use crate::operation::{OperationId, Timestamp};
use crate::store::codec;
use crate::store::embedded::directory::{Directory, Folders};
use crate::store::embedded::filesystem::sync_directory;
use crate::store::embedded::log::{
    ChangeRef, GroupBytes, GroupHead, Log, LostPart, OpenSettings, Place, RealDisk, RowRef,
    SEGMENT_BYTES, Segments,
};
use crate::store::embedded::loss;
use crate::store::embedded::open_error::OpenError;
use crate::store::embedded::settings::{Durability, IfDamaged};
use crate::store::embedded::stuffing::unstuff;
use crate::store::embedded::unsettled::ClaimRows;

/// How tables are opened.
#[derive(Debug, Clone, Copy)]
pub(in crate::store::embedded) struct Options {
    pub(in crate::store::embedded) durability: Durability,
    pub(in crate::store::embedded) if_damaged: IfDamaged,
    pub(super) segment_bytes: u64,
    pub(super) run_rows: usize,
}

impl Options {
    pub(in crate::store::embedded) const fn new(
        durability: Durability,
        if_damaged: IfDamaged,
    ) -> Self {
        Self { durability, if_damaged, segment_bytes: SEGMENT_BYTES, run_rows: RUN_ROWS }
    }

    /// The same for other settings.
    pub(in crate::store::embedded) const fn with(
        self,
        durability: Durability,
        if_damaged: IfDamaged,
    ) -> Self {
        Self { durability, if_damaged, ..self }
    }
}

/// Makes empty tables, durably.
pub(in crate::store::embedded) fn create(folders: &Folders) -> Result<(), OpenError> {
    let Folders { log, rows } = folders;
    let io = |source| OpenError::Io { path: log.clone(), source };
    fs::create_dir(log).map_err(io)?;
    Log::create(&RealDisk, log).map_err(io)?;
    create_rows(rows)?;
    Mark::new().write(log).map_err(io)
}

/// Makes an empty database, durably.
pub(in crate::store::embedded) fn create_rows(rows: &Path) -> Result<(), OpenError> {
    Database::create(rows).map_err(|source| OpenError::database(rows, source))
}

/// Returns a file or folder without which the database would lose a table or begin anew.
pub(in crate::store::embedded) fn missing_rows(rows: &Path) -> io::Result<Option<PathBuf>> {
    Database::missing(rows)
}

/// Removes the mark, durably. Without it, a start reads the whole log, if that is accepted.
pub(in crate::store::embedded) fn remove_mark(log: &Path) -> io::Result<()> {
    match fs::remove_file(mark::path(log)) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        removed => removed.and_then(|()| sync_directory(log)),
    }
}

/// The state that a start builds.
struct Replay<'a> {
    database: &'a Database,
    memory: Memory,
    accounts: Accounts,
    /// The accounts of the mark. If the database is ahead of the mark, they do not count what it
    /// has.
    noted: &'a Accounts,
    time: Timestamp,
    is_foreign: bool,
    /// The most rows in memory. Without a mark the whole log is read, and rows beyond these go into
    /// the database at once.
    rows_max: usize,
    /// Why they do not.
    failure: Option<fjall::Error>,
}

impl Tables {
    /// Opens the tables, as every acknowledged group has left them.
    pub(in crate::store::embedded) fn open(
        directory: Arc<Directory>,
        folders: Folders,
        options: Options,
    ) -> Result<Self, OpenError> {
        let store = directory.path();
        let io = |source| OpenError::Io { path: store.to_owned(), source };
        let failed = |source| OpenError::database(store, source);
        let noted = read_mark(store, &folders.log, options.if_damaged)?;
        let mark = noted.clone().unwrap_or_else(Mark::new);
        if let Some(missing) = Database::missing(&folders.rows).map_err(io)? {
            return Err(OpenError::Missing { store: store.to_owned(), missing });
        }
        let database = Database::open(&folders.rows).map_err(failed)?;
        let mut is_lossy = noted.is_none();
        let mut replay = Replay {
            database: &database,
            memory: Memory::new(u64::MAX),
            accounts: mark.accounts.clone(),
            noted: &mark.accounts,
            time: mark.time,
            is_foreign: false,
            rows_max: if noted.is_some() { usize::MAX } else { options.run_rows },
            failure: None,
        };
        let settings = OpenSettings {
            store: store.to_owned(),
            durability: options.durability,
            if_damaged: options.if_damaged,
            segment_bytes: options.segment_bytes,
            numbers_from: mark.accounts.numbers_from(),
            lose: &mut |lost| {
                is_lossy = true;
                lose(store, lost)
            },
        };
        let mut visit = |head: &GroupHead, row: RowRef<'_>| replay.row(head, row);
        let log = Log::open(RealDisk, &folders.log, mark.position, settings, &mut visit)?;
        let Replay { mut memory, mut accounts, time, is_foreign, failure, .. } = replay;
        failure.map_or(Ok(()), Err).map_err(failed)?;
        accounts.sealed();
        if is_foreign {
            return Err(OpenError::database(store, ForeignRow));
        }
        let position = log.position();
        memory.set_from_group(position.group);
        let segments = Arc::clone(log.segments());
        // The database may have rows of a part that the log has lost.
        if is_lossy {
            accounts = recount(&memory, &database).map_err(failed)?;
        }
        // The mark may have been replaced without having become durable.
        sync_directory(&folders.log).map_err(io)?;
        let tidied = tidy(&mut accounts, &mark, &segments).map_err(io)?;
        if let Some(number) = tidied {
            let missing = folders.log.join(format!("{number}.log"));
            if options.if_damaged == IfDamaged::Refuse {
                return Err(OpenError::Missing { store: store.to_owned(), missing });
            }
            loss::note(store).map_err(io)?;
            tracing::error!(
                segment = %missing.display(),
                "a segment is missing; the records in it are unreadable"
            );
        }
        let database = Arc::new(database);
        let worker = Worker {
            database: Arc::clone(&database),
            segments: Arc::clone(&segments),
            folder: folders.log,
        };
        let ingester = Ingester::begin(worker).map_err(io)?;
        let mut tables = Self {
            active: memory,
            frozen: None,
            accounts,
            time,
            frozen_at: time,
            run_rows: options.run_rows,
            buffer: GroupBytes::default(),
            claim_rows: ClaimRows::default(),
            ingester,
            database,
            segments,
            log,
            directory,
        };
        if noted.is_none() {
            // The next start finds a mark, and reads only what is behind it.
            tables.freeze(time);
            tables.finish_run_now();
        }
        Ok(tables)
    }
}

impl Replay<'_> {
    /// Puts a row of the log into memory.
    fn row(&mut self, head: &GroupHead, RowRef { table, key, change }: RowRef<'_>) {
        if self.memory.rows() >= self.rows_max && self.failure.is_none() {
            let ingest = |table| self.database.ingest(table, &self.memory);
            self.failure = Table::ALL.into_iter().try_for_each(ingest).err();
            self.memory = Memory::new(u64::MAX);
        }
        let now = Timestamp(head.time);
        self.time = self.time.max(now);
        let set = match (Table::of_number(table), key.try_into()) {
            (Some(Table::Records), Ok(id)) => {
                self.record(id, change, now);
                Ok(())
            }
            (Some(table), _) => {
                let value = match change {
                    ChangeRef::Put { value, .. } => Some(value),
                    ChangeRef::Remove | ChangeRef::Moved(_) => None,
                };
                self.memory.set(table, key, value)
            }
            (None, _) => Err(ForeignRow),
        };
        self.is_foreign |= set.is_err();
    }

    fn record(&mut self, id: [u8; 16], change: ChangeRef<'_>, now: Timestamp) {
        let new = match change {
            ChangeRef::Put { place, .. } | ChangeRef::Moved(place) => Some(place),
            ChangeRef::Remove => None,
        };
        let life = match change {
            ChangeRef::Put { value, .. } => {
                life_of(value).unwrap_or(Life::Ended { created_at: now })
            }
            ChangeRef::Moved(_) => Life::Moved,
            ChangeRef::Remove => Life::Ended { created_at: now },
        };
        // If the database cannot be read, or has a later place, the count of the old segment stays
        // too high.
        let stored = || stored_record(self.database, &id).unwrap_or_default();
        let counted = || stored().filter(|place| self.noted.count(*place));
        let known = self.memory.record(&id);
        let old = known.unwrap_or_else(counted);
        self.memory.set_record(id, new);
        self.accounts.change(RecordChange { old, new, life, now });
    }
}

/// Returns how long a record stays.
fn life_of(kept: &[u8]) -> Option<Life> {
    let operation = codec::decode(&unstuff(kept).ok()?).ok()?;
    Some(Life::of(&operation))
}

/// Reads the mark. Returns none if it is lost and that is accepted.
fn read_mark(
    store: &Path,
    folder: &Path,
    if_damaged: IfDamaged,
) -> Result<Option<Mark>, OpenError> {
    let io = |source| OpenError::Io { path: store.to_owned(), source };
    match Mark::read(folder) {
        Ok(mark) => Ok(Some(mark)),
        Err(error) if if_damaged == IfDamaged::Accept => {
            loss::note(store).map_err(io)?;
            tracing::error!(%error, "the mark of the log is lost; the whole log is read again");
            Ok(None)
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            Err(OpenError::Missing { store: store.to_owned(), missing: mark::path(folder) })
        }
        Err(source) => Err(io(source)),
    }
}

/// Counts the records of each segment anew.
fn recount(memory: &Memory, database: &Database) -> Result<Accounts, fjall::Error> {
    let mut accounts = Accounts::default();
    let mut count = |place: Option<Place>| {
        let life = Life::Moved;
        let now = Timestamp(0);
        accounts.change(RecordChange { old: None, new: place, life, now });
    };
    for row in memory.range(Span::all(Table::Records)) {
        count(row.value.and_then(|place| Place::from_bytes(&place)));
    }
    for row in database.range(Span::all(Table::Records)) {
        let row = row?;
        let id = row.key.as_ref().try_into().ok();
        if id.and_then(|id| memory.record(id)).is_none() {
            count(row.value.and_then(|place| Place::from_bytes(&place)));
        }
    }
    Ok(accounts)
}

/// Opens the accounts of all segments that exist, and deletes those that nobody needs. Returns a
/// segment that is missing.
fn tidy(
    accounts: &mut Accounts,
    mark: &Mark,
    segments: &Segments<RealDisk>,
) -> io::Result<Option<u64>> {
    let needed = |accounts: &Accounts, number| accounts.get(number).is_some_and(|a| a.live > 0);
    let existing = segments.numbers()?;
    let is_missing = |number: &u64| existing.binary_search(number).is_err();
    let missing = mark.accounts.iter().map(|(number, _)| number);
    let missing = missing.filter(|number| needed(&mark.accounts, *number)).find(is_missing);
    let before = mark.position.map_or(0, |position| position.segment);
    for number in existing.iter().copied() {
        let is_needed = needed(accounts, number) || needed(&mark.accounts, number);
        if number < before && !is_needed && segments.remove(number).is_ok() {
            accounts.close(number);
        } else {
            accounts.open(number);
        }
    }
    let gone: Vec<_> = accounts.iter().map(|(number, _)| number).filter(is_missing).collect();
    gone.into_iter().for_each(|number| accounts.close(number));
    Ok(missing)
}

/// The most operations of a damaged part that the log names.
const NAMED_MAX: usize = 20;

/// Notes and logs the loss of a part of the log.
fn lose(store: &Path, lost: &LostPart<'_>) -> io::Result<()> {
    loss::note(store)?;
    let LostPart { path, offset, bytes, records } = lost;
    let changes = records.len().to_string();
    let mut named = Vec::new();
    for RowRef { key, change, .. } in records {
        // No sender sent the operations of probes.
        let is_probe = |value| life_of(value) == Some(Life::ThrowAway);
        let is_probe = matches!(change, ChangeRef::Put { value, .. } if is_probe(value));
        if let Ok(id) = <[u8; 16]>::try_from(*key)
            && !is_probe
        {
            named.push(OperationId::from_bytes(id).to_string());
        }
    }
    named.dedup();
    named.truncate(NAMED_MAX);
    tracing::error!(
        segment = %path.display(), offset, bytes, changes, operations = named.join(" "),
        "a damaged part of the log is left out; its operations may run again"
    );
    Ok(())
}
