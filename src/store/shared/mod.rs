//! Stores that several processes share.
//!
//! The rules of [`state`] are applied here, in this process, to the record that the server has. The
//! server puts the new record in the place of exactly that one, in one atomic step, or says what
//! else is there. So there is one set of rules for all stores, and a server needs one script.
//!
//! A step begins with an assumption about the server: no record, or the one that this process saw
//! last. Most assumptions are right and take one round trip. A wrong one takes a second round trip,
//! with the record that was found. No caller is told anything that rests on an assumption: a rule
//! that changes nothing is applied to the server's record.

mod clock;
mod known;
mod swap;
mod window;

pub(super) use swap::{
    Conditions, Expected, Expired, Page, Purpose, Put, Records, Revision, Seen, Stored, Swap,
    Swapped,
};

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use futures_util::future::try_join_all;
use parking_lot::Mutex;

use self::clock::ServerClocks;
use self::known::{Known, Snapshot};
use self::window::earliest;
use super::call::{IfUnwritten, RuleCall, TypedCall};
use super::endings::Endings;
use super::holds::HoldsEnded;
use super::listing::{ListPage, ListQuery};
use super::{Concern, Corrupt, Error, Store, SweepReport, Watch, codec, probe};
use crate::clock::Clock;
use crate::operation::state::{self, Call, Change, Expiry, Transition};
use crate::operation::{Operation, OperationId, State, Timestamp};
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

/// What the server is assumed to have.
struct Assumption {
    /// Its record; none if it has none.
    record: Option<Snapshot>,
    /// The time on its clock.
    at: Timestamp,
    /// The server has said so.
    is_confirmed: bool,
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

    /// An unreadable record stays, for as long as nobody can say what it is. That is logged once.
    fn keep(&self, id: OperationId, error: &Error) {
        let mut kept = self.kept.lock();
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
    async fn step(&self, call: &dyn RuleCall) -> Result<(), Error> {
        let id = call.operation();
        let record = self.known.get(id);
        let at = self.clocks.now(self.records.clock_of(id));
        let mut assumed = Assumption { record, at, is_confirmed: false };
        loop {
            let found = assumed.record.as_ref().map(|known| Operation::clone(&known.operation));
            let done = call.apply(found, assumed.at);
            if done.change == Change::None && assumed.is_confirmed {
                return Ok(());
            }
            let stands = done.result == IfUnwritten::Stands;
            match self.put(call, &assumed, &done).await {
                Ok(None) => return Ok(()),
                Ok(Some(seen)) => assumed = self.confirmed(id, seen)?,
                Err(_) if assumed.is_confirmed && stands => return Ok(()),
                Err(error) if stands => {
                    let seen = self.look(Swap::look(id)).await.map_err(|_| error)?;
                    assumed = self.confirmed(id, seen)?;
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// A step. If it fails although an attempt was met, the error says so: then the operation is
    /// known to be in flight or uncertain.
    async fn claim(&self, call: &dyn RuleCall) -> Result<(), Error> {
        let noting = NotingMet { call, met: AtomicBool::new(false) };
        let claimed = self.within(self.step(&noting)).await;
        let met = noting.met.load(Ordering::Relaxed);
        claimed.map_err(|error| {
            if met && error.leaves_state_unknown() {
                Error::AttemptExists(Box::new(error))
            } else {
                error
            }
        })
    }

    /// Has the server do what a rule has made of the assumption. Gives what it has instead.
    async fn put(
        &self,
        call: &dyn RuleCall,
        assumed: &Assumption,
        done: &Transition<IfUnwritten>,
    ) -> Result<Option<Seen>, Error> {
        let id = call.operation();
        let waits = call.waits();
        let purpose = purpose(call.kind());
        if done.change == Change::None {
            // The server must confirm it before anybody is told.
            let look = Swap { waits, purpose, ..Swap::look(id) };
            return self.look(look).await.map(Some);
        }
        let durable = done.change == Change::Durable;
        let goes_on = matches!(&done.operation, Some(found) if is_in_flight(found));
        let conditions = Conditions {
            not_before: earliest(assumed, done),
            not_after: assumed.at.plus(self.timeout),
            durable,
            ends: durable && !goes_on,
        };
        let written =
            done.operation.as_ref().map(|operation| Written::of(id, operation)).transpose()?;
        let change = match &written {
            // Nobody sees a record that is past its end, whether or not it is gone everywhere.
            None => Put::Removal(Conditions { durable: false, ..conditions }),
            Some(Written { revision, bytes, operation }) => {
                Put::Record { revision: *revision, bytes, operation, conditions }
            }
        };
        let is_nothing_new = purpose == Purpose::Grant && !(goes_on && durable);
        let purpose = if is_nothing_new { Purpose::Any } else { purpose };
        let swap = Swap { id, expected: expected(assumed), change, waits, purpose };
        let sent = self.clocks.moment();
        match self.records.swap(swap).await? {
            Swapped::Refused(seen) => {
                self.clocks.learn(self.records.clock_of(id), seen.at, sent);
                Ok(Some(seen))
            }
            Swapped::Done(at) => {
                self.clocks.learn(self.records.clock_of(id), at, sent);
                self.known.note(id, written.map(Written::snapshot));
                if done.hold_ended {
                    self.holds_ended.note(id);
                }
                if conditions.ends {
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

    /// What the server has said that it has.
    fn confirmed(&self, id: OperationId, seen: Seen) -> Result<Assumption, Error> {
        let record = seen.stored.map(|Stored { revision, bytes }| {
            // A revision that is known is not decoded again, and its answer is shared.
            if let Some(known) = self.known.get(id).filter(|known| known.revision == revision) {
                return Ok(known);
            }
            let operation =
                decoded(id, &bytes).map_err(|corrupt| Error::Unreadable(id, corrupt))?;
            Ok::<_, Error>(Snapshot { revision, operation: Arc::new(operation) })
        });
        let record = record.transpose()?;
        self.known.note(id, record.clone());
        Ok(Assumption { record, at: seen.at, is_confirmed: true })
    }
}

/// A claim, and whether it was applied to an operation in flight or uncertain.
#[derive(Debug)]
struct NotingMet<'a> {
    call: &'a dyn RuleCall,
    met: AtomicBool,
}

impl RuleCall for NotingMet<'_> {
    fn kind(&self) -> Call {
        self.call.kind()
    }

    fn operation(&self) -> OperationId {
        self.call.operation()
    }

    fn waits(&self) -> bool {
        self.call.waits()
    }

    fn apply(&self, found: Option<Operation>, now: Timestamp) -> Transition<IfUnwritten> {
        let is_open =
            |found: &Operation| matches!(found.state, State::InFlight(_) | State::Uncertain(_));
        self.met.fetch_or(found.as_ref().is_some_and(is_open), Ordering::Relaxed);
        self.call.apply(found, now)
    }
}

/// What a server has to know of a call, to treat it as it must be.
const fn purpose(call: Call) -> Purpose {
    match call {
        Call::Claim => Purpose::Grant,
        Call::Renew => Purpose::Renewal,
        // The claim may still be on its way, where nobody sees it.
        Call::Withdraw => Purpose::Withdrawal,
        Call::Settle
        | Call::Advance
        | Call::Conclude
        | Call::Resolve
        | Call::Forget
        | Call::Expire => Purpose::Any,
    }
}

fn is_in_flight(operation: &Operation) -> bool {
    matches!(operation.state, State::InFlight(_))
}

/// A record as it is written, and the name of its state.
struct Written<'a> {
    revision: Revision,
    bytes: Vec<u8>,
    operation: &'a Operation,
}

impl<'a> Written<'a> {
    fn of(id: OperationId, operation: &'a Operation) -> Result<Self, Error> {
        let bytes = codec::encode(operation).map_err(|corrupt| Error::Unreadable(id, corrupt))?;
        Ok(Self { revision: Revision(random()?), bytes, operation })
    }

    fn snapshot(self) -> Snapshot {
        Snapshot { revision: self.revision, operation: Arc::new(self.operation.clone()) }
    }
}

/// The record of this operation: one of another is not taken for it, however it came there.
fn decoded(id: OperationId, bytes: &[u8]) -> Result<Operation, Corrupt> {
    codec::decode(bytes)
        .and_then(|found| if found.asked.id == id { Ok(found) } else { Err(Corrupt::Foreign) })
}

/// The record that a rule was applied to. The server's clock must agree with the state that was
/// assumed: past `changes_at` if the rule saw the record as lapsed, before it if not.
fn expected(assumed: &Assumption) -> Expected {
    assumed.record.as_ref().map_or(Expected::Nothing, |Snapshot { revision, operation }| {
        let lapsed = operation.state.changes_at() <= assumed.at;
        Expected::Revision { revision: *revision, lapsed }
    })
}

fn random() -> Result<u64, Error> {
    getrandom::u64().map_err(|_| Error::Unavailable("the machine has no random numbers"))
}

#[async_trait]
impl<R: Records> Store for Shared<R> {
    async fn call(&self, call: Arc<dyn RuleCall>) -> Result<(), Error> {
        match call.kind() {
            Call::Claim => self.claim(&*call).await,
            Call::Renew
            | Call::Settle
            | Call::Advance
            | Call::Conclude
            | Call::Withdraw
            | Call::Resolve
            | Call::Forget
            | Call::Expire => self.within(self.step(&*call)).await,
        }
    }

    async fn get(&self, id: OperationId) -> Result<Option<Operation>, Error> {
        let seen = self.within(self.look(Swap::look(id))).await?;
        let at = seen.at;
        let assumed = self.confirmed(id, seen)?;
        let found = assumed.record.map(|known| Arc::unwrap_or_clone(known.operation));
        Ok(state::lapse(found, at).operation)
    }

    async fn watch(&self, id: OperationId) -> Result<Watch, Error> {
        Ok(self.endings.watch(id))
    }

    async fn uncertain(&self) -> Result<u64, Error> {
        self.within(self.records.uncertain()).await
    }

    async fn list(&self, listing: &ListQuery) -> Result<ListPage, Error> {
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
        Ok(ListPage { operations, next: page.next })
    }

    async fn sweep(&self, limit: usize) -> Result<SweepReport, Error> {
        let Expired { mut removed, lapsed, more } = self.within(self.records.expire(limit)).await?;
        let mut progress = removed > 0;
        for operation in lapsed {
            let expiry = TypedCall::new(Expiry { operation });
            match self.within(self.step(&expiry)).await {
                Ok(()) => {
                    removed += usize::from(expiry.answer()?);
                    progress = true;
                }
                Err(error @ Error::Unreadable(..)) => self.keep(operation, &error),
                Err(error) => return Err(error),
            }
        }
        Ok(SweepReport { removed, holds_ended: self.holds_ended.take(), more: more && progress })
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
