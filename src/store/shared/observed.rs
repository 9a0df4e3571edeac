//! Remembers whether a claim saw an attempt.

use std::sync::atomic::{AtomicBool, Ordering};

use crate::operation::state::{Call, Transition};
use crate::operation::{Operation, OperationId, State, Timestamp};
use crate::store::{IfUnwritten, RuleCall};

/// A claim that remembers whether it was applied to an operation in flight or uncertain.
#[derive(Debug)]
pub(super) struct ObservedClaim<'a> {
    claim: &'a dyn RuleCall,
    attempt_seen: AtomicBool,
}

impl<'a> ObservedClaim<'a> {
    pub(super) const fn new(claim: &'a dyn RuleCall) -> Self {
        Self { claim, attempt_seen: AtomicBool::new(false) }
    }

    /// Whether any record to which the claim was applied was in flight or uncertain.
    pub(super) fn attempt_seen(&self) -> bool {
        self.attempt_seen.load(Ordering::Relaxed)
    }
}

impl RuleCall for ObservedClaim<'_> {
    fn kind(&self) -> Call {
        self.claim.kind()
    }

    fn operation(&self) -> OperationId {
        self.claim.operation()
    }

    fn waits(&self) -> bool {
        self.claim.waits()
    }

    fn apply(&self, found: Option<Operation>, now: Timestamp) -> Transition<IfUnwritten> {
        let is_open =
            |found: &Operation| matches!(found.state, State::InFlight(_) | State::Uncertain(_));
        self.attempt_seen.fetch_or(found.as_ref().is_some_and(is_open), Ordering::Relaxed);
        self.claim.apply(found, now)
    }
}
