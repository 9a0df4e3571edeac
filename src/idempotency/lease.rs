//! The lease of a claim, kept while its attempt runs.

use std::convert::Infallible;
use std::future::pending;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::sleep;

use crate::clock::{Clock, Moment};
use crate::operation::OperationId;
use crate::operation::state::{ClaimRequest, Renewal, Renewed};
use crate::store::{self, Store, StoreExt as _};
use crate::telemetry::chain;

/// The lease of a claim, as its holder knows it. It ends no later than the store thinks, because it
/// is counted from before the call that gave it.
#[derive(Debug)]
pub(super) struct Lease {
    store: Arc<dyn Store>,
    clock: Clock,
    /// The request to which it was granted.
    pub(super) request: ClaimRequest,
    until: Mutex<Moment>,
    given_up: AtomicBool,
}

impl Lease {
    /// The lease that was granted to a request in answer to a call that was sent at `asked_at`.
    pub(super) fn new(
        store: Arc<dyn Store>,
        clock: Clock,
        request: ClaimRequest,
        asked_at: Moment,
    ) -> Self {
        let until = Mutex::new(asked_at.plus(request.terms.lease));
        Self { store, clock, request, until, given_up: AtomicBool::new(false) }
    }

    /// Keeps the lease for as long as it is polled: renews at a third of it, and tries again until
    /// its end where the store cannot be reached, unless it is given up. Never ends.
    pub(super) async fn heartbeat(&self) -> Infallible {
        let third = self.request.terms.lease / 3;
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
                        operation.id = %self.operation(),
                        error = %chain(&error),
                        "a lease could not be renewed yet"
                    );
                    third / 10
                }
            };
        }
        pending().await
    }

    /// The store has given a new lease, in answer to a call that was sent at `asked_at`.
    pub(super) fn starts_anew(&self, asked_at: Moment) {
        *self.until.lock() = asked_at.plus(self.request.terms.lease);
        self.given_up.store(false, Ordering::Relaxed);
    }

    /// Whether there is time enough to send. Renews first if not.
    pub(super) async fn has_room(&self) -> bool {
        let room = self.request.terms.lease / 2;
        self.left() >= room || matches!(self.renew().await, Ok(Renewed::Renewed))
    }

    /// Waits for the end that the lease has now, whatever is renewed meanwhile, and gives it up.
    pub(super) async fn give_up_at_its_end(&self) {
        let until = *self.until.lock();
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
        let ClaimRequest { asked, claim_id, terms, .. } = &self.request;
        let lease = terms.lease;
        let renewal = Renewal { operation: asked.id, claim_id: *claim_id, lease };
        let renewed = self.store.apply(renewal).await?;
        if renewed == Renewed::Renewed {
            *self.until.lock() = asked_at.plus(lease);
        }
        Ok(renewed)
    }

    /// The operation that is leased.
    pub(super) fn operation(&self) -> OperationId {
        self.request.asked.id
    }

    /// What is left of it.
    pub(super) fn left(&self) -> Duration {
        let until = *self.until.lock();
        self.clock.moment().until(until)
    }
}
