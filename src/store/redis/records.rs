//! The records of a server, and the atomic steps on them.

use std::sync::Arc;
use std::sync::atomic::AtomicUsize;

use async_trait::async_trait;
use redis::Value;

use super::call::{Call, SWAP};
use super::epoch::Guard;
use super::failure::{KEYS_MOVE, denied, is_no_master, shape};
use super::keys::{Index, Keys, Shard, member, score_of};
use super::reply::{bytes, number, parts, text};
use super::servers::{Acked, Servers};
use super::subscription::Subscription;
use crate::operation::{OperationId, Timestamp};
use crate::store::epoch::Epoch;
use crate::store::listing::KeyDigest;
use crate::store::shared::{
    Conditions, Expected, Expired, Page, Purpose, Put, Records, Revision, Seen, Stored, Swap,
    Swapped,
};
use crate::store::{Concern, Corrupt, Error, ListQuery};

/// Records on Redis.
#[derive(Debug)]
pub(super) struct Redis {
    pub(super) servers: Arc<Servers>,
    pub(super) keys: Keys,
    pub(super) replica_acks: usize,
    /// Which shard the next pass of expiry begins with.
    pub(super) turn: AtomicUsize,
    pub(super) epoch: Epoch,
    pub(super) subscription: Subscription,
}

#[async_trait]
impl Records for Redis {
    async fn swap(&self, swap: Swap<'_>) -> Result<Swapped, Error> {
        self.subscription.begin(&self.servers, &self.keys);
        match self.put(&swap).await {
            // what is only read is found while keys are moved, and a replay needs no more
            Err(Error::Unavailable(why)) if why == KEYS_MOVE => {
                let look = Swap { change: Put::Nothing, ..swap };
                match self.put(&look).await? {
                    Swapped::Refused(seen) if is_another(&swap, &seen) => {
                        Ok(Swapped::Refused(seen))
                    }
                    Swapped::Refused(_) | Swapped::Done(_) => Err(Error::Unavailable(why)),
                }
            }
            swapped => swapped,
        }
    }

    async fn expire(&self, limit: usize) -> Result<Expired, Error> {
        self.expire_due(limit).await
    }

    async fn uncertain(&self) -> Result<u64, Error> {
        self.count_uncertain().await
    }

    async fn to_try(&self) -> Result<Vec<[u8; 16]>, Error> {
        self.one_id_for_each_server().await
    }

    async fn acknowledge(&self) -> Result<bool, Error> {
        self.acknowledge_loss().await
    }

    async fn page(&self, listing: &ListQuery) -> Result<Page, Error> {
        self.page_of(listing).await
    }

    async fn concerns(&self) -> Result<Vec<Concern>, Error> {
        self.look_for_concerns().await
    }

    fn clock_of(&self, id: OperationId) -> usize {
        if self.servers.is_cluster() { Shard::of(id).number() } else { 0 }
    }

    async fn close(&self) {
        self.subscription.end();
        self.servers.hang_up();
    }
}

impl Redis {
    /// One round trip of a swap.
    async fn put(&self, swap: &Swap<'_>) -> Result<Swapped, Error> {
        let shard = Shard::of(swap.id);
        let grants = swap.purpose == Purpose::Grant;
        let guard = if grants { self.guard(shard).await? } else { None };
        let call = self.call_of(swap, guard);
        let wanted = self.acks_of(&swap.change);
        let answer = self.servers.call_acked(shard, &call, wanted).await?;
        let Acked { value, acks, was_lost, node } = answer;
        let told = told(value).ok_or_else(shape)?;
        match told {
            Told::Done(_) if acks < wanted => Err(Error::TooFewReplicas { wanted, had: acks }),
            Told::Done(at) => Ok(Swapped::Done(at)),
            Told::Seen(seen) => Ok(Swapped::Refused(seen)),
            Told::Emptied => Err(self.is_refused_by_guard().await),
            Told::Unreadable => Err(Error::Unreadable(swap.id, Corrupt::Foreign)),
            Told::Denied(answer) => {
                if is_no_master(&answer) {
                    self.servers.is_demoted(shard, &node);
                }
                // a refusal says nothing about what was sent before
                Err(if was_lost { Error::Failed(answer.into()) } else { denied(answer) })
            }
        }
    }

    /// Replicas that must have a change.
    fn acks_of(&self, change: &Put<'_>) -> usize {
        match conditions(change) {
            Some(Conditions { durable: true, .. }) => self.replica_acks,
            Some(Conditions { durable: false, .. }) | None => 0,
        }
    }

    fn call_of(&self, swap: &Swap<'_>, guard: Option<Guard>) -> Call {
        let shard = Shard::of(swap.id);
        let mut keys = vec![self.keys.record(swap.id)];
        let (expected, lapsed) = match swap.expected {
            Expected::Nothing => (String::new(), false),
            Expected::Revision { revision, lapsed } => (revision.0.to_string(), lapsed),
        };
        let change = match swap.change {
            Put::Nothing => "look",
            Put::Removal(_) => "remove",
            Put::Record { .. } => "put",
        };
        if !matches!(swap.change, Put::Nothing) {
            keys.extend(Index::ALL.map(|index| self.keys.index(shard, index)));
        }
        let (guarded, word) = guard.map(|Guard { key, word }| (key, word)).unzip();
        keys.extend(guarded);
        let conditions = conditions(&swap.change);
        let not_before =
            conditions.map_or_else(Timestamp::default, |conditions| conditions.not_before);
        let not_after =
            conditions.map_or_else(Timestamp::default, |conditions| conditions.not_after);
        let call = Call::script(&SWAP, &keys)
            .arg(member(swap.id))
            .arg(expected)
            .arg(flag(lapsed))
            .arg(change)
            .arg(flag(swap.waits))
            .arg(not_before.0)
            .arg(not_after.0)
            .arg(flag(conditions.is_some_and(|conditions| conditions.ends)))
            .arg(flag(self.acks_of(&swap.change) > 0))
            .arg(self.keys.endings())
            .arg(swap.id.to_string());
        match swap.change {
            Put::Nothing | Put::Removal(_) => call,
            Put::Record { revision, bytes, operation, .. } => call
                .arg(revision.0.to_string())
                .arg(bytes)
                .arg(operation.state.as_str())
                .arg(operation.state.changes_at().0)
                .arg(operation.created_at.0)
                .arg(&*operation.asked.route)
                .arg(score_of(KeyDigest::of(&operation.asked.key)))
                // none is no argument
                .arg(word.as_slice()),
        }
    }

    /// The time on the clock of a shard's server.
    pub(super) async fn time(&self, shard: Shard) -> Result<Timestamp, Error> {
        let time = self.servers.call(shard, &Call::command("TIME", &[])).await?;
        let time = parts(time).ok_or_else(shape)?;
        let [seconds, micros] = time.as_slice() else { return Err(shape()) };
        let (seconds, micros) = number(seconds).zip(number(micros)).ok_or_else(shape)?;
        Ok(Timestamp(seconds * 1000 + micros / 1000))
    }
}

/// What the script says.
enum Told {
    Done(Timestamp),
    Seen(Seen),
    Unreadable,
    Emptied,
    Denied(String),
}

fn told(value: Value) -> Option<Told> {
    let mut parts = parts(value)?.into_iter();
    let how = text(&parts.next()?)?;
    let what = parts.next()?;
    if how == "denied" {
        return Some(Told::Denied(text(&what)?));
    }
    let at = Timestamp(number(&what)?);
    match how.as_str() {
        "done" => Some(Told::Done(at)),
        "unreadable" => Some(Told::Unreadable),
        "emptied" => Some(Told::Emptied),
        "seen" => {
            let stored = match parts.next() {
                None => None,
                Some(revision) => Some(Stored {
                    revision: Revision(number(&revision)?),
                    bytes: bytes(parts.next()?)?,
                }),
            };
            Some(Told::Seen(Seen { at, stored }))
        }
        _ => None,
    }
}

const fn conditions(change: &Put<'_>) -> Option<Conditions> {
    match change {
        Put::Nothing => None,
        Put::Removal(conditions) | Put::Record { conditions, .. } => Some(*conditions),
    }
}

/// Whether what was seen is not what was expected.
fn is_another(swap: &Swap<'_>, seen: &Seen) -> bool {
    let found = seen.stored.as_ref().map(|stored| stored.revision);
    match swap.expected {
        Expected::Nothing => found.is_some(),
        Expected::Revision { revision, .. } => found != Some(revision),
    }
}

const fn flag(is_so: bool) -> &'static str {
    if is_so { "1" } else { "0" }
}
