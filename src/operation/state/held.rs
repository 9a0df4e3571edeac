//! The changes that copies make in the record of an uncertain operation.

use super::{Change, Claimed, Held, LookupGrant, LookupLease, OperationState};
use crate::operation::Timestamp;

impl Held {
    /// Refuses a copy. The operation is held for longer, because the sender still sends copies.
    pub(super) fn refuse(&mut self, attempt: u32, now: Timestamp) -> Claimed {
        self.copy_refused = true;
        self.hold_longer(now);
        OperationState::Uncertain { attempt, ends_in: now.until(self.ends_at) }.into()
    }

    /// Grants a look-up to a copy. No other copy may ask the receiver until the lease runs out.
    pub(super) fn grant_look_up(
        &mut self,
        attempt: u32,
        lease: LookupLease,
        now: Timestamp,
    ) -> Claimed {
        self.hold_longer(now);
        let step = lease.step.clone();
        self.lookup = Some(lease);
        Claimed::Lookup(LookupGrant { attempt, step })
    }

    fn hold_longer(&mut self, now: Timestamp) {
        self.hold_until = self.hold_until.max(now.plus(self.hold_for));
    }
}

/// Notes in the record that a copy was refused, if that is the case. Only the first note changes
/// the record.
pub(super) const fn note_refused(copy_refused: &mut bool, is_refused: bool) -> Change {
    let is_first = is_refused && !*copy_refused;
    *copy_refused |= is_first;
    if is_first { Change::Lazy } else { Change::None }
}
