//! Checks whether the database still has its records. It has, if the marker in its tables is the
//! same as before.

use tokio_postgres::types::Type;

use super::database::get;
use super::records::Postgres;
use crate::store::shared::{EpochMarker, EpochStatus};
use crate::store::{Concern, Error};
use crate::telemetry::chain;

/// The number of the only part. A database has only one marker.
const PART: usize = 0;

const READ: &str = "SELECT epoch::text, standing FROM @schema@.epoch";

const MARK: &str = "UPDATE @schema@.epoch SET standing = $1 WHERE epoch::text = $2";

/// Inserts a marker. After a `TRUNCATE` of all tables there is no row to mark.
const BEGIN_ANEW: &str = "INSERT INTO @schema@.epoch (standing) VALUES ($1) ON CONFLICT DO NOTHING";

impl Postgres {
    /// Reads the marker and compares it with the one seen before.
    pub(super) async fn epoch_changed(&self) -> Result<Option<Concern>, Error> {
        let rows = self.database.query(false, READ, &[]).await?;
        // The migration that makes the table also fills it. So if the table has no row, somebody
        // has emptied it.
        let mut marker = EpochMarker { value: String::new(), status: EpochStatus::Emptied };
        if let Some(row) = rows.first() {
            let status = EpochStatus::of(get(row, 1)?).unwrap_or(EpochStatus::Begun);
            marker = EpochMarker { value: get(row, 0)?, status };
        }
        let check = self.epoch.observe([(PART, marker)]);
        if self.epoch.is_guarded() {
            for (_, marker) in check.unmarked {
                // Processes that start later learn of the loss from this status. This process
                // already refuses claims.
                if let Err(error) = self.mark(&marker, EpochStatus::Emptied).await {
                    tracing::warn!(
                        error = chain(&error),
                        "the loss of the records could not be noted in the database"
                    );
                }
            }
        }
        Ok(check.concern)
    }

    /// Notes in the database that a person knows of the loss. Returns false if there was none.
    pub(super) async fn acknowledge_loss(&self) -> Result<bool, Error> {
        self.epoch_changed().await?;
        let lost = self.epoch.lost();
        for (_, marker) in &lost {
            if marker.value.is_empty() {
                let status = EpochStatus::Acknowledged.as_str();
                self.database.query(false, BEGIN_ANEW, &[(&status as _, Type::TEXT)]).await?;
            } else {
                self.mark(marker, EpochStatus::Acknowledged).await?;
            }
        }
        self.epoch_changed().await?;
        Ok(!lost.is_empty())
    }

    /// Returns the epoch that the database must have before it grants a claim. Returns none under
    /// `when_store_emptied = "continue"`.
    pub(super) async fn guard(&self) -> Result<Option<String>, Error> {
        let marker = self.epoch.guard(PART, self.epoch_changed()).await?;
        Ok(marker.map(|marker| marker.value))
    }

    async fn mark(&self, marker: &EpochMarker, status: EpochStatus) -> Result<(), Error> {
        let parameters = [(&status.as_str() as _, Type::TEXT), (&marker.value as _, Type::TEXT)];
        self.database.query(false, MARK, &parameters).await.map(drop)
    }
}
