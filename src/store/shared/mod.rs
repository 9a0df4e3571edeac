//! What the stores on a server have in common. Several processes share such a store.
//!
//! The rules of [`crate::operation::state`] are applied here, in this process, to the record that
//! the server has. The server then replaces exactly that record by the new one, in one atomic step,
//! or reports what it has instead. So there is one set of rules for all stores, and a server needs
//! one script.
//!
//! A step begins with an assumption about the server: it has no record, or the one that this
//! process saw last. Most assumptions are right, and then the step takes one round trip. After a
//! wrong one the rule is applied again, to the record that the server reported, which takes a
//! second round trip. No answer rests on an assumption alone: where a rule changes nothing, it is
//! applied to a record that the server has confirmed.
//!
//! | file | does |
//! | --- | --- |
//! | `store.rs` | [`SharedStore`]: applies rules, and is the [`Store`](super::Store) |
//! | `server.rs` | [`RecordServer`]: what a server must be able to do |
//! | `assumption.rs`, `snapshots.rs` | what is assumed, and the records seen last |
//! | `clock.rs`, `window.rs` | the server's time, and when a write may be made |
//! | `epoch.rs` | whether the server still has its records |
//! | `certificates.rs` | the TLS files of a connection |

mod assumption;
mod certificates;
mod clock;
mod epoch;
mod observed;
mod server;
mod snapshots;
mod store;
mod window;

pub use certificates::{Certificates, SetupError};
pub use epoch::WhenEmptied;
pub(super) use epoch::{EPOCH_CHANGED, EpochMarker, EpochStatus, EpochTracker};
pub(super) use server::{
    Conditions, Expected, ExpiryPass, Found, Purpose, RecordPage, RecordServer, Revision,
    StoredRecord, Swap, SwapResult, Write,
};
pub(super) use store::SharedStore;
