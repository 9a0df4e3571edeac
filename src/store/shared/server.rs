//! What a server does for a shared store: it swaps one record for another, atomically.

use async_trait::async_trait;

use crate::operation::{Operation, OperationId, Timestamp};
use crate::store::list::{ListPosition, ListQuery};
use crate::store::{Concern, Error, probe};

/// The records on a server, and the atomic steps on them.
///
/// Every call is one round trip. A call that is sent twice takes effect once, so that it can be
/// repeated after a lost connection.
#[async_trait]
pub(crate) trait RecordServer: Send + Sync + std::fmt::Debug + 'static {
    /// Makes a change if the expected record is there, or reports what is there instead.
    async fn swap(&self, swap: Swap<'_>) -> Result<SwapResult, Error>;

    /// Removes at most `limit` settled records whose retention has passed.
    async fn expire(&self, limit: usize) -> Result<ExpiryPass, Error>;

    /// The number of uncertain operations, those whose lease ran out included.
    async fn uncertain(&self) -> Result<u64, Error>;

    /// One page of records, newest first. It may hold records that the query does not ask for.
    async fn page(&self, query: &ListQuery) -> Result<RecordPage, Error>;

    /// What makes the server unsafe.
    async fn concerns(&self) -> Result<Vec<Concern>, Error>;

    /// Ids for throw-away operations. Probes with all of them reach every part of the server that
    /// can fail by itself.
    async fn probe_ids(&self) -> Result<Vec<[u8; 16]>, Error> {
        Ok(vec![probe::random()?])
    }

    /// A person knows that the server lost its records. False if it did not.
    async fn acknowledge(&self) -> Result<bool, Error>;

    /// The number of the server's clock that an operation goes by, below [`CLOCKS_MAX`].
    fn clock_of(&self, _id: OperationId) -> usize {
        0
    }

    /// Closes all connections.
    async fn close(&self);
}

/// The most clocks that a server can have: a cluster has one for each shard.
pub(crate) const CLOCKS_MAX: usize = 64;

/// One atomic step on one record.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Swap<'a> {
    /// The operation whose record it is.
    pub(crate) id: OperationId,
    /// What must be there for the write to be made.
    pub(crate) expected: Expected,
    /// The write.
    pub(crate) write: Write<'a>,
    /// Whether the caller will wait if it finds an attempt in flight. The server notes that, and
    /// notifies only where somebody waits.
    pub(crate) waits: bool,
    /// What the step is for.
    pub(crate) purpose: Purpose,
}

impl Swap<'_> {
    /// Reads the record of an operation and changes nothing.
    pub(crate) const fn read(id: OperationId) -> Self {
        Self {
            id,
            expected: Expected::NoRecord,
            write: Write::Nothing,
            waits: false,
            purpose: Purpose::Any,
        }
    }
}

/// What a step is for, where the server has to treat it in a special way.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// Nothing special.
    #[default]
    Any,
    /// It grants a claim. With `when_store_emptied = "stop"`, only a server that still has its
    /// records may do that.
    Grant,
    /// It renews a lease. It must not queue behind claims, or a busy process would lose its leases.
    Renewal,
    /// It withdraws a claim that may still be on its way to the server. It waits for a write that
    /// has begun and cannot be seen yet: a claim that came after the withdrawal would stay in
    /// flight.
    Withdrawal,
}

/// What must be there for a write to be made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Expected {
    /// No record.
    NoRecord,
    /// This revision of the record.
    Revision {
        revision: Revision,
        /// Whether the record's `changes_at` must have passed on the server's clock, or must not
        /// have: whichever the rule assumed.
        lapsed: bool,
    },
}

/// A write to a record.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Write<'a> {
    /// None: the record is only read.
    Nothing,
    /// The record is removed.
    Removal(Conditions),
    /// The record is replaced by this one.
    Record {
        /// Random and new. A call that finds its own revision there was sent twice, and is done.
        revision: Revision,
        /// The record as the codec encodes it.
        bytes: &'a [u8],
        /// The operation that the bytes hold, for indexes and for people who read the table.
        operation: &'a Operation,
        conditions: Conditions,
    },
}

impl Write<'_> {
    /// The conditions of the write, if there is one.
    pub(crate) const fn conditions(&self) -> Option<Conditions> {
        match self {
            Self::Nothing => None,
            Self::Removal(conditions) | Self::Record { conditions, .. } => Some(*conditions),
        }
    }
}

/// The conditions of a write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Conditions {
    /// The earliest time on the server's clock at which it may be made.
    pub(crate) not_before: Timestamp,
    /// The latest such time. The rule computed the write for a time between the two: outside of
    /// them a clock was set, or the call comes so late that its caller has given up.
    pub(crate) not_after: Timestamp,
    /// Whether it must be durable before the call returns.
    pub(crate) durable: bool,
    /// Whether it ends an attempt, or records that one has ended: waiters are notified.
    pub(crate) ends: bool,
}

/// Names one version of a record. It never occurs twice.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Revision(pub(crate) u64);

/// What came of a swap.
#[derive(Debug)]
pub(crate) enum SwapResult {
    /// The write was made, at this time on the server's clock.
    Done(Timestamp),
    /// Nothing was changed: something else was found than was expected.
    Refused(Found),
}

/// What a server has of an operation.
#[derive(Debug)]
pub(crate) struct Found {
    /// The time on the server's clock.
    pub(crate) at: Timestamp,
    /// The record, if there is one.
    pub(crate) stored: Option<StoredRecord>,
}

/// A record as a server has it.
#[derive(Debug)]
pub(crate) struct StoredRecord {
    pub(crate) revision: Revision,
    /// The record as the codec encoded it.
    pub(crate) bytes: Vec<u8>,
}

/// What one pass of expiry found on a server.
#[derive(Debug, Default)]
pub(crate) struct ExpiryPass {
    /// Settled records that were removed.
    pub(crate) removed: usize,
    /// Operations in flight or uncertain whose `changes_at` has passed. A rule has to decide what
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
    /// Where the next page begins, if there is one.
    pub(crate) next: Option<ListPosition>,
}
