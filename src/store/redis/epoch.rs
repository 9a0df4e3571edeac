//! Whether the servers still keep what they were told. A word for each part of the records: in a
//! cluster one master may come back empty while the others do not.

use futures_util::future::{join_all, try_join_all};
use redis::Value;

use super::call::Call;
use super::failure::shape;
use super::keys::{SHARDS, Shard};
use super::records::Redis;
use super::reply::text;
use crate::store::epoch::{Standing, Word};
use crate::store::{Concern, Error};

/// Between the standing of a word and the word itself. Without both it was begun.
const MARK: char = ':';

/// A word that must be there for a claim.
pub(super) struct Guard {
    pub(super) key: String,
    pub(super) word: String,
}

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
        let sight = self.epoch.see(found);
        if self.epoch.is_guarded() {
            // whoever starts later shall know of it; who was stopped is stopped without that as well
            let unmarked = sight.unmarked.into_iter();
            join_all(unmarked.map(|(part, word)| self.mark(part, word, Standing::Emptied))).await;
        }
        Ok(sight.concern)
    }

    /// A person knows that these parts came back empty.
    pub(super) async fn acknowledge_loss(&self) -> Result<bool, Error> {
        self.epoch_changed().await?;
        let lost = self.epoch.lost();
        let is_lost = !lost.is_empty();
        let marked =
            lost.into_iter().map(|(part, word)| self.mark(part, word, Standing::Acknowledged));
        try_join_all(marked).await?;
        self.epoch_changed().await?;
        Ok(is_lost)
    }

    /// The word that must be there for a claim; none if nobody wants that.
    pub(super) async fn guard(&self, shard: Shard) -> Result<Option<Guard>, Error> {
        if !self.epoch.is_guarded() {
            return Ok(None);
        }
        let part = if self.servers.is_cluster() { shard } else { Shard::first() };
        if self.epoch.word(part.number()).is_none() {
            self.epoch_changed().await?;
        }
        if self.epoch.is_stopped() {
            return Err(Error::Emptied);
        }
        let word = self.epoch.word(part.number()).ok_or(Error::Unavailable(UNKNOWN))?;
        Ok(Some(Guard { key: self.keys.epoch(part), word: written(&word) }))
    }

    /// A server did not have the word that a claim needs.
    pub(super) async fn is_refused_by_guard(&self) -> Error {
        match self.epoch_changed().await {
            Err(error) => error,
            Ok(_) if self.epoch.is_stopped() => Error::Emptied,
            Ok(_) => Error::Unavailable(UNKNOWN),
        }
    }

    async fn word_of(&self, shard: Shard) -> Result<(usize, Word), Error> {
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
        Ok((shard.number(), read(&text(&found).ok_or_else(shape)?)))
    }

    /// Writes how a word came there.
    async fn mark(&self, part: usize, word: Word, standing: Standing) -> Result<(), Error> {
        let mut parts = Shard::all().filter(|shard| shard.number() == part);
        let Some(shard) = parts.next() else { return Ok(()) };
        let key = self.keys.epoch(shard);
        let marked = written(&Word { standing, ..word });
        self.servers.call(shard, &Call::command("SET", &[&key, &marked, "XX"])).await.map(drop)
    }
}

/// What the server holds has changed this moment, or could not be read.
const UNKNOWN: &str = "it is not known whether the server has what it was told";

fn read(found: &str) -> Word {
    let marked = found.split_once(MARK);
    let marked = marked.and_then(|(standing, text)| Some((Standing::of(standing)?, text)));
    let (standing, text) = marked.unwrap_or((Standing::Begun, found));
    Word { text: text.to_owned(), standing }
}

fn written(Word { text, standing }: &Word) -> String {
    match standing {
        Standing::Begun => text.clone(),
        Standing::Emptied | Standing::Acknowledged => format!("{}{MARK}{text}", standing.as_str()),
    }
}
