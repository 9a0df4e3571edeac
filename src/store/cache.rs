//! Caches of operations. They are bounded by the memory that the operations take.

use quick_cache::Weighter;
use quick_cache::sync::Cache;

use crate::operation::{Operation, OperationId};

/// The bytes that most operations take at least. This gives a first guess at how many operations
/// fit.
const WEIGHT_MIN: u64 = 1024;

pub(super) type OperationCache<V> = Cache<OperationId, V, Weight>;

/// The memory that an operation takes.
#[derive(Debug, Clone)]
pub(super) struct Weight;

impl<V: AsRef<Operation>> Weighter<OperationId, V> for Weight {
    fn weight(&self, _: &OperationId, value: &V) -> u64 {
        value.as_ref().weight() as u64
    }
}

/// Makes a cache that takes about `bytes_max` bytes at most.
pub(super) fn operation_cache<V: AsRef<Operation> + Clone>(bytes_max: u64) -> OperationCache<V> {
    let items = usize::try_from(bytes_max / WEIGHT_MIN).unwrap_or(usize::MAX);
    Cache::with_weighter(items, bytes_max, Weight)
}
