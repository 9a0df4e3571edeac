//! Look-ups: a copy that was granted one asks the receiver whether it has done an uncertain
//! operation.

mod client;
mod template;

pub use client::{Condition, LookupSettings, Scalar};
pub(super) use client::{LookupClient, LookupResult};
pub use template::{UrlTemplate, UrlTemplateError};

use std::pin::pin;
use std::time::Duration;

use super::disposition::Disposition;
use super::executor::Context;
use super::request::KeyedRequest;
use crate::operation::{KeyKind, OperationId};

use template::LookupValues;

impl Context<'_> {
    /// Asks the receiver whether the operation, or this step of it, was done. If `answer_within` is
    /// over before the receiver has answered, the sender is told that the operation is in flight.
    pub(super) async fn look_up(
        self,
        keyed: &KeyedRequest,
        step: Option<&str>,
        attempt: u32,
    ) -> LookupResult {
        let operation = keyed.subject.id;
        let in_flight =
            || Disposition::StillInFlight { operation, attempt, retry_after: Duration::ZERO };
        let asking = pin!(self.ask_receiver(keyed, step));
        let result = self.sender.tell_if_overdue(asking, in_flight).await;
        self.handler.metrics.lookup(result.finding);
        tracing::info!(
            operation.id = %operation,
            finding = result.finding.as_str(),
            reason = result.reason,
            "a look-up has ended"
        );
        result
    }

    async fn ask_receiver(self, keyed: &KeyedRequest, step: Option<&str>) -> LookupResult {
        let Some(client) = self.handler.receivers.lookup(step) else {
            return LookupResult::unknown("not asked: the route has no look-up");
        };
        let subject = &keyed.subject;
        let operation = step.map_or(subject.id, |step| OperationId::of_step(subject.id, step));
        let event_id = match subject.key.from {
            KeyKind::Event => keyed.key.as_str(),
            KeyKind::Header | KeyKind::Body => "",
        };
        let values = LookupValues { key: &keyed.key, operation, event_id };
        tokio::select! {
            biased;
            result = client.ask(&values) => result,
            // A shutdown does not wait for a receiver that does not answer.
            () = self.executor.stop.cancelled() => LookupResult::unknown("the process ended"),
        }
    }
}
