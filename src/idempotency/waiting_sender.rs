//! A sender that waits for its answer. The first disposition that is given to it is the answer.

use std::convert::Infallible;
use std::future::pending;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::Mutex;
use tokio::sync::oneshot;
use tokio::time::{Instant, sleep_until};

use super::disposition::Disposition;
use crate::operation::RequestMode;

/// The sender of one request. It is answered once.
#[derive(Debug)]
pub(super) struct WaitingSender {
    channel: Mutex<Option<oneshot::Sender<Disposition>>>,
    deadline: Option<Instant>,
    told_to_come_back: AtomicBool,
    /// Whether the route only observes.
    observed: bool,
}

impl WaitingSender {
    /// A sender that waits until `deadline`, and where its answer arrives. Without a deadline the
    /// sender waits until there is an answer. If the route only observes, the sender gets the
    /// upstream's answer to its own request, as from a plain proxy.
    pub(super) fn new(
        deadline: Option<Instant>,
        mode: RequestMode,
    ) -> (Self, oneshot::Receiver<Disposition>) {
        let (channel, answer) = oneshot::channel();
        let channel = Mutex::new(Some(channel));
        let told_to_come_back = AtomicBool::new(false);
        let observed = mode != RequestMode::Enforce;
        (Self { channel, deadline, told_to_come_back, observed }, answer)
    }

    /// Whether the route only observes. The sender then gets the answer to its own request,
    /// whatever is recorded.
    pub(super) const fn is_observed(&self) -> bool {
        self.observed
    }

    /// Answers the sender, unless it has an answer or has hung up.
    pub(super) fn answer(&self, disposition: Disposition) {
        if let Some(channel) = self.take() {
            // If the sender has hung up, nobody gets the answer. The outcome is recorded all the
            // same.
            let _gone = channel.send(self.for_sender(disposition));
        }
    }

    /// Does some work. If the sender's deadline passes before the work has ended, the sender is
    /// told to come back, unless it has an answer already. The work goes on. It is borrowed for the
    /// reason given at [`OwnLease::renew_during`].
    ///
    /// [`OwnLease::renew_during`]: super::lease::OwnLease::renew_during
    pub(super) async fn remind_during<T>(
        &self,
        work: Pin<&mut impl Future<Output = T>>,
        in_flight: impl FnOnce() -> Disposition,
    ) -> T {
        // If both are ready, the end of the work comes first, and the sender gets its answer.
        tokio::select! {
            biased;
            done = work => done,
            never = self.remind(in_flight) => match never {},
        }
    }

    /// Waits for the sender's deadline, and then tells the sender to come back, unless it has an
    /// answer already. The future never ends.
    async fn remind(&self, in_flight: impl FnOnce() -> Disposition) -> Infallible {
        self.overdue().await;
        if let Some(channel) = self.take() {
            self.told_to_come_back.store(true, Ordering::Release);
            let _gone = channel.send(self.for_sender(in_flight()));
        }
        pending().await
    }

    /// Waits until the sender's deadline has passed. Without a deadline the future never ends.
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

    /// The disposition as this sender learns it.
    pub(super) fn for_sender(&self, disposition: Disposition) -> Disposition {
        if self.observed { disposition.passed() } else { disposition }
    }

    fn take(&self) -> Option<oneshot::Sender<Disposition>> {
        self.channel.lock().take()
    }
}
