//! Operations: plain values, and the rules by which they change.
//!
//! Nothing here does I/O, waits, or reads a clock; the time is always an argument. Every change of
//! an operation is one of the rules in [`state`], which has a table of them.

mod answer;
mod attempt;
mod attempt_log;
mod copies;
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
pub use step::{Plan, PlannedStep, Step, StepHold, StepState};
pub use time::Timestamp;

use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};

/// One event on one route, which is the thing to be done once, and all that is remembered of it.
///
/// Stores keep it with the fields in this order: see `store::codec` before a change.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Operation {
    /// What the request of the latest attempt was about.
    pub subject: Arc<Subject>,
    /// When the operation was claimed first, on the store's clock.
    pub created_at: Timestamp,
    /// The state of the operation.
    pub state: State,
    /// The attempts: the first and the last ones in full, and how many there were.
    pub attempts: AttemptLog,
    /// The decisions of operators, of look-ups and of the route's settings about the operation.
    pub decisions: Vec<Decision>,
    /// The state of each step; empty on a route without steps.
    pub steps: Vec<Step>,
}

/// What a request is about: the identity of its operation, and the fingerprint of the request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Subject {
    /// The operation's id, which is its key in every store.
    pub id: OperationId,
    /// Name of the route.
    pub route: Arc<str>,
    /// HTTP method.
    pub method: String,
    /// Path as it was received.
    pub path: String,
    /// The idempotency key, which identifies the operation on its route.
    pub key: Key,
    /// A digest of the request, so that one key cannot stand for two requests.
    pub fingerprint: Fingerprint,
    /// Whether the route enforces or only observes.
    pub mode: RequestMode,
}

/// The mode of the route when the request arrived.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum RequestMode {
    /// The route does each operation once.
    #[default]
    Enforce,
    /// The route forwards every copy, and only reports how it would treat the copy.
    Observe {
        /// Whether the request's signature was verified. A route that observes forwards forged
        /// requests too.
        genuine: bool,
    },
}

/// The durations of a route that bind an operation once it is claimed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Durations {
    /// How long a lease lasts without a renewal.
    pub lease: Duration,
    /// The longest time that an attempt may take, counted from the claim.
    pub attempt_timeout: Duration,
    /// How long an outcome is remembered, counted from the settle.
    pub retention: Duration,
    /// How long an uncertain operation is held after the last refused copy.
    pub hold_for: Duration,
}

impl Operation {
    /// A new record without an attempt. The rule that creates the record sets the state.
    fn begun(subject: &Arc<Subject>, now: Timestamp) -> Self {
        Self {
            subject: Arc::clone(subject),
            created_at: now,
            state: State::Forgotten { expires_at: now },
            attempts: AttemptLog::default(),
            decisions: Vec::new(),
            steps: Vec::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An enum names its words once for what is shown, and once for what is serialized.
    #[test]
    fn a_word_is_serialized_as_it_is_shown() {
        for outcome in Outcome::ALL {
            assert_eq!(serde_json::to_value(outcome).unwrap(), outcome.as_str());
        }
        for kind in DecisionKind::ALL {
            assert_eq!(serde_json::to_value(kind).unwrap(), kind.as_str());
        }
        for from in KeyKind::ALL {
            assert_eq!(serde_json::to_value(from).unwrap(), from.as_str());
        }
    }
}
