//! Caches the records that this process saw last.
//!
//! In most steps the server still has the record that this process saw or wrote last. Such a step
//! takes one round trip. A success is decoded only once, so all copies share one answer.

use std::fmt;
use std::sync::Arc;

use quick_cache::Weighter;
use quick_cache::sync::Cache;

use super::server::Revision;
use crate::operation::{Operation, OperationId, State};

/// The approximate number of bytes that each of the two caches may take.
const BYTES_MAX: u64 = 16 * 1024 * 1024;
/// The bytes that most operations take at least. This gives a first guess at how many operations
/// fit.
const WEIGHT_MIN: u64 = 1024;

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
pub(super) struct Snapshots {
    succeeded: SnapshotCache,
    others: SnapshotCache,
}

type SnapshotCache = Cache<OperationId, Snapshot, Weight>;

#[derive(Debug, Clone)]
struct Weight;

impl Weighter<OperationId, Snapshot> for Weight {
    fn weight(&self, _: &OperationId, snapshot: &Snapshot) -> u64 {
        snapshot.operation.weight() as u64
    }
}

impl Snapshots {
    pub(super) fn new() -> Self {
        let items = usize::try_from(BYTES_MAX / WEIGHT_MIN).unwrap_or(usize::MAX);
        let cache = || Cache::with_weighter(items, BYTES_MAX, Weight);
        Self { succeeded: cache(), others: cache() }
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

impl fmt::Debug for Snapshots {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Snapshots")
            .field("succeeded", &self.succeeded.len())
            .field("others", &self.others.len())
            .finish_non_exhaustive()
    }
}
