//! The lease of a claim, which a heartbeat renews while the attempt is in flight.

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

/// The lease of a claim, as its holder knows it.
///
/// It is counted from the time at which the call was sent that gave it. The store counts from when
/// the call arrived, so the holder stops before the store lets another process have the operation.
#[derive(Debug)]
pub(super) struct Lease {
    pub(super) store: Arc<dyn Store>,
    /// A clock that runs while the machine is suspended: the lease ends then too.
    pub(super) clock: Clock,
    /// The request to which the lease was granted.
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
        let until = Mutex::new(asked_at.plus(request.durations.lease));
        Self { store, clock, request, until, given_up: AtomicBool::new(false) }
    }

    /// Renews the lease after each third of it, for as long as this future is polled. If the store
    /// cannot be reached, tries again until the lease ends or is given up. Never ends.
    pub(super) async fn heartbeat(&self) -> Infallible {
        let third = self.request.durations.lease / 3;
        let mut pause = third;
        loop {
            sleep(pause).await;
            // A process that wakes up from a pause after its lease has lost it: the store has made
            // the operation uncertain, or has granted it anew.
            if self.left().is_zero() || self.given_up.load(Ordering::Relaxed) {
                break;
            }
            pause = match self.renew().await {
                Ok(Renewed::Renewed) => third,
                // The attempt goes on: its late outcome may settle the uncertain operation.
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

    /// Starts the lease anew: the store has granted it in answer to a call that was sent at
    /// `asked_at`.
    pub(super) fn starts_anew(&self, asked_at: Moment) {
        *self.until.lock() = asked_at.plus(self.request.durations.lease);
        self.given_up.store(false, Ordering::Relaxed);
    }

    /// Whether half of the lease is left to send the request. If less is left, the lease is renewed
    /// first. A paused process that wakes up after its lease does not send.
    pub(super) async fn has_room(&self) -> bool {
        let room = self.request.durations.lease / 2;
        self.left() >= room || matches!(self.renew().await, Ok(Renewed::Renewed))
    }

    /// Waits until the end that the lease has now, even if it is renewed meanwhile, and stops the
    /// heartbeat then. Copies of an outcome that cannot be recorded must not wait without end.
    pub(super) async fn give_up_at_its_end(&self) {
        let until = *self.until.lock();
        // The timer stops while the machine is suspended, so the clock is read again.
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
        let ClaimRequest { asked, claim_id, durations, .. } = &self.request;
        let lease = durations.lease;
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

    /// How long the lease lasts from now.
    pub(super) fn left(&self) -> Duration {
        let until = *self.until.lock();
        self.clock.moment().until(until)
    }
}
