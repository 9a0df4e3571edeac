//! The holder of a claim, and the state of an operation while its attempt is in flight.

use std::sync::Arc;

use super::{ClaimRequest, Lease, Settlement, State};
use crate::operation::{ClaimId, Durations, Timestamp};

/// The holder of a claim.
pub(super) struct Holder<'a> {
    pub(super) claim_id: ClaimId,
    /// The process.
    pub(super) name: &'a Arc<str>,
    pub(super) durations: &'a Durations,
    /// Whether a copy was refused since the claim.
    pub(super) copy_refused: bool,
}

impl<'a> Holder<'a> {
    const fn new(claim_id: ClaimId, name: &'a Arc<str>, durations: &'a Durations) -> Self {
        Self { claim_id, name, durations, copy_refused: false }
    }

    /// The state of an operation whose attempt begins at `now` and ends at `ends_at` at the latest.
    pub(super) fn in_flight(&self, ends_at: Timestamp, now: Timestamp) -> State {
        State::InFlight(Lease {
            claim_id: self.claim_id,
            holder: Arc::clone(self.name),
            expires_at: now.plus(self.durations.lease),
            ends_at,
            hold_for: self.durations.hold_for,
            copy_refused: self.copy_refused,
        })
    }
}

impl ClaimRequest {
    pub(super) const fn holder(&self) -> Holder<'_> {
        Holder::new(self.claim_id, &self.holder, &self.durations)
    }
}

impl Settlement {
    pub(super) const fn holder(&self) -> Holder<'_> {
        Holder::new(self.claim_id, &self.holder, &self.durations)
    }
}
