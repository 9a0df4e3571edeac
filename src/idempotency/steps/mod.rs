//! Attempts at events that go to several receivers. Each step is done once.
//!
//! The event is claimed once. The store records the beginning of a step before the step is sent,
//! and its outcome before the next step begins. A step that was done never runs again.

mod answer;
mod run;

use std::pin::pin;
use std::sync::Arc;

use futures_util::stream::{FuturesUnordered, StreamExt as _};

use super::claim::{Claim, StepRecorded};
use super::executor::Context;
use super::receiver::Steps;
use super::request::KeyedRequest;
use crate::operation::state::Advanced;

use run::StepResult;

/// An attempt at an event with several receivers.
pub(super) struct StepsAttempt<'a> {
    pub(super) context: Context<'a>,
    pub(super) steps: &'a Steps,
    pub(super) claim: Claim,
    pub(super) keyed: KeyedRequest,
}

impl StepsAttempt<'_> {
    /// Runs the steps that have begun and those that begin after them. Then answers the sender.
    pub(super) async fn run(self) {
        let results =
            if self.steps.plan.at_once { self.at_once().await } else { self.in_order().await };
        let sender = self.context.sender;
        // The claim has the route's place, which must be free before the sender has its answer and
        // sends another event.
        let disposition = self.answer(results).await;
        sender.answer(disposition);
    }

    /// Runs all steps that have begun, side by side. The outcome of each is recorded as soon as it
    /// is known.
    async fn at_once(&self) -> Vec<StepResult> {
        let lease = self.claim.lease();
        let began_at = self.claim.sent_at;
        let steps = self.claim.steps.iter();
        let running: FuturesUnordered<_> =
            steps.map(|step| self.run_step(Arc::clone(step), began_at)).collect();
        lease.renew_during(pin!(running.collect())).await
    }

    /// Runs the step that has begun. The store begins the next step when it records the end of one,
    /// and that step runs then.
    async fn in_order(&self) -> Vec<StepResult> {
        let lease = self.claim.lease();
        let mut results = Vec::new();
        let mut next = self.claim.steps.first().cloned();
        let mut began_at = self.claim.sent_at;
        while let Some(step) = next.take() {
            let run = pin!(self.run_step(step, began_at));
            let result = lease.renew_during(run).await;
            if let Some(StepRecorded { advanced: Advanced::Next { step }, sent_at }) =
                &result.recorded
            {
                // The store has granted a new lease with the next step, even if the last lease was
                // lost. So the heartbeat starts anew too.
                began_at = *sent_at;
                lease.starts_anew(began_at);
                next = Some(Arc::clone(step));
            }
            results.push(result);
        }
        results
    }
}
