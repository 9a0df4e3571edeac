//! Finds out what makes the database unsafe: its settings, and missing privileges.

use tokio_postgres::Row;
use tokio_postgres::types::Type;

use super::database::{get, one};
use super::records::Postgres;
use crate::store::{Concern, Error};

/// The query for the settings. It returns one row, with a column for each unsafe setting that says
/// whether the server has it.
const SETUP: &str = "SELECT
    current_setting('fsync') = 'off',
    current_setting('full_page_writes') = 'off',
    (SELECT relpersistence = 'u' FROM pg_catalog.pg_class
        WHERE oid = ($1 || '.operations')::regclass),
    pg_catalog.pg_is_in_recovery(),
    current_setting('transaction_read_only') = 'on' AND NOT pg_catalog.pg_is_in_recovery(),
    current_setting('synchronous_standby_names') = ''
        AND EXISTS (SELECT FROM pg_catalog.pg_stat_replication),
    current_setting('transaction_isolation') <> 'read committed'";

/// The concern for each column of that row. A concern is a code, a text and a hint.
const OF_SETUP: [[&str; 3]; 7] = [
    [
        "fsync-off",
        "the server does not wait for its disk: a crash of its machine may damage or lose everything",
        "set `fsync = on` on the server",
    ],
    [
        "full-page-writes-off",
        "a crash of the server's machine may leave damaged pages",
        "set `full_page_writes = on` on the server",
    ],
    [
        "unlogged",
        "the table `operations` is unlogged: it is emptied after a crash",
        "run `ALTER TABLE operations SET LOGGED`",
    ],
    [
        "replica",
        "the server is a replica and takes no writes",
        "let `url` lead to the primary; if it names several hosts, the store uses the one that takes writes",
    ],
    [
        "read-only",
        "the database takes no writes",
        "set `default_transaction_read_only = off`, or let `url` lead to another server",
    ],
    [
        "asynchronous-standby",
        "a standby may lack acknowledged changes: if it is promoted, operations may run twice",
        "name the standby in `synchronous_standby_names`, or never promote it",
    ],
    [
        "isolation",
        "transactions do not see what others have committed, so that races end in errors",
        "set `default_transaction_isolation = 'read committed'` for this database and user",
    ],
];

/// The query for the privileges that the store needs and its user lacks. Each row has the user, a
/// privilege and its object. The query reads the catalogs, which every user may read. Functions
/// such as `to_regclass` need the very privileges that may be missing.
const PRIVILEGES: &str = "WITH place AS MATERIALIZED (
        SELECT oid AS space, pg_catalog.quote_ident($1) AS name,
            pg_catalog.quote_ident(pg_catalog.current_database()) AS base
        FROM (VALUES (1)) AS one LEFT JOIN pg_catalog.pg_namespace ON nspname = $1),
    made AS MATERIALIZED (
        SELECT oid, relname::text FROM pg_catalog.pg_class
        WHERE relnamespace = (SELECT space FROM place)
            AND relname IN ('operations', 'migrations', 'epoch'))
    SELECT current_user::text, needed, whereon FROM (
        SELECT 'CREATE', 'DATABASE ' || base, space IS NULL
            AND NOT pg_catalog.has_database_privilege(pg_catalog.current_database(), 'CREATE')
            FROM place
        UNION ALL SELECT needed, 'SCHEMA ' || name,
            (needed = 'USAGE' OR NOT EXISTS (SELECT FROM made))
            AND NOT pg_catalog.has_schema_privilege(space, needed)
            FROM place, pg_catalog.unnest(ARRAY['USAGE', 'CREATE']) needed
        UNION ALL SELECT needed, 'TABLE ' || name || '.' || relname,
            (needed = 'SELECT' OR relname = 'operations')
            AND NOT pg_catalog.has_table_privilege(made.oid, needed)
            FROM place, made, pg_catalog.unnest(ARRAY['SELECT', 'INSERT', 'UPDATE', 'DELETE']) needed
    ) AS needs (needed, whereon, is_missing) WHERE is_missing";

impl Postgres {
    /// Returns all concerns, as the database is set up now.
    pub(super) async fn all_concerns(&self) -> Result<Vec<Concern>, Error> {
        let missing = self.privileges_missing().await?;
        // Without these privileges the next statement would fail, with a less helpful error.
        if !missing.is_empty() {
            return Ok(missing);
        }
        let quoted = &self.database.tables.quoted;
        let rows = self.database.query(false, SETUP, &[(quoted, Type::TEXT)]).await?;
        let row = one(&rows)?;
        let mut concerns = Vec::new();
        for (column, [code, text, hint]) in OF_SETUP.into_iter().enumerate() {
            if get::<Option<bool>>(row, column)?.unwrap_or(false) {
                concerns.push(Concern::new(code, text, hint));
            }
        }
        Ok(concerns)
    }

    /// Returns a concern for each missing privilege. It does not make the tables first, because the
    /// user may lack the privilege for that.
    async fn privileges_missing(&self) -> Result<Vec<Concern>, Error> {
        let mut connection = self.database.connections.get(false).await?;
        let schema = (&self.database.tables.schema as _, Type::TEXT);
        let rows = connection.query(PRIVILEGES, &[schema]).await?;
        rows.iter().map(privilege_missing).collect()
    }
}

/// Returns the codes of all concerns about a database.
pub(in crate::store) fn concern_codes() -> impl Iterator<Item = &'static str> {
    OF_SETUP.into_iter().map(|[code, ..]| code).chain([PRIVILEGE_MISSING])
}

const PRIVILEGE_MISSING: &str = "privilege-missing";

fn privilege_missing(row: &Row) -> Result<Concern, Error> {
    let user: &str = get(row, 0)?;
    let needed: &str = get(row, 1)?;
    let whereon: &str = get(row, 2)?;
    Ok(Concern::new(
        PRIVILEGE_MISSING,
        format!("the user `{user}` lacks {needed} on {whereon}"),
        format!("run `GRANT {needed} ON {whereon} TO \"{}\"`", user.replace('"', "\"\"")),
    ))
}
