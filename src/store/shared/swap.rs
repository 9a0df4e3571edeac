//! What a server does for a shared store: it puts one record in the place of another, atomically.

use async_trait::async_trait;

use crate::operation::{Operation, OperationId, Timestamp};
use crate::store::listing::{ListPosition, ListQuery};
use crate::store::{Concern, Error, probe};

/// The records of a server, and the atomic steps on them.
///
/// Every call is one round trip. A call that is sent twice does what it does once.
#[async_trait]
pub(crate) trait Records: Send + Sync + std::fmt::Debug + 'static {
    /// Puts a record in the place of the one that is expected, or says what is there instead.
    async fn swap(&self, swap: Swap<'_>) -> Result<Swapped, Error>;

    /// Removes at most `limit` settled records whose retention has passed.
    async fn expire(&self, limit: usize) -> Result<Expired, Error>;

    /// How many operations are uncertain, those whose lease ran out included.
    async fn uncertain(&self) -> Result<u64, Error>;

    /// Records in the order of a list. It may hold some that the listing does not ask for.
    async fn page(&self, listing: &ListQuery) -> Result<Page, Error>;

    /// What makes the server unsafe.
    async fn concerns(&self) -> Result<Vec<Concern>, Error>;

    /// Ids of throw-away operations: tried with each of them, the server works in all of its parts
    /// that may fail by themselves.
    async fn to_try(&self) -> Result<Vec<[u8; 16]>, Error> {
        Ok(vec![probe::random()?])
    }

    /// A person knows that the server came back empty. False if it did not.
    async fn acknowledge(&self) -> Result<bool, Error>;

    /// Which of the server's clocks an operation goes by, below [`CLOCKS_MAX`].
    fn clock_of(&self, _id: OperationId) -> usize {
        0
    }

    /// Lets go of all connections.
    async fn close(&self);
}

/// Clocks that a server may have: a cluster has one for each of its parts.
pub(crate) const CLOCKS_MAX: usize = 64;

/// One atomic step on one record.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Swap<'a> {
    /// Whose record.
    pub(crate) id: OperationId,
    /// What must be there, for anything to change.
    pub(crate) expected: Expected,
    /// What is done then.
    pub(crate) change: Put<'a>,
    /// If something else is there, and an attempt is in flight: somebody waits for its end.
    pub(crate) waits: bool,
    /// What it is for.
    pub(crate) purpose: Purpose,
}

impl Swap<'_> {
    /// A look at the record of an operation, whatever is there.
    pub(crate) const fn look(id: OperationId) -> Self {
        Self {
            id,
            expected: Expected::Nothing,
            change: Put::Nothing,
            waits: false,
            purpose: Purpose::Any,
        }
    }
}

/// What a step is for, where that asks something of the server.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// It asks nothing.
    #[default]
    Any,
    /// A claim is granted: only by a server that has still what it was told, if that is wanted.
    Grant,
    /// It must not wait behind others: a lease depends on it.
    Renewal,
    /// Nothing of before may come behind it: a change that has begun and cannot be seen yet is waited
    /// for.
    Withdrawal,
}

/// What must be there for a change to be made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Expected {
    /// No record.
    Nothing,
    /// This revision of it. `lapsed` says on which side of the time at which it changes by itself
    /// the server's clock must be: the rule has assumed so.
    Revision {
        /// As it was put.
        revision: Revision,
        /// The server's time must have come to the record's `changes_at`; or must not have.
        lapsed: bool,
    },
}

/// A change of a record.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Put<'a> {
    /// None: it is only looked at.
    Nothing,
    /// The record goes.
    Removal(Conditions),
    /// This record is put there.
    Record {
        /// Random and new: a call that finds it there was sent twice, and has been done.
        revision: Revision,
        /// The record, as the codec writes it.
        bytes: &'a [u8],
        /// What it says, for indexes and for people.
        operation: &'a Operation,
        /// Under which conditions.
        conditions: Conditions,
    },
}

/// The conditions of a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Conditions {
    /// The earliest time on the server's clock at which it may be made.
    pub(crate) not_before: Timestamp,
    /// The latest such time. The change was worked out for a time between the two: beyond them a
    /// clock was set, or the call is so late that nobody waits for it any more.
    pub(crate) not_after: Timestamp,
    /// It must be durable before the call returns.
    pub(crate) durable: bool,
    /// An attempt ends by it, or is found to have ended: waiters are told.
    pub(crate) ends: bool,
}

/// Names one state of a record. Never the same twice.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Revision(pub(crate) u64);

/// What came of a swap.
#[derive(Debug)]
pub(crate) enum Swapped {
    /// It is done, at this time on the server's clock.
    Done(Timestamp),
    /// Nothing was changed.
    Refused(Seen),
}

/// What a server has of an operation.
#[derive(Debug)]
pub(crate) struct Seen {
    /// When, on the server's clock.
    pub(crate) at: Timestamp,
    /// The record, if there is one.
    pub(crate) stored: Option<Stored>,
}

/// A record as a server has it.
#[derive(Debug)]
pub(crate) struct Stored {
    /// Names it.
    pub(crate) revision: Revision,
    /// The record, as the codec wrote it.
    pub(crate) bytes: Vec<u8>,
}

/// What one pass of expiry found.
#[derive(Debug, Default)]
pub(crate) struct Expired {
    /// Settled records that are gone.
    pub(crate) removed: usize,
    /// Operations in flight or uncertain that have changed by themselves: a rule must look at them.
    pub(crate) lapsed: Vec<OperationId>,
    /// Whether more are due.
    pub(crate) more: bool,
}

/// A part of a list, newest first.
#[derive(Debug)]
pub(crate) struct Page {
    /// When, on the server's clock.
    pub(crate) at: Timestamp,
    /// The records.
    pub(crate) records: Vec<(OperationId, Vec<u8>)>,
    /// Where the list goes on, if it does.
    pub(crate) next: Option<ListPosition>,
}
