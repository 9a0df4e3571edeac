//! Where operations live.
//!
//! One contract for all stores. `tests/it/store_contract/` holds each of them to it.
//!
//! * **S1** *Claim* is one atomic step that grants, or reports the state: succeeded (with the
//!   answer), in flight, uncertain, mismatched.
//! * **S2** *Renew* and *settle* need the current claim id; anything else changes nothing and says
//!   `superseded`. Every call may be repeated safely with the same claim id.
//! * **S3** Attempt numbers grow for as long as the operation is remembered, across processes and
//!   restarts; claim ids never repeat.
//! * **S4** Time is the store's own clock.
//! * **S5** A lease that ran out is seen as uncertain by the next reader, with no background job.
//! * **S6** An unreadable record is an error, never a free key. Records carry a version and a
//!   checksum; every version ever written stays readable.
//! * **S7** Nothing past its retention is ever seen; expiry never removes an operation in flight,
//!   nor an uncertain one before its hold has ended.
//! * **S8** A granted claim, a settle, a resolve and a forget are durable before anybody acts on
//!   them or reads them. Renewals need not be.
//! * **S9** Contention is a normal answer, not an error; every call has a deadline.
//! * **S10** A waiter learns of the end by notification.
//! * **S11** Two processes on one embedded directory: the second refuses to start. Opening it makes
//!   what an earlier process had in flight uncertain at once.

mod call;
mod certificates;
mod codec;
mod concern;
pub mod embedded;
mod endings;
mod epoch;
mod holds;
pub mod listing;
mod measured;
pub mod memory;
pub mod postgres;
mod probe;
pub mod redis;
mod shared;

pub use call::{IfUnwritten, RuleCall, StoreExt};
pub use certificates::{Certificates, SetupError};
pub use codec::Corrupt;
pub use concern::Concern;
pub use endings::Watch;
pub use epoch::WhenEmptied;
pub use listing::{ListPage, ListPosition, ListQuery};
pub use measured::Measured;

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;

use crate::operation::state::OperationState;
use crate::operation::{Operation, OperationId, OperationRequest};

/// Which store is used, and how.
#[derive(Debug, Clone)]
pub enum Settings {
    /// On disk, for one machine.
    Embedded(embedded::Settings),
    /// On a Redis or Valkey server, for several machines.
    Redis(redis::Settings),
    /// In a PostgreSQL database, for several machines.
    Postgres(postgres::Settings),
    /// In the process, for tests and trials.
    Memory,
}

/// The operations that are remembered.
///
/// They change by rules alone, each applied in one atomic step: see [`StoreExt::apply`].
#[async_trait]
pub trait Store: Send + Sync + std::fmt::Debug + 'static {
    /// Applies a rule to its operation in one atomic step, and returns once the change is as durable
    /// as it must be. Callers use [`StoreExt::apply`], which has the type of the answer.
    async fn call(&self, call: Arc<dyn RuleCall>) -> Result<(), Error>;

    /// What a copy of a success is told, where that is known without asking anybody: a claim would
    /// say the same.
    fn recall(&self, _asked: &OperationRequest) -> Option<OperationState> {
        None
    }

    /// Reads an operation, as it stands now. Writes nothing.
    async fn get(&self, id: OperationId) -> Result<Option<Operation>, Error>;

    /// Hears of the end of an operation's attempt, from this call on. A lease that runs out is not
    /// announced: a waiter claims again when the rest of the lease that it was told has passed.
    async fn watch(&self, id: OperationId) -> Result<Watch, Error>;

    /// How many operations are uncertain. One whose hold has ended counts until a claim or a sweep
    /// comes upon it.
    async fn uncertain(&self) -> Result<u64, Error>;

    /// A page of the operations that are remembered. Writes nothing.
    async fn list(&self, listing: &ListQuery) -> Result<ListPage, Error>;

    /// One pass of expiry over at most `limit` records that are due.
    async fn sweep(&self, limit: usize) -> Result<SweepReport, Error>;

    /// Claims, renews, settles and forgets a throw-away operation.
    async fn probe(&self) -> Result<(), Error>;

    /// What makes the store unsafe, as it is set up now.
    async fn concerns(&self) -> Result<Vec<Concern>, Error> {
        Ok(Vec::new())
    }

    /// A person knows that the store came back without what it was told: claims are granted again.
    /// False if there was nothing to acknowledge.
    async fn acknowledge(&self) -> Result<bool, Error> {
        Ok(false)
    }

    /// Waits until everything that was answered is on disk, and lets go of the store.
    async fn close(&self);
}

/// What one pass of expiry did.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SweepReport {
    /// Records that are gone.
    pub removed: usize,
    /// Operations that were given up since the last pass, because they were uncertain until
    /// `hold_for` had passed; by this pass, or by a claim that came first.
    pub holds_ended: usize,
    /// Whether more are due.
    pub more: bool,
}

/// A store could not do what it was asked for.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The call was turned away before it took effect.
    #[error("the store is unavailable: {0}")]
    Unavailable(&'static str),
    /// No reply came in time. The call may have taken effect, or may yet.
    #[error("the store did not answer within {0:?}")]
    NoReply(Duration),
    /// It is done, and too few replicas have said that they have it: a failover may lose it.
    #[error("{had} of the {wanted} replicas that must have it have said so in time")]
    TooFewReplicas {
        /// As many as are set.
        wanted: usize,
        /// As many as have said so.
        had: usize,
    },
    /// The store's own machinery failed. The call may have taken effect.
    #[error("the store failed")]
    Failed(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// The record of this operation cannot be read; it is not taken for a free key.
    #[error("the record of `{0}` is unreadable")]
    Unreadable(OperationId, #[source] Corrupt),
    /// The store came back without what it was told, and nobody has acknowledged it.
    #[error("the store came back empty: see `onceward store acknowledge`")]
    Emptied,
    /// An attempt at this operation was met, in flight or uncertain; then the call failed.
    #[error("an attempt at the operation was met before the call failed")]
    AttemptExists(#[source] Box<Self>),
}

impl Error {
    /// Whether the call may have taken effect all the same.
    pub fn may_have_applied(&self) -> bool {
        match self {
            Self::NoReply(_) | Self::TooFewReplicas { .. } | Self::Failed(_) => true,
            Self::Unavailable(_) | Self::Unreadable(..) | Self::Emptied => false,
            Self::AttemptExists(error) => error.may_have_applied(),
        }
    }

    /// Whether it says nothing of the operation: no attempt at it was met, and the store has lost
    /// nothing that it was told.
    pub const fn leaves_state_unknown(&self) -> bool {
        match self {
            Self::Unavailable(_)
            | Self::NoReply(_)
            | Self::TooFewReplicas { .. }
            | Self::Failed(_) => true,
            Self::Unreadable(..) | Self::Emptied | Self::AttemptExists(_) => false,
        }
    }
}
