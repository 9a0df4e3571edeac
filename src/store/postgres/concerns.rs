//! What makes the database unsafe: its settings, and missing privileges.

use tokio_postgres::Row;
use tokio_postgres::types::Type;

use super::failure::of_statement;
use super::records::{Parameters, Postgres, get, one};
use crate::store::{Concern, Error};

/// One row with a column for each unsafe setting: whether the server has it.
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

/// The concern for each column of that row: code, text and hint.
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
        "let `url` lead to the primary; with several hosts the one that takes writes is chosen",
    ],
    [
        "read-only",
        "the database takes no writes",
        "set `default_transaction_read_only = off`, or let `url` lead to another server",
    ],
    [
        "asynchronous-standby",
        "a standby may lack what was acknowledged: if it is promoted, operations may run twice",
        "name it in `synchronous_standby_names`, or never promote it",
    ],
    [
        "isolation",
        "transactions do not see what others have committed, so that races end in errors",
        "set `default_transaction_isolation = 'read committed'` for this database and user",
    ],
];

/// The privileges that the store needs and its user lacks: what, and on what. It reads the
/// catalogs, which everybody may; functions such as `to_regclass` need the privileges that are in
/// doubt.
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
    /// All concerns, as the database is set up now.
    pub(super) async fn all_concerns(&self) -> Result<Vec<Concern>, Error> {
        let missing = self.privileges_missing().await?;
        // Without them the next statement would fail, with a less helpful error.
        if !missing.is_empty() {
            return Ok(missing);
        }
        let quoted = &self.tables.quoted;
        let rows = self.query(false, SETUP, &[(quoted, Type::TEXT)]).await?;
        let row = one(&rows)?;
        let mut concerns = Vec::new();
        for (column, [code, text, hint]) in OF_SETUP.into_iter().enumerate() {
            if get::<Option<bool>>(row, column)?.unwrap_or(false) {
                concerns.push(concern(code, text.to_owned(), hint.to_owned()));
            }
        }
        concerns.extend(self.epoch_changed().await?);
        Ok(concerns)
    }

    /// Does not make the tables first: that may be what is not permitted.
    async fn privileges_missing(&self) -> Result<Vec<Concern>, Error> {
        let mut connection = self.connections.get(false).await?;
        let parameters: &Parameters<'_> = &[(&self.tables.schema, Type::TEXT)];
        let rows = connection.query(PRIVILEGES, parameters).await.map_err(of_statement)?;
        rows.iter().map(privilege_missing).collect()
    }
}

/// The codes of all concerns about a database.
pub(in crate::store) fn concern_codes() -> impl Iterator<Item = &'static str> {
    OF_SETUP.into_iter().map(|[code, ..]| code).chain([PRIVILEGE_MISSING])
}

const PRIVILEGE_MISSING: &str = "privilege-missing";

fn privilege_missing(row: &Row) -> Result<Concern, Error> {
    let user: &str = get(row, 0)?;
    let needed: &str = get(row, 1)?;
    let whereon: &str = get(row, 2)?;
    Ok(concern(
        PRIVILEGE_MISSING,
        format!("the user `{user}` lacks {needed} on {whereon}"),
        format!("run `GRANT {needed} ON {whereon} TO \"{}\"`", user.replace('"', "\"\"")),
    ))
}

const fn concern(code: &'static str, text: String, hint: String) -> Concern {
    Concern { code, text, hint }
}
