//! Whether the servers still keep what they were told. A word for each part of the records: in a
//! cluster one master may come back empty while the others do not.

use futures_util::future::join_all;
use redis::Value;

use super::call::Call;
use super::failure::shape;
use super::keys::{SHARDS, Shard};
use super::records::Redis;
use super::reply::text;
use crate::store::{Concern, Error};

impl Redis {
    /// Looks for the words, and gives the servers one where there is none.
    pub(super) async fn epoch_changed(&self) -> Result<Option<Concern>, Error> {
        let parts = if self.servers.is_cluster() { SHARDS } else { 1 };
        let looks = Shard::all().take(parts).map(|shard| self.word_of(shard));
        let mut found = Vec::new();
        for look in join_all(looks).await {
            match look {
                Ok(word) => found.push(word),
                // a full server, or one that takes no writes, fails calls of its own
                Err(Error::Unavailable(_)) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(self.epoch.see(found))
    }

    async fn word_of(&self, shard: Shard) -> Result<(usize, String), Error> {
        let key = self.keys.epoch(shard);
        let look = Call::command("GET", &[&key]);
        let mut found = self.servers.call(shard, &look).await?;
        if found == Value::Nil {
            let word = getrandom::u64().map_err(|error| Error::Failed(Box::new(error)))?;
            let word = format!("{word:016x}");
            self.servers.call(shard, &Call::command("SET", &[&key, &word, "NX"])).await?;
            // another process may have been first
            found = self.servers.call(shard, &look).await?;
        }
        Ok((shard.number(), text(&found).ok_or_else(shape)?))
    }
}
