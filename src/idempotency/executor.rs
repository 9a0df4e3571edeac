//! The executor, which holds the store and the work under way for all requests.

use std::sync::{Arc, OnceLock};

use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::disposition::Disposition;
use super::own_attempts::OwnAttempts;
use super::route_handler::RouteHandler;
use super::waiters::Waiters;
use super::waiting_sender::WaitingSender;
use super::withdraw::Withdrawals;
use crate::budget::Budget;
use crate::clock::Clock;
use crate::operation::Subject;
use crate::operation::state::{Remember, ReportedState};
use crate::store::Store;
use crate::telemetry::{Limit, Metrics};

/// Does each operation once. All routes of a process share one executor.
#[derive(Debug)]
pub struct Executor {
    pub(super) store: Arc<dyn Store>,
    pub(super) clock: Clock,
    /// The name of this process in claims.
    pub(super) holder: Arc<str>,
    pub(super) metrics: Arc<Metrics>,
    /// The memory for bodies.
    pub(super) budget: Budget,
    pub(super) waiters: Waiters,
    /// The attempts that this process is making.
    pub(super) own_attempts: Arc<OwnAttempts>,
    pub(super) withdrawals: Withdrawals,
    /// The work on requests that has not ended.
    pub(super) running: TaskTracker,
    /// Cancelled when the attempts in flight must end.
    pub(super) stop: CancellationToken,
    /// The options of commands in log lines, if they need any to reach this process.
    pub(super) command_options: OnceLock<String>,
}

/// The values that the work on one request needs in every file of this module.
#[derive(Clone, Copy)]
pub(super) struct Context<'a> {
    pub(super) executor: &'a Executor,
    /// The request's route.
    pub(super) handler: &'a RouteHandler,
    /// The sender, which waits for its answer.
    pub(super) sender: &'a WaitingSender,
}

impl Executor {
    /// Makes an executor that claims operations in `store` in the name of `holder`.
    pub fn new(
        store: Arc<dyn Store>,
        holder: Arc<str>,
        clock: Clock,
        metrics: Arc<Metrics>,
        budget: Budget,
    ) -> Arc<Self> {
        let withdrawals = Withdrawals::new(Arc::clone(&store), Arc::clone(&metrics));
        Arc::new(Self {
            store,
            clock,
            holder,
            metrics,
            budget,
            waiters: Waiters::default(),
            own_attempts: Arc::default(),
            withdrawals,
            running: TaskTracker::new(),
            stop: CancellationToken::new(),
            command_options: OnceLock::new(),
        })
    }

    /// Gives the commands in log lines the options that they need to reach this process. Only the
    /// first call counts.
    pub fn give_options_to_commands(&self, options: String) {
        let _given_before = self.command_options.set(options);
    }

    /// The disposition of a copy, if the success of its operation is in memory. Such a copy needs
    /// neither a claim nor a request for the upstream, so callers call this before they make a
    /// [`KeyedRequest`].
    ///
    /// [`KeyedRequest`]: super::KeyedRequest
    pub fn recall(&self, subject: &Subject, handler: &RouteHandler) -> Option<Disposition> {
        let state = self.recalled(subject, handler)?;
        Some(Disposition::NotGranted { operation: subject.id, state })
    }

    /// The state that a claim would report, if the store knows it without a call.
    pub(super) fn recalled(
        &self,
        subject: &Subject,
        handler: &RouteHandler,
    ) -> Option<ReportedState> {
        match handler.policy.remember {
            Remember::Retention => self.store.recall(subject),
            // Every later request is a new event, so it must claim.
            Remember::InFlight => None,
        }
    }

    /// The disposition of a request whose route has no free place (`in_flight_max`).
    pub(super) fn overloaded(&self) -> Disposition {
        self.metrics.limit_reached(Limit::InFlight);
        Disposition::Overloaded
    }

    /// Waits until all work has ended. The caller must take no more requests.
    pub async fn finish(&self) {
        self.running.close();
        self.running.wait().await;
    }

    /// Ends the attempts that are in flight. Attempts that may have reached their upstream are
    /// recorded as uncertain. [`Executor::finish`] waits until they are recorded.
    pub fn abort(&self) {
        self.stop.cancel();
    }

    /// How many requests are being worked on.
    pub fn under_way(&self) -> usize {
        self.running.len()
    }
}
