//! The records on Redis, and the atomic steps on them.

use std::sync::Arc;
use std::sync::atomic::AtomicUsize;

use async_trait::async_trait;
use redis::Value;

use super::command::Command;
use super::failure::{CommandError, NotRun, denied, is_no_master};
use super::keys::{Index, Keys, Shard};
use super::node::NodeReply;
use super::reply::{number, parts, unexpected_shape};
use super::servers::{ConfirmedReply, Servers};
use super::subscription::Subscription;
use super::swap::{SwapReply, swap_command};
use crate::operation::{OperationId, Timestamp};
use crate::store::list::ListQuery;
use crate::store::shared::{EpochMarker, ExpiryPass, RecordPage, RecordServer, Swap, SwapResult};
use crate::store::{Concern, Corrupt, Error};

/// Records on Redis.
#[derive(Debug)]
pub(super) struct Redis {
    pub(super) servers: Arc<Servers>,
    pub(super) keys: Keys,
    /// The number of replicas that must confirm a durable change.
    pub(super) replica_acks: usize,
    /// The number of the shard that the next pass of expiry begins with.
    pub(super) next_expiry: AtomicUsize,
    pub(super) subscription: Subscription,
}

#[async_trait]
impl RecordServer for Redis {
    async fn swap(&self, swap: Swap<'_>) -> Result<SwapResult, Error> {
        self.subscription.begin(&self.servers, &self.keys);
        match self.try_swap(&swap).await? {
            Some(result) => Ok(result),
            None => self.read_while_keys_move(&swap).await,
        }
    }

    async fn expire(&self, limit: usize) -> Result<ExpiryPass, Error> {
        self.expire_due(limit).await
    }

    async fn uncertain(&self) -> Result<u64, Error> {
        self.count_uncertain().await
    }

    async fn probe_ids(&self) -> Result<Vec<[u8; 16]>, Error> {
        self.one_id_for_each_server().await
    }

    async fn page(&self, query: &ListQuery) -> Result<RecordPage, Error> {
        self.page_of(query).await
    }

    async fn concerns(&self) -> Result<Vec<Concern>, Error> {
        self.all_concerns().await
    }

    async fn markers(&self) -> Result<Vec<EpochMarker>, Error> {
        self.all_markers().await
    }

    async fn mark(&self, marker: EpochMarker) -> Result<(), Error> {
        self.put_marker(&marker).await
    }

    fn part_of(&self, id: OperationId) -> usize {
        // One master of a cluster may come back empty while the others do not, and each has a clock
        // of its own.
        if self.servers.is_cluster() { Shard::of(id).number() } else { 0 }
    }

    async fn close(&self) {
        self.subscription.end();
        self.servers.hang_up();
    }
}

impl Redis {
    /// Makes a swap in one round trip. Returns none if a cluster is moving the keys. Then nothing
    /// was done.
    async fn try_swap(&self, swap: &Swap<'_>) -> Result<Option<SwapResult>, Error> {
        let shard = Shard::of(swap.id);
        let is_durable = swap.change.as_ref().is_some_and(|change| change.durable);
        let wanted = if is_durable { self.replica_acks } else { 0 };
        let command = swap_command(&self.keys, swap, wanted > 0);
        let reply = match self.servers.run_confirmed(shard, &command, wanted).await {
            Ok(reply) => reply,
            Err(CommandError::NotRun(NotRun::KeysMoving)) => return Ok(None),
            Err(error) => return Err(error.into()),
        };
        let ConfirmedReply { reply: NodeReply { value, acks }, was_resent, node } = reply;
        match SwapReply::parse(value)? {
            SwapReply::Swapped(SwapResult::Done(_)) if acks < wanted => {
                Err(Error::TooFewReplicas { wanted, had: acks })
            }
            SwapReply::Swapped(result) => Ok(Some(result)),
            SwapReply::Unreadable => Err(Error::Unreadable(swap.id, Corrupt::Foreign)),
            SwapReply::Denied(error) => {
                if is_no_master(&error) {
                    self.servers.distrust(shard, &node);
                }
                // This error says nothing about the earlier send, which may have taken effect.
                if was_resent {
                    return Err(Error::Failed(error.into()));
                }
                match NotRun::of(&error) {
                    Some(NotRun::KeysMoving) => Ok(None),
                    Some(_) | None => Err(denied(error)),
                }
            }
        }
    }

    /// Reads the record of a swap that could not be made because a cluster is moving its keys. A
    /// command on one key still works meanwhile, and a replay needs only the record.
    async fn read_while_keys_move(&self, swap: &Swap<'_>) -> Result<SwapResult, Error> {
        let change = swap.change.as_ref();
        let expected = change.and_then(|change| change.expected.as_ref());
        let expected = expected.map(|expected| expected.revision);
        match self.try_swap(&Swap { change: None, ..*swap }).await? {
            Some(SwapResult::Conflict(found))
                if found.stored.as_ref().map(|stored| stored.revision) != expected =>
            {
                Ok(SwapResult::Conflict(found))
            }
            Some(SwapResult::Conflict(_) | SwapResult::Done(_) | SwapResult::Emptied) | None => {
                Err(NotRun::KeysMoving.into())
            }
        }
    }

    /// Runs a command on an index of a shard.
    pub(super) async fn ask_index(
        &self,
        shard: Shard,
        index: Index,
        command: &str,
        arguments: &[&str],
    ) -> Result<Value, CommandError> {
        let key = self.keys.index(shard, index);
        self.servers.run(shard, &Command::new(command, &[&key]).arg(arguments)).await
    }

    /// Reads the time on the clock of a shard's server.
    pub(super) async fn time(&self, shard: Shard) -> Result<Timestamp, Error> {
        let time = parts(self.servers.run(shard, &Command::new("TIME", &[])).await?)?;
        let [seconds, micros] = time.as_slice() else { return Err(unexpected_shape()) };
        Ok(Timestamp(number(seconds)? * 1000 + number(micros)? / 1000))
    }
}
