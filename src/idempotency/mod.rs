//! What "once" means: an operation is claimed, attempted and recorded, and copies get its answer.
//!
//! [`Executor::execute`] takes a [`KeyedRequest`] and gives a [`Disposition`]. The table shows
//! the path between the two, with the values and the file of each stage:
//!
//! ```text
//! recall    KeyedRequest -> Disposition         a success that is in memory         executor.rs
//! claim     KeyedRequest -> ClaimResult         one atomic call of the store        claim_call.rs
//! wait      KeyedRequest -> ClaimResult         while another attempt is in flight  wait.rs
//! look up   KeyedRequest -> LookUpResult        asks the receiver: was it done?     look_up.rs
//! attempt   Claim, KeyedRequest                 at one receiver, or at its steps    attempt.rs, steps/
//! forward   Request -> Exchange                 sends once, before the lease ends   forward.rs
//! classify  ExchangeEnd -> Ending, Forwarded    for the record, for the sender      classify.rs
//! record    Claim, Ending -> Settled            tries until the store has answered  record.rs
//! answer    Disposition                         through the pending reply           pending_reply.rs
//! ```
//!
//! # Promises
//!
//! Each promise is listed with the file that keeps it. The states of an operation and the rules
//! between them are in [`operation::state`](crate::operation::state).
//!
//! 1. *One at a time.* An attempt needs a `Claim`, which only a grant of the store makes:
//!    `claim_call.rs`. Its heartbeat keeps the lease while the attempt is in flight: `lease.rs`.
//! 2. *Never again after success.* If the operation has succeeded, the store answers a claim with
//!    the stored answer. `disposition.rs` makes a replay of that answer.
//! 3. *Unknown is not failed.* An attempt is uncertain from its first written byte until a complete
//!    answer has come: `forward.rs`, `classify.rs`. A route's look-up asks the receiver:
//!    `look_up.rs`.
//! 4. *Failed is free.* A failure is recorded as such, and one waiter makes the next attempt at
//!    once: `wait.rs`.
//! 5. *The sender's connection does not own the work.* The work runs in a task of its own. A
//!    sender that hangs up does not interrupt it: `execute.rs`.
//! 6. *Recorded before answered.* The sender has its whole answer only after the outcome is
//!    recorded, unless the store fails until the lease ends: `record.rs`. `long.rs` does this for
//!    answers that are too long to keep, and `steps/run.rs` for steps.
//! 7. *A superseded holder changes nothing.* Every write names the claim: `claim.rs`. Half of
//!    the lease must be left just before the first byte is sent: `forward.rs`.
//! 8. *Bytes are sacred.* The stored answer has the status and the body of the upstream's answer:
//!    `classify.rs`. The module `proxy` makes the requests for the upstream.
//! 9. *Closed by default.* Nothing is forwarded without a claim, unless the route allows it:
//!    `execute.rs`. A claim whose reply was lost counts as not granted and is withdrawn:
//!    `withdraw.rs`.
//!
//! Two kinds of requests take other paths: those that are not deduplicated (`pass.rs`), and those
//! of a route that only observes (`observe.rs`).

mod attempt;
mod claim;
mod claim_call;
mod classify;
mod disposition;
mod execute;
mod executor;
mod flow;
mod forward;
mod insist;
mod lease;
mod long;
mod look_up;
mod lookup;
mod note;
mod observe;
mod pass;
mod pending_reply;
mod policy;
mod receiver;
mod record;
mod reference;
mod request;
mod route_handler;
mod steps;
mod wait;
mod waiters;
mod withdraw;

pub use disposition::{Disposition, Forwarded};
pub use executor::Executor;
pub use lookup::{Condition, LookupSettings, Scalar, UrlTemplate, UrlTemplateError};
pub use policy::{Policy, WhenStoreFails};
pub use receiver::{StepPolicy, StepsPolicy};
pub use reference::Reference;
pub use request::{KeyedRequest, StepRequests};
pub use route_handler::RouteHandler;

pub use crate::operation::state::{IfInFlight, Remember};
