//! What a route wants done with its operations.

use std::time::Duration;

use http::HeaderName;

use super::lookup::LookupSettings;
use super::reference::Reference;
use crate::operation::Terms;
use crate::operation::state::IfUncertain;
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
    /// What becomes of an operation whose outcome is unknown.
    pub if_uncertain: IfUncertain,
    /// How the receiver is asked about one, if it can be.
    pub lookup: Option<LookupSettings>,
    /// Where an answer says what the receiver calls the operation.
    pub reference: Option<Reference>,
    /// The header that carries the key to the receiver.
    pub forward_key: Option<HeaderName>,
    /// What later copies of a success get.
    pub remember: Remember,
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

/// What later copies of a success get.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Remember {
    /// Its answer, until the retention has passed.
    Retention,
    /// A new attempt: only copies that came while it was in flight, and waited, get its answer. For
    /// senders whose events have no id.
    InFlight,
}

/// What happens to a request that the store cannot take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WhenStoreFails {
    /// 503: the sender tries again later.
    Refuse,
    /// It is forwarded unprotected.
    Forward,
}
