//! The work of a server for a shared store. It swaps one record for another, atomically.

use async_trait::async_trait;

use super::epoch::EpochMarker;
use crate::operation::{Operation, OperationId, Timestamp};
use crate::store::list::{ListPosition, ListQuery};
use crate::store::{Concern, Error, random};

/// The records on a server, and the atomic steps on them.
///
/// A swap usually takes one round trip. A call that is sent twice takes effect once, so it can be
/// sent again after a lost connection.
#[async_trait]
pub(crate) trait RecordServer: Send + Sync + std::fmt::Debug + 'static {
    /// Makes a change if the server has the expected record. Otherwise it reports what the server
    /// has.
    async fn swap(&self, swap: Swap<'_>) -> Result<SwapResult, Error>;

    /// Removes at most `limit` settled records whose retention has passed.
    async fn expire(&self, limit: usize) -> Result<ExpiryPass, Error>;

    /// Counts the uncertain operations. Those whose lease ran out are among them.
    async fn uncertain(&self) -> Result<u64, Error>;

    /// Returns one page of records, newest first. The page may hold records that the query does not
    /// ask for.
    async fn page(&self, query: &ListQuery) -> Result<RecordPage, Error>;

    /// Returns the reasons why the server may lose operations.
    async fn concerns(&self) -> Result<Vec<Concern>, Error>;

    /// Returns ids for throw-away operations. Probes with all of these ids reach every part of the
    /// server that can fail by itself.
    async fn probe_ids(&self) -> Result<Vec<[u8; 16]>, Error> {
        Ok(vec![random()?])
    }

    /// Reads the markers of all parts. A part without a marker gets one. A part that takes no calls
    /// now is left out.
    async fn markers(&self) -> Result<Vec<EpochMarker>, Error>;

    /// Gives the marker of a part this status.
    async fn mark(&self, marker: EpochMarker) -> Result<(), Error>;

    /// Returns the number of the part that has the record of an operation. A part can lose its
    /// records by itself, and has a clock of its own. The number is below [`PARTS_MAX`].
    fn part_of(&self, _id: OperationId) -> usize {
        0
    }

    /// Closes all connections.
    async fn close(&self);
}

/// The most parts that a server can have. A cluster has one for each shard.
pub(crate) const PARTS_MAX: usize = 64;

/// One atomic step on one record.
#[derive(Debug)]
pub(crate) struct Swap<'a> {
    /// The operation whose record the step concerns.
    pub(crate) id: OperationId,
    /// The change to make. Without one, the record is only read.
    pub(crate) change: Option<RecordChange<'a>>,
    /// Whether the caller will wait if it finds an attempt in flight. The server notes this,
    /// because it sends notifications only of operations that somebody waits for.
    pub(crate) waits: bool,
    /// Whether the step must not queue behind others. A busy process would lose its leases if their
    /// renewals queued behind claims.
    pub(crate) is_urgent: bool,
    /// Whether the step waits for a write that has begun but cannot be seen yet. A withdrawal does,
    /// because its claim may still be on its way to the server. Otherwise the write of that claim
    /// could end after the withdrawal, and the claim would stay in flight.
    pub(crate) behind_all: bool,
}

impl Swap<'_> {
    /// Reads the record of an operation and changes nothing.
    pub(crate) const fn read(id: OperationId) -> Self {
        Self { id, change: None, waits: false, is_urgent: false, behind_all: false }
    }
}

/// A change of a record, and the conditions under which the server may make it.
#[derive(Debug)]
pub(crate) struct RecordChange<'a> {
    /// The record that must be there; none if there must be no record.
    pub(crate) expected: Option<ExpectedRecord<'a>>,
    /// The record to put in its place; none to remove it.
    pub(crate) record: Option<EncodedRecord<'a>>,
    /// The earliest time on the server's clock at which the change may be made.
    pub(crate) not_before: Timestamp,
    /// The latest time on the server's clock at which the change may be made. The rule computed the
    /// change for a time between the two. At any other time, either somebody has set a clock, or the
    /// call is so late that its caller has given up.
    pub(crate) not_after: Timestamp,
    /// Whether the change must be durable before the call returns.
    pub(crate) durable: bool,
    /// Whether the change ends an attempt, or records that one has ended. If so, the server notifies
    /// waiters.
    pub(crate) ends: bool,
    /// The marker that the part must have, if only a server that still has its records may make the
    /// change.
    pub(crate) guard: Option<EpochMarker>,
}

/// The record that must be there before a change is made.
#[derive(Debug)]
pub(crate) struct ExpectedRecord<'a> {
    pub(crate) revision: Revision,
    /// The operation in the record. From it follows in which indexes the operation is.
    pub(crate) operation: &'a Operation,
    /// Whether the record's `changes_at` must have passed on the server's clock, as the rule
    /// assumed. If false, it must not have passed.
    pub(crate) lapsed: bool,
}

/// A record in the form in which a change puts it on the server.
#[derive(Debug)]
pub(crate) struct EncodedRecord<'a> {
    /// A new random revision. If a call finds its own revision on the server, it was sent twice and
    /// is already done.
    pub(crate) revision: Revision,
    /// The record as the codec encodes it.
    pub(crate) bytes: Vec<u8>,
    /// The operation in the bytes. Indexes use its fields, and people read them in the table.
    pub(crate) operation: &'a Operation,
}

/// The name of one version of a record. No two versions have the same name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Revision(pub(crate) u64);

/// The result of a swap.
#[derive(Debug)]
pub(crate) enum SwapResult {
    /// The change was made, at this time on the server's clock.
    Done(Timestamp),
    /// Nothing was changed, because the server did not have what was expected, or because the
    /// record was only read.
    Conflict(Found),
    /// Nothing was changed, because the part did not have the marker in `guard`.
    Emptied,
}

/// The state of an operation on the server.
#[derive(Debug)]
pub(crate) struct Found {
    /// The time on the server's clock.
    pub(crate) at: Timestamp,
    /// The record, if there is one.
    pub(crate) stored: Option<StoredRecord>,
}

/// A record in the form in which a server has it.
#[derive(Debug)]
pub(crate) struct StoredRecord {
    pub(crate) revision: Revision,
    /// The record as the codec encoded it.
    pub(crate) bytes: Vec<u8>,
}

/// The result of one pass of expiry on a server.
#[derive(Debug, Default)]
pub(crate) struct ExpiryPass {
    /// The number of settled records that were removed.
    pub(crate) removed: usize,
    /// The operations in flight or uncertain whose `changes_at` has passed. A rule must decide what
    /// they become.
    pub(crate) lapsed: Vec<OperationId>,
    /// Whether more records are due.
    pub(crate) more: bool,
}

/// A part of a list, newest first.
#[derive(Debug)]
pub(crate) struct RecordPage {
    /// The time on the server's clock.
    pub(crate) at: Timestamp,
    /// The encoded records.
    pub(crate) records: Vec<(OperationId, Vec<u8>)>,
    /// The position after which the next page begins, if there is one.
    pub(crate) next: Option<ListPosition>,
}
