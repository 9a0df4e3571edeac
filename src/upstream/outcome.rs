//! Reads an outcome from the status of a complete answer.

use http::StatusCode;

use crate::operation::Outcome;

/// The statuses that mean *succeeded* and *uncertain*. Every other status means *failed*.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OutcomeRule {
    /// The upstream did its work.
    pub succeeded: Vec<StatusRange>,
    /// The upstream may or may not have done its work.
    pub uncertain: Vec<StatusRange>,
}

impl OutcomeRule {
    /// The outcome that a complete answer with this status means.
    pub fn classify(&self, status: StatusCode) -> Outcome {
        // *Uncertain* comes first, so a 504 that `uncertain` names stays uncertain even if
        // `succeeded` has `5xx`.
        if self.uncertain.iter().any(|range| range.contains(status)) {
            Outcome::Uncertain
        } else if self.succeeded.iter().any(|range| range.contains(status)) {
            Outcome::Succeeded
        } else {
            Outcome::Failed
        }
    }
}

/// A range of statuses, both ends included: `200`, or `2xx`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StatusRange {
    /// The first status.
    pub first: u16,
    /// The last status.
    pub last: u16,
}

impl StatusRange {
    /// Whether the status is in the range.
    pub fn contains(self, status: StatusCode) -> bool {
        (self.first..=self.last).contains(&status.as_u16())
    }
}
