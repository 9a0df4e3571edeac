//! How listeners are brought to an end, in two steps.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use tokio_util::sync::CancellationToken;

/// Brings every listener that serves under it to an end. Clones are one and the same.
#[derive(Debug, Clone, Default)]
pub struct Shutdown {
    drain: CancellationToken,
    stop: CancellationToken,
    within: Arc<OnceLock<Duration>>,
}

impl Shutdown {
    /// From now on every answer is the last one of its connection. New connections are accepted.
    ///
    /// An idle HTTP/1 connection is left open until its next answer: closing it could cross a
    /// request on its way. HTTP/2 can say what it did not see, so it says goodbye at once.
    pub fn drain(&self) {
        self.drain.cancel();
    }

    /// Accepts nothing more, closes what is idle, and lets the rest end. What is still open after
    /// `within` is dropped. The first call's `within` counts.
    pub fn stop(&self, within: Duration) {
        self.within.get_or_init(|| within);
        self.drain.cancel();
        self.stop.cancel();
    }

    /// Whether [`Shutdown::drain`] or [`Shutdown::stop`] was called.
    pub fn is_draining(&self) -> bool {
        self.drain.is_cancelled()
    }

    /// Ends with the call of [`Shutdown::drain`] or [`Shutdown::stop`].
    pub(super) async fn draining(&self) {
        self.drain.cancelled().await;
    }

    /// Ends with the call of [`Shutdown::stop`]; gives the time that connections have then.
    pub(super) async fn stopping(&self) -> Duration {
        self.stop.cancelled().await;
        self.within.get().copied().unwrap_or_default()
    }
}
