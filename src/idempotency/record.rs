//! Records the end of an attempt, then answers the sender.

use std::sync::Arc;

use super::claim::Claim;
use super::disposition::{Disposition, Forwarded};
use super::executor::{Context, Executor};
use super::note::{EndNote, note_given_up};
use crate::operation::Outcome;
use crate::operation::state::{Ending, Settled};

/// An attempt whose outcome is to be recorded.
pub(super) struct Recording<'a> {
    pub(super) context: Context<'a>,
    pub(super) claim: Claim,
}

impl Recording<'_> {
    /// Records an outcome, and then gives `forwarded` to the sender. `forwarded` is none if the
    /// sender has its answer already. If the store cannot record the outcome, the sender gets its
    /// answer at the current end of the lease, and recording goes on.
    pub(super) async fn run(self, ending: Ending, mut forwarded: Option<Forwarded>) {
        let Self { context: context @ Context { executor, handler, reply }, claim } = self;
        let lease = claim.lease();
        let asked = Arc::clone(claim.asked());
        let attempt = claim.attempt;
        let end = EndNote::of(&ending);
        let took = claim.asked_at.until(executor.clock.moment());
        let was_held = lease.left().is_zero();
        let give_up = || {
            note_given_up(&asked, attempt, None);
            if let Some(end) = forwarded.take() {
                reply.send(Disposition::executed(asked.id, attempt, end));
            }
        };
        let settled = claim.settle(ending, give_up).await;
        handler.metrics.attempt(end.outcome, took);
        end.note(&asked, attempt, None);
        match &settled {
            Ok(Settled::Recorded { copy_refused }) => match end.outcome {
                Outcome::Failed => context.note_refused(asked.id, attempt, *copy_refused),
                Outcome::Succeeded if was_held || reply.told_to_come_back() => {
                    Executor::note_late(&asked, attempt, took);
                }
                Outcome::Succeeded | Outcome::Uncertain => {}
            },
            Ok(Settled::RecordLost) => executor.note_record_lost(asked.id, attempt),
            Ok(Settled::Superseded) => executor.note_superseded(asked.id, attempt),
            Err(error) => executor.note_unrecorded(&asked, attempt, error),
        }
        let Some(end) = forwarded else { return };
        reply.send(match settled {
            // Another attempt, or an operator, has decided which answer copies get. This sender
            // must get the same one.
            Ok(Settled::Superseded) if !reply.passes() => context.look(&asked).await,
            // The upstream has given this answer, whether or not it is remembered.
            Ok(_) | Err(_) => Disposition::executed(asked.id, attempt, end),
        });
    }
}
