//! Events that go to several receivers, each once.
//!
//! The event is claimed once. Each step's beginning is durable before it is sent, and its outcome
//! before the next one begins; what has succeeded is never run again.

mod answer;
mod at_once;
mod in_order;
mod run;

use std::sync::Arc;
use std::time::Duration;

use http::HeaderName;

use super::lookup::{Lookup, LookupSettings};
use super::reference::Reference;
use crate::operation::state::IfUncertain;
use crate::operation::{Plan, PlannedStep};
use crate::upstream::{self, Dialing, OutcomeRule, Upstream};

/// The receivers of a route that has several.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StepsPolicy {
    /// In their order.
    pub steps: Vec<StepPolicy>,
    /// Whether they run at the same time, not one after the other.
    pub at_once: bool,
    /// The name of the one whose answer the sender gets when all are done.
    pub answer_from: Arc<str>,
}

/// One of several receivers, and what is wanted done with it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StepPolicy {
    /// Stable: it is part of the id that the receiver gets.
    pub name: Arc<str>,
    /// Who receives.
    pub upstream: upstream::Settings,
    /// The longest the step may take.
    pub attempt_timeout: Duration,
    /// What becomes of it if its outcome is unknown.
    pub if_uncertain: IfUncertain,
    /// How the receiver is asked about it, if it can be.
    pub lookup: Option<LookupSettings>,
    /// Which statuses mean what.
    pub outcome: OutcomeRule,
    /// Where an answer says what the receiver calls the operation.
    pub reference: Option<Reference>,
    /// The header that carries the key to the receiver.
    pub forward_key: Option<HeaderName>,
}

impl StepsPolicy {
    /// The same, each of them free once it must have ended.
    #[must_use]
    pub fn retried(mut self) -> Self {
        for step in &mut self.steps {
            step.if_uncertain = IfUncertain::Retried { attempts_max: u32::MAX };
        }
        self
    }
}

/// The receivers at work.
#[derive(Debug)]
pub(super) struct Steps {
    pub(super) plan: Arc<Plan>,
    receivers: Vec<Receiver>,
}

/// One receiver at work.
#[derive(Debug)]
pub(super) struct Receiver {
    policy: StepPolicy,
    pub(super) upstream: Upstream,
    pub(super) lookup: Option<Lookup>,
}

impl Steps {
    pub(super) fn new(policy: &StepsPolicy, dialing: &Dialing) -> Self {
        let planned = |step: &StepPolicy| PlannedStep {
            name: Arc::clone(&step.name),
            attempt_timeout: step.attempt_timeout,
            if_uncertain: step.if_uncertain,
            forward_key: step.forward_key.as_ref().map(|name| name.as_str().into()),
        };
        let receiver = |step: &StepPolicy| Receiver {
            policy: step.clone(),
            upstream: Upstream::new(&step.upstream, dialing),
            lookup: step.lookup.clone().map(|settings| Lookup::new(settings, &dialing.trust)),
        };
        let plan = Plan {
            steps: policy.steps.iter().map(planned).collect(),
            at_once: policy.at_once,
            answer_from: Arc::clone(&policy.answer_from),
        };
        let receivers = policy.steps.iter().map(receiver).collect();
        Self { plan: Arc::new(plan), receivers }
    }

    /// The receiver of a step, and its place among the steps.
    fn find(&self, step: &str) -> Option<(usize, &Receiver)> {
        self.receivers.iter().enumerate().find(|(_, receiver)| *receiver.policy.name == *step)
    }

    /// Who can be asked about a step.
    pub(super) fn lookup(&self, step: &str) -> Option<&Lookup> {
        self.find(step)?.1.lookup.as_ref()
    }

    pub(super) fn upstreams(&self) -> impl Iterator<Item = &Upstream> {
        self.receivers.iter().map(|receiver| &receiver.upstream)
    }
}
