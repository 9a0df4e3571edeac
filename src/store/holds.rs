//! Tells of operations that were given up: a person should know.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::operation::OperationId;

/// Counts the holds that ended since they were last asked for.
#[derive(Debug, Clone, Default)]
pub(super) struct HoldsEnded(Arc<AtomicUsize>);

impl HoldsEnded {
    /// Notes one, and logs it.
    pub(super) fn note(&self, id: OperationId) {
        self.0.fetch_add(1, Ordering::Relaxed);
        tracing::error!(
            operation.id = %id,
            "an uncertain operation was given up because nobody resolved it within `hold_for`; \
             a copy of it is now a new operation"
        );
    }

    /// How many there were since the last call.
    pub(super) fn take(&self) -> usize {
        self.0.swap(0, Ordering::Relaxed)
    }
}
