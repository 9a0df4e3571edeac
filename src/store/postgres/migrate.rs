//! Makes the tables, and updates those of older versions.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tokio::sync::Mutex;
use tokio::time::Instant;
use tokio_postgres::types::{FromSql, Type};

use super::failure::{Failure, is_duplicate, is_lock_timeout};
use super::pool::{Parameter, PooledConnection};
use crate::store::{Error, SetupError};
use crate::telemetry::chain;

/// All changes that were ever made to the tables, in order. New changes may be added, but none may
/// be edited, because databases have already applied them.
const MIGRATIONS: [&str; 8] = [
    include_str!("0001_operations.sql"),
    include_str!("0002_swap.sql"),
    include_str!("0003_searched.sql"),
    include_str!("0004_standing.sql"),
    include_str!("0005_swap_all.sql"),
    include_str!("0006_swap_all.sql"),
    include_str!("0007_indexes.sql"),
    include_str!("0008_plans.sql"),
];

/// The question whether the schema exists.
const SCHEMA: &str = "SELECT EXISTS (SELECT FROM pg_catalog.pg_namespace WHERE nspname = $1)";

/// The question whether the list of migrations exists in the schema.
const LIST: &str = "SELECT EXISTS (SELECT FROM pg_catalog.pg_class c \
    JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace \
    WHERE n.nspname = $1 AND c.relname = 'migrations')";

/// The number of the lock that a process holds while it migrates any schema. The number is
/// `onceward` in ASCII.
const LOCK: i64 = 0x6f6e_6365_7761_7264;

/// The longest time that one change may take. An index on a large table takes minutes.
const CHANGE_MAX: Duration = Duration::from_mins(30);

/// The longest time that a change waits for a lock. While it waits, all later statements on the
/// table wait behind it, those of other processes too.
const LOCK_MAX: Duration = Duration::from_millis(100);

/// The pause after a change that waited for a lock in vain.
const PAUSE: Duration = Duration::from_secs(5);

/// A change waited for a lock in vain.
const LOCKED: Error = Error::Unavailable(
    "the store's tables cannot be brought up to date yet: another transaction uses them",
);

/// The longest name that PostgreSQL keeps whole, in bytes.
const NAME_BYTES_MAX: usize = 63;

/// The tables, in one schema.
#[derive(Debug)]
pub(super) struct Tables {
    /// The schema's name in the settings.
    pub(super) schema: String,
    /// The schema's name, quoted for SQL.
    pub(super) quoted: String,
    /// Whether this process has seen that the tables are up to date.
    are_ready: AtomicBool,
    /// Whether this process has ever seen that. Tables that are missing later are gone.
    were_ready: AtomicBool,
    /// The time before which no change is tried. Whoever makes a change holds this lock.
    retry_at: Arc<Mutex<Option<Instant>>>,
}

impl Tables {
    pub(super) fn new(schema: &str) -> Result<Self, SetupError> {
        let is_name = !schema.is_empty()
            && schema.len() <= NAME_BYTES_MAX
            && !schema.contains('\0')
            && !schema.starts_with("pg_");
        if !is_name {
            return Err(SetupError::connection(format!(
                "a schema's name has 1 to {NAME_BYTES_MAX} bytes and no NUL, and does not begin \
                 with `pg_`"
            )));
        }
        Ok(Self {
            schema: schema.to_owned(),
            quoted: format!("\"{}\"", schema.replace('"', "\"\"")),
            are_ready: AtomicBool::new(false),
            were_ready: AtomicBool::new(false),
            retry_at: Arc::default(),
        })
    }

    /// Returns a statement with the quoted name of the schema in place of `@schema@`.
    pub(super) fn sql(&self, statement: &str) -> String {
        statement.replace("@schema@", &self.quoted)
    }

    /// Notes that the tables may be gone, so that the next call looks for them again.
    pub(super) fn doubt(&self) {
        self.are_ready.store(false, Ordering::Release);
    }

    /// Makes sure, once, that the tables are up to date. Returns the connection.
    ///
    /// Cancel safe: the change runs in a task of its own and goes on when this call has ended. A
    /// change of a large table takes longer than the call that begins it.
    pub(super) async fn ready(
        self: &Arc<Self>,
        mut connection: PooledConnection,
    ) -> Result<PooledConnection, Error> {
        if self.are_ready.load(Ordering::Acquire) {
            return Ok(connection);
        }
        let mut retry_at = Arc::clone(&self.retry_at).lock_owned().await;
        if self.are_ready.load(Ordering::Acquire) {
            return Ok(connection);
        }
        if retry_at.is_some_and(|at| Instant::now() < at) {
            return Err(self.not_made(LOCKED));
        }
        let tables = Arc::clone(self);
        let migration = tokio::spawn(async move {
            let done = tables.migrate(&mut connection, &mut retry_at).await;
            if done.is_ok() {
                tables.are_ready.store(true, Ordering::Release);
                tables.were_ready.store(true, Ordering::Release);
            }
            drop(retry_at);
            done.map(|()| connection).map_err(|error| tables.not_made(error))
        });
        migration.await.map_err(|error| Error::Failed(Box::new(error)))?
    }

    /// Returns the error of a call for which the tables could not be made. In a process that used the
    /// tables before, it says that they are gone, whatever kept them from being made again.
    fn not_made(&self, error: Error) -> Error {
        if !self.were_ready.load(Ordering::Acquire) || matches!(error, Error::TablesGone(_)) {
            return error;
        }
        tracing::debug!(error = chain(&error), "the store's tables could not be made again");
        Error::TablesGone("the store's tables are gone and could not be made again")
    }

    async fn migrate(
        &self,
        connection: &mut PooledConnection,
        retry_at: &mut Option<Instant>,
    ) -> Result<(), Error> {
        if self.version(connection).await? == MIGRATIONS.len() {
            return Ok(());
        }
        self.expect_utf8(connection).await?;
        // This lock ends with the transaction. A lock of the session would stay with the pooler's
        // session.
        let begin = format!("BEGIN; SELECT pg_advisory_xact_lock({LOCK})");
        connection.execute(&begin).await?;
        // Another process may have made the change while this process waited for the lock.
        let version = self.version(connection).await;
        let done = match version {
            Ok(version) => self.apply(connection, version).await.map_err(|failure| {
                if is_lock_timeout(&failure) {
                    *retry_at = Some(Instant::now() + PAUSE);
                    return LOCKED;
                }
                // The list of the changes is gone, and tables or functions are left.
                if version == 0 && is_duplicate(&failure) {
                    return Error::TablesGone("a part of the store's tables is gone");
                }
                failure.into()
            }),
            Err(error) => Err(error),
        };
        let end = if done.is_ok() { "COMMIT" } else { "ROLLBACK" };
        connection.execute(end).await?;
        done
    }

    async fn apply(
        &self,
        connection: &mut PooledConnection,
        version: usize,
    ) -> Result<(), Failure> {
        // `CREATE SCHEMA IF NOT EXISTS` needs the right to create a schema even if the schema
        // exists.
        if version == 0 && !self.is_there(connection, SCHEMA).await? {
            let schema = self.sql("CREATE SCHEMA @schema@");
            connection.execute(&schema).await?;
        }
        let patience = format!(
            "SET LOCAL statement_timeout = {}; SET LOCAL lock_timeout = {}",
            CHANGE_MAX.as_millis(),
            LOCK_MAX.as_millis()
        );
        connection.execute(&patience).await?;
        for (number, migration) in (1..).zip(MIGRATIONS).skip(version) {
            let noted = format!("INSERT INTO @schema@.migrations (number) VALUES ({number})");
            let statements = self.sql(&format!("{migration};{noted}"));
            connection.execute(&statements).await?;
        }
        Ok(())
    }

    /// Returns the number of migrations that were applied.
    async fn version(&self, connection: &mut PooledConnection) -> Result<usize, Error> {
        if !self.is_there(connection, LIST).await? {
            return Ok(0);
        }
        let latest = self.sql("SELECT coalesce(max(number), 0) FROM @schema@.migrations");
        let version: i32 = ask(connection, &latest, &[]).await?;
        match usize::try_from(version) {
            Ok(version) if version <= MIGRATIONS.len() => Ok(version),
            // The newer version may have changed something that this program relies on, such as the
            // function `swap`.
            Ok(_) | Err(_) => {
                Err(Error::Unavailable("a newer version of this program made the store's tables"))
            }
        }
    }

    /// Whether the schema exists, or the list of migrations in it. The statement reads the
    /// catalogs, because they show the present state. `to_regclass` may answer from a cache that is
    /// older than the lock.
    async fn is_there(
        &self,
        connection: &mut PooledConnection,
        statement: &str,
    ) -> Result<bool, Failure> {
        ask(connection, statement, &[(&self.schema, Type::TEXT)]).await
    }

    /// Refuses a database with an encoding other than UTF-8. Paths and keys are Unicode, so such a
    /// database would refuse some events and not others.
    async fn expect_utf8(&self, connection: &mut PooledConnection) -> Result<(), Error> {
        let encoding = "SELECT pg_catalog.current_setting('server_encoding') = 'UTF8'";
        if ask(connection, encoding, &[]).await? {
            return Ok(());
        }
        Err(Error::Unavailable("the database's encoding is not UTF8"))
    }
}

/// Returns the first column of the first row that a statement returns.
async fn ask<T: for<'a> FromSql<'a> + Default>(
    connection: &mut PooledConnection,
    statement: &str,
    parameters: &[Parameter<'_>],
) -> Result<T, Failure> {
    let rows = connection.query(statement, parameters).await?;
    let first = rows.first().map_or(Ok(T::default()), |row| row.try_get(0));
    first.map_err(Failure::from)
}
