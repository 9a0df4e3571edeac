//! Caches the latest successes, so that copies are answered without the writer.
//!
//! Only the writer changes the cache, and the cache holds only durable records. The writer puts a
//! success in after it has synced the record. If a change ends the success, the writer syncs the
//! change, takes the success out, and only then replies. So nobody sees a success again after a
//! reply that it was forgotten.

use std::sync::Arc;

use crate::operation::{Operation, OperationId, State};
use crate::store::cache::{OperationCache, operation_cache};

/// The approximate number of bytes that the cache may take.
const BYTES_MAX: u64 = 32 * 1024 * 1024;

#[derive(Debug)]
pub(super) struct SuccessCache(OperationCache<Arc<Operation>>);

impl SuccessCache {
    pub(super) fn new() -> Self {
        Self(operation_cache(BYTES_MAX))
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
