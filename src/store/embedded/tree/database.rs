//! Opens the database that holds the tables. The database is fjall, a log-structured merge tree.

use std::path::Path;

use fjall::{CompressionType, Database, Keyspace, KeyspaceCreateOptions, PersistMode};

/// The number of bytes of the files that are cached in memory.
const BLOCK_CACHE_BYTES: u64 = 32 * 1024 * 1024;

/// The most bytes that the journals may have together. All of them are read when the store is
/// opened.
const JOURNALS_BYTES_MAX: u64 = 64 * 1024 * 1024;

/// The number of bytes of a table that are collected in memory before they are sorted into a file.
/// A table may have a few such collections at a time.
const OPERATIONS_MEMORY_BYTES: u64 = 16 * 1024 * 1024;
const INDEX_MEMORY_BYTES: u64 = 4 * 1024 * 1024;

/// The number of threads that sort and merge files.
const WORKERS: usize = 2;

/// The most files that are kept open.
const FILES_MAX: usize = 128;

/// Makes an empty database.
pub(super) fn create(path: &Path) -> Result<(), fjall::Error> {
    open(path)?.database.persist(PersistMode::SyncAll)
}

/// The open database, and its tables.
pub(super) struct OpenDatabase {
    pub(super) database: Database,
    pub(super) operations: Keyspace,
    pub(super) unsettled: Keyspace,
    pub(super) due: Keyspace,
    pub(super) created: Keyspace,
    pub(super) meta: Keyspace,
    pub(super) keys: Keyspace,
}

/// Opens the database.
pub(super) fn open(path: &Path) -> Result<OpenDatabase, fjall::Error> {
    let database = Database::builder(path)
        .cache_size(BLOCK_CACHE_BYTES)
        .max_journaling_size(JOURNALS_BYTES_MAX)
        // Each group itself says whether it must be synced.
        .manual_journal_persist(true)
        // Compression could turn the bytes of a body into a mark of the journal, and `stuffing`
        // works before compression.
        .journal_compression(CompressionType::None)
        .worker_threads(WORKERS)
        .max_cached_files(Some(FILES_MAX))
        .open()?;
    let table = |name, memory| {
        database.keyspace(name, || KeyspaceCreateOptions::default().max_memtable_size(memory))
    };
    // The order must stay: the database numbers tables as they are made, and existing stores have
    // these numbers.
    let operations = table("operations", OPERATIONS_MEMORY_BYTES)?;
    let unsettled = table("unsettled", INDEX_MEMORY_BYTES)?;
    let due = table("due", INDEX_MEMORY_BYTES)?;
    let created = table("created", INDEX_MEMORY_BYTES)?;
    let meta = table("meta", INDEX_MEMORY_BYTES)?;
    let keys = table("keys", INDEX_MEMORY_BYTES)?;
    Ok(OpenDatabase { database, operations, unsettled, due, created, meta, keys })
}
