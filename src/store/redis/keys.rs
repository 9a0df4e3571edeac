//! Names the keys, and assigns each operation to a shard.
//!
//! The keys of a record and of the indexes of its shard have the same hash tag, which is the part
//! of a key in braces. A cluster keeps all keys with one hash tag on one node, so one script may
//! change them together.

use crate::operation::OperationId;
use crate::store::list::KeyDigest;
use crate::words::enum_of_words;

/// The number of shards. It is part of the names of keys, so it must never change.
pub(super) const SHARDS: usize = 64;

/// The permissions that a user on the server needs, for the built-in prefix. With another prefix,
/// the key pattern and the channel begin with that prefix.
pub const ACL_LINE: &str = "user onceward on >PASSWORD resetchannels ~{onceward:* \
     &onceward:endings -@all +evalsha +script|load +time +exists +hmget +hset +del +zadd +zrem \
     +zcard +zcount +zrangebyscore +zrevrangebyscore +publish +subscribe +ping +wait +role \
     +asking +get +set +info +config|get";

/// A part of the records. Its number is below [`SHARDS`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Shard(usize);

enum_of_words! {
    /// An index of the operations of a shard. The indexes are in the order in which `expire.lua`
    /// expects their keys. The words are in the names of keys, so they must never change.
    pub(super) enum Index {
        /// All operations, by the time of creation.
        Created = "created",
        /// The operations in flight, by the end of the lease.
        InFlight = "in_flight",
        /// The uncertain operations, by the end of the hold.
        Uncertain = "uncertain",
        /// The other operations, by the end of the retention.
        Settled = "settled",
        /// All operations, by the digest of the key.
        Keys = "keys",
    }
}

/// Makes the names of keys.
#[derive(Debug, Clone)]
pub(super) struct Keys {
    prefix: String,
}

impl Shard {
    /// Returns the shard of an operation.
    pub(super) fn of(id: OperationId) -> Self {
        let [first, ..] = id.as_bytes();
        Self(usize::from(*first) % SHARDS)
    }

    /// Returns all shards. The first is the one with the number `start`.
    pub(super) fn all_from(start: usize) -> impl Iterator<Item = Self> + Clone {
        (0..SHARDS).map(move |shard| Self(start.wrapping_add(shard) % SHARDS))
    }

    /// Returns all shards.
    pub(super) fn all() -> impl Iterator<Item = Self> + Clone {
        Self::all_from(0)
    }

    /// Returns the shard whose keys belong to the store as a whole.
    pub(super) const fn first() -> Self {
        Self(0)
    }

    /// Returns the shard with this number.
    pub(super) const fn numbered(number: usize) -> Self {
        Self(number % SHARDS)
    }

    /// Returns the number of the shard, which is below [`SHARDS`].
    pub(super) const fn number(self) -> usize {
        self.0
    }

    /// Returns a first byte that puts an id into this shard.
    pub(super) fn first_byte(self) -> u8 {
        u8::try_from(self.0).unwrap_or_default()
    }
}

impl Keys {
    pub(super) fn under(prefix: &str) -> Self {
        Self { prefix: prefix.to_owned() }
    }

    /// The key of an operation's record.
    pub(super) fn record(&self, id: OperationId) -> String {
        format!("{{{}:{}}}:op:{}", self.prefix, Shard::of(id).0, member(id))
    }

    pub(super) fn index(&self, shard: Shard, index: Index) -> String {
        format!("{{{}:{}}}:{}", self.prefix, shard.0, index.as_str())
    }

    /// The key of a shard's epoch marker.
    pub(super) fn epoch(&self, shard: Shard) -> String {
        format!("{{{}:{}}}:epoch", self.prefix, shard.0)
    }

    /// The key on which permissions are tried. It is removed at once.
    pub(super) fn scratch(&self, name: &str) -> String {
        format!("{{{}:0}}:scratch:{name}", self.prefix)
    }

    /// The channel on which the ends of attempts are published.
    pub(super) fn endings(&self) -> String {
        format!("{}:endings", self.prefix)
    }

    /// The line that grants a user what this process needs. See [`ACL_LINE`].
    pub(super) fn acl_line(&self) -> String {
        ACL_LINE
            .replace("~{onceward:", &format!("~{{{}:", self.prefix))
            .replace("&onceward:", &format!("&{}:", self.prefix))
    }
}

/// An operation's member in an index.
pub(super) fn member(id: OperationId) -> String {
    hex::encode(id.as_bytes())
}

/// Returns the score for a key's digest. A score is a double, which holds integers of 53 bits.
pub(super) const fn score_of(KeyDigest(digest): KeyDigest) -> u64 {
    digest >> 11
}

/// Returns the operation that a member names, or none if this program did not write the member.
pub(super) fn operation_of(member: &[u8]) -> Option<OperationId> {
    let mut id = [0; 16];
    hex::decode_to_slice(member, &mut id).ok()?;
    Some(OperationId::from_bytes(id))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Stores hold these names. Under other names nothing would be found any more.
    #[test]
    fn names_of_keys_are_what_they_were() {
        let keys = Keys::under("onceward");
        let id = OperationId::from_bytes([0x41; 16]);
        let shard = Shard::of(id);
        assert_eq!(keys.record(id), "{onceward:1}:op:41414141414141414141414141414141");
        assert_eq!(keys.index(shard, Index::Created), "{onceward:1}:created");
        assert_eq!(keys.index(shard, Index::InFlight), "{onceward:1}:in_flight");
        assert_eq!(keys.index(shard, Index::Uncertain), "{onceward:1}:uncertain");
        assert_eq!(keys.index(shard, Index::Settled), "{onceward:1}:settled");
        assert_eq!(keys.index(shard, Index::Keys), "{onceward:1}:keys");
        assert_eq!(score_of(KeyDigest(u64::MAX)), (1 << 53) - 1);
        assert_eq!(keys.epoch(shard), "{onceward:1}:epoch");
        assert_eq!(keys.endings(), "onceward:endings");
    }

    #[test]
    fn the_line_of_another_prefix_grants_its_keys() {
        let line = Keys::under("shop").acl_line();
        assert!(line.contains(" ~{shop:* &shop:endings "), "{line}");
        assert_eq!(Keys::under("onceward").acl_line(), ACL_LINE);
    }
}
