//! Counts the copies that wait in this process, for `waiters_max`.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use parking_lot::Mutex;

use crate::operation::OperationId;

/// How many copies of each operation wait in this process.
#[derive(Debug, Default)]
pub(super) struct Waiters(Mutex<HashMap<OperationId, usize>>);

/// The place of one waiter. Dropping it frees the place.
#[derive(Debug)]
pub(super) struct WaiterPlace<'a> {
    waiters: &'a Waiters,
    id: OperationId,
}

impl Waiters {
    /// Takes a place among the waiters for an operation; none if `waiters_max` are taken.
    pub(super) fn join(&self, id: OperationId, waiters_max: usize) -> Option<WaiterPlace<'_>> {
        let mut waiting = self.0.lock();
        let count = waiting.entry(id).or_default();
        if *count >= waiters_max {
            // With `waiters_max = 0` the entry is new, and nobody would remove it.
            if *count == 0 {
                waiting.remove(&id);
            }
            return None;
        }
        *count += 1;
        Some(WaiterPlace { waiters: self, id })
    }
}

impl Drop for WaiterPlace<'_> {
    fn drop(&mut self) {
        if let Entry::Occupied(mut entry) = self.waiters.0.lock().entry(self.id) {
            *entry.get_mut() -= 1;
            if *entry.get() == 0 {
                entry.remove();
            }
        }
    }
}
