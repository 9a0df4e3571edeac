//! The admin API on the wire: the bodies of calls and of answers, for the control plane that serves
//! them and for the commands that call it. Times are written as RFC 3339 in UTC.
//!
//! The words of a call, such as an outcome, are enums: the control plane refuses a word that it
//! does not know. The words of an answer, such as a state, are text, so that a command that is
//! older than the process it calls still shows a word that it does not know.

use http::HeaderName;
use serde::{Deserialize, Serialize};

use crate::operation::Key;
use crate::words::enum_of_words;

/// An operation, as the store remembers it.
#[derive(Debug, Serialize, Deserialize)]
pub struct Operation {
    /// The operation id.
    pub operation: String,
    /// The name of its route.
    pub route: String,
    /// The method of the first request.
    pub method: String,
    /// The path of the first request.
    pub path: String,
    /// Its idempotency key.
    pub key: Key,
    /// Its state: `in_flight`, `uncertain`, `succeeded`, `failed` or `forgotten`.
    pub state: String,
    /// A digest of the request; none of a forgotten operation.
    pub fingerprint: Option<String>,
    /// When it was first claimed.
    pub created_at: String,
    /// When it succeeded or failed.
    pub settled_at: Option<String>,
    /// When its lease or its retention ends.
    pub expires_at: String,
    /// The lease of the attempt in flight.
    pub lease: Option<Lease>,
    /// The answer that copies get, or that left the outcome uncertain.
    pub answer: Option<Answer>,
    /// The first and the last attempts.
    pub attempts: Vec<Attempt>,
    /// How many attempts were made in all.
    pub attempts_total: u32,
    /// What policies, look-ups and operators decided.
    pub decisions: Vec<Decision>,
    /// The steps of an event that goes to several upstreams.
    #[serde(default)]
    pub steps: Vec<Step>,
    /// Whether its route only observed at the latest attempt.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub observed: bool,
}

/// The lease of an attempt in flight.
#[derive(Debug, Serialize, Deserialize)]
pub struct Lease {
    /// The process that makes the attempt.
    pub holder: String,
    /// When the lease ends, unless its heartbeat renews it.
    pub expires_at: String,
    /// When the attempt ends at the latest.
    pub ends_at: String,
}

/// A stored answer, without its body.
#[derive(Debug, Serialize, Deserialize)]
pub struct Answer {
    /// Its status.
    pub status: u16,
    /// Its headers.
    pub headers: Vec<(String, String)>,
    /// The length of its body.
    pub body_bytes: usize,
    /// Whether the body was too long to be stored.
    pub body_omitted: bool,
}

/// An attempt.
#[derive(Debug, Serialize, Deserialize)]
pub struct Attempt {
    /// Its number, counted from 1.
    pub number: u32,
    /// The step that it was made at.
    pub step: Option<String>,
    /// The process that made it.
    pub holder: String,
    /// When it was claimed.
    pub started_at: String,
    /// When it ended.
    pub ended_at: Option<String>,
    /// Whether any of the request was sent; none if nobody knows.
    pub sent: Option<bool>,
    /// Its outcome: `succeeded`, `failed` or `uncertain`.
    pub outcome: Option<String>,
    /// Why it has this outcome, such as `answered` or `timed-out`.
    pub reason: Option<String>,
    /// The status of the upstream's answer.
    pub status: Option<u16>,
    /// What the upstream calls its work, such as the id of a payment.
    pub reference: Option<String>,
    /// The header that the upstream got the idempotency key in.
    pub forward_key: Option<String>,
}

/// A step of an event.
#[derive(Debug, Serialize, Deserialize)]
pub struct Step {
    /// Its name.
    pub name: String,
    /// The operation id that its upstream gets as `Onceward-Operation`.
    pub operation: String,
    /// Its state.
    pub state: String,
}

/// A decision about an operation.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Decision {
    /// When it was made.
    pub at: String,
    /// Who made it: [`OPERATOR`], alone or with a name behind it, or the setting of a policy.
    pub by: String,
    /// What was decided, such as `hold` or `forgotten`.
    pub decision: String,
    /// Why.
    pub reason: String,
    /// Where to find out more, such as the number of a ticket.
    pub reference: Option<String>,
}

/// How a decision record names whoever decides through this API.
pub const OPERATOR: &str = "operator";

/// A page of a list of operations: of [`Operation`], or of JSON that is passed on as it is.
#[derive(Debug, Serialize, Deserialize)]
pub struct Page<O> {
    /// The operations, newest first. There may be none although there is a next page.
    pub operations: Vec<O>,
    /// The `cursor` of the next page.
    pub next: Option<String>,
    /// The names of the configured routes, where the list is empty and was asked for a route that
    /// is not one of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub routes: Option<Vec<String>>,
}

enum_of_words! {
    /// The outcome that an operator says an operation has. Its words stand in JSON and on the
    /// command line.
    #[derive(Serialize, Deserialize, clap::ValueEnum)]
    #[serde(rename_all = "lowercase")]
    pub enum Outcome {
        /// The upstream did it: later copies are answered and not forwarded
        Succeeded = "succeeded",
        /// The upstream did not do it: the next copy is a new attempt
        Failed = "failed",
    }
}

/// A state in which an operation can be resolved.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum ResolvableState {
    /// Nobody knows whether the upstream did it
    Uncertain,
    /// The upstream answered with a failure, or nothing was sent
    Failed,
}

/// The body of `POST /api/operations/{id}/resolve`.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Resolve {
    /// How the operation ended.
    pub outcome: Outcome,
    /// Why the operator says so.
    pub reason: String,
    /// Where to find out more.
    pub reference: Option<String>,
    /// The name of the operator. Nobody checks it.
    pub by: Option<String>,
    /// The latest attempt that the operator knows of. After a later one nothing is decided.
    pub attempt: Option<u32>,
    /// The state that the operator knows of. In another one nothing is decided.
    pub state: Option<ResolvableState>,
    /// The status that later copies get.
    pub status: Option<u16>,
    /// The body that later copies get.
    pub body: Option<String>,
}

/// The body of `DELETE /api/operations/{id}`.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Forget {
    /// Why the operator forgets the operation.
    pub reason: String,
    /// The name of the operator. Nobody checks it.
    pub by: Option<String>,
}

/// The answer to [`Resolve`] and [`Forget`].
#[derive(Debug, Serialize, Deserialize)]
pub struct Decided {
    /// The operation id.
    pub operation: String,
    /// The state that the decision leads to.
    pub state: String,
}

/// The body of `POST /api/operations/resolve`: resolves the operations of one route that are in one
/// state and were created before a time.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ResolveMany {
    /// The name of the route.
    pub route: String,
    /// The state of the operations.
    pub state: ResolvableState,
    /// The time before which they were created.
    pub before: String,
    /// How they ended.
    pub outcome: Outcome,
    /// Why the operator says so.
    pub reason: String,
    /// Where to find out more.
    pub reference: Option<String>,
    /// The name of the operator. Nobody checks it.
    pub by: Option<String>,
    /// Whether to show only which operations would be resolved.
    pub dry_run: bool,
    /// How many operations to resolve at most.
    pub limit: Option<usize>,
    /// The `next` of an earlier answer.
    pub cursor: Option<String>,
    /// The operations that an earlier dry run showed. No other operation is resolved.
    pub operations: Option<Vec<Seen>>,
}

/// An operation, and the attempt at which the operator saw it.
#[derive(Debug, Serialize, Deserialize)]
pub struct Seen {
    /// The operation id.
    pub operation: String,
    /// The number of its latest attempt.
    pub attempt: u32,
}

/// The answer to [`ResolveMany`].
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct ResolvedMany {
    /// Whether this was a dry run.
    pub dry_run: bool,
    /// The operations, each with what became of it.
    pub operations: Vec<Resolved>,
    /// How many were resolved.
    pub done: usize,
    /// How many were not resolved because they had changed.
    pub refused: usize,
    /// Whether more may be left, because of the limit or the time, or because the store failed.
    pub left: bool,
    /// The `cursor` of the next call.
    pub next: Option<String>,
    /// The names of the configured routes, where there are no operations and the route is not one
    /// of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub routes: Option<Vec<String>>,
}

/// What became of one of many operations.
#[derive(Debug, Serialize, Deserialize)]
pub struct Resolved {
    /// The operation id.
    pub operation: String,
    /// Its idempotency key; none from a process that is older than the command.
    #[serde(default)]
    pub key: Option<Key>,
    /// The number of its latest attempt.
    pub attempt: u32,
    /// When it was first claimed.
    pub created_at: String,
    /// What became of it.
    pub result: ResolveResult,
}

enum_of_words! {
    /// What became of one of many operations, in a word.
    #[derive(Serialize, Deserialize)]
    #[serde(rename_all = "lowercase")]
    pub enum ResolveResult {
        /// It would be resolved: this was a dry run.
        Would = "would",
        /// It was resolved.
        Done = "done",
        /// It has changed since the operator saw it.
        Refused = "refused",
        /// The store did not say whether it was resolved. No further operation was begun.
        #[serde(other)]
        Unknown = "unknown",
    }
}

/// The body of `POST /api/store/acknowledge`.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Acknowledge {
    /// The name of the operator. Nobody checks it.
    pub by: Option<String>,
}

/// The header of an answer that says that the store came back empty, as far as the process knows,
/// and that nobody has acknowledged that. Its value is [`EMPTIED`].
pub const STORE: HeaderName = HeaderName::from_static("onceward-store");

/// See [`STORE`].
pub const EMPTIED: &str = "emptied";

/// The answer to [`Acknowledge`].
#[derive(Debug, Serialize, Deserialize)]
pub struct Acknowledged {
    /// False if the store had lost nothing, so that there was nothing to acknowledge.
    pub acknowledged: bool,
}
