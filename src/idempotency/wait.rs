//! Copies of an operation in flight that wait for its outcome, bounded in number.
//!
//! When an attempt ends, every waiter claims: after a success all get the replay; after a failure
//! the store grants the next attempt to exactly one of them, and the others go on waiting.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::{Instant, sleep, timeout};

use super::claim::ClaimOptions;
use super::{ClaimResult, Executor, KeyedRequest, PendingReply, RouteHandler};
use crate::operation::OperationId;
use crate::operation::state::{IfInFlight, OperationState};
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
        let mut waiting = self.0.lock();
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
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        if let Entry::Occupied(mut entry) = self.waiters.0.lock().entry(self.id) {
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

/// A copy that waits for the outcome of an attempt in flight.
pub(super) struct Wait<'a> {
    pub(super) executor: &'a Executor,
    pub(super) handler: &'a RouteHandler,
    pub(super) keyed: &'a KeyedRequest,
    pub(super) reply: &'a PendingReply,
    /// How many may wait for one operation.
    pub(super) waiters_max: usize,
}

/// An attempt in flight, as a waiter knows it.
#[derive(Debug, Clone, Copy)]
struct WaitedFor {
    attempt: u32,
    /// When its lease ends, unless it is renewed.
    lease_ends: Instant,
}

impl Wait<'_> {
    /// Waits until the operation is no longer in flight under another claim, or the sender has waited
    /// for long enough. The copy has met `attempt`: from then on a store that is away is asked again,
    /// and nothing is forwarded because of its silence.
    pub(super) async fn run(self, attempt: u32) -> Result<ClaimResult, store::Error> {
        let id = self.keyed.asked.id;
        let Some(_place) = self.executor.waiters.join(id, self.waiters_max) else {
            return self.do_not_wait(attempt).await;
        };
        // The watch begins before the claim, so that no end falls between the two.
        let Ok(mut watch) = self.executor.store.watch(id).await else {
            return Ok(in_flight(attempt));
        };
        let lease_ends = Instant::now() + self.handler.policy.terms.lease;
        let mut waited_for = WaitedFor { attempt, lease_ends };
        let mut slot = self.handler.slot();
        loop {
            let claimed = self.claim(slot.take(), IfInFlight::Waits, waited_for.attempt).await;
            let pause = match claimed {
                Ok(ClaimResult::NotGranted(OperationState::InFlight { attempt, lease_left })) => {
                    let lease_ends = Instant::now() + lease_left;
                    waited_for = WaitedFor { attempt, lease_ends };
                    Some(lease_left)
                }
                Ok(ClaimResult::NoSlot) => None,
                Ok(ClaimResult::Granted(_) | ClaimResult::NotGranted(_))
                | Err(store::Error::Unreadable(..)) => return claimed,
                Err(_) if Instant::now() < waited_for.lease_ends => Some(ASK_AGAIN),
                Err(_) => return Ok(in_flight(waited_for.attempt)),
            };
            tokio::select! {
                biased;
                () = watch.ended() => slot = self.handler.slot(),
                // A holder that has died announces nothing.
                () = sleep(pause.unwrap_or_default()), if pause.is_some() => {
                    slot = self.handler.slot();
                }
                // It failed, and other attempts have all the places: the next one is for a waiter.
                next = self.handler.next_slot(), if pause.is_none() => slot = next,
                () = self.executor.stop.cancelled() => return Ok(in_flight(waited_for.attempt)),
                () = self.reply.overdue() => return Ok(self.last_word(waited_for.attempt).await),
            }
        }
    }

    async fn claim(
        &self,
        slot: Option<OwnedSemaphorePermit>,
        if_in_flight: IfInFlight,
        waited_for: u32,
    ) -> Result<ClaimResult, store::Error> {
        let options = ClaimOptions::after_waiting(slot, if_in_flight, waited_for);
        self.executor.claim(self.keyed, self.handler, options, self.reply).await
    }

    /// Too many wait already: the copy is refused if the attempt is still in flight.
    async fn do_not_wait(&self, attempt: u32) -> Result<ClaimResult, store::Error> {
        let Self { executor, handler, keyed, reply, .. } = self;
        executor.metrics.limit_reached(Limit::Waiters);
        let options = ClaimOptions::new(handler.slot(), IfInFlight::Refused);
        match executor.claim(keyed, handler, options, reply).await {
            Err(error) if !matches!(error, store::Error::Unreadable(..)) => Ok(in_flight(attempt)),
            claimed => claimed,
        }
    }

    /// The sender has waited for long enough. The store is asked once more; nothing is granted to a
    /// call that may be given up.
    async fn last_word(&self, waited_for: u32) -> ClaimResult {
        let look = self.claim(None, IfInFlight::Refused, waited_for);
        match timeout(LAST_WORD, look).await {
            Ok(Ok(state @ ClaimResult::NotGranted(_))) => state,
            Ok(Ok(ClaimResult::Granted(_) | ClaimResult::NoSlot) | Err(_)) | Err(_) => {
                in_flight(waited_for)
            }
        }
    }
}

/// What is known of an attempt of which the store says nothing now.
const fn in_flight(attempt: u32) -> ClaimResult {
    ClaimResult::NotGranted(OperationState::InFlight { attempt, lease_left: Duration::ZERO })
}
