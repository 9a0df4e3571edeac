//! The way back to the sender. It is used once, by whoever comes first.

use std::convert::Infallible;
use std::future::pending;
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::Mutex;
use tokio::sync::oneshot;
use tokio::time::{Instant, sleep_until};

use super::disposition::{Disposition, Forwarded};

/// The way back to the sender of one request.
#[derive(Debug)]
pub(super) struct PendingReply {
    sender: Mutex<Option<oneshot::Sender<Disposition>>>,
    deadline: Option<Instant>,
    told_to_come_back: AtomicBool,
    passing: bool,
}

impl PendingReply {
    /// A way back that is to be used before `deadline`.
    pub(super) fn new(deadline: Option<Instant>) -> (Self, oneshot::Receiver<Disposition>) {
        let (sender, receiver) = oneshot::channel();
        let sender = Mutex::new(Some(sender));
        let told_to_come_back = AtomicBool::new(false);
        (Self { sender, deadline, told_to_come_back, passing: false }, receiver)
    }

    /// A way back to a sender that gets what its own request has brought about, as of a plain proxy.
    pub(super) fn passing(deadline: Option<Instant>) -> (Self, oneshot::Receiver<Disposition>) {
        let (reply, receiver) = Self::new(deadline);
        (Self { passing: true, ..reply }, receiver)
    }

    /// Whether the sender gets what its own request has brought about, whatever is recorded.
    pub(super) const fn passes(&self) -> bool {
        self.passing
    }

    /// Answers the sender, unless it was answered or has gone.
    pub(super) fn send(&self, disposition: Disposition) {
        if let Some(sender) = self.take() {
            let disposition = if self.passing { disposition.passed() } else { disposition };
            // A sender that has gone hears nothing; the work is recorded all the same.
            let _gone = sender.send(disposition);
        }
    }

    /// When the sender has waited for long enough, tells it to come back. Never ends.
    pub(super) async fn remind(&self, in_flight: impl FnOnce() -> Disposition) -> Infallible {
        self.overdue().await;
        if let Some(sender) = self.take() {
            self.told_to_come_back.store(true, Ordering::Release);
            let disposition =
                if self.passing { Disposition::Passed(Forwarded::TimedOut) } else { in_flight() };
            let _gone = sender.send(disposition);
        }
        pending().await
    }

    /// Ends when the sender has waited for long enough.
    pub(super) async fn overdue(&self) {
        match self.deadline {
            Some(deadline) => sleep_until(deadline).await,
            None => pending().await,
        }
    }

    /// Whether the sender was told to come back before there was an outcome.
    pub(super) fn told_to_come_back(&self) -> bool {
        self.told_to_come_back.load(Ordering::Acquire)
    }

    fn take(&self) -> Option<oneshot::Sender<Disposition>> {
        self.sender.lock().take()
    }
}
