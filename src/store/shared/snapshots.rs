//! Caches the records that this process saw last.
//!
//! In most steps the server still has the record that this process saw or wrote last. Such a step
//! takes one round trip. A success is decoded only once, so all copies share one answer.

use std::sync::Arc;

use super::server::Revision;
use crate::operation::{Operation, OperationId, State};
use crate::store::cache::{OperationCache, operation_cache};

/// The approximate number of bytes that each of the two caches may take.
const BYTES_MAX: u64 = 16 * 1024 * 1024;

/// A record, as this process saw it last.
#[derive(Debug, Clone)]
pub(super) struct Snapshot {
    pub(super) revision: Revision,
    pub(super) operation: Arc<Operation>,
}

/// The latest snapshots.
///
/// Successes have a cache of their own. So a flood of replays does not displace the operations in
/// flight, and a flood of new events does not displace the stored answers.
#[derive(Debug)]
pub(super) struct Snapshots {
    succeeded: OperationCache<Snapshot>,
    others: OperationCache<Snapshot>,
}

impl AsRef<Operation> for Snapshot {
    fn as_ref(&self) -> &Operation {
        &self.operation
    }
}

impl Snapshots {
    pub(super) fn new() -> Self {
        Self { succeeded: operation_cache(BYTES_MAX), others: operation_cache(BYTES_MAX) }
    }

    pub(super) fn get(&self, id: OperationId) -> Option<Snapshot> {
        self.others.get(&id).or_else(|| self.succeeded.get(&id))
    }

    /// Replaces the snapshot of an operation. `None` means that the server has no record of it.
    pub(super) fn replace(&self, id: OperationId, snapshot: Option<Snapshot>) {
        let Some(snapshot) = snapshot else {
            self.others.remove(&id);
            self.succeeded.remove(&id);
            return;
        };
        if matches!(snapshot.operation.state, State::Succeeded(_)) {
            self.others.remove(&id);
            self.succeeded.insert(id, snapshot);
        } else {
            self.succeeded.remove(&id);
            self.others.insert(id, snapshot);
        }
    }
}
