//! What Onceward promises, one file for each part of it.
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test that cannot go on has failed"
)]
#![expect(clippy::float_cmp, reason = "metrics count in whole numbers")]
#![expect(unreachable_pub, reason = "the harness is read as if it were a library")]

mod store_contract;
mod support;

mod admin;
mod crash;
mod disconnect;
mod forward;
mod in_flight;
mod keys;
mod layer;
mod limits;
mod log;
mod lookup;
mod modes;
mod operations;
mod outcome;
mod executor;
mod replay;
mod retry_status;
mod routes;
mod senders;
mod shared;
mod shutdown;
mod signatures;
mod steps;
mod store_fails;
mod upstreams;
