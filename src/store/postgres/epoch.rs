//! Keeps the marker that shows whether the database still has its records.

use tokio_postgres::types::Type;

use super::database::get;
use super::records::Postgres;
use crate::store::Error;
use crate::store::shared::{EpochMarker, EpochStatus};

/// The number of the only part. A database has only one marker.
const PART: usize = 0;

const READ: &str = "SELECT epoch::text, standing FROM @schema@.epoch";

const MARK: &str = "UPDATE @schema@.epoch SET standing = $1 WHERE epoch::text = $2";

/// Inserts a marker. After a `TRUNCATE` of all tables there is no row to mark.
const BEGIN_ANEW: &str = "INSERT INTO @schema@.epoch (standing) VALUES ($1) ON CONFLICT DO NOTHING";

impl Postgres {
    /// Reads the marker.
    pub(super) async fn marker(&self) -> Result<EpochMarker, Error> {
        let rows = self.database.query(false, READ, &[]).await?;
        let Some(row) = rows.first() else {
            // The migration that makes the table also fills it. So if the table has no row,
            // somebody has emptied it.
            let status = EpochStatus::Emptied;
            return Ok(EpochMarker { part: PART, value: String::new(), status });
        };
        let status = EpochStatus::of(get(row, 1)?).unwrap_or(EpochStatus::Begun);
        Ok(EpochMarker { part: PART, value: get(row, 0)?, status })
    }

    /// Gives the marker this status.
    pub(super) async fn mark_epoch(&self, marker: &EpochMarker) -> Result<(), Error> {
        let status = marker.status.as_str();
        let status = (&status as _, Type::TEXT);
        if marker.value.is_empty() {
            self.database.query(false, BEGIN_ANEW, &[status]).await?;
        } else {
            self.database.query(false, MARK, &[status, (&marker.value, Type::TEXT)]).await?;
        }
        Ok(())
    }
}
