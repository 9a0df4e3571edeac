//! Asks the receiver about an uncertain operation, for a copy that was granted the look-up.

use std::pin::pin;

use super::disposition::Disposition;
use super::executor::Context;
use super::lookup::{LookUpResult, Subject};
use super::request::KeyedRequest;
use crate::operation::{KeyKind, OperationId};

impl Context<'_> {
    /// Asks the receiver whether the operation, or this step of it, was done. If `answer_within` is
    /// over before the receiver has answered, the sender is told that the operation is in flight.
    pub(super) async fn look_up(
        self,
        keyed: &KeyedRequest,
        step: Option<&str>,
        attempt: u32,
    ) -> LookUpResult {
        let operation = keyed.asked.id;
        let in_flight = || Disposition::still_in_flight(operation, attempt);
        let asking = pin!(self.ask_receiver(keyed, step));
        let result = self.reply.remind_during(asking, in_flight).await;
        self.handler.metrics.lookup(result.finding);
        tracing::info!(
            operation.id = %operation,
            finding = result.finding.as_str(),
            reason = result.reason,
            "the receiver was asked whether the operation was done"
        );
        result
    }

    async fn ask_receiver(self, keyed: &KeyedRequest, step: Option<&str>) -> LookUpResult {
        let Some(lookup) = self.handler.receivers.lookup(step) else {
            return LookUpResult::unknown("not asked: the route has no look-up");
        };
        let asked = &keyed.asked;
        let operation = step.map_or(asked.id, |step| OperationId::of_step(asked.id, step));
        let event_id = match asked.key.from {
            KeyKind::Event => keyed.key.as_str(),
            KeyKind::Header | KeyKind::Body => "",
        };
        let subject = Subject { key: &keyed.key, operation, event_id };
        tokio::select! {
            biased;
            result = lookup.ask(&subject) => result,
            // A shutdown does not wait for a receiver that does not answer.
            () = self.executor.stop.cancelled() => LookUpResult::unknown("the process ended"),
        }
    }
}
