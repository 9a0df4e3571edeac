//! Opens the store, and removes expired records from it.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::{MissedTickBehavior, interval};

use super::start_error::StartError;
use crate::clock::Clock;
use crate::store::{self, Store, embedded, memory, postgres, redis};
use crate::telemetry::{Metrics, chain};

/// The pause between two sweeps.
const SWEEP_EVERY: Duration = Duration::from_secs(1);
/// How many records one call to the store removes at most.
const SWEEP_RECORDS: usize = 1000;

/// Opens a store without blocking the runtime: an embedded store reads its files.
///
/// # Errors
///
/// See [`StartError`]. A server that cannot be reached is no error: the store tries again.
pub(crate) async fn open_store(
    settings: store::Settings,
    clock: Clock,
) -> Result<Arc<dyn Store>, StartError> {
    match settings {
        // An operator who has forgotten to change a trial's configuration has to see this.
        store::Settings::Memory => {
            tracing::warn!("the store is in memory: what is remembered is lost with this process");
            Ok(Arc::new(memory::Memory::new(clock)))
        }
        store::Settings::Redis(settings) => {
            redis::open(&settings, clock).map_err(StartError::Server)
        }
        store::Settings::Postgres(settings) => {
            postgres::open(&settings, clock).map_err(StartError::Server)
        }
        store::Settings::Embedded(settings) => {
            let opened =
                tokio::task::spawn_blocking(move || embedded::open(&settings, clock)).await;
            match opened {
                Ok(Ok(store)) => Ok(Arc::new(store)),
                Ok(Err(error)) => Err(StartError::Store(error)),
                Err(panicked) => std::panic::resume_unwind(panicked.into_panic()),
            }
        }
    }
}

/// Logs it if the store does not work. That is no reason not to start: the store may come back, and
/// until then requests are refused and their senders send them again.
pub(super) async fn log_probe(store: &dyn Store) {
    if let Err(error) = store.probe().await {
        tracing::error!(
            error = %chain(&error),
            "the store does not work; requests are refused until it does"
        );
    }
}

/// Removes expired records for as long as the process runs.
pub(super) async fn sweep(store: Arc<dyn Store>, metrics: Arc<Metrics>) {
    let mut ticks = interval(SWEEP_EVERY);
    // After a pause of the whole process, one sweep is enough.
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        // Each call removes a limited number of records, so that no call holds up a claim for long.
        loop {
            match store.sweep(SWEEP_RECORDS).await {
                Ok(swept) => {
                    metrics.holds_ended.inc_by(swept.holds_ended as u64);
                    if !swept.more {
                        break;
                    }
                }
                Err(error) => {
                    tracing::warn!(error = %chain(&error), "expired records could not be removed yet");
                    break;
                }
            }
        }
    }
}
