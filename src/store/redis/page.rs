//! Reads pages of a list. A page is merged from the indexes of all shards.
//!
//! Each index is read from its newest end, one batch at a time. The merged order is known only as
//! far as every full batch reaches, because its shard may have more operations after it.

use futures_util::future::try_join_all;
use redis::Value;

use super::command::Command;
use super::expiry::members;
use super::failure::CommandError;
use super::keys::{Index, SHARDS, Shard, operation_of, score_of};
use super::records::Redis;
use super::reply::{bytes, number, parts, text, unexpected_shape};
use crate::operation::{OperationId, StateName, Timestamp};
use crate::store::Error;
use crate::store::list::{KeyDigest, ListPosition, ListQuery, SCANNED_MAX};
use crate::store::shared::RecordPage;

/// The most records that are read at the same time. The number is small because each record may
/// hold a large answer.
const RECORDS_AT_ONCE: usize = 64;

/// Positions after another position, newest first.
struct Positions {
    positions: Vec<ListPosition>,
    /// Whether more positions may follow them.
    more: bool,
}

impl Redis {
    /// Returns one page of records: the newest operations that the query asks for.
    pub(super) async fn page_of(&self, query: &ListQuery) -> Result<RecordPage, Error> {
        let at = self.time(Shard::first()).await?;
        let mut ids = Vec::new();
        let mut after = query.after;
        let mut scanned = 0;
        // Ids are spread evenly over the shards. So twice the average share of a shard is usually
        // enough.
        let mut batch = 2 * query.limit.min(SCANNED_MAX).div_ceil(SHARDS) + 4;
        let next = loop {
            let Positions { mut positions, more } = match query.key_digest() {
                Some(key) => self.positions_of_key(key, after).await?,
                None => self.positions(after, batch).await?,
            };
            let mut is_cut = false;
            if !is_filtered(query) {
                is_cut = cut(&mut positions, query.limit - ids.len());
            }
            is_cut |= cut(&mut positions, SCANNED_MAX - scanned);
            let wanted = self.wanted(query, &positions, at).await?;
            for (position, is_wanted) in positions.iter().zip(wanted) {
                if ids.len() == query.limit {
                    is_cut = true;
                    break;
                }
                after = Some(*position);
                scanned += 1;
                ids.extend(is_wanted.then_some(position.id));
            }
            if is_cut || ids.len() == query.limit || scanned == SCANNED_MAX {
                break after.filter(|_| is_cut || more);
            }
            if !more || batch > SCANNED_MAX {
                break None;
            }
            batch *= 2;
        };
        Ok(RecordPage { at, records: self.records_of(&ids).await?, next })
    }

    /// Returns the positions of the operations with this key after another position. Each shard is
    /// searched for an equal share of [`SCANNED_MAX`]. If more operations of a shard have the key,
    /// some are not found.
    async fn positions_of_key(
        &self,
        key: KeyDigest,
        after: Option<ListPosition>,
    ) -> Result<Positions, Error> {
        let score = score_of(key).to_string();
        let limit = (SCANNED_MAX / SHARDS).to_string();
        let range = [&*score, &score, "LIMIT", "0", &limit];
        let members = Shard::all().map(async |shard| {
            members(self.ask_index(shard, Index::Keys, "ZRANGEBYSCORE", &range).await?)
        });
        let members = try_join_all(members).await?.concat();
        let mut positions = Vec::with_capacity(members.len());
        for some in members.chunks(RECORDS_AT_ONCE * 4) {
            let read =
                try_join_all(some.iter().map(|id| self.fields(*id, &["created_at"]))).await?;
            let read = some.iter().zip(read);
            positions.extend(read.filter_map(|(id, fields)| {
                let created_at = Timestamp(number(fields?.first()?).ok()?);
                Some(ListPosition { created_at, id: *id })
            }));
        }
        positions.retain(|position| after.is_none_or(|after| *position < after));
        positions.sort_unstable_by(|one, other| other.cmp(one));
        Ok(Positions { positions, more: false })
    }

    /// Returns the records of these operations. Records that were removed meanwhile are left out.
    async fn records_of(&self, ids: &[OperationId]) -> Result<Vec<(OperationId, Vec<u8>)>, Error> {
        let mut records = Vec::with_capacity(ids.len());
        for some in ids.chunks(RECORDS_AT_ONCE) {
            let read = try_join_all(some.iter().map(|id| self.record(*id))).await?;
            let read = some.iter().copied().zip(read);
            records.extend(read.filter_map(|(id, bytes)| Some((id, bytes?))));
        }
        Ok(records)
    }

    /// Returns the positions after another one. It reads `batch` entries of each shard, and
    /// returns the positions whose order these entries show.
    async fn positions(
        &self,
        after: Option<ListPosition>,
        batch: usize,
    ) -> Result<Positions, Error> {
        let from = after.map_or_else(|| "+inf".to_owned(), |after| after.created_at.0.to_string());
        let range = [&*from, "-inf", "WITHSCORES", "LIMIT", "0", &batch.to_string()];
        let batches = Shard::all().map(async |shard| {
            let found = self.ask_index(shard, Index::Created, "ZREVRANGEBYSCORE", &range).await?;
            scored_positions(found)
        });
        let batches = try_join_all(batches).await?;
        let full = batches.iter().filter(|positions| positions.len() == batch);
        let known_to = full.filter_map(|positions| positions.last().copied()).max();
        let mut positions: Vec<_> = batches.into_iter().flatten().collect();
        positions.retain(|position| {
            after.is_none_or(|after| *position < after) && known_to.is_none_or(|to| *position >= to)
        });
        positions.sort_unstable_by(|one, other| other.cmp(one));
        Ok(Positions { positions, more: known_to.is_some() })
    }

    /// Tells for each of these operations whether the query may ask for it.
    async fn wanted(
        &self,
        query: &ListQuery,
        positions: &[ListPosition],
        at: Timestamp,
    ) -> Result<Vec<bool>, Error> {
        if !is_filtered(query) {
            return Ok(vec![true; positions.len()]);
        }
        let mut wanted = Vec::with_capacity(positions.len());
        for some in positions.chunks(RECORDS_AT_ONCE * 4) {
            let reads = some.iter().map(|position| async {
                let fields = ["state", "changes_at", "route"];
                let fields = self.fields(position.id, &fields).await?;
                // A key that holds no record is listed, so that the damage is reported.
                Ok::<_, Error>(fields.is_none_or(|fields| may_be_wanted(query, &fields, at)))
            });
            wanted.extend(try_join_all(reads).await?);
        }
        Ok(wanted)
    }

    /// Returns the bytes of a record, or none if its key does not exist. If the key holds something
    /// else, it returns zero bytes, which the codec reports as unreadable.
    async fn record(&self, id: OperationId) -> Result<Option<Vec<u8>>, Error> {
        let Some(fields) = self.fields(id, &["record", "revision"]).await? else {
            return Ok(Some(Vec::new()));
        };
        if fields.iter().all(|field| *field == Value::Nil) {
            return Ok(None);
        }
        Ok(Some(fields.into_iter().next().and_then(|field| bytes(field).ok()).unwrap_or_default()))
    }

    /// Returns fields of a record, or none if its key holds something other than a hash.
    async fn fields(&self, id: OperationId, names: &[&str]) -> Result<Option<Vec<Value>>, Error> {
        let key = self.keys.record(id);
        let command = Command::new("HMGET", &[&key]).arg(names);
        match self.servers.run(Shard::of(id), &command).await {
            Ok(fields) => Ok(Some(parts(fields)?)),
            Err(CommandError::Failed(error)) if error.code() == Some("WRONGTYPE") => Ok(None),
            Err(error) => Err(error.into()),
        }
    }
}

/// Whether the query leaves out operations by their route or state.
const fn is_filtered(query: &ListQuery) -> bool {
    query.route.is_some() || query.state.is_some()
}

/// Cuts a list to `length`. Returns whether the list was longer.
fn cut(positions: &mut Vec<ListPosition>, length: usize) -> bool {
    let was_longer = positions.len() > length;
    positions.truncate(length);
    was_longer
}

/// Whether the query may ask for an operation, by the fields of its hash. The record decides later.
/// This first check saves the reads of all other records.
fn may_be_wanted(query: &ListQuery, fields: &[Value], at: Timestamp) -> bool {
    let [state, changes_at, route] = fields else { return true };
    if fields.iter().all(|field| *field == Value::Nil) {
        return false;
    }
    let has_lapsed = number(changes_at).is_ok_and(|changes_at| changes_at <= at.0);
    let state = text(state).ok();
    let current = match state.as_deref() {
        // The lease has run out, and nobody has written the new state yet.
        Some("in_flight") if has_lapsed => Some(StateName::Uncertain.as_str()),
        // An operation past its hold or its retention no longer exists.
        Some(_) if has_lapsed => return false,
        other => other,
    };
    let is_state = |wanted: StateName| current.is_none_or(|current| current == wanted.as_str());
    let route = text(route).ok();
    query.state.is_none_or(is_state)
        && query.route.as_deref().is_none_or(|wanted| route.is_none_or(|route| route == *wanted))
}

/// Reads the members of an index and their scores as positions.
fn scored_positions(value: Value) -> Result<Vec<ListPosition>, Error> {
    let parts = parts(value)?;
    let positions = parts.chunks(2).map(|pair| {
        let [member, created_at] = pair else { return Err(unexpected_shape()) };
        let id = operation_of(&bytes(member.clone())?).ok_or_else(unexpected_shape)?;
        Ok(ListPosition { created_at: Timestamp(number(created_at)?), id })
    });
    positions.collect()
}
