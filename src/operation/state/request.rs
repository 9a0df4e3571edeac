//! The request of a claim.

use std::sync::Arc;
use std::time::Duration;

use super::{IfInFlight, IfUncertain, Remember, ReportedState};
use crate::operation::{ClaimId, Durations, Operation, Plan, Subject};

/// Asks for the right to attempt an operation.
#[derive(Debug, Clone)]
pub struct ClaimRequest {
    /// What the request is about.
    pub subject: Arc<Subject>,
    /// The id of the claim, new and random. A call that is repeated with the same claim id is the
    /// same claim.
    pub claim_id: ClaimId,
    /// The process that asks.
    pub holder: Arc<str>,
    /// The durations that bind the operation.
    pub durations: Durations,
    /// Whether something may be granted. If `false`, the request learns the state, and a refusal is
    /// noted in the record all the same.
    pub may_grant: bool,
    /// What the caller does if an attempt is in flight.
    pub if_in_flight: IfInFlight,
    /// What happens if the operation is uncertain, by the policy of the route.
    pub if_uncertain: IfUncertain,
    /// Whether the caller can ask the receiver about an uncertain operation.
    pub may_look_up: bool,
    /// Which copies of a success get its answer.
    pub remember: Remember,
    /// The number of the attempt that the caller has waited for, if it has.
    pub waited_for: Option<u32>,
    /// The header that carries the key to the receiver, if the route sets one.
    pub forward_key: Option<Arc<str>>,
    /// The steps of the route; none on a route without steps.
    pub plan: Option<Arc<Plan>>,
    /// The attempt that the caller's own process is making at this operation, if it is making one.
    pub own_attempt: Option<OwnAttempt>,
}

/// An attempt in flight, as the process knows it that is making it. The process needs no record to
/// know it, so it counts even if the store has lost the record.
#[derive(Debug, Clone)]
pub struct OwnAttempt {
    /// The operation that is attempted.
    pub subject: Arc<Subject>,
    /// The claim of the attempt.
    pub claim_id: ClaimId,
    /// The attempt's number.
    pub number: u32,
    /// How long a copy should wait before it asks again.
    pub left: Duration,
}

impl OwnAttempt {
    /// Whether the store has lost the record of this attempt. `found` is what the store has: no
    /// record, or one that was begun anew and does not know the attempt.
    pub(super) fn is_lost(&self, found: Option<&Operation>) -> bool {
        found.is_none_or(|operation| {
            let attempts = &operation.attempts;
            !attempts.knows(self.claim_id) && !attempts.may_have_dropped(self.number)
        })
    }

    /// The state of the operation for a request that would get the next attempt.
    pub(crate) fn state_for(&self, subject: &Subject) -> ReportedState {
        let attempt = self.number;
        if self.subject.fingerprint.matches(&subject.fingerprint) {
            ReportedState::InFlight { attempt, lease_left: self.left }
        } else {
            ReportedState::Mismatched { attempt }
        }
    }
}

impl ClaimRequest {
    /// A claim that may be granted, on a route without steps and with the built-in settings: copies
    /// in flight are refused, an uncertain operation is held, a success is replayed.
    pub fn new(
        subject: Arc<Subject>,
        claim_id: ClaimId,
        holder: Arc<str>,
        durations: Durations,
    ) -> Self {
        Self {
            subject,
            claim_id,
            holder,
            durations,
            may_grant: true,
            if_in_flight: IfInFlight::Refuse,
            if_uncertain: IfUncertain::Hold,
            may_look_up: true,
            remember: Remember::Retention,
            waited_for: None,
            forward_key: None,
            plan: None,
            own_attempt: None,
        }
    }
}
