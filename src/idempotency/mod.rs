//! What "once" means: claim, forward, classify, record.
//!
//! The work runs in a task of its own, so that a sender that hangs up interrupts nothing. It ends
//! in a [`Disposition`], which the sender gets if it is still there.

mod attempt;
mod claim;
mod disposition;
mod flow;
mod forward;
mod handling;
mod inquire;
mod long;
mod lookup;
mod note;
mod observe;
mod pass;
mod policy;
mod record;
mod reference;
mod reply;
mod steps;
mod wait;
mod withdraw;

pub use disposition::{Disposition, Forwarded};
pub use handling::Handling;
pub use lookup::{Condition, LookupSettings, Scalar, UrlTemplate, UrlTemplateError};
pub use policy::{Policy, Remember, WhenInFlight, WhenStoreFails};
pub use reference::Reference;
pub use steps::{StepPolicy, StepsPolicy};

use std::sync::Arc;

use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::budget::{Budget, Reserved};
use crate::clock::Clock;
use crate::operation::Asked;
use crate::operation::state::{Claimed, IfInFlight};
use crate::store::{self, Store};
use crate::telemetry::{Limit, Metrics, chain};
use crate::upstream::Request;

use claim::{Application, Approach, Claim};
use inquire::Question;
use reply::Reply;
use wait::{Waiters, Waiting};
use withdraw::Withdrawals;

/// A request of which it is known what is to be done once.
#[derive(Debug)]
pub struct Keyed {
    /// What it asks for.
    pub asked: Arc<Asked>,
    /// Its key as one text, as the receiver knows it; empty if it is not one.
    pub key: String,
    /// What the upstream is to get.
    pub request: Request,
    /// What the receiver of each step is to get, in their order; none on a route without steps.
    pub steps: Vec<Request>,
    /// When it arrived: `answer_within` counts from here.
    pub arrived: Instant,
    /// The memory of its body.
    pub memory: Reserved,
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
    pub fn recall(&self, asked: &Asked, handling: &Handling) -> Option<Disposition> {
        match handling.policy.remember {
            Remember::Retention => Some(Disposition::of(asked.id, self.store.recall(asked)?)),
            Remember::InFlight => None,
        }
    }

    /// Does what is asked for, once. Dropping the future interrupts nothing.
    pub async fn execute(self: &Arc<Self>, keyed: Keyed, handling: &Arc<Handling>) -> Disposition {
        let operation = keyed.asked.id;
        let deadline = handling.policy.answer_within.map(|within| keyed.arrived + within);
        let (reply, answer) = Reply::new(deadline);
        let executor = Arc::clone(self);
        let handling = Arc::clone(handling);
        self.running.spawn(async move { executor.run(keyed, handling, reply).await });
        answer.await.unwrap_or(Disposition::lost(operation))
    }

    async fn run(self: Arc<Self>, keyed: Keyed, handling: Arc<Handling>, reply: Reply) {
        let policy = &handling.policy;
        let first_look = match policy.when_in_flight {
            WhenInFlight::Refuse => IfInFlight::Refused,
            WhenInFlight::Wait { .. } => IfInFlight::Waits,
        };
        let approach = Approach::new(handling.slot(), first_look);
        let mut standing = self.claim(&keyed, &handling, approach, &reply).await;
        if let WhenInFlight::Wait { waiters_max } = policy.when_in_flight
            && let Ok(Standing::Stands(Claimed::InFlight { attempt, .. })) = standing
        {
            let waiting = Waiting { waiters_max, met: attempt };
            let wait = self.wait(&keyed, &handling, waiting, &reply);
            standing = Box::pin(wait).await;
        }
        match standing {
            // In a box: what most copies never come to would be moved about with each of them.
            Ok(Standing::Mine(claim)) => {
                Box::pin(self.carry_out(claim, keyed, &handling, reply)).await;
            }
            Ok(Standing::Stands(claimed)) => {
                reply.send(Disposition::of(keyed.asked.id, claimed));
            }
            Ok(Standing::NoSlot) => reply.send(self.overloaded()),
            Err(error) => {
                Box::pin(self.without_claim(&error, keyed, &handling, reply)).await;
            }
        }
    }

    /// Refuses, unless the route wants it otherwise. Only what nobody has met may go on unprotected: a
    /// record that is there and cannot be read may be that of a success.
    async fn without_claim(
        &self,
        error: &store::Error,
        keyed: Keyed,
        handling: &Handling,
        reply: Reply,
    ) {
        let id = keyed.asked.id;
        let may_pass = error.says_nothing();
        let error = chain(error);
        match handling.policy.when_store_fails {
            WhenStoreFails::Forward if may_pass => {
                let Some(_slot) = handling.slot() else {
                    return reply.send(self.overloaded());
                };
                tracing::error!(operation.id = %id, error, "no claim: forwarded unprotected");
                self.metrics.unprotected.inc();
                self.pass_on(keyed.request, handling, reply).await;
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

    /// One atomic call to the store; where nobody knows, after asking the receiver, if the route
    /// wants that. Without a free slot it only looks.
    async fn claim(
        &self,
        keyed: &Keyed,
        handling: &Handling,
        approach: Approach,
        reply: &Reply,
    ) -> Result<Standing, store::Error> {
        let had_slot = approach.slot.is_some();
        let mut application = Application::new(self, &keyed.asked, handling, approach)?;
        let mut claimed = application.send(self).await?;
        while let Claimed::LookUp { attempt, step } = claimed {
            let question = Question { attempt, step, keyed, handling };
            let looking_up = self.look_up(&mut application, question, reply);
            claimed = Box::pin(looking_up).await;
        }
        let claim = application.granted(self, &claimed);
        Ok(match (claimed, claim) {
            (Claimed::Granted { .. } | Claimed::Begun { .. }, Some(claim)) => Standing::Mine(claim),
            (Claimed::Free, None) if !had_slot => Standing::NoSlot,
            (claimed, _) => Standing::Stands(claimed),
        })
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

/// How an operation stands towards one request.
#[derive(Debug)]
enum Standing {
    /// This request makes the next attempt.
    Mine(Claim),
    /// It does not.
    Stands(Claimed),
    /// It would, but the route makes as many attempts as it may.
    NoSlot,
}
