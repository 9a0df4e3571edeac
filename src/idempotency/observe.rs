//! Trying it before it is enforced: every copy is forwarded, and what would have become of it is
//! noted.

use std::sync::Arc;

use super::attempt::Attempt;
use super::claim::ClaimOptions;
use super::disposition::Disposition;
use super::{ClaimResult, Executor, Handling, Keyed, Reply};
use crate::operation::state::IfInFlight;
use crate::telemetry::{self, chain};

impl Executor {
    /// Forwards a request whatever the store says of it. Dropping the future interrupts nothing.
    pub async fn observe(self: &Arc<Self>, keyed: Keyed, handling: &Arc<Handling>) -> Disposition {
        let operation = keyed.asked.id;
        let deadline = handling.policy.answer_within.map(|within| keyed.arrived + within);
        let (reply, answer) = Reply::passing(deadline);
        let executor = Arc::clone(self);
        let handling = Arc::clone(handling);
        self.running.spawn(async move { executor.run_observed(keyed, &handling, reply).await });
        answer.await.unwrap_or(Disposition::lost(operation))
    }

    async fn run_observed(&self, keyed: Keyed, handling: &Handling, reply: Reply) {
        use telemetry::Disposition as D;
        let options = ClaimOptions::new(handling.slot(), IfInFlight::Refused);
        let options = ClaimOptions { looks_up: false, ..options };
        let would_be = match self.claim(&keyed, handling, options, &reply).await {
            Ok(ClaimResult::Granted(claim)) => {
                let attempt = Attempt { executor: self, handling, claim, keyed, reply: &reply };
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
        handling.metrics.observed(would_be);
        tracing::info!(
            operation.id = %operation,
            observed = would_be.as_str(),
            "forwarded all the same: the route only observes"
        );
        let Some(_slot) = handling.slot() else { return reply.send(self.overloaded()) };
        self.pass_on(keyed.request, handling, reply).await;
    }
}
