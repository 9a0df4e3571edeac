//! In-process: the reference that the other stores are compared with. For tests and trials.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use async_trait::async_trait;
use parking_lot::Mutex;

use super::call::{RuleCall, TypedCall};
use super::endings::Endings;
use super::holds::HoldsEnded;
use super::listing::{KeyDigest, SCANNED_MAX};
use super::{Error, ListPage, ListPosition, ListQuery, Store, SweepReport, Watch, probe};
use crate::clock::{Clock, KeptClock};
use crate::operation::state::{self, Change, Expiry};
use crate::operation::{Operation, OperationId, State, Timestamp};

/// A store that lasts as long as the process.
#[derive(Debug)]
pub struct Memory {
    clock: KeptClock,
    records: Mutex<Records>,
    endings: Endings,
    holds_ended: HoldsEnded,
}

/// The records, and the same by when they change by themselves and by when they were created.
#[derive(Debug, Default)]
struct Records {
    operations: HashMap<OperationId, Operation>,
    due: BTreeSet<(Timestamp, OperationId)>,
    created: BTreeSet<ListPosition>,
    /// The same by key.
    keys: BTreeSet<(KeyDigest, ListPosition)>,
    uncertain: u64,
}

impl Memory {
    /// An empty store on this clock.
    pub fn new(clock: Clock) -> Self {
        Self {
            clock: KeptClock::start(clock, Timestamp::default()),
            records: Mutex::default(),
            endings: Endings::default(),
            holds_ended: HoldsEnded::default(),
        }
    }

    /// One atomic step on one record.
    fn apply(&self, call: &dyn RuleCall) {
        let id = call.operation();
        let mut records = self.records.lock();
        // The time is read under the lock, so that steps happen in the order of their times.
        let now = self.clock.now();
        let done = call.apply(records.take(id), now);
        let state = done.operation.as_ref().map(|found| &found.state);
        let ended = done.change == Change::Durable && !matches!(state, Some(State::InFlight(_)));
        records.put(id, done.operation);
        drop(records);
        if done.hold_ended {
            self.holds_ended.note(id);
        }
        if ended {
            self.endings.announce(id);
        }
    }
}

impl Records {
    fn take(&mut self, id: OperationId) -> Option<Operation> {
        let found = self.operations.remove(&id)?;
        self.due.remove(&(found.state.changes_at(), id));
        self.created.remove(&ListPosition::of(&found));
        self.keys.remove(&(KeyDigest::of(&found.asked.key), ListPosition::of(&found)));
        self.uncertain -= u64::from(matches!(found.state, State::Uncertain(_)));
        Some(found)
    }

    fn put(&mut self, id: OperationId, operation: Option<Operation>) {
        let Some(operation) = operation else { return };
        self.due.insert((operation.state.changes_at(), id));
        self.created.insert(ListPosition::of(&operation));
        self.keys.insert((KeyDigest::of(&operation.asked.key), ListPosition::of(&operation)));
        self.uncertain += u64::from(matches!(operation.state, State::Uncertain(_)));
        self.operations.insert(id, operation);
    }

    /// One page, newest first, as of `now`.
    fn page(&self, listing: &ListQuery, now: Timestamp) -> ListPage {
        let mut operations = Vec::new();
        let mut next = None;
        for (scanned, place) in self.places(listing).enumerate() {
            if operations.len() == listing.limit || scanned == SCANNED_MAX {
                return ListPage { operations, next };
            }
            let stands = state::lapse(self.operations.get(&place.id).cloned(), now).operation;
            operations.extend(stands.filter(|found| listing.wants(found)));
            next = Some(place);
        }
        ListPage { operations, next: None }
    }

    /// Where a list has to look, newest first.
    fn places(&self, listing: &ListQuery) -> Box<dyn Iterator<Item = ListPosition> + '_> {
        let first = ListPosition::FIRST;
        let last = listing.after.unwrap_or(ListPosition::BEHIND_ALL);
        match listing.key_digest() {
            Some(key) => {
                let places = self.keys.range((key, first)..(key, last));
                Box::new(places.rev().map(|(_, place)| *place))
            }
            None => Box::new(self.created.range(first..last).rev().copied()),
        }
    }

    /// What has changed by itself until `now`.
    fn due(&self, now: Timestamp) -> impl Iterator<Item = OperationId> {
        self.due.iter().take_while(move |(at, _)| *at <= now).map(|(_, id)| *id)
    }
}

#[async_trait]
impl Store for Memory {
    async fn call(&self, call: Arc<dyn RuleCall>) -> Result<(), Error> {
        self.apply(&*call);
        Ok(())
    }

    async fn get(&self, id: OperationId) -> Result<Option<Operation>, Error> {
        let found = self.records.lock().operations.get(&id).cloned();
        Ok(state::lapse(found, self.clock.now()).operation)
    }

    async fn watch(&self, id: OperationId) -> Result<Watch, Error> {
        Ok(self.endings.watch(id))
    }

    async fn uncertain(&self) -> Result<u64, Error> {
        let records = self.records.lock();
        let leases_that_ran_out = records.due(self.clock.now()).filter(|id| {
            let found = records.operations.get(id).map(|found| &found.state);
            matches!(found, Some(State::InFlight(_)))
        });
        Ok(records.uncertain + leases_that_ran_out.count() as u64)
    }

    async fn list(&self, listing: &ListQuery) -> Result<ListPage, Error> {
        Ok(self.records.lock().page(listing, self.clock.now()))
    }

    async fn sweep(&self, limit: usize) -> Result<SweepReport, Error> {
        let due: Vec<_> = self.records.lock().due(self.clock.now()).take(limit).collect();
        let mut removed = 0;
        for operation in due {
            let expiry = TypedCall::new(Expiry { operation });
            self.apply(&expiry);
            removed += usize::from(expiry.answer()?);
        }
        let more = self.records.lock().due(self.clock.now()).next().is_some();
        Ok(SweepReport { removed, holds_ended: self.holds_ended.take(), more })
    }

    async fn probe(&self) -> Result<(), Error> {
        probe::probe(self).await
    }

    async fn close(&self) {}
}
