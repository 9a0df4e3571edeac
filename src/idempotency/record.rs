//! Records the end of an attempt, then answers the sender.

use std::sync::Arc;

use super::claim::Claim;
use super::disposition::{Disposition, Forwarded};
use super::end_log::{EndLog, log_early_answer, log_late_success};
use super::executor::Context;
use crate::operation::Outcome;
use crate::operation::state::{Ending, Settled};
use crate::store;

/// An attempt whose outcome is to be recorded.
pub(super) struct Recording<'a> {
    pub(super) context: Context<'a>,
    pub(super) claim: Claim,
}

impl Recording<'_> {
    /// Records an outcome, and then gives `forwarded` to the sender. If the store cannot record the
    /// outcome, the sender gets its answer at the current end of the lease, and recording goes on.
    pub(super) async fn record_and_answer(self, ending: Ending, forwarded: Forwarded) {
        let context @ Context { sender, .. } = self.context;
        let subject = Arc::clone(self.claim.subject());
        let attempt = self.claim.attempt;
        let executed = |forwarded| Disposition::executed(subject.id, attempt, forwarded);
        let mut forwarded = Some(forwarded);
        let answer_early = || {
            if let Some(forwarded) = forwarded.take() {
                sender.answer(executed(forwarded));
            }
        };
        let settled = self.record(ending, answer_early).await;
        let Some(forwarded) = forwarded else { return };
        sender.answer(match settled {
            // Another attempt, or an operator, has decided which answer copies get. This sender
            // must get the same one.
            Ok(Settled::Superseded) if !sender.is_observed() => context.look(&subject).await,
            // The upstream has given this answer, whether or not it is remembered.
            Ok(_) | Err(_) => executed(forwarded),
        });
    }

    /// Records an outcome. `answer_early` is called once if the store cannot record the outcome
    /// before the current end of the lease.
    ///
    /// # Errors
    /// The record cannot be read, and the lease has run out.
    pub(super) async fn record(
        self,
        ending: Ending,
        answer_early: impl FnOnce(),
    ) -> Result<Settled, store::Error> {
        let Self { context: context @ Context { executor, handler, sender }, claim } = self;
        let subject = Arc::clone(claim.subject());
        let attempt = claim.attempt;
        let end = EndLog::of(&ending);
        let took = claim.sent_at.until(executor.clock.moment());
        let lease_had_ended = claim.lease().left().is_zero();
        let answer_early = || {
            log_early_answer(&subject, attempt, None);
            answer_early();
        };
        let settled = claim.settle(ending, answer_early).await;
        handler.metrics.attempt(end.outcome, took);
        end.log(executor, &subject, attempt, None);
        match &settled {
            Ok(Settled::Recorded { copy_refused }) => match end.outcome {
                Outcome::Failed => {
                    context.log_refused_then_failed(subject.id, attempt, *copy_refused);
                }
                Outcome::Succeeded if lease_had_ended || sender.told_to_come_back() => {
                    log_late_success(&subject, attempt, took);
                }
                Outcome::Succeeded | Outcome::Uncertain => {}
            },
            Ok(Settled::RecordLost) => executor.log_record_lost(subject.id, attempt),
            Ok(Settled::Superseded) => executor.log_superseded(subject.id, attempt),
            Err(error) => executor.log_unrecorded(&subject, attempt, error),
        }
        settled
    }
}
