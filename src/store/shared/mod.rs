//! The common part of the stores on a server. Several processes share such a store.
//!
//! This process applies the rules of [`crate::operation::state`] to the record that the server has.
//! The server then replaces exactly that record by the new one, in one atomic step. If it has
//! another record, it reports that record instead. So all stores use one set of rules, and a server
//! needs only one script for them.
//!
//! A step begins with an assumption: the server has the record that this process saw last, or no
//! record. Most assumptions are right, and then the step takes one round trip. After a wrong
//! assumption the rule is applied again, to the record that the server reported. That takes a
//! second round trip. No reply rests on an assumption alone: a rule that changes nothing is applied
//! to a record that the server has confirmed.
//!
//! | file | does |
//! | --- | --- |
//! | `store.rs` | [`SharedStore`]: applies rules and implements [`Store`](super::Store) |
//! | `server.rs` | [`RecordServer`]: what a server must be able to do |
//! | `assumption.rs`, `snapshots.rs` | assumptions, and the records that this process saw last |
//! | `clock.rs`, `window.rs` | the server's time, and the time at which a write may be made |
//! | `epoch.rs`, `looks.rs`, `guard.rs` | whether the server still has its records |
//! | `certificates.rs` | the TLS files of a connection |

mod assumption;
mod certificates;
mod clock;
mod epoch;
mod guard;
mod looks;
mod server;
mod snapshots;
mod store;
#[cfg(test)]
mod tests;
mod window;

pub use certificates::{Certificates, SetupError};
pub use epoch::{EPOCH_CHANGED, WhenEmptied};
pub(super) use epoch::{EpochMarker, EpochStatus};
pub(super) use server::{
    EncodedRecord, ExpiryPass, Found, RecordChange, RecordPage, RecordServer, Revision,
    StoredRecord, Swap, SwapResult,
};
pub(super) use store::SharedStore;
