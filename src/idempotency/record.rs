//! Writes the end of an attempt, then answers.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::sleep;

use super::claim::{Application, Approach, Claim, Lease};
use super::disposition::{Disposition, Forwarded};
use super::{Executor, Handling, Reply};
use crate::operation::state::{Ending, IfInFlight, Settled, Settlement};
use crate::operation::{Asked, Outcome};
use crate::store;
use crate::telemetry::chain;

/// Between two tries to record an outcome: doubled from the first to the last.
const PAUSE_FIRST: Duration = Duration::from_millis(50);
const PAUSE_LAST: Duration = Duration::from_secs(5);

/// The sender that waits for the outcome of an attempt.
pub(super) struct WaitingSender<'a> {
    pub(super) reply: &'a Reply,
    /// What it gets when the outcome is recorded; none if it has its answer already.
    pub(super) end: Option<Forwarded>,
}

impl Executor {
    /// Records an outcome and then gives the sender its answer. While the store cannot record it the
    /// sender waits until the end that the lease has now; recording goes on after that, while the
    /// operation is in flight, and then uncertain.
    pub(super) async fn record(
        &self,
        claim: Claim,
        ending: Ending,
        handling: &Handling,
        sender: WaitingSender<'_>,
    ) {
        let WaitingSender { reply, mut end } = sender;
        let lease = claim.lease();
        let attempt = claim.attempt;
        let outcome = ending.outcome;
        let operation = lease.operation();
        let took = claim.asked_at.until(self.clock.moment());
        let settlement = claim.settlement(ending);
        let was_held = lease.left().is_zero();
        let failed_once = Notify::new();
        let settling = Self::insist(&lease, &failed_once, || self.store.settle(&settlement));
        let mut settling = pin!(settling);
        let settled = tokio::select! {
            biased;
            settled = &mut settling => settled,
            () = async { lease.give_up_at_its_end().await; failed_once.notified().await } => {
                tracing::error!(
                    operation.id = %operation,
                    attempt.number = attempt,
                    outcome = outcome.as_str(),
                    "answered before the outcome could be recorded; recording goes on"
                );
                if let Some(end) = end.take() {
                    reply.send(Disposition::Executed { operation, attempt, step: None, end });
                }
                settling.await
            }
        };
        claim.finish();
        handling.metrics.attempt(outcome, took);
        Self::note_end(&settlement.asked, attempt, None, &settlement.ending);
        match &settled {
            Ok(settled) => self.note_settled(&settlement, *settled, reply),
            Err(error) => self.note_unrecorded(&settlement.asked, attempt, error),
        }
        let is_late = was_held || reply.told_to_come_back();
        if is_late
            && outcome == Outcome::Succeeded
            && matches!(settled, Ok(Settled::Recorded { .. }))
        {
            Self::note_late(&settlement.asked, attempt, took);
        }
        let Some(end) = end else { return };
        reply.send(match settled {
            Ok(Settled::Superseded) if !reply.passes() => {
                self.standing(&settlement.asked, handling).await
            }
            // the upstream has said so, whether or not it is remembered
            Ok(Settled::Recorded { .. } | Settled::RecordLost | Settled::Superseded) | Err(_) => {
                Disposition::Executed { operation, attempt, step: None, end }
            }
        });
    }

    /// Tries until the store has answered. A record that cannot be read is tried until the lease has
    /// run out: it does not become readable by itself, and holds a place of its route.
    pub(super) async fn insist<T, F: Future<Output = Result<T, store::Error>>>(
        lease: &Lease,
        failed_once: &Notify,
        mut call: impl FnMut() -> F,
    ) -> Result<T, store::Error> {
        let mut pause = PAUSE_FIRST;
        loop {
            let error = match call().await {
                Ok(answered) => return Ok(answered),
                Err(error) => error,
            };
            failed_once.notify_one();
            if matches!(error, store::Error::Unreadable(..)) && lease.left().is_zero() {
                return Err(error);
            }
            tracing::warn!(
                operation.id = %lease.operation(),
                error = %chain(&error),
                "an outcome is not recorded yet"
            );
            sleep(pause).await;
            pause = PAUSE_LAST.min(pause * 2);
        }
    }

    /// What a person should know of what became of a settle.
    fn note_settled(&self, settlement: &Settlement, settled: Settled, reply: &Reply) {
        let Settlement { asked, attempt, ending, .. } = settlement;
        match settled {
            Settled::Recorded { copy_refused } => {
                if ending.outcome == Outcome::Failed {
                    self.note_refused(asked.id, *attempt, copy_refused, reply);
                }
            }
            Settled::RecordLost => self.note_record_lost(asked.id, *attempt),
            Settled::Superseded => self.note_superseded(asked.id, *attempt),
        }
    }

    /// What a copy would get now.
    pub(super) async fn standing(&self, asked: &Arc<Asked>, handling: &Handling) -> Disposition {
        let look = Approach::new(None, IfInFlight::Refused);
        let claimed = match Application::new(self, asked, handling, look) {
            Ok(mut application) => application.send(self).await,
            Err(error) => Err(error),
        };
        claimed.map_or(Disposition::StoreUnavailable, |claimed| Disposition::of(asked.id, claimed))
    }
}
