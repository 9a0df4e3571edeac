//! Stores that several processes share.
//!
//! The rules of [`state`] are applied here, in this process, to the record that the server has; the
//! server puts the new record in the place of exactly that one, in one atomic step, or says what
//! else is there. So there is one set of rules for all stores, and a server needs one script.
//!
//! A step begins with what is supposed to be there: nothing, or what this process saw last. Most
//! suppositions are right, and take one round trip; a wrong one takes another with what was found.
//! A supposition is never told to anybody: a rule that changes nothing is applied to what the
//! server has.

mod clock;
mod known;
mod swap;
mod window;

pub(super) use swap::{
    Expected, Expired, Meant, Page, Purpose, Put, Records, Revision, Seen, Stored, Swap, Swapped,
};

use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use futures_util::future::try_join_all;

use self::clock::ServerClocks;
use self::known::{Known, Sight};
use self::window::earliest;
use super::endings::Endings;
use super::holds::HoldsEnded;
use super::listing::{Listed, Listing};
use super::{Concern, Corrupt, Error, Store, Swept, Watch, codec, probe};
use crate::clock::Clock;
use crate::operation::state::{
    self, Advanced, Change, ClaimRequest, Claimed, Conclusion, Decided, IfInFlight, Renewed,
    Resolution, Settled, Settlement, StepEnd, Transition,
};
use crate::operation::{ClaimId, Operation, OperationId, State, Timestamp};
use crate::telemetry::chain;

/// A store on the records of a server.
#[derive(Debug)]
pub(super) struct Shared<R> {
    records: R,
    clocks: ServerClocks,
    known: Known,
    endings: Endings,
    holds_ended: HoldsEnded,
    /// Unreadable records that have been told of.
    kept: Mutex<HashSet<OperationId>>,
    timeout: Duration,
}

/// Unreadable records of which it is known that they have been told of; beyond, they are told of
/// again.
const KEPT_MAX: usize = 10_000;

/// How a step is made.
#[derive(Debug, Clone, Copy, Default)]
struct Manner {
    /// If an attempt is in flight, somebody waits for its end.
    waits: bool,
    purpose: Purpose,
}

/// What a rule is applied to.
struct Supposed {
    sight: Option<Sight>,
    at: Timestamp,
    /// The server has said so.
    is_seen: bool,
}

impl<R: Records> Shared<R> {
    /// A store whose calls take `timeout` at most. The ends that `records` hears of are announced
    /// through `endings`.
    pub(super) fn new(records: R, endings: Endings, timeout: Duration, clock: Clock) -> Self {
        Self {
            records,
            clocks: ServerClocks::new(clock),
            known: Known::new(),
            endings,
            holds_ended: HoldsEnded::default(),
            kept: Mutex::default(),
            timeout,
        }
    }

    /// An unreadable record stays, for as long as nobody can say what it is. That is said once.
    fn keep(&self, id: OperationId, error: &Error) {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.len() == KEPT_MAX {
            kept.clear();
        }
        if kept.insert(id) {
            tracing::error!(operation.id = %id, error = %chain(error), "a record is kept");
        }
    }

    /// A call with a deadline.
    async fn within<T>(&self, work: impl Future<Output = Result<T, Error>>) -> Result<T, Error> {
        let done = tokio::time::timeout(self.timeout, work).await;
        done.unwrap_or(Err(Error::NoReply(self.timeout)))
    }

    /// One atomic step on one record.
    async fn step<T>(
        &self,
        id: OperationId,
        manner: Manner,
        rule: impl Fn(Option<Operation>, Timestamp) -> Transition<T>,
    ) -> Result<T, Error> {
        self.step_unless(id, manner, rule, |_| false).await
    }

    /// The same. A result for which `stands` is true is returned even if its change cannot be written.
    async fn step_unless<T>(
        &self,
        id: OperationId,
        manner: Manner,
        rule: impl Fn(Option<Operation>, Timestamp) -> Transition<T>,
        stands: fn(&T) -> bool,
    ) -> Result<T, Error> {
        let sight = self.known.get(id);
        let at = self.clocks.now(self.records.clock_of(id));
        let mut supposed = Supposed { sight, at, is_seen: false };
        loop {
            let found = supposed.sight.as_ref().map(|sight| Operation::clone(&sight.operation));
            let done = rule(found, supposed.at);
            if done.change == Change::None && supposed.is_seen {
                return Ok(done.result);
            }
            match self.put(id, &supposed, &done, manner).await {
                Ok(None) => return Ok(done.result),
                Ok(Some(seen)) => supposed = self.supposed_of(id, seen)?,
                Err(_) if supposed.is_seen && stands(&done.result) => return Ok(done.result),
                Err(error) if stands(&done.result) => {
                    let seen = self.look(Swap::look(id)).await.map_err(|_| error)?;
                    supposed = self.supposed_of(id, seen)?;
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// Has the server do what a rule has made of what was supposed. Gives what it has instead.
    async fn put<T>(
        &self,
        id: OperationId,
        supposed: &Supposed,
        done: &Transition<T>,
        manner: Manner,
    ) -> Result<Option<Seen>, Error> {
        let Manner { waits, purpose } = manner;
        if done.change == Change::None {
            // what nobody has seen must be looked at before it is told
            let look = Swap { waits, purpose, ..Swap::look(id) };
            return self.look(look).await.map(Some);
        }
        let durable = done.change == Change::Durable;
        let goes_on = matches!(&done.operation, Some(found) if is_in_flight(found));
        let between = (earliest(supposed, done), supposed.at.plus(self.timeout));
        let meant = Meant { between, durable, ends: durable && !goes_on };
        let written =
            done.operation.as_ref().map(|operation| written(id, operation)).transpose()?;
        let change = match &written {
            // what is past its end is seen by nobody, whether or not it is gone everywhere
            None => Put::Removal(Meant { durable: false, ..meant }),
            Some((revision, bytes, operation)) => {
                Put::Record { revision: *revision, bytes, operation, meant }
            }
        };
        let expected = expected(supposed);
        let sent = self.clocks.moment();
        let is_nothing_new = purpose == Purpose::Grant && !(goes_on && durable);
        let purpose = if is_nothing_new { Purpose::Any } else { purpose };
        let swap = Swap { id, expected, change, waits, purpose };
        match self.records.swap(swap).await? {
            Swapped::Refused(seen) => {
                self.clocks.learn(self.records.clock_of(id), seen.at, sent);
                Ok(Some(seen))
            }
            Swapped::Done(at) => {
                self.clocks.learn(self.records.clock_of(id), at, sent);
                self.known.note(
                    id,
                    written.map(|(revision, _, operation)| Sight {
                        revision,
                        operation: Arc::new(operation.clone()),
                    }),
                );
                if done.hold_ended {
                    self.holds_ended.note(id);
                }
                if meant.ends {
                    self.endings.announce(id);
                }
                Ok(None)
            }
        }
    }

    /// What the server has, unchanged.
    async fn look(&self, look: Swap<'_>) -> Result<Seen, Error> {
        let sent = self.clocks.moment();
        let which = self.records.clock_of(look.id);
        let seen = match self.records.swap(look).await? {
            Swapped::Done(at) => Seen { at, stored: None },
            Swapped::Refused(seen) => seen,
        };
        self.clocks.learn(which, seen.at, sent);
        Ok(seen)
    }

    fn supposed_of(&self, id: OperationId, seen: Seen) -> Result<Supposed, Error> {
        let sight = seen.stored.map(|Stored { revision, bytes }| {
            // The same state has the same name: it is not decoded again, and its answer is shared.
            if let Some(known) = self.known.get(id).filter(|known| known.revision == revision) {
                return Ok(known);
            }
            let operation =
                decoded(id, &bytes).map_err(|corrupt| Error::Unreadable(id, corrupt))?;
            Ok::<_, Error>(Sight { revision, operation: Arc::new(operation) })
        });
        let sight = sight.transpose()?;
        self.known.note(id, sight.clone());
        Ok(Supposed { sight, at: seen.at, is_seen: true })
    }
}

fn is_in_flight(operation: &Operation) -> bool {
    matches!(operation.state, State::InFlight(_))
}

/// A record, and the name of its state.
fn written(
    id: OperationId,
    operation: &Operation,
) -> Result<(Revision, Vec<u8>, &Operation), Error> {
    let bytes = codec::encode(operation).map_err(|corrupt| Error::Unreadable(id, corrupt))?;
    Ok((Revision(random()?), bytes, operation))
}

/// The record of this operation: one of another is not taken for it, however it came there.
fn decoded(id: OperationId, bytes: &[u8]) -> Result<Operation, Corrupt> {
    codec::decode(bytes)
        .and_then(|found| if found.asked.id == id { Ok(found) } else { Err(Corrupt::Foreign) })
}

/// The record that a rule was applied to, on the side of its time on which it was supposed.
fn expected(supposed: &Supposed) -> Expected {
    supposed.sight.as_ref().map_or(Expected::Nothing, |Sight { revision, operation }| {
        let lapsed = operation.state.changes_at() <= supposed.at;
        Expected::Revision { revision: *revision, lapsed }
    })
}

fn random() -> Result<u64, Error> {
    getrandom::u64().map_err(|_| Error::Unavailable("the machine has no random numbers"))
}

#[async_trait]
impl<R: Records> Store for Shared<R> {
    async fn claim(&self, request: &ClaimRequest) -> Result<Claimed, Error> {
        let waits = request.if_in_flight == IfInFlight::Waits;
        let manner = Manner { waits, purpose: Purpose::Grant };
        let met = AtomicBool::new(false);
        let rule = |found: Option<Operation>, now| {
            let is_open =
                |found: &Operation| matches!(found.state, State::InFlight(_) | State::Uncertain(_));
            met.fetch_or(found.as_ref().is_some_and(is_open), Ordering::Relaxed);
            state::claim(found, request, now)
        };
        let step = self.step_unless(request.asked.id, manner, rule, Claimed::turns_away);
        let claimed = self.within(step).await;
        let met = met.load(Ordering::Relaxed);
        claimed.map_err(|error| {
            if met && error.says_nothing() { Error::Met(Box::new(error)) } else { error }
        })
    }

    async fn renew(
        &self,
        id: OperationId,
        claim_id: ClaimId,
        lease: Duration,
    ) -> Result<Renewed, Error> {
        let rule = |found, now| state::renew(found, claim_id, lease, now);
        let manner = Manner { purpose: Purpose::Renewal, ..Manner::default() };
        self.within(self.step(id, manner, rule)).await
    }

    async fn settle(&self, settlement: &Settlement) -> Result<Settled, Error> {
        let rule = |found, now| state::settle(found, settlement, now);
        self.within(self.step(settlement.asked.id, Manner::default(), rule)).await
    }

    async fn advance(&self, end: &StepEnd) -> Result<Advanced, Error> {
        let rule = |found, now| state::advance(found, end, now);
        self.within(self.step(end.asked.id, Manner::default(), rule)).await
    }

    async fn conclude(&self, conclusion: &Conclusion) -> Result<Claimed, Error> {
        let rule = |found, now| state::conclude(found, conclusion, now);
        self.within(self.step(conclusion.request.asked.id, Manner::default(), rule)).await
    }

    async fn withdraw(
        &self,
        id: OperationId,
        claim_id: ClaimId,
        retention: Duration,
    ) -> Result<(), Error> {
        let rule = |found, now| state::withdraw(found, claim_id, retention, now);
        // The claim may be on its way still, where nobody sees it.
        let manner = Manner { purpose: Purpose::Withdrawal, ..Manner::default() };
        self.within(self.step(id, manner, rule)).await
    }

    async fn get(&self, id: OperationId) -> Result<Option<Operation>, Error> {
        let seen = self.within(self.look(Swap::look(id))).await?;
        let at = seen.at;
        let supposed = self.supposed_of(id, seen)?;
        let found = supposed.sight.map(|sight| Arc::unwrap_or_clone(sight.operation));
        Ok(state::lapse(found, at).operation)
    }

    async fn resolve(&self, id: OperationId, resolution: &Resolution) -> Result<Decided, Error> {
        let rule = |found, now| state::resolve(found, resolution, now);
        self.within(self.step(id, Manner::default(), rule)).await
    }

    async fn forget(&self, id: OperationId, by: &str, reason: &str) -> Result<Decided, Error> {
        let rule = |found, now| state::forget(found, by, reason, now);
        self.within(self.step(id, Manner::default(), rule)).await
    }

    async fn watch(&self, id: OperationId) -> Result<Watch, Error> {
        Ok(self.endings.watch(id))
    }

    async fn uncertain(&self) -> Result<u64, Error> {
        self.within(self.records.uncertain()).await
    }

    async fn list(&self, listing: &Listing) -> Result<Listed, Error> {
        let page = self.within(self.records.page(listing)).await?;
        let mut operations = Vec::with_capacity(page.records.len());
        for (id, bytes) in page.records {
            match decoded(id, &bytes) {
                Ok(found) => {
                    let stands = state::lapse(Some(found), page.at).operation;
                    operations.extend(stands.filter(|found| listing.wants(found)));
                }
                // it hides no other one
                Err(corrupt) => self.keep(id, &Error::Unreadable(id, corrupt)),
            }
        }
        Ok(Listed { operations, next: page.next })
    }

    async fn sweep(&self, limit: usize) -> Result<Swept, Error> {
        let Expired { mut removed, lapsed, more } = self.within(self.records.expire(limit)).await?;
        let mut progress = removed > 0;
        for id in lapsed {
            match self.within(self.step(id, Manner::default(), state::expire)).await {
                Ok(is_gone) => (removed, progress) = (removed + usize::from(is_gone), true),
                Err(error @ Error::Unreadable(..)) => self.keep(id, &error),
                Err(error) => return Err(error),
            }
        }
        Ok(Swept { removed, holds_ended: self.holds_ended.take(), more: more && progress })
    }

    async fn concerns(&self) -> Result<Vec<Concern>, Error> {
        self.within(self.records.concerns()).await
    }

    async fn acknowledge(&self) -> Result<bool, Error> {
        self.within(self.records.acknowledge()).await
    }

    async fn probe(&self) -> Result<(), Error> {
        let to_try = self.within(self.records.to_try()).await?;
        try_join_all(to_try.into_iter().map(|id| probe::probe_as(self, id))).await.map(drop)
    }

    async fn close(&self) {
        self.records.close().await;
    }
}
