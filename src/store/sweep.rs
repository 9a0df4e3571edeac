//! Reports what expiry has done.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::operation::OperationId;

/// The result of one pass of expiry.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SweepReport {
    /// The number of records that were removed.
    pub removed: usize,
    /// The number of uncertain operations whose hold has ended since the last pass. A claim may
    /// have ended a hold before the pass did.
    pub holds_ended: usize,
    /// Whether more records are due.
    pub more: bool,
}

/// Counts the holds that have ended since the last pass of expiry.
#[derive(Debug, Clone, Default)]
pub(super) struct HoldsEnded(Arc<AtomicUsize>);

impl HoldsEnded {
    /// Counts and logs the end of a hold. A person should know of it, because from now on a copy of
    /// the operation runs again.
    pub(super) fn count(&self, id: OperationId) {
        self.0.fetch_add(1, Ordering::Relaxed);
        tracing::error!(
            operation.id = %id,
            "an uncertain operation was given up because nobody resolved it within `hold_for`; \
             a copy of it is now a new operation"
        );
    }

    /// Returns the number since the last call.
    pub(super) fn take(&self) -> usize {
        self.0.swap(0, Ordering::Relaxed)
    }
}
