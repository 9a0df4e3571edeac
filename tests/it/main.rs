//! What Onceward promises, seen from outside: processes as they are shipped, between senders and
//! upstreams that do as they are told. The upstream's own count is the judge. `support` is the
//! harness.
//!
//! # The nine promises, and the files that keep them
//!
//! 1. **One at a time.** At most one attempt of an operation is in flight, in all processes that
//!    share a store: `in_flight.rs`, `shared/races.rs`.
//! 2. **Never again after success.** Once a success is recorded, no copy is forwarded until the
//!    retention has passed: `replay.rs`, `crash.rs`.
//! 3. **Unknown is not failed.** If a request may have reached the upstream and no complete answer
//!    came back, the outcome is uncertain, and the route's policy decides what happens next:
//!    `outcome/broken.rs`, `outcome/long.rs`, `lookup/`, `operations/decide.rs`.
//! 4. **Failed is free.** If the upstream answered with a failure, or provably nothing was sent,
//!    the next copy is a new attempt at once: `outcome/answered.rs`, `outcome/never_sent.rs`,
//!    `outcome/tls.rs`.
//! 5. **The sender's connection does not own the work.** Once its request is complete, the sender
//!    may hang up: `disconnect.rs`.
//! 6. **Recorded before answered.** The outcome is durable before the first byte of the answer goes
//!    to the sender: `replay.rs`, `crash.rs`, `store_fails.rs`.
//! 7. **A superseded holder changes nothing.** A write under a claim that is no longer current is
//!    refused: `shared/takeover.rs`, `operations/decide.rs`, `store_contract/settling.rs`.
//! 8. **Bytes are sacred.** Body, path, query and header values reach the upstream byte for byte,
//!    and a replay has the status and the body of the first answer: `forward.rs`,
//!    `signatures/raw_bytes.rs`, `replay.rs`.
//! 9. **Closed by default.** No store, no claim; no claim, no forward, unless the route says so:
//!    `store_fails.rs`, `shared/faults.rs`, `shared/emptied.rs`.
//!
//! # What else is promised
//!
//! - which requests are copies of each other: `keys.rs`, `senders.rs`; which route takes a request:
//!   `routes.rs`, `modes.rs`
//! - who sent a request, and what senders send: `signatures/`, `retry_status.rs`
//! - one event for several upstreams: `steps/`
//! - limits of memory, places and time: `limits/`
//! - upstreams as they are: `upstreams/`, `outcome/reused.rs`
//! - people who look and decide: `operations/`, `admin.rs`, `log.rs`
//! - the threads of a process, and its end: `threads.rs`, `shutdown.rs`
//! - what every store has to do, and how each of them fails: `store_contract/`; what two processes
//!   make of one store: `shared/`
//! - records that an older version has written: `older_records/`
//! - the same in front of handlers in one process: `layer.rs`
//! - what no sender and no upstream can bring about: `executor.rs`
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
mod older_records;
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
mod threads;
mod upstreams;
