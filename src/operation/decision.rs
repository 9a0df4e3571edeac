//! What was decided about an operation, by people and by policies.

use serde::{Deserialize, Serialize};

use super::time::Timestamp;

/// What was decided about an operation, apart from its attempts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Decision {
    /// When.
    pub at: Timestamp,
    /// Who or what decided.
    pub by: String,
    /// What was decided.
    pub kind: DecisionKind,
    /// Why, in the decider's words.
    pub reason: String,
    /// Something to find it by elsewhere, such as a payment's number.
    pub reference: Option<String>,
}

/// The decisions that can be made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DecisionKind {
    /// Its outcome is unknown: it is not sent again.
    Hold,
    /// It was done after all.
    ResolvedSucceeded,
    /// It was not done.
    ResolvedFailed,
    /// It counts as never seen.
    Forgotten,
    /// Its outcome is unknown, and it is sent again.
    Retried,
    /// Its outcome was unknown, and the receiver was asked about it.
    LookedUp,
}

impl DecisionKind {
    /// The word used in JSON.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Hold => "hold",
            Self::ResolvedSucceeded => "resolved_succeeded",
            Self::ResolvedFailed => "resolved_failed",
            Self::Forgotten => "forgotten",
            Self::Retried => "retried",
            Self::LookedUp => "looked_up",
        }
    }
}
