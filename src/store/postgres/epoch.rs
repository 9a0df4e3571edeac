//! Whether the database still keeps what it was told: its tables are the same as before.

use tokio_postgres::types::Type;

use super::records::{Postgres, get};
use crate::store::epoch::{Standing, Word};
use crate::store::{Concern, Error};

/// All that the database has is one part.
const PART: usize = 0;

const LOOK: &str = "SELECT epoch::text, standing FROM @schema@.epoch";

const MARK: &str = "UPDATE @schema@.epoch SET standing = $1 WHERE epoch::text = $2";

/// The row may be gone with all others (`TRUNCATE`): then there is nothing to mark.
const BEGIN_ANEW: &str = "INSERT INTO @schema@.epoch (standing) VALUES ($1) ON CONFLICT DO NOTHING";

/// What the database holds has changed this moment, or could not be read.
const UNKNOWN: &str = "it is not known whether the database has what it was told";

impl Postgres {
    /// Looks whether the tables are those of before.
    pub(super) async fn epoch_changed(&self) -> Result<Option<Concern>, Error> {
        let rows = self.ask(false, LOOK, &[]).await?;
        // Every set of tables begins with a row: one that has none was emptied.
        let mut word = Word { text: String::new(), standing: Standing::Emptied };
        if let Some(row) = rows.first() {
            let standing = Standing::of(get(row, 1)?).unwrap_or(Standing::Begun);
            word = Word { text: get(row, 0)?, standing };
        }
        let sight = self.epoch.see([(PART, word)]);
        if self.epoch.is_guarded() {
            for (_, word) in sight.unmarked {
                // whoever starts later shall know of it; who was stopped is stopped without that
                if let Err(error) = self.mark(&word, Standing::Emptied).await {
                    let error = crate::telemetry::chain(&error);
                    tracing::warn!(
                        error,
                        "that the database came back empty could not be noted there"
                    );
                }
            }
        }
        Ok(sight.concern)
    }

    /// A person knows that the database came back empty.
    pub(super) async fn acknowledge_loss(&self) -> Result<bool, Error> {
        self.epoch_changed().await?;
        let lost = self.epoch.lost();
        for (_, word) in &lost {
            if word.text.is_empty() {
                let standing = Standing::Acknowledged.as_str();
                self.ask(false, BEGIN_ANEW, &[(&standing as _, Type::TEXT)]).await?;
            } else {
                self.mark(word, Standing::Acknowledged).await?;
            }
        }
        self.epoch_changed().await?;
        Ok(!lost.is_empty())
    }

    /// The epoch that a claim needs; none if nobody wants that.
    pub(super) async fn guard(&self) -> Result<Option<String>, Error> {
        if !self.epoch.is_guarded() {
            return Ok(None);
        }
        if self.epoch.word(PART).is_none() {
            self.epoch_changed().await?;
        }
        if self.epoch.is_stopped() {
            return Err(Error::Emptied);
        }
        let word = self.epoch.word(PART).ok_or(Error::Unavailable(UNKNOWN))?;
        Ok(Some(word.text))
    }

    /// The database did not have the epoch that a claim needs.
    pub(super) async fn is_refused_by_guard(&self) -> Error {
        match self.epoch_changed().await {
            Err(error) => error,
            Ok(_) if self.epoch.is_stopped() => Error::Emptied,
            Ok(_) => Error::Unavailable(UNKNOWN),
        }
    }

    async fn mark(&self, word: &Word, standing: Standing) -> Result<(), Error> {
        let parameters = [(&standing.as_str() as _, Type::TEXT), (&word.text as _, Type::TEXT)];
        self.ask(false, MARK, &parameters).await.map(drop)
    }
}
