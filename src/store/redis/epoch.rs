//! Checks whether the servers still have their records.
//!
//! In a cluster, each shard has a marker, because one master may come back empty while the others
//! do not. Elsewhere only shard 0 has a marker.

use futures_util::future::{join_all, try_join_all};
use redis::Value;

use super::command::Command;
use super::keys::{SHARDS, Shard};
use super::records::Redis;
use super::reply::text;
use super::swap::EpochGuard;
use crate::store::shared::{EpochMarker, EpochStatus};
use crate::store::{Concern, Error};

/// The character between the status of a marker and its value. With the status `begun`, a marker is
/// only its value.
const SEPARATOR: char = ':';

impl Redis {
    /// Reads the markers and compares them with those seen before. A server without a marker gets
    /// one.
    pub(super) async fn epoch_changed(&self) -> Result<Option<Concern>, Error> {
        let parts = if self.servers.is_cluster() { SHARDS } else { 1 };
        let reads = Shard::all().take(parts).map(|shard| self.marker_of(shard));
        let mut found = Vec::new();
        for read in join_all(reads).await {
            match read {
                Ok(marker) => found.push(marker),
                // A server that is full or takes no writes has lost nothing. Other calls report its
                // state with a better message.
                Err(Error::Unavailable(_)) => {}
                Err(error) => return Err(error),
            }
        }
        let check = self.epoch.observe(found);
        if self.epoch.is_guarded() {
            // Processes that start later learn of the loss from this status. This process already
            // refuses claims, so it does not matter here whether the write succeeds.
            let unmarked = check.unmarked.into_iter();
            join_all(unmarked.map(|(part, found)| self.mark(part, found, EpochStatus::Emptied)))
                .await;
        }
        Ok(check.concern)
    }

    /// Notes on the servers that a person knows of the losses. Returns false if there were none.
    pub(super) async fn acknowledge_loss(&self) -> Result<bool, Error> {
        self.epoch_changed().await?;
        let lost = self.epoch.lost();
        let is_lost = !lost.is_empty();
        let marked =
            lost.into_iter().map(|(part, found)| self.mark(part, found, EpochStatus::Acknowledged));
        try_join_all(marked).await?;
        self.epoch_changed().await?;
        Ok(is_lost)
    }

    /// Returns the marker that the server must have before it grants a claim. Returns none under
    /// `when_store_emptied = "continue"`.
    pub(super) async fn guard(&self, shard: Shard) -> Result<Option<EpochGuard>, Error> {
        let part = if self.servers.is_cluster() { shard } else { Shard::first() };
        let marker = self.epoch.guard(part.number(), self.epoch_changed()).await?;
        let guard = |marker| EpochGuard { key: self.keys.epoch(part), word: to_word(&marker) };
        Ok(marker.map(guard))
    }

    async fn marker_of(&self, shard: Shard) -> Result<(usize, EpochMarker), Error> {
        let key = self.keys.epoch(shard);
        let get = Command::new("GET", &[&key]);
        let mut found = self.servers.run(shard, &get).await?;
        if found == Value::Nil {
            let value = getrandom::u64().map_err(|error| Error::Failed(Box::new(error)))?;
            let value = format!("{value:016x}");
            self.servers.run(shard, &Command::new("SET", &[&key, &value, "NX"])).await?;
            // Another process may have set a marker first.
            found = self.servers.run(shard, &get).await?;
        }
        Ok((shard.number(), from_word(&text(&found)?)))
    }

    /// Writes a marker with another status.
    async fn mark(
        &self,
        part: usize,
        marker: EpochMarker,
        status: EpochStatus,
    ) -> Result<(), Error> {
        let mut parts = Shard::all().filter(|shard| shard.number() == part);
        let Some(shard) = parts.next() else { return Ok(()) };
        let key = self.keys.epoch(shard);
        let word = to_word(&EpochMarker { status, ..marker });
        self.servers.run(shard, &Command::new("SET", &[&key, &word, "XX"])).await?;
        Ok(())
    }
}

/// Reads a marker as it is kept on the server.
fn from_word(word: &str) -> EpochMarker {
    let parts = word.split_once(SEPARATOR);
    let parts = parts.and_then(|(status, value)| Some((EpochStatus::of(status)?, value)));
    let (status, value) = parts.unwrap_or((EpochStatus::Begun, word));
    EpochMarker { value: value.to_owned(), status }
}

/// Writes a marker as it is kept on the server.
fn to_word(EpochMarker { value, status }: &EpochMarker) -> String {
    match status {
        EpochStatus::Begun => value.clone(),
        EpochStatus::Emptied | EpochStatus::Acknowledged => {
            format!("{}{SEPARATOR}{value}", status.as_str())
        }
    }
}
