//! Finds and removes the records that are due, and counts the uncertain operations.

use std::sync::atomic::Ordering;

use futures_util::future::try_join_all;
use redis::Value;

use super::command::{Command, EXPIRE};
use super::keys::{Index, Shard, member, operation_of};
use super::records::Redis;
use super::reply::{bytes, number, parts, unexpected_shape};
use crate::operation::{OperationId, Timestamp};
use crate::store::Error;
use crate::store::shared::ExpiryPass;

/// The number of shards that are searched at the same time.
const SHARDS_AT_ONCE: usize = 16;
/// The most records that one script removes. While a script runs, the server does nothing else.
const BATCH: usize = 100;

impl Redis {
    /// Makes one pass of expiry, over as many shards as it takes to find `limit` records.
    pub(super) async fn expire_due(&self, limit: usize) -> Result<ExpiryPass, Error> {
        // In a cluster, another master's clock may differ. The script compares with the clock of
        // its own server before it removes anything.
        let now = self.time(Shard::first()).await?;
        // Each pass begins with other shards. If every pass began with the same ones, a small limit
        // would never let it reach the last ones.
        let start = self.next_expiry.fetch_add(SHARDS_AT_ONCE, Ordering::Relaxed);
        let shards: Vec<_> = Shard::all_from(start).collect();
        let mut expired = ExpiryPass::default();
        let mut left = limit;
        for shards in shards.chunks(SHARDS_AT_ONCE) {
            let due = shards.iter().map(|shard| self.due(*shard, now, left));
            let mut calls = Vec::new();
            for (shard, mut due) in shards.iter().zip(try_join_all(due).await?) {
                due.truncate(left);
                left -= due.len();
                calls.extend(due.chunks(BATCH).map(|due| self.remove(*shard, due.to_vec())));
            }
            for (removed, lapsed) in try_join_all(calls).await? {
                expired.removed += removed;
                expired.lapsed.extend(lapsed);
            }
            if left == 0 {
                expired.more = true;
                break;
            }
        }
        Ok(expired)
    }

    /// Counts the uncertain operations. Those whose lease ran out are among them.
    pub(super) async fn count_uncertain(&self) -> Result<u64, Error> {
        let now = self.time(Shard::first()).await?.0.to_string();
        let ran_out = ["-inf", &now];
        let counts = Shard::all().map(async |shard| {
            let held = self.ask_index(shard, Index::Uncertain, "ZCARD", &[]);
            let ran_out = self.ask_index(shard, Index::InFlight, "ZCOUNT", &ran_out);
            let (held, ran_out) = tokio::try_join!(held, ran_out)?;
            Ok::<u64, Error>(number(&held)? + number(&ran_out)?)
        });
        Ok(try_join_all(counts).await?.into_iter().sum())
    }

    /// Returns the operations of a shard that are due, at most `limit` of each index. In each index
    /// the earliest come first.
    async fn due(
        &self,
        shard: Shard,
        now: Timestamp,
        limit: usize,
    ) -> Result<Vec<OperationId>, Error> {
        let range = ["-inf", &now.0.to_string(), "LIMIT", "0", &limit.to_string()];
        let ranges = [Index::InFlight, Index::Uncertain, Index::Settled].map(async |index| {
            members(self.ask_index(shard, index, "ZRANGEBYSCORE", &range).await?)
        });
        Ok(try_join_all(ranges).await?.into_iter().flatten().collect())
    }

    /// Removes the settled ones of these operations. Returns how many were removed, and which
    /// operations a rule must decide about.
    async fn remove(
        &self,
        shard: Shard,
        due: Vec<OperationId>,
    ) -> Result<(usize, Vec<OperationId>), Error> {
        let mut keys: Vec<_> =
            Index::ALL.iter().map(|index| self.keys.index(shard, *index)).collect();
        keys.extend(due.iter().map(|id| self.keys.record(*id)));
        let members: Vec<_> = due.iter().map(|id| member(*id)).collect();
        let command = Command::script(&EXPIRE, &keys).arg(members);
        let mut reply = parts(self.servers.run(shard, &command).await?)?.into_iter();
        let (removed, lapsed) = reply.next().zip(reply.next()).ok_or_else(unexpected_shape)?;
        let removed = usize::try_from(number(&removed)?).map_err(|_| unexpected_shape())?;
        Ok((removed, self::members(lapsed)?))
    }
}

/// Returns the operations that the members of an index name. Members that this program did not
/// write are left out.
pub(super) fn members(value: Value) -> Result<Vec<OperationId>, Error> {
    let members = parts(value)?.into_iter();
    Ok(members.filter_map(|member| operation_of(&bytes(member).ok()?)).collect())
}
