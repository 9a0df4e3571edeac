//! Writes the end of an attempt, then answers.

use std::pin::pin;
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::sleep;

use super::claim::Claim;
use super::disposition::{Disposition, Forwarded};
use super::{Executor, Handling, Reply};
use crate::operation::Outcome;
use crate::operation::state::{Ending, IfInFlight, Settled, Settlement};
use crate::telemetry::chain;

/// Between two tries to record an outcome: doubled from the first to the last.
const PAUSE_FIRST: Duration = Duration::from_millis(50);
const PAUSE_LAST: Duration = Duration::from_secs(5);

impl Executor {
    /// Records an outcome and then gives `end` to the sender. While the store cannot record it the
    /// sender waits until the end that the lease has now; recording goes on after that, while the
    /// operation is in flight, and then uncertain.
    pub(super) async fn record(
        &self,
        claim: Claim,
        ending: Ending,
        handling: &Handling,
        (reply, mut end): (&Reply, Option<Forwarded>),
    ) {
        let (lease, attempt, outcome) = (claim.lease(), claim.attempt, ending.outcome);
        let operation = lease.operation();
        let took = claim.asked_at.until(self.clock.moment());
        let settlement = claim.settlement(ending);
        let failed_once = Notify::new();
        let mut settling = pin!(self.settle(&settlement, &failed_once));
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
                    reply.send(Disposition::Executed { operation, attempt, end });
                }
                settling.await
            }
        };
        claim.finish();
        handling.metrics.attempt(outcome, took);
        self.note(&settlement, settled, reply);
        match (settled, end) {
            (Settled::Recorded { .. } | Settled::RecordLost, Some(end)) => {
                reply.send(Disposition::Executed { operation, attempt, end });
            }
            (Settled::Superseded, Some(_)) => {
                reply.send(self.standing(&settlement, handling).await);
            }
            (Settled::Recorded { .. } | Settled::RecordLost | Settled::Superseded, None) => {}
        }
    }

    /// Tries until the store has answered.
    async fn settle(&self, settlement: &Settlement, failed_once: &Notify) -> Settled {
        let mut pause = PAUSE_FIRST;
        loop {
            match self.store.settle(settlement).await {
                Ok(settled) => return settled,
                Err(error) => {
                    tracing::warn!(
                        operation.id = %settlement.asked.id,
                        error = %chain(&error),
                        "an outcome is not recorded yet"
                    );
                    failed_once.notify_one();
                }
            }
            sleep(pause).await;
            pause = PAUSE_LAST.min(pause * 2);
        }
    }

    /// What a person should know of how an attempt ended.
    fn note(&self, settlement: &Settlement, settled: Settled, reply: &Reply) {
        let Settlement { asked, attempt, ending, .. } = settlement;
        let (operation, reason) = (asked.id, ending.reason.as_str());
        match ending.outcome {
            Outcome::Succeeded => {}
            Outcome::Failed => {
                tracing::info!(
                    operation.id = %operation,
                    attempt.number = attempt,
                    reason,
                    status = ending.status,
                    "the attempt failed"
                );
            }
            Outcome::Uncertain => {
                let status = ending.status;
                tracing::warn!(
                    operation.id = %operation,
                    attempt.number = attempt,
                    reason,
                    status,
                    "nobody knows whether it was done; it is held"
                );
            }
        }
        match settled {
            Settled::Recorded { copy_refused } => {
                let turned_away = copy_refused || reply.told_to_come_back();
                if turned_away && ending.outcome == Outcome::Failed {
                    self.metrics.refused_then_failed.inc();
                    tracing::warn!(
                        operation.id = %operation,
                        attempt.number = attempt,
                        "a copy was refused, then the attempt failed: a sender that does not retry has lost it"
                    );
                }
            }
            Settled::RecordLost => {
                self.metrics.record_lost.inc();
                tracing::error!(operation.id = %operation, attempt.number = attempt, "the store had lost the record; it was written anew");
            }
            Settled::Superseded => {
                self.metrics.superseded.inc();
                tracing::error!(operation.id = %operation, attempt.number = attempt, "superseded: its outcome changed nothing");
            }
        }
    }

    /// What a copy would get now.
    async fn standing(&self, settlement: &Settlement, handling: &Handling) -> Disposition {
        let look = (None, IfInFlight::Refused);
        match Claim::ask(self, &settlement.asked, handling, look).await {
            Ok((claimed, _)) => Disposition::of(settlement.asked.id, claimed),
            Err(_) => Disposition::StoreUnavailable,
        }
    }
}
