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
pub(super) struct Sight {
    pub(super) revision: Revision,
    pub(super) operation: Arc<Operation>,
}

/// The last sights.
pub(super) struct Known {
    open: Sights,
    done: Sights,
}

type Sights = Cache<OperationId, Sight, Weight>;

#[derive(Debug, Clone)]
struct Weight;

impl Weighter<OperationId, Sight> for Weight {
    fn weight(&self, _: &OperationId, sight: &Sight) -> u64 {
        sight.operation.weight() as u64
    }
}

impl Known {
    pub(super) fn new() -> Self {
        let items = usize::try_from(BYTES_MAX / WEIGHT_MIN).unwrap_or(usize::MAX);
        let sights = || Cache::with_weighter(items, BYTES_MAX, Weight);
        Self { open: sights(), done: sights() }
    }

    pub(super) fn get(&self, id: OperationId) -> Option<Sight> {
        self.open.get(&id).or_else(|| self.done.get(&id))
    }

    /// Keeps a sight, in the place of whatever was known before.
    pub(super) fn note(&self, id: OperationId, sight: Option<Sight>) {
        let Some(sight) = sight else {
            self.open.remove(&id);
            self.done.remove(&id);
            return;
        };
        if matches!(sight.operation.state, State::Succeeded(_)) {
            self.open.remove(&id);
            self.done.insert(id, sight);
        } else {
            self.done.remove(&id);
            self.open.insert(id, sight);
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
