//! Trying it before it is enforced: every copy is forwarded, and what would have become of it is
//! noted.

use std::sync::Arc;

use super::attempt::Attempt;
use super::claim::ClaimOptions;
use super::disposition::Disposition;
use super::{ClaimResult, Executor, KeyedRequest, PendingReply, RouteHandler};
use crate::operation::state::IfInFlight;
use crate::telemetry::{self, chain};

impl Executor {
    /// Forwards a request whatever the store says of it. Dropping the future interrupts nothing.
    pub async fn observe(
        self: &Arc<Self>,
        keyed: KeyedRequest,
        handler: &Arc<RouteHandler>,
    ) -> Disposition {
        let operation = keyed.asked.id;
        let deadline = handler.policy.answer_within.map(|within| keyed.arrived + within);
        let (reply, answer) = PendingReply::passing(deadline);
        let executor = Arc::clone(self);
        let handler = Arc::clone(handler);
        self.running.spawn(async move { executor.run_observed(keyed, &handler, reply).await });
        answer.await.unwrap_or(Disposition::lost(operation))
    }

    async fn run_observed(&self, keyed: KeyedRequest, handler: &RouteHandler, reply: PendingReply) {
        use telemetry::Disposition as D;
        let options = ClaimOptions::new(handler.slot(), IfInFlight::Refused);
        let options = ClaimOptions { looks_up: false, ..options };
        let would_be = match self.claim(&keyed, handler, options, &reply).await {
            Ok(ClaimResult::Granted(claim)) => {
                let attempt = Attempt { executor: self, handler, claim, keyed, reply: &reply };
                return Box::pin(attempt.run()).await;
            }
            // A limit is a limit: the upstream is not to be overrun.
            Ok(ClaimResult::NoSlot) => return reply.send(self.overloaded()),
            Ok(ClaimResult::NotGranted(state)) => D::of_copy(&state),
            Err(error) => {
                let error = chain(&error);
                tracing::info!(operation.id = %keyed.asked.id, error, "no claim: only observed");
                D::Refused
            }
        };
        let operation = keyed.asked.id;
        handler.metrics.observed(would_be);
        tracing::info!(
            operation.id = %operation,
            observed = would_be.as_str(),
            "forwarded all the same: the route only observes"
        );
        let Some(_slot) = handler.slot() else { return reply.send(self.overloaded()) };
        self.pass_on(keyed.request, handler, reply).await;
    }
}
