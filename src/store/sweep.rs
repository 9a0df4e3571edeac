//! What expiry has done.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::operation::OperationId;

/// What one pass of expiry did.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SweepReport {
    /// Records that were removed.
    pub removed: usize,
    /// Uncertain operations whose hold has ended since the last pass. A claim may have ended a hold
    /// before the pass came to it.
    pub holds_ended: usize,
    /// Whether more records are due.
    pub more: bool,
}

/// Counts the holds that have ended since the last pass of expiry.
#[derive(Debug, Clone, Default)]
pub(super) struct HoldsEnded(Arc<AtomicUsize>);

impl HoldsEnded {
    /// Counts one, and logs it: from then on a copy runs again, so a person should know.
    pub(super) fn note(&self, id: OperationId) {
        self.0.fetch_add(1, Ordering::Relaxed);
        tracing::error!(
            operation.id = %id,
            "an uncertain operation was given up because nobody resolved it within `hold_for`; \
             a copy of it is now a new operation"
        );
    }

    /// The number since the last call.
    pub(super) fn take(&self) -> usize {
        self.0.swap(0, Ordering::Relaxed)
    }
}
