//! The list of decisions in a record.

use crate::operation::{Decision, DecisionKind, Reason, Timestamp};

/// How many decisions are kept from either end of the list.
const DECISIONS_KEPT: usize = 32;

/// The name of the route's setting that decides about uncertain operations.
const WHEN_UNCERTAIN: &str = "when_uncertain";

/// Adds a decision. A long list keeps its first and its latest decisions.
pub(super) fn add(decisions: &mut Vec<Decision>, decision: Decision) {
    // A sender that never stops sending must not make the record grow without end.
    if decisions.len() >= 2 * DECISIONS_KEPT {
        decisions.remove(DECISIONS_KEPT);
    }
    decisions.push(decision);
}

/// A decision that the route's setting made about an uncertain operation, or about one step of it.
pub(super) fn by_setting(
    kind: DecisionKind,
    step: Option<&str>,
    reason: Reason,
    at: Timestamp,
) -> Decision {
    let reason = match step {
        Some(step) => format!("{step}: {reason}"),
        None => reason.as_str().to_owned(),
    };
    Decision { at, by: WHEN_UNCERTAIN.to_owned(), kind, reason, reference: None }
}
