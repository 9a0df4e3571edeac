//! Copies of an operation in flight that wait for its outcome, bounded in number.
//!
//! When an attempt ends, every waiter claims: after a success all get the replay; after a failure
//! the store grants the next attempt to exactly one of them, and the others go on waiting.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::{Instant, sleep, timeout};

use super::claim::Approach;
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

/// What a copy that waits has to know.
#[derive(Debug, Clone, Copy)]
pub(super) struct Waiting {
    /// How many may wait for one operation.
    pub(super) waiters_max: usize,
    /// The attempt that it has met in flight.
    pub(super) met: u32,
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

/// After this a store that could not answer is asked again.
const ASK_AGAIN: Duration = Duration::from_secs(1);
/// Longest that a sender which has waited for long enough waits for the store's last word.
const LAST_WORD: Duration = Duration::from_millis(250);

impl Executor {
    /// Waits until the operation is no longer in flight under somebody else, or the sender has
    /// waited for long enough. It has met an attempt: from then on a store that is away is asked
    /// again, and nothing is forwarded because of its silence.
    pub(super) async fn wait(
        &self,
        keyed: &Keyed,
        handling: &Handling,
        waiting: Waiting,
        reply: &Reply,
    ) -> Result<Standing, store::Error> {
        let Waiting { waiters_max, met } = waiting;
        let id = keyed.asked.id;
        let Some(_place) = self.waiters.join(id, waiters_max) else {
            self.metrics.limit_reached(Limit::Waiters);
            let approach = Approach::new(handling.slot(), IfInFlight::Refused);
            return match self.claim(keyed, handling, approach, reply).await {
                Err(error) if !matches!(error, store::Error::Unreadable(..)) => Ok(in_flight(met)),
                standing => standing,
            };
        };
        // The watch begins before the look, so that no end falls between the two.
        let Ok(mut watch) = self.store.watch(id).await else { return Ok(in_flight(met)) };
        let mut slot = handling.slot();
        let mut waited_for = met;
        let mut lease_ends = Instant::now() + handling.policy.terms.lease;
        loop {
            let approach = Approach::after_waiting(slot.take(), IfInFlight::Waits, waited_for);
            let claimed = self.claim(keyed, handling, approach, reply).await;
            let pause = match &claimed {
                Ok(Standing::Stands(Claimed::InFlight { attempt, lease_left })) => {
                    (waited_for, lease_ends) = (*attempt, Instant::now() + *lease_left);
                    Some(*lease_left)
                }
                Ok(Standing::NoSlot) => None,
                Ok(Standing::Mine(_) | Standing::Stands(_)) | Err(store::Error::Unreadable(..)) => {
                    return claimed;
                }
                Err(_) if Instant::now() < lease_ends => Some(ASK_AGAIN),
                Err(_) => return Ok(in_flight(waited_for)),
            };
            tokio::select! {
                biased;
                () = watch.ended() => slot = handling.slot(),
                // A holder that has died announces nothing.
                () = sleep(pause.unwrap_or_default()), if pause.is_some() => {
                    slot = handling.slot();
                }
                // It failed, and other attempts have all the places: the next one is for a waiter.
                next = handling.next_slot(), if pause.is_none() => slot = next,
                () = self.stop.cancelled() => return Ok(in_flight(waited_for)),
                () = reply.overdue() => {
                    // It only looks, so that nothing is granted to a call that is given up.
                    let look = Approach::after_waiting(None, IfInFlight::Refused, waited_for);
                    let told = timeout(LAST_WORD, self.claim(keyed, handling, look, reply)).await;
                    return Ok(match told {
                        Ok(Ok(standing @ Standing::Stands(_))) => standing,
                        Ok(Ok(Standing::Mine(_) | Standing::NoSlot) | Err(_)) | Err(_) => {
                            in_flight(waited_for)
                        }
                    });
                }
            }
        }
    }
}

/// What is known of an attempt of which the store says nothing now.
const fn in_flight(attempt: u32) -> Standing {
    Standing::Stands(Claimed::InFlight { attempt, lease_left: Duration::ZERO })
}
