//! The work of a server for a shared store. It swaps one record for another, atomically.

use async_trait::async_trait;

use crate::operation::{Operation, OperationId, Timestamp};
use crate::store::list::{ListPosition, ListQuery};
use crate::store::{Concern, Error, probe};

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
        Ok(vec![probe::random()?])
    }

    /// Notes that a person knows of a loss of records. Returns false if the server lost none.
    async fn acknowledge(&self) -> Result<bool, Error>;

    /// Returns the number of the clock that counts for an operation, which is below [`CLOCKS_MAX`].
    fn clock_of(&self, _id: OperationId) -> usize {
        0
    }

    /// Closes all connections.
    async fn close(&self);
}

/// The most clocks that a server can have. A cluster has one for each shard.
pub(crate) const CLOCKS_MAX: usize = 64;

/// One atomic step on one record.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Swap<'a> {
    /// The operation whose record the step concerns.
    pub(crate) id: OperationId,
    /// The record that must be there before the write is made.
    pub(crate) expected: Expected<'a>,
    /// The write.
    pub(crate) write: Write<'a>,
    /// Whether the caller will wait if it finds an attempt in flight. The server notes this,
    /// because it sends notifications only of operations that somebody waits for.
    pub(crate) waits: bool,
    /// The purpose of the step.
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

/// The purpose of a step, if the server must treat the step in a special way.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// No special purpose.
    #[default]
    Any,
    /// The step grants a claim. With `when_store_emptied = "stop"`, only a server that still has
    /// its records may make it.
    Grant,
    /// The step renews a lease. It must not queue behind claims, because a busy process would then
    /// lose its leases.
    Renewal,
    /// The step withdraws a claim that may still be on its way to the server. It waits for a write
    /// that has begun but cannot be seen yet. Otherwise the write of that claim could end after the
    /// withdrawal, and the claim would stay in flight.
    Withdrawal,
}

/// The record that must be there before a write is made.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Expected<'a> {
    /// No record.
    NoRecord,
    /// This revision of the record.
    Revision {
        revision: Revision,
        /// The operation in the record. From it follows in which indexes the operation is.
        operation: &'a Operation,
        /// Whether the record's `changes_at` must have passed on the server's clock, as the rule
        /// assumed. If false, it must not have passed.
        lapsed: bool,
    },
}

/// A write to a record.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Write<'a> {
    /// No write. The record is only read.
    Nothing,
    /// The record is removed.
    Removal(Conditions),
    /// The record is replaced by this one.
    Record {
        /// A new random revision. If a call finds its own revision on the server, it was sent twice
        /// and is already done.
        revision: Revision,
        /// The record as the codec encodes it.
        bytes: &'a [u8],
        /// The operation in the bytes. Indexes use its fields, and people read them in the table.
        operation: &'a Operation,
        conditions: Conditions,
    },
}

impl Write<'_> {
    /// Returns the conditions of the write, if there is a write.
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
    /// The earliest time on the server's clock at which the write may be made.
    pub(crate) not_before: Timestamp,
    /// The latest time on the server's clock at which the write may be made. The rule computed the
    /// write for a time between the two. At any other time, either somebody has set a clock, or the
    /// call is so late that its caller has given up.
    pub(crate) not_after: Timestamp,
    /// Whether the write must be durable before the call returns.
    pub(crate) durable: bool,
    /// Whether the write ends an attempt, or records that one has ended. If so, the server notifies
    /// waiters.
    pub(crate) ends: bool,
}

/// The name of one version of a record. No two versions have the same name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Revision(pub(crate) u64);

/// The result of a swap.
#[derive(Debug)]
pub(crate) enum SwapResult {
    /// The write was made, at this time on the server's clock.
    Done(Timestamp),
    /// Nothing was changed, because the server did not have what was expected.
    Refused(Found),
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
    /// The position behind which the next page begins, if there is one.
    pub(crate) next: Option<ListPosition>,
}
