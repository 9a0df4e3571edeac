//! Caches the latest successes, so that copies are answered without the writer.
//!
//! Only the writer changes the cache, and the cache holds only durable records. The writer puts a
//! success in after it has synced the record. If a change ends the success, the writer syncs the
//! change, takes the success out, and only then replies. So nobody sees a success again after a
//! reply that it was forgotten.

use std::fmt;
use std::sync::Arc;

use quick_cache::Weighter;
use quick_cache::sync::Cache;

use crate::operation::{Operation, OperationId, State};

/// The approximate number of bytes that the cache may take.
const BYTES_MAX: u64 = 32 * 1024 * 1024;

/// The bytes that most operations take at least. This gives a first guess at how many operations
/// fit.
const WEIGHT_MIN: u64 = 1024;

pub(super) struct SuccessCache(Cache<OperationId, Arc<Operation>, Weight>);

impl SuccessCache {
    pub(super) fn new() -> Self {
        let items = usize::try_from(BYTES_MAX / WEIGHT_MIN).unwrap_or(usize::MAX);
        Self(Cache::with_weighter(items, BYTES_MAX, Weight))
    }

    pub(super) fn get(&self, id: OperationId) -> Option<Arc<Operation>> {
        self.0.get(&id)
    }

    /// Makes the cache agree with a durable record.
    pub(super) fn update(&self, id: OperationId, operation: Option<Operation>) {
        match operation {
            Some(operation) if matches!(operation.state, State::Succeeded(_)) => {
                self.0.insert(id, Arc::new(operation));
            }
            Some(_) | None => {
                self.0.remove(&id);
            }
        }
    }
}

impl fmt::Debug for SuccessCache {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SuccessCache").field("len", &self.0.len()).finish_non_exhaustive()
    }
}

#[derive(Debug, Clone)]
struct Weight;

impl Weighter<OperationId, Arc<Operation>> for Weight {
    fn weight(&self, _: &OperationId, operation: &Arc<Operation>) -> u64 {
        operation.weight() as u64
    }
}
