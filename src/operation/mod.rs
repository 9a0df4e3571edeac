//! What an operation is: plain values and the rules by which they change.
//!
//! Nothing here does I/O, waits, or reads a clock; the time is always an argument. The rules of
//! "once" are in [`state`]: every change of an operation is one of the functions there.
//!
//! ```text
//! (none) ----claim----> in_flight ----succeeded----> succeeded      replayed until the retention has passed
//!                        ^  |  \-----failed--------> failed         the next copy claims attempt n+1
//!                        |  \--uncertain / lease ran out--> uncertain
//!                        |                                   |  held until resolved, or looked up
//!                        +------ forgotten <-----------------+
//! ```

mod answer;
mod attempt;
mod attempt_log;
mod decision;
mod fingerprint;
mod id;
mod key;
pub mod state;
mod step;
mod time;
mod weight;

pub use answer::{AnswerBody, StoredAnswer};
pub use attempt::{Attempt, Outcome, Reason};
pub use attempt_log::AttemptLog;
pub use decision::{Decision, DecisionKind};
pub use fingerprint::{Fingerprint, FingerprintDigest};
pub use id::{ClaimId, OperationId, OperationIdParts};
pub use key::{Key, KeyKind, KeyPart};
pub use state::{State, StateName};
pub use step::{HeldStep, Plan, PlannedStep, Step, StepState};
pub use time::Timestamp;

use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};

/// The thing to be done once: one event on one route, and all that is remembered of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Operation {
    /// What was asked by the copy that made the latest claim.
    pub asked: Arc<OperationRequest>,
    /// When the first copy claimed it, on the store's clock.
    pub created_at: Timestamp,
    /// Where it stands.
    pub state: State,
    /// Every try at it: the first and the last ones in full, and their count.
    pub attempts: AttemptLog,
    /// What people and policies decided about it.
    pub decisions: Vec<Decision>,
    /// How it stands with each of its receivers, if it has several.
    pub steps: Vec<Step>,
}

/// What a request asks to have done: the identity of the operation, and its fingerprint.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OperationRequest {
    /// The one exact key of the operation in every store.
    pub id: OperationId,
    /// Name of the route.
    pub route: Arc<str>,
    /// HTTP method.
    pub method: String,
    /// Path as it was received.
    pub path: String,
    /// What identifies the operation on its route.
    pub key: Key,
    /// Digest of what was asked, so that one key cannot stand for two requests.
    pub fingerprint: Fingerprint,
    /// What its route does with operations.
    pub mode: RequestMode,
}

/// What a route did with its operations when one of them was asked for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum RequestMode {
    /// Each of them once.
    #[default]
    Enforce,
    /// Every copy was forwarded.
    Observe {
        /// Whether the copy was signed by its sender: forged ones are forwarded too.
        genuine: bool,
    },
}

/// The durations of a route that bind an operation once it is claimed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Terms {
    /// How long the right to finish lasts without a renewal.
    pub lease: Duration,
    /// The longest an attempt may take, counted from the claim.
    pub attempt_timeout: Duration,
    /// How long an outcome is remembered, counted from the settle.
    pub retention: Duration,
    /// How long an uncertain operation is held after the last copy that was refused.
    pub hold_for: Duration,
}
