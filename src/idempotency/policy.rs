//! The settings of a route for the treatment of its operations.

use std::time::Duration;

use http::HeaderName;

use super::lookup::LookupSettings;
use super::reference::Reference;
use crate::operation::Durations;
use crate::operation::state::{IfInFlight, IfUncertain, Remember};
use crate::upstream::OutcomeRule;

/// The settings of a route for the treatment of its operations.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Policy {
    /// Lease, attempt timeout, retention and hold.
    pub durations: Durations,
    /// The longest time that a sender is kept waiting, counted from the arrival of its request.
    /// None: the sender waits until the attempt ends.
    pub answer_within: Option<Duration>,
    /// What happens to a copy of an operation in flight.
    pub if_in_flight: IfInFlight,
    /// How many copies of one operation may wait in this process. Further copies are refused.
    pub waiters_max: usize,
    /// The settings for the receiver, on a route without steps.
    pub receiver: ReceiverPolicy,
    /// Which copies of a success get its answer.
    pub remember: Remember,
    /// What happens to a request if the store fails.
    pub when_store_fails: WhenStoreFails,
    /// How many attempts of this route may be in flight at a time.
    pub in_flight_max: usize,
    /// The longest body of an answer, in bytes, that is kept for replays.
    pub body_bytes_max: usize,
    /// Headers that a replay does not carry, in addition to those that no replay carries.
    pub drop_headers: Vec<HeaderName>,
}

/// The settings for the receiver of a route, or of one of its steps.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReceiverPolicy {
    /// What happens to a copy of an operation, or of a step, that is uncertain.
    pub if_uncertain: IfUncertain,
    /// How the receiver is asked about what is uncertain; none if it cannot be asked.
    pub lookup: Option<LookupSettings>,
    /// Which statuses mean which outcome.
    pub outcome: OutcomeRule,
    /// Where an answer has the receiver's reference for the operation.
    pub reference: Option<Reference>,
    /// The header that carries the key to the receiver, if there is one.
    pub forward_key: Option<HeaderName>,
}

/// What happens to a request if the store fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WhenStoreFails {
    /// The request is refused with 503, so that its sender tries again later.
    Refuse,
    /// The request is forwarded without a claim, so its operation may be done more than once.
    Forward,
}
