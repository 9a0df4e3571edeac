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

/// What most operations weigh at least: for a first guess at their number.
const WEIGHT_MIN: u64 = 1024;

pub(super) struct Successes(Cache<OperationId, Arc<Operation>, Weight>);

impl Successes {
    pub(super) fn new() -> Self {
        let items = usize::try_from(BYTES_MAX / WEIGHT_MIN).unwrap_or(usize::MAX);
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
        operation.weight() as u64
    }
}
