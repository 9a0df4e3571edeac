//! Makes the tables, and brings older ones up to date.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tokio::sync::Mutex;
use tokio_postgres::Row;
use tokio_postgres::types::{FromSql, Type};

use super::pool::Lent;
use super::refusal::{Failure, of_statement};
use crate::store::{Error, SetupError};

/// All changes of the tables that there ever were, in order. Some may be added, none changed.
const MIGRATIONS: [&str; 4] = [
    include_str!("0001_operations.sql"),
    include_str!("0002_swap.sql"),
    include_str!("0003_searched.sql"),
    include_str!("0004_standing.sql"),
];

/// Whether there is a schema of this name.
const SCHEMA: &str = "SELECT EXISTS (SELECT FROM pg_catalog.pg_namespace WHERE nspname = $1)";

/// Whether there is a list of migrations in the schema of this name.
const LIST: &str = "SELECT EXISTS (SELECT FROM pg_catalog.pg_class c \
    JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace \
    WHERE n.nspname = $1 AND c.relname = 'migrations')";

/// Who migrates holds this lock, whatever the schema: `onceward` in ASCII.
const LOCK: i64 = 0x6f6e_6365_7761_7264;

/// Longest that one change of the tables takes: an index of a large table may take minutes.
const CHANGE_MAX: Duration = Duration::from_mins(30);

/// The longest name that PostgreSQL keeps whole, in bytes.
const NAME_BYTES_MAX: usize = 63;

/// A name that cannot be that of a schema.
#[derive(Debug, thiserror::Error)]
#[error(
    "a schema's name has 1 to {NAME_BYTES_MAX} bytes and no NUL, and does not begin with `pg_`"
)]
struct NoSchemaName;

/// The tables, in one schema.
#[derive(Debug)]
pub(super) struct Tables {
    /// Its name, as it was given.
    pub(super) schema: String,
    /// The same in quotes.
    pub(super) quoted: String,
    are_ready: AtomicBool,
    migrating: Arc<Mutex<()>>,
}

impl Tables {
    pub(super) fn new(schema: &str) -> Result<Self, SetupError> {
        let is_name = !schema.is_empty()
            && schema.len() <= NAME_BYTES_MAX
            && !schema.contains('\0')
            && !schema.starts_with("pg_");
        if !is_name {
            return Err(SetupError::Connection(Box::new(NoSchemaName)));
        }
        Ok(Self {
            schema: schema.to_owned(),
            quoted: format!("\"{}\"", schema.replace('"', "\"\"")),
            are_ready: AtomicBool::new(false),
            migrating: Arc::default(),
        })
    }

    /// A statement with the schema's name in its places.
    pub(super) fn sql(&self, statement: &str) -> String {
        statement.replace("@schema@", &self.quoted)
    }

    /// They may be gone.
    pub(super) fn doubt(&self) {
        self.are_ready.store(false, Ordering::Release);
    }

    /// Makes sure that they are there, once, and gives the connection back. The change of a large
    /// table takes longer than the call that begins it: it goes on when that call has ended.
    pub(super) async fn ready(self: &Arc<Self>, mut lent: Lent) -> Result<Lent, Error> {
        if self.are_ready.load(Ordering::Acquire) {
            return Ok(lent);
        }
        let one_at_a_time = Arc::clone(&self.migrating).lock_owned().await;
        if self.are_ready.load(Ordering::Acquire) {
            return Ok(lent);
        }
        let tables = Arc::clone(self);
        let migration = tokio::spawn(async move {
            let done = tables.migrate(&mut lent).await;
            if done.is_ok() {
                tables.are_ready.store(true, Ordering::Release);
            }
            drop(one_at_a_time);
            done.map(|()| lent)
        });
        migration.await.map_err(|error| Error::Failed(Box::new(error)))?
    }

    async fn migrate(&self, lent: &mut Lent) -> Result<(), Error> {
        if self.version(lent).await? == MIGRATIONS.len() {
            return Ok(());
        }
        self.expect_utf8(lent).await?;
        // The lock ends with the transaction: behind a pooler, a session's would stay with the
        // pooler's.
        let begin = format!("BEGIN; SELECT pg_advisory_xact_lock({LOCK})");
        lent.execute(&begin).await.map_err(of_statement)?;
        // another process may have been first
        let version = self.version(lent).await;
        let done = match version {
            Ok(version) => self.apply(lent, version).await,
            Err(error) => Err(error),
        };
        let end = if done.is_ok() { "COMMIT" } else { "ROLLBACK" };
        lent.execute(end).await.map_err(of_statement)?;
        done
    }

    async fn apply(&self, lent: &mut Lent, version: usize) -> Result<(), Error> {
        if version == 0 && !self.is_there(lent, SCHEMA).await? {
            let schema = self.sql("CREATE SCHEMA @schema@");
            lent.execute(&schema).await.map_err(of_statement)?;
        }
        let patience = format!("SET LOCAL statement_timeout = {}", CHANGE_MAX.as_millis());
        lent.execute(&patience).await.map_err(of_statement)?;
        for (number, migration) in (1..).zip(MIGRATIONS).skip(version) {
            let noted = format!("INSERT INTO @schema@.migrations (number) VALUES ({number})");
            let statements = self.sql(&format!("{migration};{noted}"));
            lent.execute(&statements).await.map_err(of_statement)?;
        }
        Ok(())
    }

    /// How many migrations were applied.
    async fn version(&self, lent: &mut Lent) -> Result<usize, Error> {
        if !self.is_there(lent, LIST).await? {
            return Ok(0);
        }
        let latest = self.sql("SELECT coalesce(max(number), 0) FROM @schema@.migrations");
        let rows = lent.query(&latest, &[]).await.map_err(of_statement)?;
        let version: i32 = first(&rows).map_err(of_statement)?;
        match usize::try_from(version) {
            Ok(version) if version <= MIGRATIONS.len() => Ok(version),
            Ok(_) | Err(_) => {
                Err(Error::Unavailable("a newer version of this program made the store's tables"))
            }
        }
    }

    /// Whether the schema, or the list of migrations in it, is there. The catalogs say how it is now;
    /// functions such as `to_regclass` may remember how it was before the lock.
    async fn is_there(&self, lent: &mut Lent, statement: &str) -> Result<bool, Error> {
        let rows = lent.query(statement, &[(&self.schema, Type::TEXT)]).await;
        let rows = rows.map_err(of_statement)?;
        first(&rows).map_err(of_statement)
    }

    /// Paths and keys are Unicode; another encoding would refuse some of them, one at a time.
    async fn expect_utf8(&self, lent: &mut Lent) -> Result<(), Error> {
        let encoding = "SELECT pg_catalog.current_setting('server_encoding') = 'UTF8'";
        let rows = lent.query(encoding, &[]).await.map_err(of_statement)?;
        if first(&rows).map_err(of_statement)? {
            return Ok(());
        }
        Err(Error::Unavailable("the database's encoding is not UTF8"))
    }
}

/// What is in the first column of the first row.
fn first<'a, T: FromSql<'a> + Default>(rows: &'a [Row]) -> Result<T, Failure> {
    rows.first().map_or(Ok(T::default()), |row| Ok(row.try_get(0)?))
}
