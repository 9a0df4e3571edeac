//! Writes the end of an attempt, then answers.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::sleep;

use super::claim::{Claim, ClaimCall, ClaimOptions};
use super::disposition::{Disposition, Forwarded};
use super::lease::Lease;
use super::{Executor, PendingReply, RouteHandler};
use crate::operation::state::{Claimed, Ending, IfInFlight, OperationState, Settled};
use crate::operation::{OperationRequest, Outcome};
use crate::store;
use crate::telemetry::chain;

/// Between two tries to record an outcome: doubled from the first to the last.
const PAUSE_FIRST: Duration = Duration::from_millis(50);
const PAUSE_LAST: Duration = Duration::from_secs(5);

/// The outcome of an attempt on its way into the store.
pub(super) struct Recording<'a> {
    pub(super) executor: &'a Executor,
    pub(super) handler: &'a RouteHandler,
    pub(super) claim: Claim,
    pub(super) reply: &'a PendingReply,
}

impl Recording<'_> {
    /// Records an outcome and then gives the sender its answer, unless it has one already. While the
    /// store cannot record it, the sender waits until the end that the lease has now. Recording goes
    /// on after that, while the operation is in flight, and then uncertain.
    pub(super) async fn run(self, ending: Ending, mut forwarded: Option<Forwarded>) {
        let Self { executor, handler, claim, reply } = self;
        let lease = claim.lease();
        let asked = Arc::clone(claim.asked());
        let attempt = claim.attempt;
        let outcome = ending.outcome();
        let took = claim.asked_at.until(executor.clock.moment());
        let was_held = lease.left().is_zero();
        let failed = Notify::new();
        let settling = claim.settle(executor, ending.clone(), &failed);
        let settled = record_or_give_up(&lease, &failed, settling, || {
            note_given_up(&asked, attempt, None);
            if let Some(end) = forwarded.take() {
                reply.send(Disposition::executed(asked.id, attempt, end));
            }
        });
        let settled = settled.await;
        handler.metrics.attempt(outcome, took);
        Executor::note_end(&asked, attempt, None, &ending);
        match &settled {
            Ok(Settled::Recorded { copy_refused }) => match outcome {
                Outcome::Failed => {
                    executor.note_refused(asked.id, attempt, *copy_refused, reply);
                }
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
            Ok(Settled::Superseded) if !reply.passes() => executor.look(&asked, handler).await,
            // The upstream has said so, whether or not it is remembered.
            Ok(_) | Err(_) => Disposition::executed(asked.id, attempt, end),
        });
    }
}

/// Waits until an outcome is recorded. If the store has failed and the lease ends first, `give_up` is
/// called once, and recording goes on.
pub(super) async fn record_or_give_up<T>(
    lease: &Lease,
    failed: &Notify,
    recording: impl Future<Output = T>,
    give_up: impl FnOnce(),
) -> T {
    let mut recording = pin!(recording);
    let out_of_time = async {
        lease.give_up_at_its_end().await;
        failed.notified().await;
    };
    tokio::select! {
        biased;
        recorded = &mut recording => recorded,
        () = out_of_time => {
            give_up();
            recording.await
        }
    }
}

/// A sender is answered although the store could not record the outcome.
pub(super) fn note_given_up(asked: &OperationRequest, attempt: u32, step: Option<&str>) {
    tracing::error!(
        operation.id = %asked.id,
        attempt.number = attempt,
        step,
        "answered before the outcome could be recorded; recording goes on"
    );
}

/// Tries until the store has answered, and tells `failed` of each failure. A record that cannot be
/// read is tried until the lease has run out: it does not become readable by itself, and holds a place
/// of its route.
pub(super) async fn insist<T, F: Future<Output = Result<T, store::Error>>>(
    lease: &Lease,
    failed: &Notify,
    mut call: impl FnMut() -> F,
) -> Result<T, store::Error> {
    let mut pause = PAUSE_FIRST;
    loop {
        let error = match call().await {
            Ok(answered) => return Ok(answered),
            Err(error) => error,
        };
        failed.notify_one();
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

impl Executor {
    /// What a copy would get now. It only looks.
    pub(super) async fn look(
        &self,
        asked: &Arc<OperationRequest>,
        handler: &RouteHandler,
    ) -> Disposition {
        let options = ClaimOptions::new(None, IfInFlight::Refused);
        let claimed = match ClaimCall::new(self, asked, handler, options) {
            Ok(mut call) => call.send(self).await,
            Err(error) => Err(error),
        };
        match claimed {
            Ok(Claimed::NotGranted(state)) => Disposition::of(asked.id, state),
            // A call that only looks is granted nothing.
            Ok(Claimed::Granted(_) | Claimed::LookUp(_)) => {
                Disposition::of(asked.id, OperationState::Free)
            }
            Err(_) => Disposition::StoreUnavailable,
        }
    }
}
