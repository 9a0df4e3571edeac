//! Stores remember operations. This is the contract that every store keeps.
//!
//! A store has one record for each operation. Only the rules of [`crate::operation::state`] change
//! it. [`Store::call`] applies one rule to one record. A call is:
//!
//! * **Atomic.** It finds the record, applies the rule and writes the result in one step. No other
//!   call sees or changes the record in between, whichever process makes it.
//! * **On the store's clock.** Machines whose clocks differ agree on the end of a lease.
//! * **As durable as the rule's `Change` says** (`transition.rs`). `Durable`: it returns once the
//!   record would survive what the store promises to survive. `Lazy`, `Volatile`: it may return
//!   before, and a volatile change may be lost with the process that has the operation in flight.
//!   `None`: nothing is written, and the reply rests only on records that are durable.
//! * **Repeatable.** A call may be repeated. With one claim id its rule takes effect once.
//! * **Bounded.** A call ends within a time limit. An attempt in flight is a reply, not an error.
//!
//! And every store promises: a read shows what `state::lapse` makes of a record at that time, and
//! needs no background job for it. After its lease an attempt is uncertain, and after its retention
//! or hold a record is gone. Expiry removes only those. Records of older versions stay readable.
//!
//! # What may fail
//!
//! | [`Error`] | means | took effect |
//! | --- | --- | --- |
//! | `Unavailable` | the store turned the call away | no |
//! | `NoReply` | no reply came within the time limit | perhaps |
//! | `TooFewReplicas` | the change is made, but a failover may lose it | yes |
//! | `Failed` | the connection, the server or the disk failed | perhaps |
//! | `Unreadable` | the record is damaged; a store never takes it for a free key | no |
//! | `Emptied` | the server lost its records; see [`WhenEmptied`] | no |
//! | `TablesGone` | a part of the server's tables is gone | no |
//! | `AttemptExists` | another of these, while an attempt is known to exist | as for that one |
//!
//! A claim that failed is no grant. The caller withdraws it if it may have taken effect.
//!
//! # The stores
//!
//! | store | for | keeps a record as | the atomic step |
//! | --- | --- | --- | --- |
//! | [`memory`] | tests and trials | an entry of a map | `memory.rs`, under one lock |
//! | [`embedded`] | one machine | a row of a database on disk | `embedded/writer.rs`, one thread |
//! | [`redis`] | several machines | a hash on the server | `redis/swap.lua`, in one script |
//! | [`postgres`] | several machines | a row of a table | `postgres/*_swap*.sql`, in one function |
//!
//! Redis and PostgreSQL share `shared/`. `tests/it/store_contract/` holds all four to the contract.

mod cache;
mod call;
#[doc(hidden)]
pub mod codec;
mod concern;
pub mod embedded;
mod error;
mod list;
mod measured;
pub mod memory;
pub mod postgres;
mod probe;
mod random;
pub mod redis;
mod settings;
mod shared;
mod sweep;
mod watch;

pub use call::{IfUnwritten, RuleCall, StoreExt};
pub use codec::Corrupt;
pub use concern::Concern;
pub use error::Error;
pub use list::{ListPage, ListPosition, ListQuery};
pub use measured::Measured;
pub(crate) use random::random;
pub use settings::Settings;
pub use shared::{Certificates, EPOCH_CHANGED, SetupError, WhenEmptied};
pub use sweep::SweepReport;
pub use watch::Watch;

use std::sync::Arc;

use async_trait::async_trait;

use crate::operation::{Operation, OperationId, Subject, state::ReportedState};

/// A store of operations.
#[async_trait]
pub trait Store: Send + Sync + std::fmt::Debug + 'static {
    /// Applies a rule to its operation. Callers use [`StoreExt::apply`], which returns the reply.
    async fn call(&self, call: Arc<dyn RuleCall>) -> Result<(), Error>;

    /// Returns the reply that a claim would get if the operation has succeeded and this process can
    /// tell without waiting.
    fn recall(&self, _subject: &Subject) -> Option<ReportedState> {
        None
    }

    /// Reads an operation as it is now. Writes nothing.
    async fn get(&self, id: OperationId) -> Result<Option<Operation>, Error>;

    /// Returns a watch that notices every end of an attempt of this operation from now on.
    async fn watch(&self, id: OperationId) -> Result<Watch, Error>;

    /// Counts the uncertain operations. Those whose lease ran out are among them.
    async fn uncertain(&self) -> Result<u64, Error>;

    /// Returns one page of the remembered operations, newest first. Writes nothing.
    async fn list(&self, query: &ListQuery) -> Result<ListPage, Error>;

    /// Expires at most `limit` records that are due.
    async fn sweep(&self, limit: usize) -> Result<SweepReport, Error>;

    /// Claims, renews, settles and forgets a throw-away operation.
    async fn probe(&self) -> Result<(), Error>;

    /// Returns the reasons why the store, as it is set up now, may lose operations.
    async fn concerns(&self) -> Result<Vec<Concern>, Error> {
        Ok(Vec::new())
    }

    /// Grants claims again, because a person knows of a loss of records. False: there was no loss.
    async fn acknowledge(&self) -> Result<bool, Error> {
        Ok(false)
    }

    /// Closes the store, once everything to which it replied is as durable as promised.
    async fn close(&self);
}
