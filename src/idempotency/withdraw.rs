//! Claims without a reply.
//!
//! A claim whose reply never came is no grant: nothing is sent under it. But the store may have
//! granted it, or may yet. So the claim is settled as never sent, again and again, until the store
//! has answered for the length of a lease: a slow store leaves no held operations behind.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Semaphore;
use tokio::time::{Instant, sleep};

use crate::operation::state::Withdrawal;
use crate::operation::{ClaimId, OperationId, Terms};
use crate::store::{Error, Store, StoreExt as _};
use crate::telemetry::{Limit, Metrics, chain};

/// Claims that are being withdrawn at a time. When there are more, no new ones are made: they are
/// refused as if the store were down, which it is.
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

    /// Refuses when there is no room for one more claim to go wrong.
    pub(super) fn check_room(&self) -> Result<(), Error> {
        if self.places.available_permits() == 0 {
            self.metrics.limit_reached(Limit::Withdrawals);
            return Err(Error::Unavailable("too many of its replies are missing"));
        }
        Ok(())
    }

    /// Withdraws a claim in the background.
    pub(super) fn begin(&self, id: OperationId, claim_id: ClaimId, terms: Terms) {
        let store = Arc::clone(&self.store);
        let place = Arc::clone(&self.places).try_acquire_owned();
        tokio::spawn(async move {
            // Without a place it is withdrawn too: the claim was asked for before the last one went.
            let _place = place;
            withdraw(&*store, id, claim_id, terms).await;
        });
    }
}

async fn withdraw(store: &dyn Store, id: OperationId, claim_id: ClaimId, terms: Terms) {
    let withdrawal = Withdrawal { operation: id, claim_id, retention: terms.retention };
    let mut answering_since = None;
    loop {
        let asked = Instant::now();
        let withdrawn = store.apply(withdrawal).await;
        answering_since = match &withdrawn {
            Ok(()) | Err(Error::Unreadable(..)) => Some(answering_since.unwrap_or(asked)),
            Err(_) => None,
        };
        if answering_since.is_some_and(|since| since.elapsed() >= terms.lease) {
            if let Err(error) = withdrawn {
                tracing::error!(
                    operation.id = %id,
                    error = %chain(&error),
                    "a claim without a reply is not withdrawn: its record cannot be read"
                );
            }
            return;
        }
        sleep(PAUSE.min(terms.lease)).await;
    }
}
