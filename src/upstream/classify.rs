//! What a complete answer means.

use http::StatusCode;

use super::settings::OutcomeRule;
use crate::operation::Outcome;

/// The outcome that a route reads from the status of a complete answer.
pub fn outcome(rule: &OutcomeRule, status: StatusCode) -> Outcome {
    if rule.uncertain.iter().any(|range| range.contains(status)) {
        Outcome::Uncertain
    } else if rule.succeeded.iter().any(|range| range.contains(status)) {
        Outcome::Succeeded
    } else {
        Outcome::Failed
    }
}
