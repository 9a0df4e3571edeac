//! Opens the store, and removes expired records from it.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::{Instant, MissedTickBehavior, interval};

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

/// The pause between two log lines about sweeps that fail.
const LOG_EVERY: Duration = Duration::from_mins(1);

/// The sweeps that have failed since the last one that worked. After a disk has failed, each sweep
/// fails, and a log line for each would hide all others.
#[derive(Debug, Default)]
struct FailedSweeps {
    count: u64,
    logged_at: Option<Instant>,
}

impl FailedSweeps {
    /// Notes a sweep that failed at `now`. Returns how many have failed, if that is to be logged.
    fn failed(&mut self, now: Instant) -> Option<u64> {
        self.count += 1;
        if self.logged_at.is_some_and(|at| now.duration_since(at) < LOG_EVERY) {
            return None;
        }
        self.logged_at = Some(now);
        Some(self.count)
    }

    /// Notes a sweep that worked. Returns how many failed before it, if any did.
    fn worked(&mut self) -> Option<u64> {
        let Self { count, .. } = std::mem::take(self);
        (count > 0).then_some(count)
    }
}

/// Removes expired records for as long as the process runs.
pub(super) async fn sweep(store: Arc<dyn Store>, metrics: Arc<Metrics>) {
    let mut ticks = interval(SWEEP_EVERY);
    // After a pause of the whole process, one sweep is enough.
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut failures = FailedSweeps::default();
    loop {
        ticks.tick().await;
        // Each call removes a limited number of records, so that no call holds up a claim for long.
        loop {
            match store.sweep(SWEEP_RECORDS).await {
                Ok(swept) => {
                    metrics.holds_ended.inc_by(swept.holds_ended as u64);
                    if let Some(failures) = failures.worked() {
                        tracing::info!(failures, "expired records are removed again");
                    }
                    if !swept.more {
                        break;
                    }
                }
                Err(error) => {
                    if let Some(failures) = failures.failed(Instant::now()) {
                        tracing::warn!(
                            error = %chain(&error),
                            failures,
                            "expired records could not be removed yet"
                        );
                    }
                    break;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failed_sweeps_are_logged_once_a_minute_and_when_one_works_again() {
        let mut failures = FailedSweeps::default();
        let began = Instant::now();
        let logged = |failures: &mut FailedSweeps, second| {
            failures.failed(began + Duration::from_secs(second))
        };
        assert_eq!(failures.worked(), None);
        let lines: Vec<_> = (0..125).filter_map(|second| logged(&mut failures, second)).collect();
        assert_eq!(lines, [1, 61, 121]);
        assert_eq!(failures.worked(), Some(125));
        assert_eq!(failures.worked(), None);
        assert_eq!(logged(&mut failures, 125), Some(1));
    }
}
