//! Withdraws claims whose replies were lost, or which were granted beside an own attempt.
//!
//! Nothing is sent under such a claim. But the store may have granted it, or may grant it later,
//! when the call arrives. So the claim is settled as never sent, again and again, until the store
//! has replied to every call for the length of a lease. So a slow store leaves no held operations
//! behind.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Semaphore;
use tokio::time::{Instant, sleep};

use crate::operation::state::Withdrawal;
use crate::store::{Error, Store, StoreExt as _};
use crate::telemetry::{Limit, Metrics, chain};

/// How many claims may be withdrawn at a time. With so many missing replies the store is down, so
/// new claims fail without a call.
const WITHDRAWALS_MAX: usize = 10_000;

/// The pause between two tries to withdraw a claim.
const PAUSE: Duration = Duration::from_millis(500);

/// The claims that are being withdrawn.
#[derive(Debug)]
pub(super) struct Withdrawals {
    store: Arc<dyn Store>,
    metrics: Arc<Metrics>,
    places: Arc<Semaphore>,
}

impl Withdrawals {
    pub(super) fn new(store: Arc<dyn Store>, metrics: Arc<Metrics>) -> Self {
        Self { store, metrics, places: Arc::new(Semaphore::new(WITHDRAWALS_MAX)) }
    }

    /// Fails if there is no place for one more claim that may have to be withdrawn.
    pub(super) fn check_room(&self) -> Result<(), Error> {
        if self.places.available_permits() == 0 {
            self.metrics.limit_reached(Limit::Withdrawals);
            return Err(Error::Unavailable("too many replies of the store are missing"));
        }
        Ok(())
    }

    /// Withdraws a claim in the background.
    pub(super) fn begin(&self, withdrawal: Withdrawal) {
        let store = Arc::clone(&self.store);
        let place = Arc::clone(&self.places).try_acquire_owned();
        tokio::spawn(async move {
            // A claim that was sent before the last place was taken is withdrawn without a place.
            let _place = place;
            withdraw(&*store, withdrawal).await;
        });
    }
}

async fn withdraw(store: &dyn Store, withdrawal: Withdrawal) {
    let Withdrawal { operation, durations, .. } = withdrawal;
    let mut replying_since = None;
    loop {
        let asked = Instant::now();
        let withdrawn = store.apply(withdrawal).await;
        // One reply is not enough: the claim may still be on its way, and arrive after the
        // withdrawal. The claim no longer arrives after the store has replied for the length of a
        // lease.
        replying_since = match &withdrawn {
            Ok(()) | Err(Error::Unreadable(..)) => Some(replying_since.unwrap_or(asked)),
            Err(_) => None,
        };
        if replying_since.is_some_and(|since| since.elapsed() >= durations.lease) {
            if let Err(error) = withdrawn {
                tracing::error!(
                    operation.id = %operation,
                    error = %chain(&error),
                    "a claim without a reply is not withdrawn: its record cannot be read"
                );
            }
            return;
        }
        sleep(PAUSE.min(durations.lease)).await;
    }
}
