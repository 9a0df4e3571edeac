//! The look-up that a copy of an uncertain operation makes before anything else is done.

use std::sync::Arc;
use std::time::Duration;

use super::claim::Application;
use super::disposition::Disposition;
use super::lookup::{Subject, Told};
use super::{Executor, Handling, Keyed, Reply};
use crate::operation::state::Claimed;
use crate::operation::{KeyKind, OperationId};

/// What the receiver is asked about.
pub(super) struct Question<'a> {
    /// The number of the latest attempt.
    pub(super) attempt: u32,
    /// Which step; none on a route without steps.
    pub(super) step: Option<Arc<str>>,
    pub(super) keyed: &'a Keyed,
    pub(super) handling: &'a Handling,
}

impl Executor {
    /// Asks the receiver, and records what it says: how the operation stands towards this request
    /// then. Meanwhile a sender that has waited for long enough is told so.
    pub(super) async fn look_up(
        &self,
        application: &mut Application,
        question: Question<'_>,
        reply: &Reply,
    ) -> Claimed {
        let Question { attempt, step, keyed, handling } = question;
        let operation = keyed.asked.id;
        let in_flight = || {
            let attempt = Some(attempt);
            let retry_after = Duration::ZERO;
            Disposition::InFlight { operation, attempt, retry_after, own: true }
        };
        let told = tokio::select! {
            biased;
            told = self.ask(keyed, handling, step.as_deref()) => told,
            never = reply.remind(in_flight) => match never {},
        };
        handling.metrics.lookup(told.finding);
        tracing::info!(
            operation.id = %operation,
            finding = told.finding.as_str(),
            reason = told.reason,
            "the receiver was asked whether it was done"
        );
        application.conclude(self, told, step, attempt).await
    }

    async fn ask(&self, keyed: &Keyed, handling: &Handling, step: Option<&str>) -> Told {
        let (lookup, operation) = match (step, &handling.steps) {
            (Some(step), Some(steps)) => {
                (steps.lookup(step), OperationId::of_step(keyed.asked.id, step))
            }
            (Some(_) | None, _) => (handling.lookup.as_ref(), keyed.asked.id),
        };
        let Some(lookup) = lookup else {
            return Told::unknown("not asked: the route has no look-up");
        };
        let event_id = match keyed.asked.key.from {
            KeyKind::Event => keyed.key.as_str(),
            KeyKind::Header | KeyKind::Body => "",
        };
        let subject = Subject { key: &keyed.key, operation, event_id };
        tokio::select! {
            biased;
            told = lookup.ask(&subject) => told,
            () = self.stop.cancelled() => Told::unknown("the process ended"),
        }
    }
}
