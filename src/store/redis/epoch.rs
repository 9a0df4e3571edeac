//! Keeps the markers that show whether the servers still have their records.
//!
//! In a cluster, each shard has a marker, because one master may come back empty while the others
//! do not. Elsewhere only shard 0 has a marker.

use futures_util::future::join_all;
use redis::Value;

use super::command::Command;
use super::keys::{SHARDS, Shard};
use super::marker::{from_word, to_word};
use super::records::Redis;
use super::reply::text;
use crate::store::shared::EpochMarker;
use crate::store::{Error, random};

impl Redis {
    /// Reads all markers. A shard without a marker gets one.
    pub(super) async fn all_markers(&self) -> Result<Vec<EpochMarker>, Error> {
        let parts = if self.servers.is_cluster() { SHARDS } else { 1 };
        let reads = join_all(Shard::all().take(parts).map(|shard| self.marker_of(shard))).await;
        // A server that is full or takes no writes has lost nothing. Other calls report its state
        // with a better message.
        let is_told = |read: &Result<_, Error>| !matches!(read, Err(Error::Unavailable(_)));
        reads.into_iter().filter(is_told).collect()
    }

    async fn marker_of(&self, shard: Shard) -> Result<EpochMarker, Error> {
        let key = self.keys.epoch(shard);
        let get = Command::new("GET", &[&key]);
        let mut found = self.servers.run(shard, &get).await?;
        if found == Value::Nil {
            let value = hex::encode(random::<8>()?);
            self.servers.run(shard, &Command::new("SET", &[&key, &value, "NX"])).await?;
            // Another process may have set a marker first.
            found = self.servers.run(shard, &get).await?;
        }
        Ok(from_word(shard, &text(&found)?))
    }

    /// Writes a marker in the place of the one that the shard has.
    pub(super) async fn put_marker(&self, marker: &EpochMarker) -> Result<(), Error> {
        let shard = Shard::numbered(marker.part);
        let key = self.keys.epoch(shard);
        let set = Command::new("SET", &[&key, &to_word(marker), "XX"]);
        Ok(self.servers.run(shard, &set).await.map(drop)?)
    }
}
