//! Successes that were asked for lately: they answer copies without the writer.
//!
//! Only the writer changes it, and only to what is durable: a success is put in after its sync, and
//! taken out after the sync of its end but before that is answered. So whoever has been told that a
//! success was forgotten will not see it again.

use std::fmt;
use std::sync::Arc;

use quick_cache::Weighter;
use quick_cache::sync::Cache;

use crate::operation::{Operation, OperationId, State};

/// Bytes that it may take, about.
const BYTES_MAX: u64 = 32 * 1024 * 1024;

/// Bytes of an operation without its answer, about: one attempt, no decision, a short path and key.
const WEIGHT_WITHOUT_ANSWER: usize = 768;

/// Bytes of one more line of a log, about.
const WEIGHT_OF_LINE: usize = 160;

pub(super) struct Successes(Cache<OperationId, Arc<Operation>, Weight>);

impl Successes {
    pub(super) fn new() -> Self {
        let items = usize::try_from(BYTES_MAX).unwrap_or(usize::MAX) / (2 * WEIGHT_WITHOUT_ANSWER);
        Self(Cache::with_weighter(items, BYTES_MAX, Weight))
    }

    pub(super) fn get(&self, id: OperationId) -> Option<Arc<Operation>> {
        self.0.get(&id)
    }

    /// Makes it agree with a record that is durable.
    pub(super) fn note(&self, id: OperationId, operation: Option<&Operation>) {
        match operation {
            Some(operation) if matches!(operation.state, State::Succeeded(_)) => {
                self.0.insert(id, Arc::new(operation.clone()));
            }
            Some(_) | None => {
                self.0.remove(&id);
            }
        }
    }
}

impl fmt::Debug for Successes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Successes").field("len", &self.0.len()).finish_non_exhaustive()
    }
}

#[derive(Debug, Clone)]
struct Weight;

impl Weighter<OperationId, Arc<Operation>> for Weight {
    fn weight(&self, _: &OperationId, operation: &Arc<Operation>) -> u64 {
        let answer = match &operation.state {
            State::Succeeded(success) => success.answer.weight(),
            State::InFlight(_)
            | State::Uncertain(_)
            | State::Failed(_)
            | State::Forgotten { .. } => 0,
        };
        let lines = operation.attempts.kept().count() + operation.decisions.len();
        let asked = operation.asked.path.len()
            + operation.asked.key.parts.iter().map(String::len).sum::<usize>();
        (WEIGHT_WITHOUT_ANSWER + answer + asked + lines * WEIGHT_OF_LINE) as u64
    }
}
