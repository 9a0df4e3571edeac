//! Keeps the records in PostgreSQL.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use tokio_postgres::types::Type;

use super::database::{Database, get, id_of, one};
use super::groups::Groups;
use crate::store::list::ListQuery;
use crate::store::shared::{EpochMarker, ExpiryPass, RecordPage, RecordServer, Swap, SwapResult};
use crate::store::{Concern, Error};

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
    pub(super) database: Arc<Database>,
    /// The reads that wait for others, and the writes. A read does not wait for the commit of a
    /// write.
    pub(super) reads: Groups,
    pub(super) writes: Groups,
    pub(super) timeout: Duration,
}

#[async_trait]
impl RecordServer for Postgres {
    async fn swap(&self, swap: Swap<'_>) -> Result<SwapResult, Error> {
        self.swap_row(swap).await
    }

    async fn expire(&self, limit: usize) -> Result<ExpiryPass, Error> {
        let most = i64::try_from(limit).unwrap_or(i64::MAX);
        let rows = self.database.query(false, EXPIRE, &[(&most, Type::INT8)]).await?;
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
        let rows = self.database.query(false, UNCERTAIN, &[]).await?;
        let count: i64 = get(one(&rows)?, 0)?;
        Ok(count.try_into().unwrap_or(0))
    }

    async fn page(&self, query: &ListQuery) -> Result<RecordPage, Error> {
        self.page_of(query).await
    }

    async fn concerns(&self) -> Result<Vec<Concern>, Error> {
        self.all_concerns().await
    }

    async fn markers(&self) -> Result<Vec<EpochMarker>, Error> {
        Ok(vec![self.marker().await?])
    }

    async fn mark(&self, marker: EpochMarker) -> Result<(), Error> {
        self.mark_epoch(&marker).await
    }

    async fn close(&self) {
        self.database.listener.end();
        self.database.connections.close();
    }
}
