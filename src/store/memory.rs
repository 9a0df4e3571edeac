//! A store in the memory of the process. It is the simplest one, for tests and trials.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use async_trait::async_trait;
use parking_lot::Mutex;

use super::call::{RuleCall, TypedCall};
use super::list::{KeyDigest, SCANNED_MAX};
use super::sweep::HoldsEnded;
use super::watch::Watchers;
use super::{Error, ListPage, ListPosition, ListQuery, Store, SweepReport, Watch, probe};
use crate::clock::{AnchoredClock, Clock};
use crate::operation::state::{self, Expiry};
use crate::operation::{Operation, OperationId, State, Timestamp};

/// A store that ends with the process.
#[derive(Debug)]
pub struct Memory {
    clock: AnchoredClock,
    records: Mutex<Records>,
    watchers: Watchers,
    holds_ended: HoldsEnded,
}

/// The records and their indexes.
#[derive(Debug, Default)]
struct Records {
    operations: HashMap<OperationId, Operation>,
    /// The operations, by the time at which each one changes by itself.
    due: BTreeSet<(Timestamp, OperationId)>,
    /// The operations, by the time of creation.
    created: BTreeSet<ListPosition>,
    /// The operations, by the digest of the key.
    keys: BTreeSet<(KeyDigest, ListPosition)>,
    /// The number of records that are written as uncertain.
    uncertain: u64,
}

impl Memory {
    /// Makes an empty store on this clock.
    pub fn new(clock: Clock) -> Self {
        Self {
            clock: AnchoredClock::start(clock, Timestamp::default()),
            records: Mutex::default(),
            watchers: Watchers::default(),
            holds_ended: HoldsEnded::default(),
        }
    }

    /// Applies a rule to its record in one atomic step.
    fn apply(&self, call: &dyn RuleCall) {
        let id = call.operation();
        let mut records = self.records.lock();
        // The time is read under the lock, because a later step must not have an earlier time.
        // Otherwise a holder could renew its lease after a claim had seen the lease run out.
        let now = self.clock.now();
        let done = call.apply(records.take(id), now);
        let ended = done.change.ends_attempt(done.operation.as_ref());
        records.put(id, done.operation);
        // The lock is released first, because waiters ask the store as soon as they wake.
        drop(records);
        if done.hold_ended {
            self.holds_ended.count(id);
        }
        if ended {
            self.watchers.announce(id);
        }
    }
}

impl Records {
    /// Takes a record out of the map and all indexes.
    fn take(&mut self, id: OperationId) -> Option<Operation> {
        let found = self.operations.remove(&id)?;
        self.due.remove(&(found.state.changes_at(), id));
        self.created.remove(&ListPosition::of(&found));
        self.keys.remove(&(KeyDigest::of(&found.subject.key), ListPosition::of(&found)));
        self.uncertain -= u64::from(matches!(found.state, State::Uncertain(_)));
        Some(found)
    }

    /// Puts a record into the map and all indexes.
    fn put(&mut self, id: OperationId, operation: Option<Operation>) {
        let Some(operation) = operation else { return };
        self.due.insert((operation.state.changes_at(), id));
        self.created.insert(ListPosition::of(&operation));
        self.keys.insert((KeyDigest::of(&operation.subject.key), ListPosition::of(&operation)));
        self.uncertain += u64::from(matches!(operation.state, State::Uncertain(_)));
        self.operations.insert(id, operation);
    }

    /// Returns one page as it is at `now`, newest first.
    fn page(&self, query: &ListQuery, now: Timestamp) -> ListPage {
        let mut operations = Vec::new();
        let mut next = None;
        for (scanned, position) in self.positions(query).enumerate() {
            if operations.len() == query.limit || scanned == SCANNED_MAX {
                return ListPage { operations, next };
            }
            let found = self.operations.get(&position.id).cloned();
            let current = state::lapse(found, now).operation;
            operations.extend(current.filter(|found| query.matches(found)));
            next = Some(position);
        }
        ListPage { operations, next: None }
    }

    /// The positions that a query must look at, newest first.
    fn positions(&self, query: &ListQuery) -> Box<dyn Iterator<Item = ListPosition> + '_> {
        let oldest = ListPosition::OLDEST;
        let newest = query.after.unwrap_or(ListPosition::NEWEST);
        match query.key_digest() {
            Some(key) => {
                let positions = self.keys.range((key, oldest)..(key, newest));
                Box::new(positions.rev().map(|(_, position)| *position))
            }
            None => Box::new(self.created.range(oldest..newest).rev().copied()),
        }
    }

    /// The operations that have changed by themselves by `now`.
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
        Ok(self.watchers.watch(id))
    }

    async fn uncertain(&self) -> Result<u64, Error> {
        let records = self.records.lock();
        // An operation becomes uncertain when its lease runs out, before anybody writes the new
        // state.
        let leases_that_ran_out = records.due(self.clock.now()).filter(|id| {
            let found = records.operations.get(id).map(|found| &found.state);
            matches!(found, Some(State::InFlight(_)))
        });
        Ok(records.uncertain + leases_that_ran_out.count() as u64)
    }

    async fn list(&self, query: &ListQuery) -> Result<ListPage, Error> {
        Ok(self.records.lock().page(query, self.clock.now()))
    }

    async fn sweep(&self, limit: usize) -> Result<SweepReport, Error> {
        let due: Vec<_> = self.records.lock().due(self.clock.now()).take(limit).collect();
        let mut removed = 0;
        for operation in due {
            let expiry = TypedCall::new(Expiry { operation });
            self.apply(&expiry);
            removed += usize::from(expiry.reply()?);
        }
        let more = self.records.lock().due(self.clock.now()).next().is_some();
        Ok(SweepReport { removed, holds_ended: self.holds_ended.take(), more })
    }

    async fn probe(&self) -> Result<(), Error> {
        probe::probe(self).await
    }

    async fn close(&self) {}
}
