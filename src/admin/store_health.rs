//! Whether the store works, and what makes it unsafe, for `/readyz`.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;

use crate::clock::{Clock, Moment};
use crate::store::{Concern, Store};

/// How long the result of a probe is given again. A probe writes to the store, and anybody may call
/// `/readyz` as often as they like.
const PROBE_KEPT_FOR: Duration = Duration::from_secs(1);

/// Whether the store works, and what makes it unsafe.
#[derive(Debug)]
pub(super) struct StoreHealth {
    store: Arc<dyn Store>,
    clock: Clock,
    /// The result of the latest probe. It is locked while a probe runs.
    latest: Arc<tokio::sync::Mutex<Option<ProbeResult>>>,
    /// The codes of the concerns about the store.
    concerns: Mutex<Vec<&'static str>>,
}

/// The result of a probe.
#[derive(Debug)]
struct ProbeResult {
    probed_at: Moment,
    /// A failure is described in words that name no server, user or table of the store.
    result: Result<(), String>,
}

impl StoreHealth {
    pub(super) fn new(store: Arc<dyn Store>, clock: Clock) -> Self {
        Self { store, clock, latest: Arc::default(), concerns: Mutex::default() }
    }

    /// Probes the store, or gives the result of a probe that was made a moment ago.
    ///
    /// However many callers there are, one probe is made at a time. A caller that goes away does
    /// not cancel the probe.
    pub(super) async fn probe(&self) -> Result<(), String> {
        let mut latest = Arc::clone(&self.latest).lock_owned().await;
        if let Some(ProbeResult { probed_at, result }) = &*latest
            && probed_at.until(self.clock.moment()) < PROBE_KEPT_FOR
        {
            return result.clone();
        }
        let store = Arc::clone(&self.store);
        let clock = self.clock.clone();
        // In a task of its own: otherwise every caller that hangs up would leave an unfinished
        // probe behind, and the next caller would begin another one.
        let probe = tokio::spawn(async move {
            let result = store.probe().await.map_err(|error| error.to_string());
            *latest = Some(ProbeResult { probed_at: clock.moment(), result: result.clone() });
            result
        });
        probe.await.unwrap_or_else(|_panicked| Err("the store could not be tried".to_owned()))
    }

    /// Replaces the concerns about the store.
    pub(super) fn set_concerns(&self, concerns: &[Concern]) {
        let codes = concerns.iter().map(|concern| concern.code).collect();
        *self.concerns.lock() = codes;
    }

    /// The codes of the concerns about the store.
    pub(super) fn concerns(&self) -> Vec<&'static str> {
        self.concerns.lock().clone()
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt as _;
    use futures_util::future::join_all;

    use super::*;
    use crate::operation::Timestamp;
    use crate::store::memory::Memory;

    /// How many probes were made: each leaves a record that is swept when its time is over.
    async fn probes(store: &dyn Store, clock: &Clock) -> usize {
        clock.advance(Duration::from_hours(24));
        store.sweep(1000).await.unwrap().removed
    }

    #[tokio::test]
    async fn however_many_ask_the_store_is_tried_once_a_second() {
        let clock = Clock::manual(Timestamp(0));
        let store: Arc<dyn Store> = Arc::new(Memory::new(clock.clone()));
        let health = StoreHealth::new(Arc::clone(&store), clock.clone());
        let ask = async |count: usize| {
            let asked = join_all((0..count).map(|_| health.probe())).await;
            assert_eq!(asked, vec![Ok(()); count]);
        };
        ask(100).await;
        clock.advance(Duration::from_millis(999));
        ask(100).await;
        assert_eq!(probes(&*store, &clock).await, 1);
        ask(100).await;
        clock.advance(PROBE_KEPT_FOR);
        ask(1).await;
        assert_eq!(probes(&*store, &clock).await, 2);
    }

    #[tokio::test]
    async fn a_caller_that_hangs_up_leaves_a_probe_whose_result_others_get() {
        let clock = Clock::manual(Timestamp(0));
        let store: Arc<dyn Store> = Arc::new(Memory::new(clock.clone()));
        let health = StoreHealth::new(Arc::clone(&store), clock.clone());
        assert_eq!(health.probe().now_or_never(), None, "the caller hangs up");
        assert!(health.latest.try_lock().is_err(), "the probe goes on");
        assert_eq!(health.probe().await, Ok(()));
        assert_eq!(probes(&*store, &clock).await, 1);
    }
}
