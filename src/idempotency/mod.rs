//! What "once" means: an operation is claimed, attempted and recorded, and copies get its answer.
//!
//! [`Executor::execute`] takes a [`KeyedRequest`] and gives a [`Disposition`]. These are the steps
//! between the two, with their values and their files. Recall needs no request for the upstream, so
//! the proxy calls it before it makes a `KeyedRequest`. A copy that waits calls it again.
//!
//! ```text
//! recall   Subject -> Disposition            a success that is in memory        executor.rs
//! claim    KeyedRequest -> ClaimResult       one atomic call of the store       claim_call.rs
//! wait     KeyedRequest -> ClaimResult       while another attempt is in flight wait.rs
//! look up  KeyedRequest -> LookupResult      asks the receiver: was it done?    lookup/
//! attempt  Claim, KeyedRequest               at one receiver, or at its steps   attempt.rs, steps/
//! forward  Request -> Exchange, NoAnswer     sends once, before the lease ends  forward.rs
//! classify Exchange -> Ending, Forwarded     for the record, for the sender     classify.rs
//! record   Claim, Ending -> Settled          tries until the store has replied  record.rs
//! answer   Disposition                       to a sender that still waits       waiting_sender.rs
//! ```
//!
//! A sender that has waited for `answer_within` is told to come back. The work goes on.
//!
//! # Where a copy is answered
//!
//! These files decide what a copy gets. `proxy::respond` names the status for it.
//!
//! | its operation | the copy | file |
//! | --- | --- | --- |
//! | in flight | waits, or is told to come back | `wait.rs`, else `execute.rs` |
//! | succeeded | gets the stored answer | `executor.rs` from memory, else `execute.rs` |
//! | failed, forgotten, gone | makes the next attempt | `attempt.rs` |
//! | uncertain, held | is told so | `execute.rs` |
//! | uncertain, retried | makes the next attempt | `attempt.rs` |
//! | uncertain, looked up | asks the receiver, and gets what follows from that | `lookup/` |
//! | of another fingerprint | is told so, unless the operation is free (failed, forgotten) | `execute.rs` |
//! | unknown: no reply, or no place | is refused, or passes unprotected | `execute.rs` |
//!
//! # Promises
//!
//! Each promise is listed with the file that keeps it. The states of an operation and the rules
//! between them are in [`operation::state`](crate::operation::state).
//!
//! 1. *One at a time.* An attempt needs a `Claim`, which only a grant of the store makes:
//!    `claim_call.rs`. Its heartbeat keeps the lease while the attempt is in flight: `lease.rs`. A
//!    process knows its own attempts even if the store has lost their records: `own_attempts.rs`.
//! 2. *Never again after success.* The store answers a claim on a success with the stored answer:
//!    `execute.rs` gives it to the sender.
//! 3. *Unknown is not failed.* An attempt is uncertain as soon as a byte was written and until a
//!    complete answer has come, or if the status of the answer says so: `forward.rs`,
//!    `classify.rs`. A route's look-up asks the receiver: `lookup/`.
//! 4. *Failed is free.* A failure is recorded as such, and one waiter makes the next attempt at
//!    once: `wait.rs`.
//! 5. *The sender's connection does not own the work.* When a sender hangs up, the work on its
//!    request goes on in a task of its own: `work.rs`.
//! 6. *Recorded before answered.* `record.rs`, for answers too long to keep `long.rs`, for steps
//!    `steps/run.rs`.
//! 7. *A superseded holder changes nothing.* Every write names the claim: `claim.rs`. Just before
//!    the first byte, half of the lease must be left, or the lease is renewed: `forward.rs`.
//! 8. *Bytes are sacred.* The stored answer has the status and the body of the first one:
//!    `classify.rs`. Requests are made in `proxy`.
//! 9. *Closed by default.* Without a claim nothing is forwarded, unless the route says so
//!    (`when_store_fails`) and the error hides no attempt: `execute.rs`. A claim whose reply was lost
//!    is no grant, and is withdrawn: `withdraw.rs`.
//!
//! Two kinds of requests take other paths: those that are not deduplicated (`pass.rs`), and those
//! of a route that only observes (`observe.rs`).
//!
//! A route's settings are in `policy.rs`, `receiver.rs`, `reference.rs` and `lookup/`.
//! `route_handler.rs` holds them together for the route.

mod attempt;
mod claim;
mod claim_call;
mod classify;
mod disposition;
mod execute;
mod executor;
mod forward;
mod insist;
mod lease;
mod long;
mod lookup;
mod end_log;
mod observe;
mod own_attempts;
mod pass;
mod policy;
mod receiver;
mod record;
mod reference;
mod relay;
mod request;
mod route_handler;
mod steps;
mod wait;
mod waiters;
mod waiting_sender;
mod withdraw;
mod work;

pub use disposition::{Disposition, Forwarded};
pub use executor::Executor;
pub use lookup::{Condition, LookupSettings, Scalar, UrlTemplate, UrlTemplateError};
pub use policy::{Policy, ReceiverPolicy, WhenStoreFails};
pub use receiver::{StepPolicy, StepsPolicy};
pub use reference::Reference;
pub use request::{KeyedRequest, StepRequests};
pub use route_handler::RouteHandler;

pub use crate::operation::state::{IfInFlight, Remember};
