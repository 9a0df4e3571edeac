//! What the sender of an event with several receivers gets.

use super::super::claim::Claim;
use super::super::disposition::Disposition;
use super::super::{Executor, Handling, Keyed, Reply};
use super::Steps;
use super::run::{Ran, Work, of_stored};
use crate::operation::Outcome;
use crate::operation::state::{Advanced, EventEnd};

impl Executor {
    /// Makes the attempt that was claimed: runs the steps that have begun, and what follows.
    pub(in crate::idempotency) async fn attempt_steps(
        &self,
        mut claim: Claim,
        keyed: Keyed,
        (handling, steps): (&Handling, &Steps),
        reply: Reply,
    ) {
        let _counted = self.metrics.in_flight_guard();
        let begun = std::mem::take(&mut claim.begun);
        let lease = claim.lease();
        let operation = keyed.asked.id;
        let attempt = Some(claim.attempt);
        let in_flight = || {
            let retry_after = lease.left();
            Disposition::InFlight { operation, attempt, retry_after, own: true }
        };
        let work = Work { claim: &claim, keyed: &keyed, handling, steps, reply: &reply };
        let answer = async {
            if steps.plan.at_once {
                return self.at_once(work, begun).await;
            }
            self.in_order(work, begun.into_iter().next()?).await
        };
        let answer = tokio::select! {
            biased;
            answer = answer => answer,
            never = reply.remind(in_flight) => match never {},
        };
        claim.finish();
        // A step that the route does not have any more never begins.
        reply.send(answer.unwrap_or(Disposition::lost(operation)));
    }

    /// The answer to the sender once nothing of its attempt runs any more.
    pub(super) async fn answer(&self, work: Work<'_>, mut ran: Vec<Ran>) -> Disposition {
        let operation = work.keyed.asked.id;
        let attempt = work.claim.attempt;
        let mut ended = None;
        let mut lost = false;
        for advanced in ran.iter().filter_map(|one| one.advanced.as_ref()) {
            match advanced {
                Advanced::Next { .. } | Advanced::Recorded => {}
                Advanced::Ended { copy_refused, end } => {
                    // a success is the last word; of others the later one knows more
                    let done = matches!(ended, Some((_, EventEnd::Succeeded(_))));
                    if !done {
                        ended = Some((*copy_refused, end.clone()));
                    }
                }
                Advanced::RecordLost => {
                    self.note_record_lost(operation, attempt);
                    lost = true;
                }
                Advanced::Superseded => self.note_superseded(operation, attempt),
            }
        }
        let failed = ran.iter().any(|one| one.outcome == Outcome::Failed);
        match ended {
            Some((_, EventEnd::Succeeded(stored))) => {
                if work.reply.told_to_come_back() {
                    let took = work.claim.asked_at.until(self.clock.moment());
                    Self::note_late(&work.keyed.asked, attempt, took);
                }
                let from = &work.steps.plan.answer_from;
                let own = ran.iter().position(|one| one.step == *from);
                let end = own.map_or_else(|| of_stored(&stored), |at| ran.swap_remove(at).end);
                Disposition::Executed { operation, attempt, step: None, end }
            }
            Some((copy_refused, EventEnd::Open(first))) => {
                if failed {
                    self.note_refused(operation, attempt, copy_refused, work.reply);
                }
                let own = not_done(ran, |one| one.step == first);
                match own {
                    Some(Ran { step, end, .. }) => {
                        Disposition::Executed { operation, attempt, step: Some(step), end }
                    }
                    None => self.standing(&work.keyed.asked, work.handling).await,
                }
            }
            None if lost => match not_done(ran, |_| true) {
                Some(Ran { step, end, .. }) => {
                    Disposition::Executed { operation, attempt, step: Some(step), end }
                }
                None => self.standing(&work.keyed.asked, work.handling).await,
            },
            None => self.standing(&work.keyed.asked, work.handling).await,
        }
    }
}

/// A step that was run and has not succeeded.
fn not_done(ran: Vec<Ran>, is_it: impl Fn(&Ran) -> bool) -> Option<Ran> {
    ran.into_iter().find(|one| is_it(one) && one.outcome != Outcome::Succeeded)
}
