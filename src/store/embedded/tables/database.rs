//! The rows on disk. They are in fjall, a log-structured merge tree.
//!
//! Rows come in sorted runs only, which fjall writes and syncs as files of its own. So its journal
//! stays empty, and it keeps nothing in memory but a cache.

use std::io;
use std::path::{Path, PathBuf};

use fjall::config::FilterPolicy;
use fjall::{Keyspace, KeyspaceCreateOptions, PersistMode, Slice};
use parking_lot::RwLock;

use super::memory::{Memory, Order, Row, Span};
use super::merge::Source;
use super::rows::Table;

/// The number of bytes of the files that are cached in memory.
const BLOCK_CACHE_BYTES: u64 = 24 * 1024 * 1024;

/// The number of threads that merge files. With two, fjall would keep one of them busy doing
/// nothing while the other one works.
const WORKERS: usize = 1;

/// The most files that are kept open.
const FILES_MAX: usize = 128;

/// The database. Threads share it.
#[derive(Debug)]
pub(super) struct Database {
    path: PathBuf,
    /// None if it could not be opened again after a failure.
    open: RwLock<Option<OpenDatabase>>,
}

struct OpenDatabase {
    database: fjall::Database,
    tables: Vec<Keyspace>,
}

impl std::fmt::Debug for OpenDatabase {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("OpenDatabase").finish_non_exhaustive()
    }
}

impl OpenDatabase {
    fn open(path: &Path) -> Result<Self, fjall::Error> {
        let database = fjall::Database::builder(path)
            .cache_size(BLOCK_CACHE_BYTES)
            .manual_journal_persist(true)
            .worker_threads(WORKERS)
            .max_cached_files(Some(FILES_MAX))
            .open()?;
        let open = |table: Table| database.keyspace(table.name(), || options(table));
        let tables = Table::ALL.into_iter().map(open).collect::<Result<_, _>>()?;
        Ok(Self { database, tables })
    }
}

/// The options of a table. fjall keeps those with which a table was made.
fn options(table: Table) -> KeyspaceCreateOptions {
    let options = KeyspaceCreateOptions::default();
    match table {
        Table::Records => options,
        // Single rows of the others are never looked up.
        Table::Unsettled | Table::Due | Table::Created | Table::Keys => {
            options.filter_policy(FilterPolicy::disabled())
        }
    }
}

impl Database {
    /// Makes an empty database, durably.
    pub(super) fn create(path: &Path) -> Result<(), fjall::Error> {
        OpenDatabase::open(path)?.database.persist(PersistMode::SyncAll)
    }

    /// Returns a part of the database that is missing. fjall would make an empty one in its place.
    /// Without its journal, even if that is empty, it would take new rows for older than old ones.
    pub(super) fn missing(path: &Path) -> io::Result<Option<PathBuf>> {
        let folder = path.join("keyspaces");
        let mut needed = vec![path.join("version"), path.join("0.jnl"), folder.clone()];
        // The table with number 0 has the names of the others.
        for number in 0..=Table::ALL.len() {
            let table = folder.join(number.to_string());
            let current = table.join("current");
            needed.extend([table, current]);
        }
        for part in needed {
            if !part.try_exists()? {
                return Ok(Some(part));
            }
        }
        Ok(None)
    }

    pub(super) fn open(path: &Path) -> Result<Self, fjall::Error> {
        let open = RwLock::new(Some(OpenDatabase::open(path)?));
        Ok(Self { path: path.to_owned(), open })
    }

    /// Closes the database and opens it again. Readers wait.
    pub(super) fn reopen(&self) -> Result<(), fjall::Error> {
        let mut open = self.open.write();
        // Two of them cannot be open at once.
        *open = None;
        if let Some(missing) = Self::missing(&self.path)? {
            let says = format!("`{}` is missing", missing.display());
            return Err(io::Error::new(io::ErrorKind::NotFound, says).into());
        }
        *open = Some(OpenDatabase::open(&self.path)?);
        Ok(())
    }

    /// Returns an error if one of fjall's threads has failed. Then fjall does no more work.
    pub(super) fn check(&self) -> Result<(), fjall::Error> {
        let open = self.open.read();
        open.as_ref().ok_or_else(closed)?.database.persist(PersistMode::Buffer)
    }

    pub(super) fn get(&self, table: Table, key: &[u8]) -> Result<Option<Slice>, fjall::Error> {
        let open = self.open.read();
        let tables = open.as_ref().map(|open| &open.tables);
        tables
            .and_then(|tables| tables.get(usize::from(table.number())))
            .ok_or_else(closed)?
            .get(key)
    }

    /// Returns the rows of a span.
    pub(super) fn range(&self, span: Span<'_>) -> Source<'static> {
        let rows = match self.table(span.table) {
            Ok(table) => table.range::<&[u8], _>((span.start, span.end)),
            Err(error) => return Box::new(std::iter::once(Err(error))),
        };
        let row = |row: fjall::Guard| {
            let (key, value) = row.into_inner()?;
            Ok(Row { key, value: Some(value) })
        };
        match span.order {
            Order::Forward => Box::new(rows.map(row)),
            Order::Backward => Box::new(rows.rev().map(row)),
        }
    }

    /// Writes the rows of a table that are in memory. Returns once they survive a loss of power:
    /// fjall syncs the files, the list of files, and the names of both.
    pub(super) fn ingest(&self, table: Table, rows: &Memory) -> Result<(), fjall::Error> {
        let mut rows = rows.range(Span::all(table)).peekable();
        // An ingestion without rows would leave an empty file.
        if rows.peek().is_none() {
            return Ok(());
        }
        let table = self.table(table)?;
        let mut ingestion = table.start_ingestion()?;
        for Row { key, value } in rows {
            match value {
                Some(value) => ingestion.write(key, value)?,
                None => ingestion.write_tombstone(key)?,
            }
        }
        ingestion.finish()
    }

    fn table(&self, table: Table) -> Result<Keyspace, fjall::Error> {
        let open = self.open.read();
        let tables = open.as_ref().map(|open| &open.tables);
        tables
            .and_then(|tables| tables.get(usize::from(table.number())))
            .cloned()
            .ok_or_else(closed)
    }
}

/// The database could not be opened again.
fn closed() -> fjall::Error {
    fjall::Error::Io(io::Error::other("the database could not be opened again"))
}
