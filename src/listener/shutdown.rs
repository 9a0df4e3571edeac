//! Ends listeners in two steps: drain, then stop.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use tokio_util::sync::CancellationToken;

/// Ends every listener that was started with it. Clones share one state.
#[derive(Debug, Clone, Default)]
pub struct Shutdown {
    drain: CancellationToken,
    stop: CancellationToken,
    within: Arc<OnceLock<Duration>>,
}

impl Shutdown {
    /// From now on every answer is the last one of its connection. New connections are still
    /// accepted, because load balancers go on sending for a while.
    ///
    /// An idle HTTP/1 connection stays open until its next answer: a request could be on its way
    /// when the connection is closed, and would be lost. HTTP/2 has GOAWAY, which names the last
    /// stream that was processed (RFC 9113, 6.8), so GOAWAY is sent at once.
    pub fn drain(&self) {
        self.drain.cancel();
    }

    /// Accepts no more connections, closes idle ones, and lets the others finish. Connections that
    /// are still open after `within` are dropped. If `stop` is called again, the first `within`
    /// counts.
    pub fn stop(&self, within: Duration) {
        self.within.get_or_init(|| within);
        self.drain.cancel();
        self.stop.cancel();
    }

    /// Whether [`Shutdown::drain`] or [`Shutdown::stop`] was called.
    pub fn is_draining(&self) -> bool {
        self.drain.is_cancelled()
    }

    /// Waits for [`Shutdown::drain`] or [`Shutdown::stop`]. Cancel safe.
    pub(super) async fn draining(&self) {
        self.drain.cancelled().await;
    }

    /// Waits for [`Shutdown::stop`]. Returns the time that connections then have left. Cancel safe.
    pub(super) async fn stopping(&self) -> Duration {
        self.stop.cancelled().await;
        self.within.get().copied().unwrap_or_default()
    }
}
