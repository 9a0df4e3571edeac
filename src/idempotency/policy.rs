//! What a route wants done with its operations.

use std::time::Duration;

use http::HeaderName;

use crate::operation::Terms;
use crate::upstream::OutcomeRule;

/// What a route wants done with its operations.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Policy {
    /// Lease, attempt timeout, retention, hold.
    pub terms: Terms,
    /// Longest a sender is kept waiting, counted from its request; none: until the attempt ends.
    pub answer_within: Option<Duration>,
    /// What a copy does that meets an attempt in flight.
    pub when_in_flight: WhenInFlight,
    /// What happens without a store.
    pub when_store_fails: WhenStoreFails,
    /// Attempts of this route at a time.
    pub in_flight_max: usize,
    /// Which statuses mean what.
    pub outcome: OutcomeRule,
    /// The longest body of an answer that is kept for replays.
    pub body_bytes_max: usize,
    /// Headers that a replay does not carry, beside those it never does.
    pub drop_headers: Vec<HeaderName>,
}

/// What a copy does that meets an attempt in flight.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WhenInFlight {
    /// It is refused at once.
    Refuse,
    /// It waits for the outcome; beyond `waiters_max` of one operation it is refused.
    Wait {
        /// Copies of one operation that may wait at a time in this process.
        waiters_max: usize,
    },
}

/// What happens to a request that the store cannot take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WhenStoreFails {
    /// 503: the sender tries again later.
    Refuse,
    /// It is forwarded unprotected.
    Forward,
}
