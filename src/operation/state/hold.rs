//! The changes that copies make in the record of an operation that is in flight or uncertain.

use std::mem;
use std::time::Duration;

use super::{
    Change, ClaimReply, ClaimRequest, Hold, Lease, LookupGrant, LookupLease, ReportedState, State,
};
use crate::operation::Timestamp;

impl Hold {
    /// Refuses a copy. The operation is held for longer, because the sender still sends copies.
    pub(super) fn refuse(&mut self, attempt: u32, now: Timestamp) -> ClaimReply {
        self.copy_refused = true;
        self.hold_longer(now);
        ReportedState::Uncertain { attempt, ends_in: now.until(self.ends_at) }.into()
    }

    /// Grants a look-up to a copy. No other copy may ask the receiver while `lease` lasts.
    pub(super) fn grant_look_up(
        &mut self,
        request: &ClaimRequest,
        granted: LookupGrant,
        lease: Duration,
        now: Timestamp,
    ) -> ClaimReply {
        self.hold_longer(now);
        let step = granted.step.clone();
        self.lookup = Some(LookupLease { id: request.claim_id, until: now.plus(lease), step });
        ClaimReply::Lookup(granted)
    }

    /// Notes that a copy was refused. Only the first note changes the record.
    pub(super) const fn mark_refused(&mut self) -> Change {
        let was_marked = mem::replace(&mut self.copy_refused, true);
        if was_marked { Change::None } else { Change::Lazy }
    }

    fn hold_longer(&mut self, now: Timestamp) {
        self.hold_until = self.hold_until.max(now.plus(self.hold_for));
    }
}

impl Lease {
    /// Notes that a copy was refused. Only the first note changes the record.
    pub(super) const fn mark_refused(&mut self) -> Change {
        let was_marked = mem::replace(&mut self.copy_refused, true);
        if was_marked { Change::None } else { Change::Volatile }
    }
}

impl State {
    /// Notes that a copy was refused, if the operation is in flight or uncertain.
    pub(super) const fn mark_refused(&mut self) -> Change {
        match self {
            Self::InFlight(lease) => lease.mark_refused(),
            Self::Uncertain(hold) => hold.mark_refused(),
            Self::Succeeded(_) | Self::Failed(_) | Self::Forgotten { .. } => Change::None,
        }
    }
}
