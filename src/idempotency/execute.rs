//! The path of a request: claim, wait, attempt, answer.

use std::sync::Arc;

use super::attempt::GrantedAttempt;
use super::claim_call::{ClaimOptions, ClaimResult};
use super::disposition::Disposition;
use super::executor::{Context, Executor};
use super::policy::WhenStoreFails;
use super::request::KeyedRequest;
use super::route_handler::RouteHandler;
use super::wait::{AttemptInFlight, Wait};
use super::waiting_sender::WaitingSender;
use crate::operation::state::{IfInFlight, ReportedState};
use crate::operation::{RequestMode, Subject};
use crate::store;
use crate::telemetry::chain;

impl Executor {
    /// Does the operation of a request once, and gives the request's disposition. On a route that
    /// only observes, the request is forwarded whatever the store says about its operation. This
    /// always claims, so call [`Executor::recall`] first.
    ///
    /// # Cancel safety
    /// The work goes on if the future is dropped. The outcome is recorded even if the sender has
    /// hung up.
    pub async fn execute(
        self: &Arc<Self>,
        keyed: KeyedRequest,
        handler: &Arc<RouteHandler>,
    ) -> Disposition {
        let Subject { id, mode, .. } = *keyed.subject;
        let (sender, answer) = WaitingSender::new(handler.deadline(keyed.arrived), mode);
        let lost = sender.for_sender(Disposition::Lost(id));
        let executor = Arc::clone(self);
        let handler = Arc::clone(handler);
        let work = async move {
            let context = Context { executor: &executor, handler: &handler, sender: &sender };
            match mode {
                RequestMode::Enforce => context.execute(keyed).await,
                RequestMode::Observe { .. } => context.observe(keyed).await,
            }
        };
        self.work(work, answer).await.unwrap_or(lost)
    }
}

impl Context<'_> {
    async fn execute(self, keyed: KeyedRequest) {
        let Self { executor, handler, sender } = self;
        let if_in_flight = handler.policy.if_in_flight;
        let options = ClaimOptions::new(handler.place(), if_in_flight);
        let mut claimed = self.claim(&keyed, options).await;
        if if_in_flight == IfInFlight::Wait
            && let Ok(ClaimResult::NotGranted(ReportedState::InFlight { attempt, lease_left })) =
                claimed
        {
            let wait = Wait { context: self, keyed: &keyed };
            claimed = Box::pin(wait.run(AttemptInFlight::new(attempt, lease_left))).await;
        }
        match claimed {
            // Most copies never run these futures. They are in boxes, because otherwise the work of
            // every copy would have room for them.
            Ok(ClaimResult::Granted(claim)) => {
                Box::pin(GrantedAttempt { context: self, claim, keyed }.run()).await;
            }
            Ok(ClaimResult::NotGranted(state)) => {
                sender.answer(Disposition::NotGranted { operation: keyed.subject.id, state });
            }
            Ok(ClaimResult::NoPlace) => sender.answer(executor.overloaded()),
            Err(error) => Box::pin(self.without_claim(&error, keyed)).await,
        }
    }

    /// Refuses a request to whose claim the store could not reply. The request is forwarded
    /// unprotected instead under [`WhenStoreFails::Forward`].
    async fn without_claim(self, error: &store::Error, keyed: KeyedRequest) {
        let Self { executor, handler, sender } = self;
        let id = keyed.subject.id;
        // After any other error the operation may have been done. Such a request is refused even on
        // a route that forwards without a store.
        let may_pass = error.leaves_state_unknown();
        let error = chain(error);
        match handler.policy.when_store_fails {
            WhenStoreFails::Forward if may_pass => {
                let Some(_place) = handler.place() else {
                    return sender.answer(executor.overloaded());
                };
                tracing::error!(operation.id = %id, error, "no claim: forwarded unprotected");
                executor.metrics.unprotected.inc();
                self.pass_on(keyed.request).await;
            }
            WhenStoreFails::Forward | WhenStoreFails::Refuse => {
                tracing::error!(operation.id = %id, error, "no claim, so nothing is forwarded");
                sender.answer(Disposition::StoreUnavailable);
            }
        }
    }
}
