//! What "once" means: claim, forward, classify, record.
//!
//! The work runs in a task of its own, so that a sender that hangs up interrupts nothing. It ends
//! in a [`Disposition`], which the sender gets if it is still there.

mod attempt;
mod claim;
mod classify;
mod disposition;
mod flow;
mod forward;
mod route_handler;
mod inquire;
mod lease;
mod long;
mod lookup;
mod note;
mod observe;
mod pass;
mod policy;
mod receiver;
mod record;
mod reference;
mod pending_reply;
mod steps;
mod wait;
mod withdraw;

pub use disposition::{Disposition, Forwarded};
pub use lookup::{Condition, LookupSettings, Scalar, UrlTemplate, UrlTemplateError};
pub use policy::{Policy, Remember, WhenInFlight, WhenStoreFails};
pub use receiver::{StepPolicy, StepsPolicy};
pub use reference::Reference;
pub use route_handler::RouteHandler;

use std::sync::Arc;

use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::budget::{Budget, Reserved};
use crate::clock::Clock;
use crate::operation::OperationRequest;
use crate::operation::state::{Claimed, IfInFlight, OperationState};
use crate::store::{self, Store};
use crate::telemetry::{Limit, Metrics, chain};
use crate::upstream::Request;

use attempt::Attempt;
use claim::{Claim, ClaimCall, ClaimOptions};
use inquire::LookUpRun;
use pending_reply::PendingReply;
use wait::{Wait, Waiters};
use withdraw::Withdrawals;

/// A request of which it is known what is to be done once.
#[derive(Debug)]
pub struct KeyedRequest {
    /// What it asks for.
    pub asked: Arc<OperationRequest>,
    /// Its key as one text, as the receiver knows it; empty if it is not one.
    pub key: String,
    /// What the upstream is to get.
    pub request: Request,
    /// Makes what the receiver of each step is to get; none on a route without steps.
    pub steps: Option<Box<dyn StepRequests>>,
    /// When it arrived: `answer_within` counts from here.
    pub arrived: Instant,
    /// The memory of its body.
    pub memory: Reserved,
}

/// Makes the requests of an event's steps, each when its step begins: most copies of an event never
/// come to one.
pub trait StepRequests: std::fmt::Debug + Send + Sync {
    /// That of the step at this place in their order; none if there is no such step.
    fn of(&self, step: usize) -> Option<Request>;
}

/// What all routes share: the store, and the work under way.
#[derive(Debug)]
pub struct Executor {
    store: Arc<dyn Store>,
    clock: Clock,
    holder: Arc<str>,
    metrics: Arc<Metrics>,
    budget: Budget,
    waiters: Waiters,
    withdrawals: Withdrawals,
    running: TaskTracker,
    stop: CancellationToken,
}

impl Executor {
    /// Claims operations in `store` in the name of `holder`.
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
            withdrawals,
            running: TaskTracker::new(),
            stop: CancellationToken::new(),
        })
    }

    /// What a copy of a success gets, where that is known without asking anybody: then it needs
    /// neither a task nor a request for the upstream.
    pub fn recall(&self, asked: &OperationRequest, handler: &RouteHandler) -> Option<Disposition> {
        match handler.policy.remember {
            Remember::Retention => Some(Disposition::of(asked.id, self.store.recall(asked)?)),
            Remember::InFlight => None,
        }
    }

    /// Does what is asked for, once. Dropping the future interrupts nothing.
    pub async fn execute(
        self: &Arc<Self>,
        keyed: KeyedRequest,
        handler: &Arc<RouteHandler>,
    ) -> Disposition {
        let operation = keyed.asked.id;
        let deadline = handler.policy.answer_within.map(|within| keyed.arrived + within);
        let (reply, answer) = PendingReply::new(deadline);
        let executor = Arc::clone(self);
        let handler = Arc::clone(handler);
        self.running.spawn(async move { executor.run(keyed, handler, reply).await });
        answer.await.unwrap_or(Disposition::lost(operation))
    }

    async fn run(
        self: Arc<Self>,
        keyed: KeyedRequest,
        handler: Arc<RouteHandler>,
        reply: PendingReply,
    ) {
        let if_in_flight = match handler.policy.when_in_flight {
            WhenInFlight::Refuse => IfInFlight::Refused,
            WhenInFlight::Wait { .. } => IfInFlight::Waits,
        };
        let options = ClaimOptions::new(handler.slot(), if_in_flight);
        let mut claimed = self.claim(&keyed, &handler, options, &reply).await;
        if let WhenInFlight::Wait { waiters_max } = handler.policy.when_in_flight
            && let Ok(ClaimResult::NotGranted(OperationState::InFlight { attempt, .. })) = claimed
        {
            let wait = Wait {
                executor: &self,
                handler: &handler,
                keyed: &keyed,
                reply: &reply,
                waiters_max,
            };
            claimed = Box::pin(wait.run(attempt)).await;
        }
        match claimed {
            // In a box: a future that most copies never run would be moved about with each of them.
            Ok(ClaimResult::Granted(claim)) => {
                let attempt =
                    Attempt { executor: &self, handler: &handler, claim, keyed, reply: &reply };
                Box::pin(attempt.run()).await;
            }
            Ok(ClaimResult::NotGranted(state)) => {
                reply.send(Disposition::of(keyed.asked.id, state));
            }
            Ok(ClaimResult::NoSlot) => reply.send(self.overloaded()),
            Err(error) => {
                Box::pin(self.without_claim(&error, keyed, &handler, reply)).await;
            }
        }
    }

    /// Refuses, unless the route wants it otherwise. Only what nobody has met may go on unprotected: a
    /// record that is there and cannot be read may be that of a success.
    async fn without_claim(
        &self,
        error: &store::Error,
        keyed: KeyedRequest,
        handler: &RouteHandler,
        reply: PendingReply,
    ) {
        let id = keyed.asked.id;
        let may_pass = error.leaves_state_unknown();
        let error = chain(error);
        match handler.policy.when_store_fails {
            WhenStoreFails::Forward if may_pass => {
                let Some(_slot) = handler.slot() else {
                    return reply.send(self.overloaded());
                };
                tracing::error!(operation.id = %id, error, "no claim: forwarded unprotected");
                self.metrics.unprotected.inc();
                self.pass_on(keyed.request, handler, reply).await;
            }
            WhenStoreFails::Forward | WhenStoreFails::Refuse => {
                tracing::error!(operation.id = %id, error, "no claim, so nothing is forwarded");
                reply.send(Disposition::StoreUnavailable);
            }
        }
    }

    /// The route makes as many attempts as it may.
    fn overloaded(&self) -> Disposition {
        self.metrics.limit_reached(Limit::InFlight);
        Disposition::Overloaded
    }

    /// Asks the store for the operation; where nobody knows its outcome, after asking the receiver, if
    /// the route wants that.
    async fn claim(
        &self,
        keyed: &KeyedRequest,
        handler: &RouteHandler,
        options: ClaimOptions,
        reply: &PendingReply,
    ) -> Result<ClaimResult, store::Error> {
        let has_slot = options.slot.is_some();
        let mut call = ClaimCall::new(self, &keyed.asked, handler, options)?;
        let mut claimed = call.send(self).await?;
        loop {
            match claimed {
                Claimed::LookUp(look_up) => {
                    let look_up_run = LookUpRun { executor: self, handler, keyed, reply };
                    claimed = Box::pin(look_up_run.run(look_up, &mut call)).await;
                }
                Claimed::Granted(grant) => {
                    let claim = call.granted(self, grant);
                    return Ok(claim.map_or(ClaimResult::NoSlot, ClaimResult::Granted));
                }
                Claimed::NotGranted(OperationState::Free) if !has_slot => {
                    return Ok(ClaimResult::NoSlot);
                }
                Claimed::NotGranted(state) => return Ok(ClaimResult::NotGranted(state)),
            }
        }
    }

    /// Waits until all work has ended. No more must come in.
    pub async fn finish(&self) {
        self.running.close();
        self.running.wait().await;
    }

    /// Ends the attempts that are still in flight. Those that may have reached their upstream are
    /// recorded as uncertain; wait for it with [`Executor::finish`].
    pub fn abort(&self) {
        self.stop.cancel();
    }

    /// How many requests are being worked on.
    pub fn under_way(&self) -> usize {
        self.running.len()
    }
}

/// What came of asking for an operation.
#[derive(Debug)]
enum ClaimResult {
    /// This request makes the next attempt.
    Granted(Claim),
    /// It does not.
    NotGranted(OperationState),
    /// It would, but the route makes as many attempts as it may.
    NoSlot,
}
