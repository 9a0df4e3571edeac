//! The atomic steps on the records.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use tokio_postgres::Row;
use tokio_postgres::types::{FromSql, ToSql, Type};

use super::listen::Listening;
use super::migrate::Tables;
use super::pool::Connections;
use super::refusal::{Failure, is_contention, is_lost, of_statement, tables_are_gone};
use super::row::{Columns, millis, timestamp};
use super::share_millis;
use crate::operation::OperationId;
use crate::store::epoch::Epoch;
use crate::store::listing::ListQuery;
use crate::store::shared::{
    Expected, Expired, Page, Purpose, Put, Records, Revision, Seen, Stored, Swap, Swapped,
};
use crate::store::{Concern, Error};

/// A call that lost against others is sent so often before that is said.
const TRIES: usize = 3;

const SWAP: &str = "SELECT is_done, at_millis, found_revision, found_record \
    FROM @schema@.swap($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, \
    $17, $18, $19, $20, $21, $22)";

/// The same, if the tables are those of before: of others there is no row, so that nothing is done.
/// The first argument names the table, so that this is looked at first.
const SWAP_IF_SAME: &str = "SELECT s.is_done, s.at_millis, s.found_revision, s.found_record \
    FROM @schema@.epoch e CROSS JOIN LATERAL @schema@.swap(CASE WHEN e.one THEN $1 END, $2, $3, \
    $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20, $21, $22) s \
    WHERE e.epoch::text = $23 AND e.standing <> 'emptied'";

/// What `clock()` says is asked for once: an index is of no use to what may change from row to row.
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

/// The database.
#[derive(Debug)]
pub(super) struct Postgres {
    pub(super) connections: Connections,
    pub(super) tables: Arc<Tables>,
    pub(super) listening: Listening,
    pub(super) epoch: Epoch,
    pub(super) timeout: Duration,
}

pub(super) type Parameters<'a> = [(&'a (dyn ToSql + Sync), Type)];

impl Postgres {
    /// Runs one statement; the tables are made first if they are missing. A connection may have ended
    /// long ago without anybody noticing, so the statement is sent once more on a new one: run twice,
    /// it does what it does once. If that fails as well, nobody knows what became of the first.
    pub(super) async fn ask(
        &self,
        urgent: bool,
        statement: &str,
        parameters: &Parameters<'_>,
    ) -> Result<Vec<Row>, Error> {
        let statement = self.tables.sql(statement);
        match self.ask_once(urgent, &statement, parameters).await {
            Err(Asked::Lost(first)) => {
                self.connections.hang_up();
                let again = self.ask_once(urgent, &statement, parameters).await;
                again.map_err(|_| Error::Failed(Box::new(first)))
            }
            Err(Asked::Failed(error)) => Err(error),
            Ok(rows) => Ok(rows),
        }
    }

    async fn ask_once(
        &self,
        urgent: bool,
        statement: &str,
        parameters: &Parameters<'_>,
    ) -> Result<Vec<Row>, Asked> {
        let mut tries = 0;
        loop {
            self.listening.begin();
            let lent = self.connections.lend(urgent).await?;
            let mut lent = self.tables.ready(lent).await?;
            tries += 1;
            match lent.query(statement, parameters).await {
                Ok(rows) => return Ok(rows),
                Err(error) if tables_are_gone(&error) => {
                    self.tables.doubt();
                    if tries > 1 {
                        return Err(of_statement(error).into());
                    }
                }
                Err(error) if is_contention(&error) && tries < TRIES => {}
                Err(error) if is_lost(&error) => return Err(Asked::Lost(error)),
                Err(error) => return Err(of_statement(error).into()),
            }
        }
    }
}

/// Why a statement brought nothing.
enum Asked {
    /// Its connection has ended.
    Lost(Failure),
    /// Anything else.
    Failed(Error),
}

impl From<Error> for Asked {
    fn from(error: Error) -> Self {
        Self::Failed(error)
    }
}

/// A column of a row.
pub(super) fn get<'a, T: FromSql<'a>>(row: &'a Row, column: usize) -> Result<T, Error> {
    row.try_get(column).map_err(|error| Error::Failed(Box::new(error)))
}

/// A statement whose one row did not come.
#[derive(Debug, thiserror::Error)]
#[error("the database gave no row")]
pub(super) struct NoRow;

pub(super) fn one(rows: &[Row]) -> Result<&Row, Error> {
    rows.first().ok_or_else(|| Error::Failed(Box::new(NoRow)))
}

/// A row's key is not that of an operation.
pub(super) fn id_of(text: &str) -> Result<OperationId, Error> {
    text.parse().map_err(|error| Error::Failed(Box::new(error)))
}

#[async_trait]
impl Records for Postgres {
    async fn swap(&self, swap: Swap<'_>) -> Result<Swapped, Error> {
        let (expected, lapsed) = match swap.expected {
            Expected::Nothing => (None, None),
            Expected::Revision { revision, lapsed } => (Some(signed(revision)), Some(lapsed)),
        };
        let (change, revision, record, columns, conditions) = match swap.change {
            Put::Nothing => ("look", None, None, Columns::default(), None),
            Put::Removal(conditions) => {
                ("remove", None, None, Columns::default(), Some(conditions))
            }
            Put::Record { revision, bytes, operation, conditions } => (
                "put",
                Some(signed(revision)),
                Some(bytes),
                Columns::of(operation),
                Some(conditions),
            ),
        };
        let not_before = conditions.map(|conditions| millis(conditions.not_before));
        let not_after = conditions.map(|conditions| millis(conditions.not_after));
        let durable = conditions.is_some_and(|conditions| conditions.durable);
        let ends = conditions.is_some_and(|conditions| conditions.ends);
        let id = swap.id.to_string();
        let patience = share_millis(self.timeout);
        let urgent = swap.purpose == Purpose::Renewal;
        let behind_all = swap.purpose == Purpose::Withdrawal;
        let mut parameters: Vec<(&(dyn ToSql + Sync), Type)> = vec![
            (&id, Type::TEXT),
            (&expected, Type::INT8),
            (&lapsed, Type::BOOL),
            (&change, Type::TEXT),
            (&revision, Type::INT8),
            (&record, Type::BYTEA),
            (&columns.route, Type::TEXT),
            (&columns.method, Type::TEXT),
            (&columns.path, Type::TEXT),
            (&columns.key, Type::TEXT),
            (&columns.state, Type::TEXT),
            (&columns.attempt, Type::INT4),
            (&columns.holder, Type::TEXT),
            (&columns.created_at, Type::INT8),
            (&columns.changes_at, Type::INT8),
            (&not_before, Type::INT8),
            (&not_after, Type::INT8),
            (&durable, Type::BOOL),
            (&ends, Type::BOOL),
            (&swap.waits, Type::BOOL),
            (&behind_all, Type::BOOL),
            (&patience, Type::INT4),
        ];
        let grants = swap.purpose == Purpose::Grant;
        let same = if grants { self.guard().await? } else { None };
        let Some(same) = &same else {
            return swapped(one(&self.ask(urgent, SWAP, &parameters).await?)?);
        };
        parameters.push((same, Type::TEXT));
        match &*self.ask(urgent, SWAP_IF_SAME, &parameters).await? {
            [] => Err(self.is_refused_by_guard().await),
            rows => swapped(one(rows)?),
        }
    }

    async fn expire(&self, limit: usize) -> Result<Expired, Error> {
        let most = i64::try_from(limit).unwrap_or(i64::MAX);
        let rows = self.ask(false, EXPIRE, &[(&most, Type::INT8)]).await?;
        let mut expired = Expired { more: rows.len() >= limit, ..Expired::default() };
        for row in &rows {
            match get::<Option<&str>>(row, 0)? {
                None => expired.removed += 1,
                Some(lapsed) => expired.lapsed.push(id_of(lapsed)?),
            }
        }
        Ok(expired)
    }

    async fn uncertain(&self) -> Result<u64, Error> {
        let rows = self.ask(false, UNCERTAIN, &[]).await?;
        let count: i64 = get(one(&rows)?, 0)?;
        Ok(count.try_into().unwrap_or(0))
    }

    async fn acknowledge(&self) -> Result<bool, Error> {
        self.acknowledge_loss().await
    }

    async fn page(&self, listing: &ListQuery) -> Result<Page, Error> {
        self.page_of(listing).await
    }

    async fn concerns(&self) -> Result<Vec<Concern>, Error> {
        self.concerns_now().await
    }

    async fn close(&self) {
        self.listening.end();
        self.connections.close();
    }
}

fn swapped(row: &Row) -> Result<Swapped, Error> {
    let is_done = get(row, 0)?;
    let at = timestamp(get(row, 1)?);
    if is_done {
        return Ok(Swapped::Done(at));
    }
    let stored = match (get::<Option<i64>>(row, 2)?, get(row, 3)?) {
        (Some(revision), Some(bytes)) => {
            Some(Stored { revision: Revision(revision.cast_unsigned()), bytes })
        }
        (None, _) | (_, None) => None,
    };
    Ok(Swapped::Refused(Seen { at, stored }))
}

/// The server's numbers have a sign; only equality counts.
const fn signed(Revision(revision): Revision) -> i64 {
    revision.cast_signed()
}
