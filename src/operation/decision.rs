//! What operators, look-ups and the route's settings decided about an operation.

use serde::{Deserialize, Serialize};

use super::time::Timestamp;

/// One decision about an operation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Decision {
    /// When the decision was made.
    pub at: Timestamp,
    /// The operator, the setting or the look-up that decided.
    pub by: String,
    /// What was decided.
    pub kind: DecisionKind,
    /// Why it was decided, in words.
    pub reason: String,
    /// A reference by which the operation is found in another system, such as the number of a
    /// payment.
    pub reference: Option<String>,
}

/// The kinds of decisions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DecisionKind {
    /// The operation is uncertain and is not sent again.
    Hold,
    /// An operator said that the operation was done.
    ResolvedSucceeded,
    /// An operator said that the operation was not done.
    ResolvedFailed,
    /// An operator freed the operation for a new attempt.
    Forgotten,
    /// The operation is uncertain and is sent again.
    Retried,
    /// The receiver was asked whether the uncertain operation was done.
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
