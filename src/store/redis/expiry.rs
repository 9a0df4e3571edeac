//! What time has done to records: how many are uncertain, and which may go.

use std::sync::atomic::Ordering;

use futures_util::future::try_join_all;
use redis::Value;

use super::call::{Call, EXPIRE};
use super::failure::shape;
use super::keys::{Index, Shard, member, operation_of};
use super::records::Redis;
use super::reply::{bytes, number, parts};
use crate::operation::{OperationId, Timestamp};
use crate::store::Error;
use crate::store::shared::Expired;

/// Shards that are looked at together.
const TOGETHER: usize = 16;
/// Records that one script removes, so that it never keeps the server for long.
const BATCH: usize = 100;

impl Redis {
    /// One pass of expiry, over all shards or as many as it takes to find `limit` records.
    pub(super) async fn expire_due(&self, limit: usize) -> Result<Expired, Error> {
        let now = self.time(Shard::first()).await?;
        let start = self.turn.fetch_add(TOGETHER, Ordering::Relaxed);
        let shards: Vec<_> = Shard::all_from(start).collect();
        let mut expired = Expired::default();
        let mut left = limit;
        for shards in shards.chunks(TOGETHER) {
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

    /// How many are uncertain, those included whose lease has run out.
    pub(super) async fn count_uncertain(&self) -> Result<u64, Error> {
        let now = self.time(Shard::first()).await?.0.to_string();
        let counts = Shard::all().map(|shard| {
            let held = self.keys.index(shard, Index::Uncertain);
            let leases = self.keys.index(shard, Index::InFlight);
            let now = &now;
            async move {
                let held = Call::command("ZCARD", &[&held]);
                let ran_out = Call::command("ZCOUNT", &[&leases, "-inf", now]);
                let count =
                    async |call| number(&self.servers.call(shard, &call).await?).ok_or_else(shape);
                let (held, ran_out) = tokio::try_join!(count(held), count(ran_out))?;
                Ok::<u64, Error>(held + ran_out)
            }
        });
        Ok(try_join_all(counts).await?.into_iter().sum())
    }

    /// At most `limit` operations of a shard that have changed by themselves, each kind in the order
    /// in which they did.
    async fn due(
        &self,
        shard: Shard,
        now: Timestamp,
        limit: usize,
    ) -> Result<Vec<OperationId>, Error> {
        let now = now.0.to_string();
        let limit = limit.to_string();
        let ranges = [Index::InFlight, Index::Uncertain, Index::Settled].map(|index| {
            let key = self.keys.index(shard, index);
            let range = [key.as_str(), "-inf", now.as_str(), "LIMIT", "0", limit.as_str()];
            let call = Call::command("ZRANGEBYSCORE", &range);
            async move { members(self.servers.call(shard, &call).await?) }
        });
        Ok(try_join_all(ranges).await?.into_iter().flatten().collect())
    }

    async fn remove(
        &self,
        shard: Shard,
        due: Vec<OperationId>,
    ) -> Result<(usize, Vec<OperationId>), Error> {
        let mut keys: Vec<_> =
            Index::ALL.iter().map(|index| self.keys.index(shard, *index)).collect();
        keys.extend(due.iter().map(|id| self.keys.record(*id)));
        let members: Vec<_> = due.iter().map(|id| member(*id)).collect();
        let call = Call::script(&EXPIRE, &keys).arg(members);
        let reply = parts(self.servers.call(shard, &call).await?).ok_or_else(shape)?;
        let mut reply = reply.into_iter();
        let (removed, lapsed) = reply.next().zip(reply.next()).ok_or_else(shape)?;
        let removed = number(&removed).and_then(|removed| usize::try_from(removed).ok());
        Ok((removed.ok_or_else(shape)?, self::members(lapsed)?))
    }
}

/// The operations that members of an index stand for.
pub(super) fn members(value: Value) -> Result<Vec<OperationId>, Error> {
    let members = parts(value).ok_or_else(shape)?.into_iter();
    Ok(members.filter_map(|member| operation_of(&bytes(member)?)).collect())
}
