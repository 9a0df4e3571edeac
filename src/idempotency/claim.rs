//! A granted claim: a lease that must be settled. Its drop is the alarm.

use std::convert::Infallible;
use std::future::pending;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::OwnedSemaphorePermit;
use tokio::time::sleep;

use super::lookup::Told;
use super::{Executor, Handling, Policy, Remember};
use crate::clock::{Clock, Moment};
use crate::operation::state::{
    ClaimRequest, Claimed, Conclusion, Ending, IfInFlight, IfSucceeded, Renewed, Settlement,
};
use crate::operation::{Asked, ClaimId, OperationId, Terms};
use crate::store::{self, Store};
use crate::telemetry::chain;

/// The right, and the duty, to finish an operation.
#[derive(Debug)]
#[must_use = "an unfinished claim leaves its operation uncertain"]
pub(super) struct Claim {
    lease: Arc<Lease>,
    holder: Arc<str>,
    /// The attempt's number.
    pub(super) attempt: u32,
    /// The steps that have begun with it, on a route with steps.
    pub(super) begun: Vec<Arc<str>>,
    /// When it was asked for: what is counted from the claim counts from here.
    pub(super) asked_at: Moment,
    settled: bool,
    _slot: OwnedSemaphorePermit,
}

/// How a request comes to an operation.
#[derive(Debug)]
pub(super) struct Approach {
    /// The right to make an attempt; without it the request only looks.
    pub(super) slot: Option<OwnedSemaphorePermit>,
    /// What it does if another attempt is in flight.
    pub(super) if_in_flight: IfInFlight,
    /// The attempt that it has waited for.
    pub(super) waited_for: Option<u32>,
    /// Whether it asks the receiver if nobody knows. Who has waited does not: what it waited for has
    /// ended so.
    pub(super) looks_up: bool,
}

impl Approach {
    /// Of a request that has not waited.
    pub(super) const fn new(slot: Option<OwnedSemaphorePermit>, if_in_flight: IfInFlight) -> Self {
        Self { slot, if_in_flight, waited_for: None, looks_up: true }
    }

    /// Of a request that has waited for this attempt, if it has.
    pub(super) const fn after_waiting(
        slot: Option<OwnedSemaphorePermit>,
        if_in_flight: IfInFlight,
        waited_for: u32,
    ) -> Self {
        Self { slot, if_in_flight, waited_for: Some(waited_for), looks_up: false }
    }
}

/// A request that asks for an operation.
#[derive(Debug)]
pub(super) struct Application {
    request: ClaimRequest,
    asked_at: Moment,
    slot: Option<OwnedSemaphorePermit>,
}

/// The lease of a claim, as its holder knows it: it ends no later than the store thinks.
#[derive(Debug)]
pub(super) struct Lease {
    store: Arc<dyn Store>,
    clock: Clock,
    asked: Arc<Asked>,
    claim_id: ClaimId,
    terms: Terms,
    until: Mutex<Moment>,
    given_up: AtomicBool,
}

impl Application {
    /// Of a request. Without a slot it only looks.
    pub(super) fn new(
        executor: &Executor,
        asked: &Arc<Asked>,
        handling: &Handling,
        approach: Approach,
    ) -> Result<Self, store::Error> {
        executor.withdrawals.check_room()?;
        let Approach { slot, if_in_flight, waited_for, looks_up } = approach;
        let &Policy { terms, if_uncertain, remember, .. } = &handling.policy;
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
            forward_key: handling.policy.forward_key.as_ref().map(|name| name.as_str().into()),
            plan: handling.steps.as_ref().map(|steps| Arc::clone(&steps.plan)),
        };
        Ok(Self { request, asked_at: executor.clock.moment(), slot })
    }

    /// Asks the store for the operation.
    pub(super) async fn send(&mut self, executor: &Executor) -> Result<Claimed, store::Error> {
        self.asked_at = executor.clock.moment();
        let claimed = executor.store.claim(&self.request).await;
        claimed.inspect_err(|error| self.give_up(executor, error))
    }

    /// Ends the look-up that was granted. A store that cannot be told of it leaves the operation
    /// as uncertain as it was.
    pub(super) async fn conclude(
        &mut self,
        executor: &Executor,
        told: Told,
        step: Option<Arc<str>>,
        attempt: u32,
    ) -> Claimed {
        self.asked_at = executor.clock.moment();
        let Told { finding, reason, reference } = told;
        let request = self.request.clone();
        let conclusion = Conclusion { request, step, finding, reason, reference };
        executor.store.conclude(&conclusion).await.unwrap_or_else(|error| {
            tracing::warn!(
                operation.id = %self.request.asked.id,
                error = %chain(&error),
                "what a look-up has found could not be recorded"
            );
            // the look-up was granted, whether or not this call took effect
            self.withdraw(executor);
            Claimed::Uncertain { attempt, ends_in: Duration::ZERO }
        })
    }

    /// Without a reply there is no grant, but the store may have made one.
    fn give_up(&self, executor: &Executor, error: &store::Error) {
        if error.may_have_applied() && self.request.may_grant {
            self.withdraw(executor);
        }
    }

    fn withdraw(&self, executor: &Executor) {
        let ClaimRequest { asked, claim_id, terms, .. } = &self.request;
        executor.withdrawals.begin(asked.id, *claim_id, *terms);
    }

    /// The claim, if it was granted.
    pub(super) fn granted(self, executor: &Executor, claimed: &Claimed) -> Option<Claim> {
        let Self { request, asked_at, slot } = self;
        let (attempt, begun) = match claimed {
            Claimed::Granted { attempt } => (*attempt, Vec::new()),
            Claimed::Begun { attempt, steps } => (*attempt, steps.clone()),
            Claimed::Free
            | Claimed::Succeeded { .. }
            | Claimed::InFlight { .. }
            | Claimed::Uncertain { .. }
            | Claimed::LookUp { .. }
            | Claimed::Mismatched { .. } => return None,
        };
        let slot = slot?;
        let ClaimRequest { asked, claim_id, terms, holder, .. } = request;
        let lease = Arc::new(Lease {
            store: Arc::clone(&executor.store),
            clock: executor.clock.clone(),
            asked,
            claim_id,
            terms,
            until: Mutex::new(asked_at.plus(terms.lease)),
            given_up: AtomicBool::new(false),
        });
        Some(Claim { lease, holder, attempt, begun, asked_at, settled: false, _slot: slot })
    }
}

impl Claim {
    /// The lease, for those who keep it.
    pub(super) fn lease(&self) -> Arc<Lease> {
        Arc::clone(&self.lease)
    }

    /// The write that ends this claim.
    pub(super) fn settlement(&self, ending: Ending) -> Settlement {
        Settlement {
            asked: Arc::clone(&self.lease.asked),
            claim_id: self.lease.claim_id,
            attempt: self.attempt,
            holder: Arc::clone(&self.holder),
            terms: self.lease.terms,
            ending,
        }
    }

    /// The store has answered the settle.
    pub(super) fn finish(mut self) {
        self.settled = true;
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        if !self.settled {
            tracing::error!(
                operation.id = %self.lease.asked.id,
                attempt.number = self.attempt,
                "an attempt ended without an outcome; its operation will be uncertain when the lease has run out"
            );
        }
    }
}

impl Lease {
    /// Keeps the lease for as long as it is polled: renews at a third of it, and tries again until
    /// its end where the store cannot be reached, unless it is given up. Never ends.
    pub(super) async fn heartbeat(&self) -> Infallible {
        let third = self.terms.lease / 3;
        let mut pause = third;
        loop {
            sleep(pause).await;
            if self.left().is_zero() || self.given_up.load(Ordering::Relaxed) {
                break;
            }
            pause = match self.renew().await {
                Ok(Renewed::Renewed) => third,
                Ok(Renewed::Superseded) => break,
                Err(error) => {
                    tracing::warn!(
                        operation.id = %self.asked.id,
                        error = %chain(&error),
                        "a lease could not be renewed yet"
                    );
                    third / 10
                }
            };
        }
        pending().await
    }

    /// The store has given it anew, in answer to a call that was sent at `asked_at`.
    pub(super) fn begins_anew(&self, asked_at: Moment) {
        *self.until.lock().unwrap_or_else(PoisonError::into_inner) =
            asked_at.plus(self.terms.lease);
        self.given_up.store(false, Ordering::Relaxed);
    }

    /// Whether there is time enough to send. Renews first if not.
    pub(super) async fn has_room(&self) -> bool {
        let room = self.terms.lease / 2;
        self.left() >= room || matches!(self.renew().await, Ok(Renewed::Renewed))
    }

    /// Ends at the end that the lease has now, whatever is renewed meanwhile. Then it is given up.
    pub(super) async fn give_up_at_its_end(&self) {
        let until = self.until();
        loop {
            let left = self.clock.moment().until(until);
            if left.is_zero() {
                break;
            }
            sleep(left).await;
        }
        self.given_up.store(true, Ordering::Relaxed);
    }

    async fn renew(&self) -> Result<Renewed, store::Error> {
        let asked_at = self.clock.moment();
        let renewed = self.store.renew(self.asked.id, self.claim_id, self.terms.lease).await?;
        if renewed == Renewed::Renewed {
            *self.until.lock().unwrap_or_else(PoisonError::into_inner) =
                asked_at.plus(self.terms.lease);
        }
        Ok(renewed)
    }

    /// The operation that is leased.
    pub(super) fn operation(&self) -> OperationId {
        self.asked.id
    }

    /// What is left of it.
    pub(super) fn left(&self) -> Duration {
        self.clock.moment().until(self.until())
    }

    fn until(&self) -> Moment {
        *self.until.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn new_claim_id() -> Result<ClaimId, store::Error> {
    let mut bits = [0; 16];
    getrandom::fill(&mut bits)
        .map_err(|_| store::Error::Unavailable("the machine has no random numbers"))?;
    Ok(ClaimId::from_random(bits))
}
