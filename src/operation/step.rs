//! Steps: the receivers of an event that goes to several, and how it stands with each.

use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::answer::StoredAnswer;
use super::attempt::Reason;
use super::id::ClaimId;
use super::state::IfUncertain;
use super::time::Timestamp;

/// One of the receivers of an event.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Step {
    /// Its name on the route.
    pub name: Arc<str>,
    /// How the event stands with it.
    pub state: StepState,
}

/// How an event stands with one of its receivers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum StepState {
    /// It has not begun since it was last free to begin: nothing was sent.
    Waiting,
    /// It runs, under this claim on the event.
    InFlight {
        /// The claim under which it began.
        claim_id: ClaimId,
        /// When it ends at the latest.
        ends_at: Timestamp,
    },
    /// It may have been done; nobody knows.
    Uncertain(HeldStep),
    /// It is done, and never run again.
    Succeeded {
        /// The claim whose settle this is; none if somebody else said so.
        claim_id: Option<ClaimId>,
        /// What its receiver answered.
        answer: Arc<StoredAnswer>,
    },
    /// It was not done.
    Failed {
        /// The claim whose settle this is; none if somebody else said so.
        claim_id: Option<ClaimId>,
    },
}

/// A step of which nobody knows whether it was done.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HeldStep {
    /// The claim under which it began: its late settle counts.
    pub claim_id: ClaimId,
    /// Why it is uncertain.
    pub reason: Reason,
    /// Since when.
    pub since: Timestamp,
    /// Until then its receiver may still be working on it.
    pub ends_at: Timestamp,
    /// The complete answer that left the outcome unknown, if that is how it became so.
    pub answer: Option<Arc<StoredAnswer>>,
}

impl Step {
    /// About how many bytes its answer takes in memory.
    pub fn weight(&self) -> usize {
        match &self.state {
            StepState::Succeeded { answer, .. } => answer.weight(),
            StepState::Uncertain(held) => held.answer.as_ref().map_or(0, |answer| answer.weight()),
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

/// The steps of a route, as it has them now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plan {
    /// In their order.
    pub steps: Vec<PlannedStep>,
    /// Whether they run at the same time, not one after the other.
    pub at_once: bool,
    /// The name of the one whose answer the sender gets when all are done.
    pub answer_from: Arc<str>,
}

impl Plan {
    /// Those with these names, in the order of the plan.
    pub(super) fn named<'a>(
        &'a self,
        names: &'a [Arc<str>],
    ) -> impl Iterator<Item = &'a PlannedStep> {
        self.steps.iter().filter(|planned| names.contains(&planned.name))
    }
}

/// What binds a step once it has begun.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlannedStep {
    /// Its name on the route.
    pub name: Arc<str>,
    /// The longest it may take.
    pub attempt_timeout: Duration,
    /// What is wanted done if it is uncertain.
    pub if_uncertain: IfUncertain,
    /// The header that carries the key to its receiver.
    pub forward_key: Option<Arc<str>>,
}
