//! Asking the store for an operation, and the claim that it grants.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tokio::sync::{Notify, OwnedSemaphorePermit};

use super::lease::Lease;
use super::lookup::LookupResult;
use super::record::insist;
use super::{Executor, Policy, Remember, RouteHandler};
use crate::clock::Moment;
use crate::operation::state::{
    Advanced, ClaimRequest, Claimed, Conclusion, Ending, Grant, IfInFlight, IfSucceeded,
    OperationState, Settled, Settlement, StepEnd,
};
use crate::operation::{ClaimId, OperationRequest, Plan};
use crate::store::{self, StoreExt as _};
use crate::telemetry::chain;

/// How a request asks for its operation.
#[derive(Debug)]
pub(super) struct ClaimOptions {
    /// The right to make an attempt. Without it the request only looks.
    pub(super) slot: Option<OwnedSemaphorePermit>,
    /// What the request does if another attempt is in flight.
    pub(super) if_in_flight: IfInFlight,
    /// The attempt that the request has waited for.
    pub(super) waited_for: Option<u32>,
    /// Whether the request asks the receiver about an uncertain operation. A request that waited
    /// never does: the attempt it waited for just ended uncertain.
    pub(super) looks_up: bool,
}

impl ClaimOptions {
    /// Of a request that has not waited.
    pub(super) const fn new(slot: Option<OwnedSemaphorePermit>, if_in_flight: IfInFlight) -> Self {
        Self { slot, if_in_flight, waited_for: None, looks_up: true }
    }

    /// Of a request that has waited for this attempt.
    pub(super) const fn after_waiting(
        slot: Option<OwnedSemaphorePermit>,
        if_in_flight: IfInFlight,
        waited_for: u32,
    ) -> Self {
        Self { slot, if_in_flight, waited_for: Some(waited_for), looks_up: false }
    }
}

/// A request that asks the store for its operation.
#[derive(Debug)]
pub(super) struct ClaimCall {
    request: ClaimRequest,
    asked_at: Moment,
    slot: Option<OwnedSemaphorePermit>,
}

impl ClaimCall {
    pub(super) fn new(
        executor: &Executor,
        asked: &Arc<OperationRequest>,
        handler: &RouteHandler,
        options: ClaimOptions,
    ) -> Result<Self, store::Error> {
        executor.withdrawals.check_room()?;
        let ClaimOptions { slot, if_in_flight, waited_for, looks_up } = options;
        let &Policy { terms, if_uncertain, remember, .. } = &handler.policy;
        let request = ClaimRequest {
            asked: Arc::clone(asked),
            claim_id: new_claim_id()?,
            holder: Arc::clone(&executor.holder),
            terms,
            may_grant: slot.is_some(),
            if_in_flight,
            if_uncertain,
            may_look_up: looks_up,
            if_succeeded: match remember {
                Remember::Retention => IfSucceeded::Replayed,
                Remember::InFlight => IfSucceeded::Shared { waited_for },
            },
            forward_key: handler.policy.forward_key.as_ref().map(|name| name.as_str().into()),
            plan: handler.receivers.plan().cloned(),
        };
        Ok(Self { request, asked_at: executor.clock.moment(), slot })
    }

    /// Asks the store. A success that is known without asking is told at once.
    pub(super) async fn send(&mut self, executor: &Executor) -> Result<Claimed, store::Error> {
        if self.request.if_succeeded == IfSucceeded::Replayed
            && let Some(known) = executor.store.recall(&self.request.asked)
        {
            return Ok(known.into());
        }
        self.asked_at = executor.clock.moment();
        let claimed = executor.store.apply(self.request.clone()).await;
        claimed.inspect_err(|error| {
            // Without a reply there is no grant, but the store may have made one.
            if error.may_have_applied() && self.request.may_grant {
                self.withdraw(executor);
            }
        })
    }

    /// Ends the look-up that was granted. If the store cannot be told of it, the operation stays
    /// uncertain.
    pub(super) async fn conclude(
        &mut self,
        executor: &Executor,
        found: LookupResult,
        step: Option<Arc<str>>,
        attempt: u32,
    ) -> Claimed {
        self.asked_at = executor.clock.moment();
        let LookupResult { finding, reason, reference } = found;
        let request = self.request.clone();
        let conclusion = Conclusion { request, step, finding, reason, reference };
        executor.store.apply(conclusion).await.unwrap_or_else(|error| {
            tracing::warn!(
                operation.id = %self.request.asked.id,
                error = %chain(&error),
                "what a look-up has found could not be recorded"
            );
            // The look-up was granted, whether or not this call took effect.
            self.withdraw(executor);
            OperationState::Uncertain { attempt, ends_in: Duration::ZERO }.into()
        })
    }

    fn withdraw(&self, executor: &Executor) {
        let ClaimRequest { asked, claim_id, terms, .. } = &self.request;
        executor.withdrawals.begin(asked.id, *claim_id, *terms);
    }

    /// The claim that the store has granted. None without a slot: such a call only looks.
    pub(super) fn granted(self, executor: &Executor, grant: Grant) -> Option<Claim> {
        let Self { request, asked_at, slot } = self;
        let slot = slot?;
        let lease =
            Lease::new(Arc::clone(&executor.store), executor.clock.clone(), request, asked_at);
        Some(Claim {
            lease: Arc::new(lease),
            attempt: grant.attempt,
            asked_at,
            // On a route without steps the attempt itself is the one thing to be recorded.
            unrecorded: AtomicUsize::new(grant.steps.len().max(1)),
            steps: grant.steps,
            _slot: slot,
        })
    }
}

/// The right, and the duty, to finish an operation. If it is dropped before every outcome was
/// recorded, an error is logged.
#[derive(Debug)]
#[must_use = "an unfinished claim leaves its operation uncertain"]
pub(super) struct Claim {
    lease: Arc<Lease>,
    /// The attempt's number.
    pub(super) attempt: u32,
    /// The steps that have begun with it; none on a route without steps.
    pub(super) steps: Vec<Arc<str>>,
    /// When it was asked for: what is counted from the claim counts from here.
    pub(super) asked_at: Moment,
    /// Attempts, one for each step that has begun, whose outcome is not recorded yet.
    unrecorded: AtomicUsize,
    _slot: OwnedSemaphorePermit,
}

/// The answer to the end of a step.
pub(super) struct StepRecorded {
    /// How the event goes on.
    pub(super) advanced: Advanced,
    /// When the call was sent: the lease of the next step counts from there.
    pub(super) asked_at: Moment,
}

impl Claim {
    /// The lease, for those who keep it.
    pub(super) fn lease(&self) -> Arc<Lease> {
        Arc::clone(&self.lease)
    }

    /// What was asked for.
    pub(super) fn asked(&self) -> &Arc<OperationRequest> {
        &self.lease.request.asked
    }

    /// Records the end of the attempt. Tries until the store has answered, and tells `failed` of each
    /// failure.
    ///
    /// # Errors
    /// The record cannot be read, and the lease has run out.
    pub(super) async fn settle(
        self,
        executor: &Executor,
        ending: Ending,
        failed: &Notify,
    ) -> Result<Settled, store::Error> {
        let ClaimRequest { asked, claim_id, holder, terms, .. } = &self.lease.request;
        let settlement = Settlement {
            asked: Arc::clone(asked),
            claim_id: *claim_id,
            attempt: self.attempt,
            holder: Arc::clone(holder),
            terms: *terms,
            ending,
        };
        let settle = || executor.store.apply(settlement.clone());
        let settled = insist(&self.lease, failed, settle).await;
        self.is_recorded();
        settled
    }

    /// Records the end of a step, and in the same atomic step that the next one begins. Otherwise as
    /// [`Claim::settle`].
    pub(super) async fn advance(
        &self,
        executor: &Executor,
        ended: EndedStep<'_>,
        failed: &Notify,
    ) -> Result<StepRecorded, store::Error> {
        let EndedStep { plan, step, ending } = ended;
        let ClaimRequest { asked, claim_id, holder, terms, .. } = &self.lease.request;
        let end = StepEnd {
            asked: Arc::clone(asked),
            claim_id: *claim_id,
            attempt: self.attempt,
            holder: Arc::clone(holder),
            terms: *terms,
            plan: Arc::clone(plan),
            step: Arc::clone(step),
            ending,
        };
        let mut asked_at = executor.clock.moment();
        let advanced = insist(&self.lease, failed, || {
            asked_at = executor.clock.moment();
            executor.store.apply(end.clone())
        });
        let advanced = advanced.await;
        match advanced {
            // The next step has begun in the place of this one.
            Ok(Advanced::Next { .. }) => {}
            Ok(_) | Err(_) => self.is_recorded(),
        }
        Ok(StepRecorded { advanced: advanced?, asked_at })
    }

    fn is_recorded(&self) {
        self.unrecorded.fetch_sub(1, Ordering::Relaxed);
    }
}

/// A step that has ended.
pub(super) struct EndedStep<'a> {
    pub(super) plan: &'a Arc<Plan>,
    pub(super) step: &'a Arc<str>,
    pub(super) ending: Ending,
}

impl Drop for Claim {
    fn drop(&mut self) {
        if *self.unrecorded.get_mut() > 0 {
            tracing::error!(
                operation.id = %self.lease.operation(),
                attempt.number = self.attempt,
                "an attempt ended without an outcome; its operation will be uncertain when the lease has run out"
            );
        }
    }
}

fn new_claim_id() -> Result<ClaimId, store::Error> {
    let mut bits = [0; 16];
    getrandom::fill(&mut bits)
        .map_err(|_| store::Error::Unavailable("the machine has no random numbers"))?;
    Ok(ClaimId::from_random(bits))
}
