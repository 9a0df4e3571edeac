//! Keeps the records in PostgreSQL, and runs statements.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use tokio_postgres::Row;
use tokio_postgres::types::{FromSql, ToSql, Type};

use super::failure::{Failure, is_contention, is_lost, of_statement, tables_are_gone};
use super::listen::NotificationListener;
use super::migrate::Tables;
use super::pool::Connections;
use crate::operation::OperationId;
use crate::store::list::ListQuery;
use crate::store::shared::{EpochTracker, ExpiryPass, RecordPage, RecordServer, Swap, SwapResult};
use crate::store::{Concern, Error};

/// The most times that a statement is sent if the server gives it up in favour of another
/// transaction.
const TRIES: usize = 3;

/// Removes settled rows that are due, and lists the other rows that are due.
///
/// The sub-query around `clock()` makes the server call it only once. If it were called for each
/// row, the time could differ between rows, and the server could use no index. `SKIP LOCKED` is
/// there because several processes may sweep.
const EXPIRE: &str = "WITH gone AS (
        DELETE FROM @schema@.operations WHERE id = ANY (ARRAY(
            SELECT id FROM @schema@.operations
            WHERE state IN ('succeeded', 'failed', 'forgotten')
                AND changes_at <= (SELECT @schema@.clock())
            ORDER BY changes_at LIMIT $1 FOR UPDATE SKIP LOCKED))
        RETURNING id)
    SELECT NULL AS lapsed FROM gone
    UNION ALL
    (SELECT id FROM @schema@.operations
        WHERE state IN ('in_flight', 'uncertain') AND changes_at <= (SELECT @schema@.clock())
        ORDER BY changes_at LIMIT $1)";

const UNCERTAIN: &str = "SELECT
    (SELECT count(*) FROM @schema@.operations WHERE state = 'uncertain')
    + (SELECT count(*) FROM @schema@.operations
        WHERE state = 'in_flight' AND changes_at <= (SELECT @schema@.clock()))";

/// Records in PostgreSQL.
#[derive(Debug)]
pub(super) struct Postgres {
    pub(super) connections: Connections,
    pub(super) tables: Arc<Tables>,
    pub(super) listener: NotificationListener,
    pub(super) epoch: EpochTracker,
    pub(super) timeout: Duration,
}

/// The parameters of a statement, with their types. Because their types are given, no statement has
/// to be prepared. A prepared statement would stay in the session, and behind a pooler another
/// client may get that session next.
pub(super) type Parameters<'a> = [(&'a (dyn ToSql + Sync), Type)];

impl Postgres {
    /// Runs one statement. Makes the tables first if they are missing.
    ///
    /// A connection may have ended long ago without a sign. So after a lost connection the
    /// statement is sent once more, on a new connection. Every statement may be run twice. If the
    /// second send fails as well, nobody knows whether the first took effect.
    pub(super) async fn query(
        &self,
        is_urgent: bool,
        statement: &str,
        parameters: &Parameters<'_>,
    ) -> Result<Vec<Row>, Error> {
        let statement = self.tables.sql(statement);
        match self.query_once(is_urgent, &statement, parameters).await {
            Err(QueryError::ConnectionLost(first)) => {
                // A server that ended one connection has ended the idle ones too.
                self.connections.hang_up();
                let again = self.query_once(is_urgent, &statement, parameters).await;
                again.map_err(|_| Error::Failed(Box::new(first)))
            }
            Err(QueryError::Failed(error)) => Err(error),
            Ok(rows) => Ok(rows),
        }
    }

    async fn query_once(
        &self,
        is_urgent: bool,
        statement: &str,
        parameters: &Parameters<'_>,
    ) -> Result<Vec<Row>, QueryError> {
        let mut tries = 0;
        loop {
            self.listener.begin();
            let connection = self.connections.get(is_urgent).await?;
            let mut connection = self.tables.ready(connection).await?;
            tries += 1;
            match connection.query(statement, parameters).await {
                Ok(rows) => return Ok(rows),
                // Somebody dropped the schema while this process ran. The tables are made again,
                // once.
                Err(error) if tables_are_gone(&error) => {
                    self.tables.doubt();
                    if tries > 1 {
                        return Err(of_statement(error).into());
                    }
                }
                Err(error) if is_contention(&error) && tries < TRIES => {}
                Err(error) if is_lost(&error) => return Err(QueryError::ConnectionLost(error)),
                Err(error) => return Err(of_statement(error).into()),
            }
        }
    }
}

/// The reason why a statement brought no rows.
enum QueryError {
    /// The connection was lost. The statement may have been run.
    ConnectionLost(Failure),
    /// Any other failure.
    Failed(Error),
}

impl From<Error> for QueryError {
    fn from(error: Error) -> Self {
        Self::Failed(error)
    }
}

/// Returns a column of a row.
pub(super) fn get<'a, T: FromSql<'a>>(row: &'a Row, column: usize) -> Result<T, Error> {
    row.try_get(column).map_err(|error| Error::Failed(Box::new(error)))
}

/// A statement that always returns a row returned none.
#[derive(Debug, thiserror::Error)]
#[error("the database returned no row")]
struct NoRow;

/// Returns the first row.
pub(super) fn one(rows: &[Row]) -> Result<&Row, Error> {
    rows.first().ok_or_else(|| Error::Failed(Box::new(NoRow)))
}

/// Parses the operation id in a column.
pub(super) fn id_of(text: &str) -> Result<OperationId, Error> {
    text.parse().map_err(|error| Error::Failed(Box::new(error)))
}

#[async_trait]
impl RecordServer for Postgres {
    async fn swap(&self, swap: Swap<'_>) -> Result<SwapResult, Error> {
        self.swap_row(&swap).await
    }

    async fn expire(&self, limit: usize) -> Result<ExpiryPass, Error> {
        let most = i64::try_from(limit).unwrap_or(i64::MAX);
        let rows = self.query(false, EXPIRE, &[(&most, Type::INT8)]).await?;
        let mut expired = ExpiryPass { more: rows.len() >= limit, ..ExpiryPass::default() };
        for row in &rows {
            match get::<Option<&str>>(row, 0)? {
                None => expired.removed += 1,
                Some(lapsed) => expired.lapsed.push(id_of(lapsed)?),
            }
        }
        Ok(expired)
    }

    async fn uncertain(&self) -> Result<u64, Error> {
        let rows = self.query(false, UNCERTAIN, &[]).await?;
        let count: i64 = get(one(&rows)?, 0)?;
        Ok(count.try_into().unwrap_or(0))
    }

    async fn acknowledge(&self) -> Result<bool, Error> {
        self.acknowledge_loss().await
    }

    async fn page(&self, query: &ListQuery) -> Result<RecordPage, Error> {
        self.page_of(query).await
    }

    async fn concerns(&self) -> Result<Vec<Concern>, Error> {
        self.all_concerns().await
    }

    async fn close(&self) {
        self.listener.end();
        self.connections.close();
    }
}
