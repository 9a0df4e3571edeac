//! The rule for a claim under which nothing is sent: the claim is settled as never sent.

use super::lapse::lapse;
use super::{Change, ClaimRequest, Rule, RuleName, State, Transition, steps};
use crate::operation::{ClaimId, Durations, Operation, OperationId, Outcome, Reason, Timestamp};

/// Settles a claim as never sent. The caller may not know whether the store has granted the claim,
/// because the reply was lost. If the store has not, nothing changes.
#[derive(Debug, Clone, Copy)]
pub struct Withdrawal {
    /// The operation.
    pub operation: OperationId,
    /// The claim.
    pub claim_id: ClaimId,
    /// The durations of the claim.
    pub durations: Durations,
    /// Whether a record that the claim has begun stays, with the line of its attempt. It does not
    /// if the caller's own process is making another attempt whose record the store has lost: the
    /// end of that attempt would change nothing in a record that does not know it.
    pub leaves_record: bool,
}

impl ClaimRequest {
    /// The withdrawal of this claim.
    pub fn withdrawal(&self) -> Withdrawal {
        let &Self { ref subject, claim_id, durations, .. } = self;
        Withdrawal { operation: subject.id, claim_id, durations, leaves_record: true }
    }
}

/// in flight, uncertain -> failed, for the current claim. The attempt log says that nothing was
/// sent under the claim, even if the claim is no longer current.
impl Rule for Withdrawal {
    type Reply = ();
    const NAME: RuleName = RuleName::Withdraw;

    fn operation(&self) -> OperationId {
        self.operation
    }

    fn apply(&self, found: Option<Operation>, now: Timestamp) -> Transition<()> {
        let mut lapsed = lapse(found, now);
        let change = lapsed.operation.as_mut().map_or(Change::None, |found| {
            let ended = end_look_up(found, self.claim_id);
            let freed = free(found, self, now);
            let marked = mark_never_sent(found, self.claim_id, now);
            ended.max(freed).max(marked)
        });
        let is_own = |found: &mut Operation| {
            found.attempts.kept().all(|attempt| attempt.claim_id == self.claim_id)
        };
        if !self.leaves_record && change == Change::Durable {
            lapsed.operation.take_if(is_own);
        }
        lapsed.replied(change, ())
    }
}

/// Ends the look-up if the claim was granted one. Nobody makes that look-up, and without an end
/// other copies would wait until its lease runs out.
fn end_look_up(found: &mut Operation, claim_id: ClaimId) -> Change {
    if let State::Uncertain(hold) = &mut found.state
        && hold.lookup.as_ref().is_some_and(|lookup| lookup.id == claim_id)
    {
        hold.lookup = None;
        return Change::Durable;
    }
    Change::None
}

/// Frees the operation if the claim is current.
fn free(found: &mut Operation, withdrawal: &Withdrawal, now: Timestamp) -> Change {
    let Withdrawal { claim_id, durations, .. } = withdrawal;
    if found.state.current_claim() != Some(*claim_id) {
        return Change::None;
    }
    // Nothing was sent under the claim, so the next copy may make an attempt at once.
    if !steps::withdraw(found, *claim_id, durations, now) {
        found.state = State::failed(Some(*claim_id), durations.retention, now);
    }
    Change::Durable
}

/// Notes in the attempt log that nothing was sent under the claim.
fn mark_never_sent(found: &mut Operation, claim_id: ClaimId, now: Timestamp) -> Change {
    let mut change = Change::None;
    let lines = found.attempts.all_of(claim_id);
    // The withdrawal is repeated until the store has replied for long enough. It must not write the
    // record each time.
    for line in lines.filter(|line| line.reason != Some(Reason::Withdrawn)) {
        line.end(Outcome::Failed, Reason::Withdrawn, now);
        line.sent = false;
        change = Change::Lazy;
    }
    change
}
