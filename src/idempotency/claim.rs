//! A claim that the store has granted, and the calls that record its outcomes.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::sync::OwnedSemaphorePermit;

use super::executor::Executor;
use super::insist::insist;
use super::lease::OwnLease;
use super::own_attempts::OwnAttemptEntry;
use crate::clock::Moment;
use crate::operation::state::{
    Advanced, ClaimRequest, Ending, Grant, ReportedState, Settled, Settlement, StepSettlement,
    Withdrawal,
};
use crate::operation::{Plan, Subject};
use crate::store::{self, StoreExt as _};

/// The right, and the duty, to finish an operation. If the claim is dropped before every outcome is
/// recorded, an error is logged.
#[derive(Debug)]
#[must_use = "an unfinished claim leaves its operation uncertain"]
pub(super) struct Claim {
    lease: Arc<OwnLease>,
    /// The attempt's number.
    pub(super) attempt: u32,
    /// The steps that have begun with the claim; empty on a route without steps.
    pub(super) steps: Vec<Arc<str>>,
    /// When the claim was sent. The attempt's time counts from here.
    pub(super) sent_at: Moment,
    /// How many outcomes are not recorded yet: one for each step that has begun, or one on a route
    /// without steps.
    unrecorded: AtomicUsize,
    /// The attempt's entry among those of this process.
    _entry: OwnAttemptEntry,
    _place: OwnedSemaphorePermit,
}

/// The reply of the store to the report that a step has ended.
pub(super) struct StepRecorded {
    /// How the event goes on.
    pub(super) advanced: Advanced,
    /// When the report was sent. The lease of the next step counts from here.
    pub(super) sent_at: Moment,
}

impl Claim {
    /// Makes the claim from the grant of the store. The call for the grant was sent at `sent_at`.
    ///
    /// # Errors
    /// This process has begun another attempt meanwhile, and the store has lost its record. The
    /// grant is withdrawn, and the state is that of a copy of the other attempt.
    pub(super) fn new(
        executor: &Executor,
        request: ClaimRequest,
        grant: Grant,
        sent_at: Moment,
        place: OwnedSemaphorePermit,
    ) -> Result<Self, ReportedState> {
        let Grant { attempt, steps } = grant;
        let store = Arc::clone(&executor.store);
        let lease = Arc::new(OwnLease::new(store, executor.clock.clone(), request, sent_at));
        let unrecorded = AtomicUsize::new(steps.len().max(1));
        let entry = executor.own_attempts.begin(attempt, &lease).map_err(|other| {
            let withdrawal = Withdrawal { leaves_record: false, ..lease.request.withdrawal() };
            executor.withdrawals.begin(withdrawal);
            other.state_for(&lease.request.subject)
        })?;
        Ok(Self { lease, attempt, steps, sent_at, unrecorded, _entry: entry, _place: place })
    }

    /// The lease. It is shared, because the heartbeat runs beside the attempt.
    pub(super) fn lease(&self) -> Arc<OwnLease> {
        Arc::clone(&self.lease)
    }

    /// What the claim is about.
    pub(super) fn subject(&self) -> &Arc<Subject> {
        &self.lease.request.subject
    }

    /// Records the end of the attempt. The call is repeated until the store has replied, and
    /// `answer_early` is called if the lease ends before that, as [`insist`] says.
    ///
    /// # Errors
    /// The record cannot be read, and the lease has run out.
    pub(super) async fn settle(
        self,
        ending: Ending,
        answer_early: impl FnOnce(),
    ) -> Result<Settled, store::Error> {
        let settlement = self.settlement(ending);
        let settle = || self.lease.store.apply(settlement.clone());
        let settled = insist(&self.lease, settle, answer_early).await;
        self.count_recorded();
        settled
    }

    /// Records the end of a step. The same atomic call of the store begins the next step. The call
    /// is repeated, and fails, as in [`Claim::settle`].
    pub(super) async fn advance(
        &self,
        plan: &Arc<Plan>,
        step: &Arc<str>,
        ending: Ending,
        answer_early: impl FnOnce(),
    ) -> Result<StepRecorded, store::Error> {
        let end = StepSettlement {
            settlement: self.settlement(ending),
            plan: Arc::clone(plan),
            step: Arc::clone(step),
        };
        let mut sent_at = self.sent_at;
        let advance = || {
            sent_at = self.lease.clock.moment();
            self.lease.store.apply(end.clone())
        };
        let advanced = insist(&self.lease, advance, answer_early).await;
        match advanced {
            // The count stays the same: this outcome is recorded, and that of the next step is not
            // yet.
            Ok(Advanced::Next { .. }) => {}
            Ok(_) | Err(_) => self.count_recorded(),
        }
        Ok(StepRecorded { advanced: advanced?, sent_at })
    }

    fn settlement(&self, ending: Ending) -> Settlement {
        let ClaimRequest { subject, claim_id, holder, durations, .. } = &self.lease.request;
        Settlement {
            subject: Arc::clone(subject),
            claim_id: *claim_id,
            attempt: self.attempt,
            holder: Arc::clone(holder),
            durations: *durations,
            ending,
        }
    }

    fn count_recorded(&self) {
        self.unrecorded.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        // Only a panic, or the end of the runtime, drops a claim early. The store makes the
        // operation uncertain when the lease runs out.
        if *self.unrecorded.get_mut() > 0 {
            tracing::error!(
                operation.id = %self.lease.operation(),
                attempt.number = self.attempt,
                "an attempt ended without an outcome; its operation becomes uncertain when the lease runs out"
            );
        }
    }
}
