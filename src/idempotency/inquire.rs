//! The look-up that a copy of an uncertain operation makes before anything else is done.

use super::claim::ClaimCall;
use super::disposition::Disposition;
use super::lookup::{LookupResult, Subject};
use super::{Executor, KeyedRequest, PendingReply, RouteHandler};
use crate::operation::state::{Claimed, LookUp};
use crate::operation::{KeyKind, OperationId};

/// A look-up that the store has granted.
pub(super) struct LookUpRun<'a> {
    pub(super) executor: &'a Executor,
    pub(super) handler: &'a RouteHandler,
    pub(super) keyed: &'a KeyedRequest,
    pub(super) reply: &'a PendingReply,
}

impl LookUpRun<'_> {
    /// Asks the receiver, and records what it says. Gives the answer to the claim after that. A sender
    /// that has waited for long enough meanwhile is told so.
    pub(super) async fn run(self, look_up: LookUp, call: &mut ClaimCall) -> Claimed {
        let LookUp { attempt, step } = look_up;
        let operation = self.keyed.asked.id;
        let result = tokio::select! {
            biased;
            result = self.ask(step.as_deref()) => result,
            never = self.reply.remind(|| Disposition::own_in_flight(operation, attempt)) => {
                match never {}
            }
        };
        self.handler.metrics.lookup(result.finding);
        tracing::info!(
            operation.id = %operation,
            finding = result.finding.as_str(),
            reason = result.reason,
            "the receiver was asked whether it was done"
        );
        call.conclude(self.executor, result, step, attempt).await
    }

    async fn ask(&self, step: Option<&str>) -> LookupResult {
        let Some(lookup) = self.handler.receivers.lookup(step) else {
            return LookupResult::unknown("not asked: the route has no look-up");
        };
        let asked = &self.keyed.asked;
        let operation = step.map_or(asked.id, |step| OperationId::of_step(asked.id, step));
        let event_id = match asked.key.from {
            KeyKind::Event => self.keyed.key.as_str(),
            KeyKind::Header | KeyKind::Body => "",
        };
        let subject = Subject { key: &self.keyed.key, operation, event_id };
        tokio::select! {
            biased;
            result = lookup.ask(&subject) => result,
            () = self.executor.stop.cancelled() => LookupResult::unknown("the process ended"),
        }
    }
}
