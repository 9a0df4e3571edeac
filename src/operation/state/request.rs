//! The request of a claim.

use std::sync::Arc;

use super::{IfInFlight, IfUncertain, Remember};
use crate::operation::{ClaimId, Durations, Plan, Subject};

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
        }
    }
}
