//! The lease of a claim, which a heartbeat renews while the attempt is in flight.

use std::convert::Infallible;
use std::future::pending;
use std::pin::Pin;
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
/// The holder counts the lease from the time at which it sent the call. The store counts from the
/// time at which the call arrived. So the lease ends for the holder before the store lets another
/// process have the operation.
#[derive(Debug)]
pub(super) struct OwnLease {
    pub(super) store: Arc<dyn Store>,
    /// A clock that also runs while the machine is suspended, because the lease does not stop then.
    pub(super) clock: Clock,
    /// The request to which the lease was granted.
    pub(super) request: ClaimRequest,
    until: Mutex<Moment>,
    stopped: AtomicBool,
}

impl OwnLease {
    /// The lease that was granted to a request. The call for it was sent at `sent_at`.
    pub(super) fn new(
        store: Arc<dyn Store>,
        clock: Clock,
        request: ClaimRequest,
        sent_at: Moment,
    ) -> Self {
        let until = Mutex::new(sent_at.plus(request.durations.lease));
        Self { store, clock, request, until, stopped: AtomicBool::new(false) }
    }

    /// Does some work, and renews the lease until the work has ended. The work is borrowed,
    /// because a future that owns another one reserves space for it twice.
    pub(super) async fn renew_during<T>(&self, work: Pin<&mut impl Future<Output = T>>) -> T {
        tokio::select! {
            biased;
            done = work => done,
            never = self.heartbeat() => match never {},
        }
    }

    /// Renews the lease each time a third of it has passed, for as long as this future is polled.
    /// If the store fails, the call is repeated until the lease ends or the heartbeat is stopped.
    /// The future never ends.
    async fn heartbeat(&self) -> Infallible {
        let third = self.request.durations.lease / 3;
        let mut pause = third;
        loop {
            sleep(pause).await;
            // A process that wakes up after the end of its lease has lost the lease: the store has
            // made the operation uncertain, or has granted it anew.
            if self.left().is_zero() || self.stopped.load(Ordering::Relaxed) {
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

    /// Starts the lease anew, because the store has granted it again. The call for it was sent at
    /// `sent_at`.
    pub(super) fn starts_anew(&self, sent_at: Moment) {
        *self.until.lock() = sent_at.plus(self.request.durations.lease);
        self.stopped.store(false, Ordering::Relaxed);
    }

    /// Whether half of the lease is left to send the request. If less is left, tries to renew the
    /// lease first. A process that was paused until its lease had run out does not send.
    pub(super) async fn has_time_to_send(&self) -> bool {
        let half = self.request.durations.lease / 2;
        self.left() >= half || matches!(self.renew().await, Ok(Renewed::Renewed))
    }

    /// Waits until the current end of the lease, even if the lease is renewed meanwhile. Then stops
    /// the heartbeat, because copies must not wait forever for an outcome that cannot be recorded.
    pub(super) async fn stop_renewing_at_its_end(&self) {
        let until = *self.until.lock();
        // The timer stops while the machine is suspended, so the clock is read again.
        loop {
            let left = self.clock.moment().until(until);
            if left.is_zero() {
                break;
            }
            sleep(left).await;
        }
        self.stopped.store(true, Ordering::Relaxed);
    }

    async fn renew(&self) -> Result<Renewed, store::Error> {
        let sent_at = self.clock.moment();
        let ClaimRequest { subject, claim_id, durations, .. } = &self.request;
        let lease = durations.lease;
        let renewal = Renewal { operation: subject.id, claim_id: *claim_id, lease };
        let renewed = self.store.apply(renewal).await?;
        if renewed == Renewed::Renewed {
            *self.until.lock() = sent_at.plus(lease);
        }
        Ok(renewed)
    }

    /// The operation of the lease.
    pub(super) fn operation(&self) -> OperationId {
        self.request.subject.id
    }

    /// How long the lease lasts from now.
    pub(super) fn left(&self) -> Duration {
        let until = *self.until.lock();
        self.clock.moment().until(until)
    }
}
