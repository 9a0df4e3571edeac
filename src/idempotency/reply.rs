//! The way back to the sender. It is used once, by whoever comes first.

use std::future::pending;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

use tokio::sync::oneshot;
use tokio::time::{Instant, sleep_until};

use super::disposition::Disposition;

/// The way back to the sender of one request.
#[derive(Debug)]
pub(super) struct Reply {
    sender: Mutex<Option<oneshot::Sender<Disposition>>>,
    deadline: Option<Instant>,
    told_to_come_back: AtomicBool,
}

impl Reply {
    /// A way back that is to be used before `deadline`.
    pub(super) fn new(deadline: Option<Instant>) -> (Self, oneshot::Receiver<Disposition>) {
        let (sender, receiver) = oneshot::channel();
        let (sender, told_to_come_back) = (Mutex::new(Some(sender)), AtomicBool::new(false));
        (Self { sender, deadline, told_to_come_back }, receiver)
    }

    /// Answers the sender, unless it was answered or has gone.
    pub(super) fn send(&self, disposition: Disposition) {
        if let Some(sender) = self.take() {
            // A sender that has gone hears nothing; the work is recorded all the same.
            let _gone = sender.send(disposition);
        }
    }

    /// When the sender has waited for long enough, tells it to come back. Never ends.
    pub(super) async fn remind(&self, in_flight: impl FnOnce() -> Disposition) {
        self.overdue().await;
        if let Some(sender) = self.take() {
            self.told_to_come_back.store(true, Ordering::Release);
            let _gone = sender.send(in_flight());
        }
        pending::<()>().await;
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
        self.sender.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}
