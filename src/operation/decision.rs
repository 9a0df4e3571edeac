//! What operators, look-ups and the route's settings decided about an operation.

use serde::{Deserialize, Serialize};

use super::time::Timestamp;
use crate::words::enum_of_words;

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

enum_of_words! {
    /// The kinds of decisions. Their words stand in JSON.
    #[derive(Serialize, Deserialize)]
    #[serde(rename_all = "snake_case")]
    pub enum DecisionKind {
        /// The operation is uncertain and is not sent again.
        Hold = "hold",
        /// An operator said that the operation was done.
        ResolvedSucceeded = "resolved_succeeded",
        /// An operator said that the operation was not done.
        ResolvedFailed = "resolved_failed",
        /// An operator freed the operation for a new attempt.
        Forgotten = "forgotten",
        /// The operation is uncertain and is sent again.
        Retried = "retried",
        /// The receiver was asked whether the uncertain operation was done.
        LookedUp = "looked_up",
    }
}
