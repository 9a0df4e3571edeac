//! Copies of an operation in flight that wait for its outcome, bounded in number.
//!
//! When an attempt ends, every waiter claims: after a success all get the replay; after a failure
//! the store grants the next attempt to exactly one of them, and the others go on waiting.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::time::sleep;

use super::{Executor, Handling, Keyed, Reply, Standing};
use crate::operation::OperationId;
use crate::operation::state::{Claimed, IfInFlight};
use crate::store;
use crate::telemetry::Limit;

/// How many copies wait for which operation, in this process.
#[derive(Debug, Default)]
pub(super) struct Waiters(Mutex<HashMap<OperationId, usize>>);

/// A waiter's place, given back when it is dropped.
#[derive(Debug)]
struct Place<'a> {
    waiters: &'a Waiters,
    id: OperationId,
}

impl Waiters {
    fn join(&self, id: OperationId, waiters_max: usize) -> Option<Place<'_>> {
        let mut waiting = self.lock();
        let count = waiting.entry(id).or_default();
        if *count >= waiters_max {
            if *count == 0 {
                waiting.remove(&id);
            }
            return None;
        }
        *count += 1;
        Some(Place { waiters: self, id })
    }

    /// Counts are whole after any panic.
    fn lock(&self) -> MutexGuard<'_, HashMap<OperationId, usize>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        if let Entry::Occupied(mut entry) = self.waiters.lock().entry(self.id) {
            *entry.get_mut() -= 1;
            if *entry.get() == 0 {
                entry.remove();
            }
        }
    }
}

impl Executor {
    /// Waits until the operation is no longer in flight under somebody else, or the sender has
    /// waited for long enough.
    pub(super) async fn wait(
        &self,
        keyed: &Keyed,
        handling: &Handling,
        waiters_max: usize,
        reply: &Reply,
    ) -> Result<Standing, store::Error> {
        let id = keyed.asked.id;
        let Some(_place) = self.waiters.join(id, waiters_max) else {
            self.metrics.limit_reached(Limit::Waiters);
            return self.claim(keyed, handling, handling.slot(), IfInFlight::Refused).await;
        };
        // The watch begins before the look, so that no end falls between the two.
        let mut watch = self.store.watch(id).await?;
        let mut slot = handling.slot();
        loop {
            let standing = self.claim(keyed, handling, slot.take(), IfInFlight::Waits).await?;
            let lease_left = match standing {
                Standing::Stands(Claimed::InFlight { lease_left, .. }) => Some(lease_left),
                Standing::NoSlot => None,
                Standing::Mine(_) | Standing::Stands(_) => return Ok(standing),
            };
            tokio::select! {
                biased;
                () = watch.ended() => slot = handling.slot(),
                // A holder that has died announces nothing.
                () = sleep(lease_left.unwrap_or_default()), if lease_left.is_some() => {
                    slot = handling.slot();
                }
                // It failed, and other attempts have all the places: the next one is for a waiter.
                next = handling.next_slot(), if lease_left.is_none() => slot = next,
                () = self.stop.cancelled() => return Ok(standing),
                () = reply.overdue() => {
                    return self.claim(keyed, handling, handling.slot(), IfInFlight::Refused).await;
                }
            }
        }
    }
}
