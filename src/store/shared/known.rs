//! What this process last saw of operations that are not done: most steps on them find just that,
//! and need one round trip then.

use quick_cache::sync::Cache;

use super::swap::Revision;
use crate::operation::{Operation, OperationId, State};

/// Operations of which the last sight is kept: more than may be in flight by default.
const KNOWN_MAX: usize = 16_384;

/// The longest answer of a step that is kept here.
const ANSWERS_MAX: usize = 1024;

/// An operation as it was seen, and the name of that state.
#[derive(Debug, Clone)]
pub(super) struct Sight {
    pub(super) revision: Revision,
    pub(super) operation: Operation,
}

/// The last sights.
#[derive(Debug)]
pub(super) struct Known(Cache<OperationId, Sight>);

impl Known {
    pub(super) fn new() -> Self {
        Self(Cache::new(KNOWN_MAX))
    }

    pub(super) fn get(&self, id: OperationId) -> Option<Sight> {
        self.0.get(&id)
    }

    /// Keeps a sight, unless it is of no use: what is done is only read from now on, and an answer
    /// takes much room.
    pub(super) fn note(&self, id: OperationId, sight: Option<(Revision, &Operation)>) {
        match sight {
            Some((revision, operation)) if is_useful(operation) => {
                self.0.insert(id, Sight { revision, operation: operation.clone() });
            }
            Some(_) | None => drop(self.0.remove(&id)),
        }
    }
}

fn is_useful(operation: &Operation) -> bool {
    if operation.steps.iter().any(|step| step.weight() > ANSWERS_MAX) {
        return false;
    }
    match &operation.state {
        State::InFlight(_) | State::Failed(_) | State::Forgotten { .. } => true,
        State::Uncertain(held) => held.answer.is_none(),
        State::Succeeded(_) => false,
    }
}
