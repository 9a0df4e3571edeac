//! The steps of an event that goes to several receivers, and the state of each.

use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::answer::StoredAnswer;
use super::attempt::Reason;
use super::copies::IfUncertain;
use super::id::ClaimId;
use super::time::Timestamp;

/// One step of an event, in its record.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Step {
    /// The name of the step on the route.
    pub name: Arc<str>,
    /// The state of the step.
    pub state: StepState,
}

/// The state of a step.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum StepState {
    /// The step has not begun, or it was freed and has not begun again. Nothing was sent since.
    Waiting,
    /// The step runs.
    InFlight {
        /// The claim under which the step began.
        claim_id: ClaimId,
        /// When the step ends at the latest.
        ends_at: Timestamp,
    },
    /// Nobody knows whether the step was done.
    Uncertain(StepHold),
    /// The step was done. It does not run again.
    Succeeded {
        /// The claim that settled the step; none if an operator or a look-up did.
        claim_id: Option<ClaimId>,
        /// The answer of the receiver.
        answer: Arc<StoredAnswer>,
    },
    /// The step was not done.
    Failed {
        /// The claim that settled the step; none if an operator or a look-up did.
        claim_id: Option<ClaimId>,
    },
}

/// The part of a record about an uncertain step.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StepHold {
    /// The claim under which the step began. It may settle the step late.
    pub claim_id: ClaimId,
    /// Why the step is uncertain.
    pub reason: Reason,
    /// When the step became uncertain.
    pub since: Timestamp,
    /// The latest time at which the receiver may still be working on the step.
    pub ends_at: Timestamp,
    /// The complete answer whose status means *uncertain*; none if the step became uncertain
    /// without a complete answer.
    pub answer: Option<Arc<StoredAnswer>>,
}

impl Step {
    /// About how many bytes the step's answer takes in memory.
    pub fn weight(&self) -> usize {
        match &self.state {
            StepState::Succeeded { answer, .. } => answer.weight(),
            StepState::Uncertain(hold) => hold.answer.as_ref().map_or(0, |answer| answer.weight()),
            StepState::Waiting | StepState::InFlight { .. } | StepState::Failed { .. } => 0,
        }
    }
}

impl StepState {
    /// The word used in JSON.
    pub const fn as_str(&self) -> &'static str {
        match self {
            Self::Waiting => "waiting",
            Self::InFlight { .. } => "in_flight",
            Self::Uncertain(_) => "uncertain",
            Self::Succeeded { .. } => "succeeded",
            Self::Failed { .. } => "failed",
        }
    }
}

/// The steps of a route, as it is configured now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plan {
    /// The steps in their order.
    pub steps: Vec<PlannedStep>,
    /// Whether the steps run at the same time, not one after the other.
    pub at_once: bool,
    /// The name of the step whose answer the sender gets when all steps were done.
    pub answer_from: Arc<str>,
}

impl Plan {
    /// The steps with these names, in the order of the plan.
    pub(super) fn named<'a>(
        &'a self,
        names: &'a [Arc<str>],
    ) -> impl Iterator<Item = &'a PlannedStep> {
        self.steps.iter().filter(|planned| names.contains(&planned.name))
    }
}

/// A step of a route, as it is configured now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlannedStep {
    /// The name of the step on the route.
    pub name: Arc<str>,
    /// The longest time that the step may take, counted from its beginning.
    pub attempt_timeout: Duration,
    /// What happens to a copy if the step is uncertain.
    pub if_uncertain: IfUncertain,
    /// The header that carries the key to the receiver, if the step sets one.
    pub forward_key: Option<Arc<str>>,
}
