//! Refuses claims on a server that lost its records, and lets a person acknowledge the loss.

use futures_util::future::join_all;
use tokio::time::timeout;

use super::epoch::{EpochMarker, EpochStatus};
use super::server::RecordServer;
use super::store::SharedStore;
use crate::operation::OperationId;
use crate::store::Error;
use crate::telemetry::chain;

/// The marker has just changed, or could not be read.
const UNKNOWN: Error =
    Error::Unavailable("it is not known whether the server still has its records");

impl<R: RecordServer> SharedStore<R> {
    /// Reads the markers and compares them with those seen before. Calls that come during a look
    /// share the next one.
    pub(super) async fn look_for_loss(&self) -> Result<(), Error> {
        self.looks.one(self.look()).await
    }

    async fn look(&self) -> Result<(), Error> {
        let unmarked = self.epoch.observe(self.server.markers().await?);
        // Processes that start later learn of the loss from this status. This process already
        // refuses claims.
        if let Err(error) = self.mark(unmarked, EpochStatus::Emptied).await {
            tracing::warn!(
                error = chain(&error),
                "the loss of the records could not be noted on the server"
            );
        }
        Ok(())
    }

    /// Returns the marker that the server must have before it grants a claim of this operation.
    /// Returns none under `when_store_emptied = "continue"`.
    pub(super) async fn guard(&self, id: OperationId) -> Result<Option<EpochMarker>, Error> {
        if !self.epoch.is_guarded() {
            return Ok(None);
        }
        let part = self.server.part_of(id);
        if self.epoch.is_stopped() {
            // A person may have acknowledged the loss at another process. If the server does not
            // tell in time, the loss is still the reason for the refusal.
            let looked = timeout(self.timeout / 2, self.look_for_loss()).await;
            looked.map_err(|_| Error::Emptied)?.map_err(|_| Error::Emptied)?;
        } else if self.epoch.marker(part).is_none() {
            self.look_for_loss().await?;
        }
        if self.epoch.is_stopped() {
            return Err(Error::Emptied);
        }
        self.epoch.marker(part).map(Some).ok_or(UNKNOWN)
    }

    /// Returns the reason why a server did not have the marker that a claim needs.
    pub(super) async fn why_guard_failed(&self) -> Error {
        match self.look_for_loss().await {
            Err(error) => error,
            Ok(()) if self.epoch.is_stopped() => Error::Emptied,
            // Another process has acknowledged the loss meanwhile. The next claim uses the new
            // marker.
            Ok(()) => UNKNOWN,
        }
    }

    /// Notes on the server that a person knows of the losses. Returns false if there were none.
    pub(super) async fn acknowledge_loss(&self) -> Result<bool, Error> {
        self.look_for_loss().await?;
        let lost = self.epoch.lost();
        let is_lost = !lost.is_empty();
        self.mark(lost, EpochStatus::Acknowledged).await?;
        self.look_for_loss().await?;
        Ok(is_lost)
    }

    /// Gives markers another status on the server. A part that fails does not keep the others from
    /// theirs.
    async fn mark(&self, markers: Vec<EpochMarker>, status: EpochStatus) -> Result<(), Error> {
        let markers = markers.into_iter().map(|marker| EpochMarker { status, ..marker });
        join_all(markers.map(|marker| self.server.mark(marker))).await.into_iter().collect()
    }
}
