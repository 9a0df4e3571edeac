//! A granted claim: a lease that must be settled. Its drop is the alarm.

use std::future::pending;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::OwnedSemaphorePermit;
use tokio::time::sleep;

use super::{Executor, Handling};
use crate::clock::{Clock, Moment};
use crate::operation::state::{ClaimRequest, Claimed, Ending, IfInFlight, Renewed, Settlement};
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
    /// When it was asked for: what is counted from the claim counts from here.
    pub(super) asked_at: Moment,
    settled: bool,
    _slot: OwnedSemaphorePermit,
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

impl Claim {
    /// Asks the store for an operation. Without a slot it only looks.
    pub(super) async fn ask(
        executor: &Executor,
        asked: &Arc<Asked>,
        handling: &Handling,
        (slot, if_in_flight): (Option<OwnedSemaphorePermit>, IfInFlight),
    ) -> Result<(Claimed, Option<Self>), store::Error> {
        executor.withdrawals.check_room()?;
        let terms = handling.policy.terms;
        let claim_id = new_claim_id()?;
        let asked_at = executor.clock.moment();
        let request = ClaimRequest {
            asked: Arc::clone(asked),
            claim_id,
            holder: Arc::clone(&executor.holder),
            terms,
            may_grant: slot.is_some(),
            if_in_flight,
        };
        let claimed = executor.store.claim(&request).await.inspect_err(|error| {
            if error.may_have_applied() && request.may_grant {
                executor.withdrawals.begin(asked.id, claim_id, terms);
            }
        })?;
        let (Claimed::Granted { attempt }, Some(slot)) = (&claimed, slot) else {
            return Ok((claimed, None));
        };
        let lease = Arc::new(Lease {
            store: Arc::clone(&executor.store),
            clock: executor.clock.clone(),
            asked: Arc::clone(asked),
            claim_id,
            terms,
            until: Mutex::new(asked_at.plus(terms.lease)),
            given_up: AtomicBool::new(false),
        });
        let (attempt, holder) = (*attempt, request.holder);
        let claim = Self { lease, holder, attempt, asked_at, settled: false, _slot: slot };
        Ok((claimed, Some(claim)))
    }

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
    pub(super) async fn heartbeat(&self) {
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
        pending::<()>().await;
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
