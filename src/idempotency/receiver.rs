//! Who receives the requests of a route, and what is wanted done with the answers.

use std::sync::Arc;
use std::time::Duration;

use http::HeaderName;

use super::lookup::{Lookup, LookupSettings};
use super::policy::Policy;
use super::reference::Reference;
use crate::operation::state::IfUncertain;
use crate::operation::{Plan, PlannedStep};
use crate::upstream::{self, Dialing, OutcomeRule, TrustStore, Upstream};

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

/// One receiver at work.
#[derive(Debug)]
pub(super) struct Receiver {
    pub(super) upstream: Upstream,
    /// The longest an attempt at it may take, counted from the claim or from the step's beginning.
    pub(super) attempt_timeout: Duration,
    /// How it is asked about an uncertain operation, if it can be.
    pub(super) lookup: Option<Lookup>,
    /// Which statuses mean what.
    pub(super) outcome: OutcomeRule,
    /// Where an answer says what the receiver calls the operation.
    pub(super) reference: Option<Reference>,
}

/// The receivers of a route at work.
#[derive(Debug)]
pub(super) enum Receivers {
    /// A route without steps.
    One(Box<Receiver>),
    /// A route with steps.
    Steps(Steps),
}

/// The receivers of a route with steps.
#[derive(Debug)]
pub(super) struct Steps {
    pub(super) plan: Arc<Plan>,
    /// In the order of the plan.
    receivers: Vec<Receiver>,
    /// Who receives what is not deduplicated.
    passes_to: Upstream,
}

/// A step's receiver, and its place among the steps.
pub(super) struct Placed<'a> {
    pub(super) index: usize,
    pub(super) receiver: &'a Receiver,
}

impl Receiver {
    pub(super) fn of_route(policy: &Policy, upstream: Upstream, trust: &TrustStore) -> Self {
        Self {
            upstream,
            attempt_timeout: policy.terms.attempt_timeout,
            lookup: policy.lookup.clone().map(|settings| Lookup::new(settings, trust)),
            outcome: policy.outcome.clone(),
            reference: policy.reference.clone(),
        }
    }

    fn of_step(step: &StepPolicy, dialing: &Dialing) -> Self {
        Self {
            upstream: Upstream::new(&step.upstream, dialing),
            attempt_timeout: step.attempt_timeout,
            lookup: step.lookup.clone().map(|settings| Lookup::new(settings, &dialing.trust)),
            outcome: step.outcome.clone(),
            reference: step.reference.clone(),
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

    /// Who receives what is not deduplicated.
    pub(super) const fn passes_to(&self) -> &Upstream {
        match self {
            Self::One(receiver) => &receiver.upstream,
            Self::Steps(steps) => &steps.passes_to,
        }
    }

    /// How a receiver is asked about an operation, or about this step of it.
    pub(super) fn lookup(&self, step: Option<&str>) -> Option<&Lookup> {
        match (self, step) {
            (Self::One(receiver), _) => receiver.lookup.as_ref(),
            (Self::Steps(steps), Some(step)) => steps.find(step)?.receiver.lookup.as_ref(),
            (Self::Steps(_), None) => None,
        }
    }

    /// All of them.
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
    pub(super) fn new(policy: &StepsPolicy, passes_to: Upstream, dialing: &Dialing) -> Self {
        let planned = |step: &StepPolicy| PlannedStep {
            name: Arc::clone(&step.name),
            attempt_timeout: step.attempt_timeout,
            if_uncertain: step.if_uncertain,
            forward_key: step.forward_key.as_ref().map(|name| name.as_str().into()),
        };
        let plan = Plan {
            steps: policy.steps.iter().map(planned).collect(),
            at_once: policy.at_once,
            answer_from: Arc::clone(&policy.answer_from),
        };
        let receivers = policy.steps.iter().map(|step| Receiver::of_step(step, dialing)).collect();
        Self { plan: Arc::new(plan), receivers, passes_to }
    }

    /// The receiver of a step. None of one that the route does not have any more.
    pub(super) fn find(&self, step: &str) -> Option<Placed<'_>> {
        let index = self.plan.steps.iter().position(|planned| *planned.name == *step)?;
        Some(Placed { index, receiver: self.receivers.get(index)? })
    }
}
