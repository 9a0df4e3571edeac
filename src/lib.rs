//! Onceward: an HTTP reverse proxy that forwards each webhook once.
//!
//! A library user needs four types: [`Config`] reads the configuration, [`App`] runs it, [`Proxy`]
//! is the data plane as a [`tower::Service`], and [`OnceLayer`] puts it in front of handlers in the
//! same process. All other modules are the inside. Their shape may change with every version.
//!
//! # The path of a request
//!
//! ```text
//!           +------------------ proxy -----------------+
//! sender -> select ---> receive ---> verify ---> identify ->
//! gives     Selected    Received     Verified    Identity
//!           +--------------- idempotency --------------+     + proxy -+
//!        -> claim ----> forward ---> classify -> record ---> respond -> sender
//! gives     Claim       Exchange     Ending      Settled     Answer
//! ```
//!
//! A step that stops early goes straight to `respond`, the only place that names a status code.
//! From `claim` on, no sender owns the work: if its sender hangs up, it goes on in a task of its own.
//!
//! # The states of an operation
//!
//! ```text
//! (none) --claim--> in_flight --+--> succeeded   copies get the stored answer
//!                       ^       +--> failed      the next copy claims attempt n+1
//!                       |       +--> uncertain   held, unless the route looks up or retries
//!                       +--claim-- failed, forgotten, uncertain (after a look-up, or retried)
//! ```
//!
//! An attempt whose lease runs out is uncertain. The late outcome of that attempt settles it, or a
//! look-up that finds it done. An operator resolves what is uncertain or failed.
//! What is not in flight can be forgotten, and is removed when its retention or hold has passed.
//!
//! # Words, each with one meaning
//!
//! | word | meaning |
//! | --- | --- |
//! | sender | a system that sends webhooks, such as a payment gateway |
//! | provider, preset | a kind of sender: how it names and signs its events; a built-in one |
//! | signing method | how a sender signs: the scheme, where the signature stands, what it covers |
//! | handshake | a request by which a sender tries an address, and which is no event |
//! | route | a public entry (host, path, methods) with its upstream and settings |
//! | upstream | the HTTP server behind a route, or behind one of its steps |
//! | receiver, step | an upstream with the rules for its answers; one of several on a route |
//! | event | what a sender tells with a request |
//! | operation | one event on one route: the thing to be done once |
//! | idempotency key | what identifies an operation on its route |
//! | operation id | the name of an operation in every store: `op_` and 32 hex digits |
//! | subject | what a request is about: its operation (id, route, key), method, path, fingerprint |
//! | fingerprint | a digest of a request, so that one key cannot stand for two requests |
//! | copy | a further request about a known operation |
//! | attempt | one try at an operation, numbered from 1 |
//! | claim | taking an operation atomically; its random claim id is what later writes name |
//! | grant | the store's reply to the one request whose claim succeeds |
//! | lease, heartbeat | the time-limited right to finish an attempt; what renews it |
//! | holder, waiter | the process that has the lease; a copy that waits for the attempt in flight |
//! | outcome | how an attempt ended: `succeeded`, `failed` or `uncertain` |
//! | hold, retention | to keep an uncertain operation back; how long an outcome is remembered |
//! | look-up, decision | asking the upstream: was it done?; what that, a person or a policy said |
//! | record, revision | what a store keeps of an operation; the number of one version of it |
//! | reply | what a store says to a call; an upstream answers |
//! | rule, settle | a change of a record, such as a claim; to write how an attempt ended |
//! | lapse, sweep | what time alone changes in a record; one pass over the records that are due |
//! | answer, replay | the response of the upstream; a stored answer that is given to a copy |
//! | disposition | what happened to a request, such as `executed`, `replayed` or `refused` |
//! | refusal, problem | why a request got no operation; the document that tells the sender so |
//! | selector | where in a request a value is found, such as `header:NAME` or `json:/id` |
//! | limit, place, budget | a named bound; the right to be one of so many; the bytes in memory |
//! | concern | why a process may not be ready, or why a store may lose what it acknowledged |
//!
//! # Where to read
//!
//! In this order: `operation::state` (all that can happen to an operation), `idempotency` (what
//! "once" means), `proxy` (the path of a request), `store` (what a store must do). Below, modules
//! are declared lowest first. Each uses only those of the groups above its own.
#![doc = include_str!("../docs/guarantees.md")]

mod words;

#[doc(hidden)]
pub mod operation;

#[doc(hidden)]
pub mod clock;
#[doc(hidden)]
pub mod json;
#[doc(hidden)]
pub mod problem;
#[doc(hidden)]
pub mod secret;

#[doc(hidden)]
pub mod telemetry;

#[doc(hidden)]
pub mod budget;

#[doc(hidden)]
pub mod provider;
#[doc(hidden)]
pub mod listener;
pub mod store;
#[doc(hidden)]
pub mod upstream;

#[doc(hidden)]
pub mod idempotency;

#[doc(hidden)]
pub mod admin;
#[doc(hidden)]
pub mod proxy;

mod layer;

pub mod config;

pub mod app;

#[doc(hidden)]
pub mod cli;

pub use app::App;
pub use config::Config;
pub use layer::{Once, OnceLayer};
#[doc(inline)]
pub use proxy::Proxy;
