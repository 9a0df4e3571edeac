//! The receivers of a route. A receiver is an upstream together with the rules for its answers.

use std::sync::Arc;
use std::time::Duration;

use super::lookup::LookupClient;
use super::policy::ReceiverPolicy;
use crate::operation::state::IfUncertain;
use crate::operation::{Plan, PlannedStep};
use crate::upstream::{self, DialSettings, TrustStore, Upstream};

/// The settings of a route's steps.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StepsPolicy {
    /// The steps in their order.
    pub steps: Vec<StepPolicy>,
    /// Whether the steps run at the same time, not one after the other.
    pub at_once: bool,
    /// The name of the step whose answer the sender gets when all steps were done.
    pub answer_from: Arc<str>,
}

/// The settings of one step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StepPolicy {
    /// The name of the step. The operation id that the receiver gets depends on it, so a new name
    /// makes a new step.
    pub name: Arc<str>,
    /// The upstream of the step.
    pub upstream: upstream::Settings,
    /// The longest time that the step may take, counted from its beginning.
    pub attempt_timeout: Duration,
    /// The settings for the receiver of the step.
    pub receiver: ReceiverPolicy,
}

impl StepsPolicy {
    /// The same steps, with another policy: an uncertain step is sent again as soon as its last
    /// attempt must have ended.
    #[must_use]
    pub fn retried(mut self) -> Self {
        for step in &mut self.steps {
            step.receiver.if_uncertain = IfUncertain::Retry { attempts_max: u32::MAX };
        }
        self
    }
}

/// An upstream together with the rules for its answers.
#[derive(Debug)]
pub(super) struct Receiver {
    pub(super) upstream: Upstream,
    /// The longest time that an attempt may take, counted from the claim or from the beginning of
    /// the step.
    pub(super) attempt_timeout: Duration,
    /// How the receiver is asked about an uncertain operation; none if it cannot be asked.
    pub(super) lookup: Option<LookupClient>,
    /// The rules for its answers.
    pub(super) policy: ReceiverPolicy,
}

/// The receivers of a route.
#[derive(Debug)]
pub(super) enum Receivers {
    /// The receiver of a route without steps.
    One(Box<Receiver>),
    /// The receivers of a route with steps.
    Steps(Steps),
}

/// The receivers of a route with steps.
#[derive(Debug)]
pub(super) struct Steps {
    pub(super) plan: Arc<Plan>,
    /// One receiver for each step, in the order of the plan.
    receivers: Vec<Receiver>,
    /// The upstream of the route itself. It gets the requests that are not deduplicated.
    passes_to: Upstream,
}

impl Receiver {
    pub(super) fn new(
        upstream: Upstream,
        attempt_timeout: Duration,
        policy: &ReceiverPolicy,
        trust: &TrustStore,
    ) -> Self {
        Self {
            upstream,
            attempt_timeout,
            lookup: policy.lookup.clone().map(|settings| LookupClient::new(settings, trust)),
            policy: policy.clone(),
        }
    }
}

impl Receivers {
    /// The steps of the route, if it has any.
    pub(super) const fn plan(&self) -> Option<&Arc<Plan>> {
        match self {
            Self::One(_) => None,
            Self::Steps(steps) => Some(&steps.plan),
        }
    }

    /// The upstream that gets the requests that are not deduplicated.
    pub(super) const fn passes_to(&self) -> &Upstream {
        match self {
            Self::One(receiver) => &receiver.upstream,
            Self::Steps(steps) => &steps.passes_to,
        }
    }

    /// The client that asks about an operation, or about one step of it.
    pub(super) fn lookup(&self, step: Option<&str>) -> Option<&LookupClient> {
        match (self, step) {
            (Self::One(receiver), _) => receiver.lookup.as_ref(),
            (Self::Steps(steps), Some(step)) => steps.find(step)?.lookup.as_ref(),
            (Self::Steps(_), None) => None,
        }
    }

    /// The upstreams of the route.
    pub(super) fn upstreams(&self) -> Vec<&Upstream> {
        match self {
            Self::One(receiver) => vec![&receiver.upstream],
            Self::Steps(steps) => {
                let of_steps = steps.receivers.iter().map(|receiver| &receiver.upstream);
                std::iter::once(&steps.passes_to).chain(of_steps).collect()
            }
        }
    }
}

impl Steps {
    pub(super) fn new(policy: &StepsPolicy, passes_to: Upstream, dialing: &DialSettings) -> Self {
        let planned = |step: &StepPolicy| PlannedStep {
            name: Arc::clone(&step.name),
            attempt_timeout: step.attempt_timeout,
            if_uncertain: step.receiver.if_uncertain,
            forward_key: step.receiver.forward_key.as_ref().map(|name| name.as_str().into()),
        };
        let plan = Plan {
            steps: policy.steps.iter().map(planned).collect(),
            at_once: policy.at_once,
            answer_from: Arc::clone(&policy.answer_from),
        };
        let receiver = |step: &StepPolicy| {
            let upstream = Upstream::new(&step.upstream, dialing);
            Receiver::new(upstream, step.attempt_timeout, &step.receiver, &dialing.trust)
        };
        let receivers = policy.steps.iter().map(receiver).collect();
        Self { plan: Arc::new(plan), receivers, passes_to }
    }

    /// The receiver of a step; none if the plan has no step with this name. The store begins only
    /// steps of the plan, so a step that has begun has a receiver.
    pub(super) fn find(&self, step: &str) -> Option<&Receiver> {
        let mut all = self.plan.steps.iter().zip(&self.receivers);
        all.find(|(planned, _)| *planned.name == *step).map(|(_, receiver)| receiver)
    }
}
