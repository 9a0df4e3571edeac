//! What this process last saw of operations: most steps on them find just that, and need one round
//! trip then. And a success that is read again is decoded once: all its copies share one answer.

use std::fmt;
use std::sync::Arc;

use quick_cache::Weighter;
use quick_cache::sync::Cache;

use super::swap::Revision;
use crate::operation::{Operation, OperationId, State};

/// Bytes that operations which are not done may take, about, and that those which are done may
/// take. A flood of one kind does not displace the other.
const BYTES_MAX: u64 = 16 * 1024 * 1024;
/// What most operations weigh at least: for a first guess at their number.
const WEIGHT_MIN: u64 = 1024;

/// An operation as it was seen, and the name of that state.
#[derive(Debug, Clone)]
pub(super) struct Snapshot {
    pub(super) revision: Revision,
    pub(super) operation: Arc<Operation>,
}

/// The last snapshots.
pub(super) struct Known {
    open: Snapshots,
    done: Snapshots,
}

type Snapshots = Cache<OperationId, Snapshot, Weight>;

#[derive(Debug, Clone)]
struct Weight;

impl Weighter<OperationId, Snapshot> for Weight {
    fn weight(&self, _: &OperationId, snapshot: &Snapshot) -> u64 {
        snapshot.operation.weight() as u64
    }
}

impl Known {
    pub(super) fn new() -> Self {
        let items = usize::try_from(BYTES_MAX / WEIGHT_MIN).unwrap_or(usize::MAX);
        let snapshots = || Cache::with_weighter(items, BYTES_MAX, Weight);
        Self { open: snapshots(), done: snapshots() }
    }

    pub(super) fn get(&self, id: OperationId) -> Option<Snapshot> {
        self.open.get(&id).or_else(|| self.done.get(&id))
    }

    /// Keeps a snapshot, in the place of whatever was known before.
    pub(super) fn note(&self, id: OperationId, snapshot: Option<Snapshot>) {
        let Some(snapshot) = snapshot else {
            self.open.remove(&id);
            self.done.remove(&id);
            return;
        };
        if matches!(snapshot.operation.state, State::Succeeded(_)) {
            self.open.remove(&id);
            self.done.insert(id, snapshot);
        } else {
            self.done.remove(&id);
            self.open.insert(id, snapshot);
        }
    }
}

impl fmt::Debug for Known {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Known")
            .field("open", &self.open.len())
            .field("done", &self.done.len())
            .finish_non_exhaustive()
    }
}
