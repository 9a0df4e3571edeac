//! A copy of an operation in flight waits for the outcome.
//!
//! When an attempt ends, every waiter claims. After a success all of them get the replay. After a
//! failure the store grants the next attempt to exactly one of them, and the others wait for that
//! attempt.

use std::time::Duration;

use tokio::sync::OwnedSemaphorePermit;
use tokio::time::{Instant, sleep, timeout};

use super::claim_call::{ClaimOptions, ClaimResult};
use super::executor::Context;
use super::request::KeyedRequest;
use crate::operation::state::{IfInFlight, ReportedState};
use crate::store;
use crate::telemetry::Limit;

/// The pause of a waiter after the store could not reply.
const ASK_AGAIN: Duration = Duration::from_secs(1);
/// How long the store has for one more reply when a sender's `answer_within` is over.
const LAST_REPLY_WITHIN: Duration = Duration::from_millis(250);

/// A copy that waits for the outcome of an attempt in flight.
pub(super) struct Wait<'a> {
    pub(super) context: Context<'a>,
    pub(super) keyed: &'a KeyedRequest,
}

/// The attempt in flight, as the store has reported it last.
#[derive(Debug, Clone, Copy)]
pub(super) struct AttemptInFlight {
    number: u32,
    lease_ends: Instant,
}

impl AttemptInFlight {
    pub(super) fn new(number: u32, lease_left: Duration) -> Self {
        Self { number, lease_ends: Instant::now() + lease_left }
    }

    /// The result of a copy that learns no newer state.
    fn result(self) -> ClaimResult {
        let lease_left = self.lease_ends.saturating_duration_since(Instant::now());
        ClaimResult::NotGranted(ReportedState::InFlight { attempt: self.number, lease_left })
    }
}

impl Wait<'_> {
    /// Waits until no other attempt is in flight, or the sender has waited for `answer_within`.
    ///
    /// The store has reported that this attempt is in flight, so the operation may have been done by
    /// now. If the store fails from now on, the waiter asks it again. The copy is never forwarded
    /// unprotected.
    pub(super) async fn run(self, attempt: AttemptInFlight) -> Result<ClaimResult, store::Error> {
        let Context { executor, handler, sender } = self.context;
        let id = self.keyed.subject.id;
        let Some(_place) = executor.waiters.join(id, handler.policy.waiters_max) else {
            return self.refuse(attempt).await;
        };
        // The watch begins before the next claim. Otherwise nobody would notice an attempt that
        // ends between the claim and the watch until the lease runs out.
        let Ok(mut watch) = executor.store.watch(id).await else {
            return Ok(attempt.result());
        };
        let mut latest = attempt;
        let mut place = handler.place();
        loop {
            let claimed = self.claim(place.take(), IfInFlight::Wait, latest.number).await;
            // How long until the waiter asks again. None: until a place is free.
            let pause = match claimed {
                Ok(ClaimResult::NotGranted(ReportedState::InFlight { attempt, lease_left })) => {
                    latest = AttemptInFlight::new(attempt, lease_left);
                    Some(lease_left)
                }
                Ok(ClaimResult::NoPlace) => None,
                Ok(ClaimResult::Granted(_) | ClaimResult::NotGranted(_))
                | Err(store::Error::Unreadable(..)) => return claimed,
                // While the lease lasts, the attempt may end at any moment, so the store is asked
                // again. After the lease the state is not known, and the sender must come back.
                Err(_) if Instant::now() < latest.lease_ends => Some(ASK_AGAIN),
                Err(_) => return Ok(latest.result()),
            };
            tokio::select! {
                biased;
                () = watch.ended() => place = handler.place(),
                // A holder that has died does not announce the end of its attempt.
                () = sleep(pause.unwrap_or_default()), if pause.is_some() => {
                    place = handler.place();
                }
                // The attempt has failed, and attempts at other operations have all places of the
                // route. This waiter takes the next free place.
                next = handler.next_place(), if pause.is_none() => place = next,
                () = executor.stop.cancelled() => return Ok(latest.result()),
                () = sender.overdue() => return Ok(self.ask_once_more(latest).await),
            }
        }
    }

    async fn claim(
        &self,
        place: Option<OwnedSemaphorePermit>,
        if_in_flight: IfInFlight,
        waited_for: u32,
    ) -> Result<ClaimResult, store::Error> {
        let Context { executor, handler, .. } = self.context;
        // After a success all waiters claim at the same moment. The embedded store then has the
        // reply in memory.
        if let Some(state) = executor.recalled(&self.keyed.subject, handler) {
            return Ok(ClaimResult::NotGranted(state));
        }
        // A waiter never looks up: the attempt that it waited for has just ended uncertain.
        let waited_for = Some(waited_for);
        let options = ClaimOptions { place, if_in_flight, waited_for, may_look_up: false };
        self.context.claim(self.keyed, options).await
    }

    /// Refuses a copy beyond `waiters_max`, if the attempt is still in flight. This second claim
    /// notes in the record that the copy was refused. The first claim did not, because the copy was
    /// going to wait.
    async fn refuse(&self, attempt: AttemptInFlight) -> Result<ClaimResult, store::Error> {
        let Context { executor, handler, .. } = self.context;
        executor.metrics.limit_reached(Limit::Waiters);
        let options = ClaimOptions::new(handler.place(), IfInFlight::Refuse);
        match self.context.claim(self.keyed, options).await {
            Err(error) if !matches!(error, store::Error::Unreadable(..)) => Ok(attempt.result()),
            claimed => claimed,
        }
    }

    /// Asks the store once more for a sender whose `answer_within` is over. The claim has no place,
    /// so nothing is granted to it. The call may be dropped, and a grant to a dropped call would
    /// leave the operation in flight.
    async fn ask_once_more(&self, latest: AttemptInFlight) -> ClaimResult {
        let look = self.claim(None, IfInFlight::Refuse, latest.number);
        match timeout(LAST_REPLY_WITHIN, look).await {
            Ok(Ok(state @ ClaimResult::NotGranted(_))) => state,
            Ok(Ok(ClaimResult::Granted(_) | ClaimResult::NoPlace) | Err(_)) | Err(_) => {
                latest.result()
            }
        }
    }
}
