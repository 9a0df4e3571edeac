//! Events that go to several receivers, each once.
//!
//! The event is claimed once. Each step's beginning is durable before it is sent, and its outcome
//! before the next one begins; what has succeeded is never run again.

mod answer;
mod run;

use std::sync::Arc;

use futures_util::stream::{FuturesUnordered, StreamExt as _};

use super::attempt::Attempt;
use super::claim::Claim;
use super::disposition::Disposition;
use super::receiver::Steps;
use super::{Executor, KeyedRequest, PendingReply, RouteHandler};
use crate::operation::state::Advanced;

use run::StepResult;

/// An attempt at an event with several receivers.
pub(super) struct StepsAttempt<'a> {
    executor: &'a Executor,
    handler: &'a RouteHandler,
    steps: &'a Steps,
    claim: Claim,
    keyed: KeyedRequest,
    reply: &'a PendingReply,
}

impl<'a> StepsAttempt<'a> {
    pub(super) fn new(attempt: Attempt<'a>, steps: &'a Steps) -> Self {
        let Attempt { executor, handler, claim, keyed, reply } = attempt;
        Self { executor, handler, steps, claim, keyed, reply }
    }

    /// Runs the steps that have begun, and those that begin after them. Then the sender is answered.
    pub(super) async fn run(self) {
        let results =
            if self.steps.plan.at_once { self.at_once().await } else { self.in_order().await };
        let disposition = if results.is_empty() {
            // The route does not have the step any more: it never begins.
            Disposition::lost(self.keyed.asked.id)
        } else {
            self.answer(results).await
        };
        let reply = self.reply;
        // The place of the attempt is free before its sender can send another event.
        drop(self);
        reply.send(disposition);
    }

    /// Runs all steps that have begun at the same time. The outcome of each is recorded when it is
    /// known.
    async fn at_once(&self) -> Vec<StepResult> {
        let lease = self.claim.lease();
        let began_at = self.claim.asked_at;
        let steps = self.claim.steps.iter();
        let mut running: FuturesUnordered<_> =
            steps.map(|step| self.run_step(Arc::clone(step), began_at)).collect();
        let all = async {
            let mut results = Vec::new();
            while let Some(result) = running.next().await {
                results.extend(result);
            }
            results
        };
        tokio::select! {
            biased;
            results = all => results,
            never = lease.heartbeat() => match never {},
        }
    }

    /// Runs the step that has begun, and each one that begins with the end of the one before.
    async fn in_order(&self) -> Vec<StepResult> {
        let lease = self.claim.lease();
        let mut results = Vec::new();
        let mut next = self.claim.steps.first().cloned();
        let mut began_at = self.claim.asked_at;
        while let Some(step) = next.take() {
            let result = tokio::select! {
                biased;
                result = self.run_step(step, began_at) => result,
                never = lease.heartbeat() => match never {},
            };
            let Some(result) = result else { break };
            if let Some(Advanced::Next { step }) = &result.advanced {
                // The lease was given anew with the next step, so its heartbeat starts anew too.
                began_at = result.recorded_at;
                lease.starts_anew(began_at);
                next = Some(Arc::clone(step));
            }
            results.push(result);
        }
        results
    }
}
