//! Routes that only observe: every copy is forwarded, and the log and the metrics say what the
//! route would have done with it.

use super::attempt::GrantedAttempt;
use super::claim_call::{ClaimOptions, ClaimResult};
use super::executor::Context;
use super::request::KeyedRequest;
use crate::operation::state::IfInFlight;
use crate::telemetry::{self, chain};

impl Context<'_> {
    /// Forwards a request whatever the store says about its operation.
    pub(super) async fn observe(self, keyed: KeyedRequest) {
        use telemetry::DispositionWord as D;
        let Self { executor, handler, sender } = self;
        let options = ClaimOptions {
            // The copy is forwarded anyway, so it needs no look-up.
            may_look_up: false,
            ..ClaimOptions::new(handler.place(), IfInFlight::Refuse)
        };
        let claimed = match executor.recalled(&keyed.subject, handler) {
            Some(state) => Ok(ClaimResult::NotGranted(state)),
            None => self.claim(&keyed, options).await,
        };
        let would_be = match claimed {
            Ok(ClaimResult::Granted(claim)) => {
                handler.metrics.observed(D::Executed);
                return Box::pin(GrantedAttempt { context: self, claim, keyed }.run()).await;
            }
            // `in_flight_max` protects the upstream in this mode too.
            Ok(ClaimResult::NoPlace) => return sender.answer(executor.overloaded()),
            Ok(ClaimResult::NotGranted(state)) => D::of_copy(&state),
            Err(error) => {
                let error = chain(&error);
                tracing::info!(
                    operation.id = %keyed.subject.id,
                    error,
                    "no claim: the request is only observed"
                );
                D::Refused
            }
        };
        let operation = keyed.subject.id;
        handler.metrics.observed(would_be);
        tracing::info!(
            operation.id = %operation,
            observed = would_be.as_str(),
            "forwarded all the same: the route only observes"
        );
        let Some(_place) = handler.place() else { return sender.answer(executor.overloaded()) };
        self.pass_on(keyed.request).await;
    }
}
