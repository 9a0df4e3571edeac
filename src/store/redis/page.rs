//! Pages of a list: the shards' indexes, merged.
//!
//! Each index is read from its newest end, a batch at a time. As far as the batch that ends first,
//! the order of all of them is known.

use futures_util::future::try_join_all;
use redis::{RedisError, Value};

use super::call::Call;
use super::expiry::members;
use super::failure::shape;
use super::keys::{Index, SHARDS, Shard, operation_of, score_of};
use super::records::Redis;
use super::reply::{bytes, number, parts, text};
use crate::operation::{OperationId, StateName, Timestamp};
use crate::store::Error;
use crate::store::listing::{KeyDigest, ListPosition, ListQuery, SCANNED_MAX};
use crate::store::shared::Page;

/// Records that are read at a time: an answer may be large.
const READ_TOGETHER: usize = 64;

impl Redis {
    /// One page.
    pub(super) async fn page_of(&self, listing: &ListQuery) -> Result<Page, Error> {
        let at = self.time(Shard::first()).await?;
        if let Some(key) = listing.key_digest() {
            let (found, next) = self.keyed(listing, key, at).await?;
            return Ok(Page { at, records: self.records_of(&found).await?, next });
        }
        let mut found = Vec::new();
        let mut after = listing.after;
        let mut scanned = 0;
        let mut batch = 2 * listing.limit.min(SCANNED_MAX).div_ceil(SHARDS) + 4;
        let next = loop {
            let (places, more) = self.places(after, batch).await?;
            let mut places = places;
            let mut is_cut = false;
            if !listing.is_filtered() {
                is_cut = cut(&mut places, listing.limit - found.len());
            }
            is_cut |= cut(&mut places, SCANNED_MAX - scanned);
            let wanted = self.wanted(listing, &places, at).await?;
            for (place, is_wanted) in places.iter().zip(wanted) {
                if found.len() == listing.limit {
                    is_cut = true;
                    break;
                }
                (after, scanned) = (Some(*place), scanned + 1);
                found.extend(is_wanted.then_some(place.id));
            }
            if is_cut || found.len() == listing.limit || scanned == SCANNED_MAX {
                break after.filter(|_| is_cut || more);
            }
            if !more || batch > SCANNED_MAX {
                break None;
            }
            batch *= 2;
        };
        Ok(Page { at, records: self.records_of(&found).await?, next })
    }

    /// The operations of a page that have this key, and where the list goes on. Of more than
    /// [`SCANNED_MAX`] with one key, some are not found.
    async fn keyed(
        &self,
        listing: &ListQuery,
        key: KeyDigest,
        at: Timestamp,
    ) -> Result<(Vec<OperationId>, Option<ListPosition>), Error> {
        let score = score_of(key).to_string();
        let limit = (SCANNED_MAX / SHARDS).to_string();
        let members = Shard::all().map(|shard| {
            let index = self.keys.index(shard, Index::Keys);
            let range = [&*index, &score, &score, "LIMIT", "0", &limit];
            let call = Call::command("ZRANGEBYSCORE", &range);
            async move { members(self.servers.call(shard, &call).await?) }
        });
        let members = try_join_all(members).await?.concat();
        let mut places = Vec::with_capacity(members.len());
        for some in members.chunks(READ_TOGETHER * 4) {
            let read =
                try_join_all(some.iter().map(|id| self.fields(*id, &["created_at"]))).await?;
            let read = some.iter().zip(read);
            places.extend(read.filter_map(|(id, fields)| {
                let created_at = Timestamp(number(fields?.first()?)?);
                Some(ListPosition { created_at, id: *id })
            }));
        }
        places.retain(|place| listing.after.is_none_or(|after| *place < after));
        places.sort_unstable_by(|one, other| other.cmp(one));
        let wanted = self.wanted(listing, &places, at).await?;
        let mut found =
            places.into_iter().zip(wanted).filter_map(|(place, is)| is.then_some(place));
        let page: Vec<_> = found.by_ref().take(listing.limit).collect();
        let next = if found.next().is_some() { page.last().copied() } else { None };
        Ok((page.iter().map(|place| place.id).collect(), next))
    }

    /// The records of these operations, those that are still there.
    async fn records_of(&self, ids: &[OperationId]) -> Result<Vec<(OperationId, Vec<u8>)>, Error> {
        let mut records = Vec::with_capacity(ids.len());
        for some in ids.chunks(READ_TOGETHER) {
            let read = try_join_all(some.iter().map(|id| self.record(*id))).await?;
            let read = some.iter().copied().zip(read);
            records.extend(read.filter_map(|(id, bytes)| Some((id, bytes?))));
        }
        Ok(records)
    }

    /// What comes behind a place, as far as the order is known with `batch` of each shard, and
    /// whether there is more.
    async fn places(
        &self,
        after: Option<ListPosition>,
        batch: usize,
    ) -> Result<(Vec<ListPosition>, bool), Error> {
        let from = after.map_or_else(|| "+inf".to_owned(), |after| after.created_at.0.to_string());
        let batches = Shard::all().map(|shard| {
            let key = self.keys.index(shard, Index::Created);
            let limit = batch.to_string();
            let range = [&key, from.as_str(), "-inf", "WITHSCORES", "LIMIT", "0", &limit];
            let call = Call::command("ZREVRANGEBYSCORE", &range);
            async move { places(self.servers.call(shard, &call).await?) }
        });
        let batches = try_join_all(batches).await?;
        let ends = batches.iter().filter(|places| places.len() == batch);
        let known_to = ends.filter_map(|places| places.last().copied()).max();
        let mut places: Vec<_> = batches.into_iter().flatten().collect();
        places.retain(|place| {
            after.is_none_or(|after| *place < after) && known_to.is_none_or(|to| *place >= to)
        });
        places.sort_unstable_by(|one, other| other.cmp(one));
        Ok((places, known_to.is_some()))
    }

    /// Which of these operations the listing asks for.
    async fn wanted(
        &self,
        listing: &ListQuery,
        places: &[ListPosition],
        at: Timestamp,
    ) -> Result<Vec<bool>, Error> {
        if !listing.is_filtered() {
            return Ok(vec![true; places.len()]);
        }
        let mut wanted = Vec::with_capacity(places.len());
        for some in places.chunks(READ_TOGETHER * 4) {
            let asked = some.iter().map(|place| async {
                let fields = ["state", "changes_at", "route"];
                let fields = self.fields(place.id, &fields).await?;
                Ok::<_, Error>(fields.is_none_or(|fields| may_be_wanted(listing, &fields, at)))
            });
            wanted.extend(try_join_all(asked).await?);
        }
        Ok(wanted)
    }

    /// The bytes of a record. Those of one that is none are empty, which nobody can read.
    async fn record(&self, id: OperationId) -> Result<Option<Vec<u8>>, Error> {
        let Some(fields) = self.fields(id, &["record", "revision"]).await? else {
            return Ok(Some(Vec::new()));
        };
        if fields.iter().all(|field| *field == Value::Nil) {
            return Ok(None);
        }
        Ok(Some(fields.into_iter().next().and_then(bytes).unwrap_or_default()))
    }

    /// Fields of a record; none if its key holds something else.
    async fn fields(&self, id: OperationId, names: &[&str]) -> Result<Option<Vec<Value>>, Error> {
        let key = self.keys.record(id);
        let call = Call::command("HMGET", &[&key]).arg(names);
        match self.servers.call(Shard::of(id), &call).await {
            Ok(fields) => Ok(Some(parts(fields).ok_or_else(shape)?)),
            Err(Error::Failed(error)) if is_wrong_type(&*error) => Ok(None),
            Err(error) => Err(error),
        }
    }
}

impl ListQuery {
    const fn is_filtered(&self) -> bool {
        self.route.is_some() || self.state.is_some()
    }
}

/// Makes a list no longer than `length`. Says whether it was.
fn cut(places: &mut Vec<ListPosition>, length: usize) -> bool {
    let was_longer = places.len() > length;
    places.truncate(length);
    was_longer
}

/// Whether an operation is asked for as it stands now, as far as its fields say.
fn may_be_wanted(listing: &ListQuery, fields: &[Value], at: Timestamp) -> bool {
    let [state, changes_at, route] = fields else { return true };
    if fields.iter().all(|field| *field == Value::Nil) {
        return false;
    }
    let has_changed = number(changes_at).is_some_and(|changes_at| changes_at <= at.0);
    let state = text(state);
    let stands = match state.as_deref() {
        Some("in_flight") if has_changed => Some(StateName::Uncertain.as_str()),
        Some(_) if has_changed => return false,
        other => other,
    };
    let of_state = |wanted: StateName| stands.is_none_or(|stands| stands == wanted.as_str());
    let route = text(route);
    listing.state.is_none_or(of_state)
        && listing.route.as_deref().is_none_or(|wanted| route.is_none_or(|route| route == *wanted))
}

/// An index's members and their scores.
fn places(value: Value) -> Result<Vec<ListPosition>, Error> {
    let parts = parts(value).ok_or_else(shape)?;
    let places = parts.chunks(2).map(|pair| {
        let [member, created_at] = pair else { return Err(shape()) };
        let id = bytes(member.clone()).and_then(|member| operation_of(&member));
        let (id, created_at) = id.zip(number(created_at)).ok_or_else(shape)?;
        Ok(ListPosition { created_at: Timestamp(created_at), id })
    });
    places.collect()
}

fn is_wrong_type(error: &(dyn std::error::Error + Send + Sync + 'static)) -> bool {
    let error = error.downcast_ref::<RedisError>();
    error.and_then(RedisError::code) == Some("WRONGTYPE")
}
