//! In-process: the reference that the other stores are compared with. For tests and trials.

use std::collections::{BTreeSet, HashMap};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;

use super::endings::Endings;
use super::holds::HoldsEnded;
use super::listing::{KeyDigest, SCANNED_MAX};
use super::{Error, Listed, Listing, Place, Store, Swept, Watch, probe};
use crate::clock::{Clock, KeptClock};
use crate::operation::state::{
    self, Advanced, Change, ClaimRequest, Claimed, Conclusion, Decided, Renewed, Resolution,
    Settled, Settlement, StepEnd, Transition,
};
use crate::operation::{ClaimId, Operation, OperationId, State, Timestamp};

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
    created: BTreeSet<Place>,
    /// The same by key.
    keys: BTreeSet<(KeyDigest, Place)>,
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
    fn step<T>(
        &self,
        id: OperationId,
        rule: impl FnOnce(Option<Operation>, Timestamp) -> Transition<T>,
    ) -> T {
        let mut records = self.lock();
        // read under the lock, so that steps happen in the order of their times
        let now = self.clock.now();
        let done = rule(records.take(id), now);
        let ended = done.change == Change::Durable
            && !matches!(
                done.operation.as_ref().map(|found| &found.state),
                Some(State::InFlight(_))
            );
        records.put(id, done.operation);
        drop(records);
        if done.hold_ended {
            self.holds_ended.note(id);
        }
        if ended {
            self.endings.announce(id);
        }
        done.result
    }

    /// A panic cannot have left the records half changed: the rules do not panic.
    fn lock(&self) -> MutexGuard<'_, Records> {
        self.records.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Records {
    fn take(&mut self, id: OperationId) -> Option<Operation> {
        let found = self.operations.remove(&id)?;
        self.due.remove(&(found.state.changes_at(), id));
        self.created.remove(&Place::of(&found));
        self.keys.remove(&(KeyDigest::of(&found.asked.key), Place::of(&found)));
        self.uncertain -= u64::from(matches!(found.state, State::Uncertain(_)));
        Some(found)
    }

    fn put(&mut self, id: OperationId, operation: Option<Operation>) {
        let Some(operation) = operation else { return };
        self.due.insert((operation.state.changes_at(), id));
        self.created.insert(Place::of(&operation));
        self.keys.insert((KeyDigest::of(&operation.asked.key), Place::of(&operation)));
        self.uncertain += u64::from(matches!(operation.state, State::Uncertain(_)));
        self.operations.insert(id, operation);
    }

    /// One page, newest first, as of `now`.
    fn page(&self, listing: &Listing, now: Timestamp) -> Listed {
        let mut operations = Vec::new();
        let mut next = None;
        for (scanned, place) in self.places(listing).enumerate() {
            if operations.len() == listing.limit || scanned == SCANNED_MAX {
                return Listed { operations, next };
            }
            let stands = state::lapse(self.operations.get(&place.id).cloned(), now).operation;
            operations.extend(stands.filter(|found| listing.wants(found)));
            next = Some(place);
        }
        Listed { operations, next: None }
    }

    /// Where a list has to look, newest first.
    fn places(&self, listing: &Listing) -> Box<dyn Iterator<Item = Place> + '_> {
        let first = Place::FIRST;
        let last = listing.after.unwrap_or(Place::BEHIND_ALL);
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
    async fn claim(&self, request: &ClaimRequest) -> Result<Claimed, Error> {
        Ok(self.step(request.asked.id, |found, now| state::claim(found, request, now)))
    }

    async fn renew(
        &self,
        id: OperationId,
        claim_id: ClaimId,
        lease: Duration,
    ) -> Result<Renewed, Error> {
        Ok(self.step(id, |found, now| state::renew(found, claim_id, lease, now)))
    }

    async fn settle(&self, settlement: &Settlement) -> Result<Settled, Error> {
        Ok(self.step(settlement.asked.id, |found, now| state::settle(found, settlement, now)))
    }

    async fn advance(&self, end: &StepEnd) -> Result<Advanced, Error> {
        Ok(self.step(end.asked.id, |found, now| state::advance(found, end, now)))
    }

    async fn conclude(&self, conclusion: &Conclusion) -> Result<Claimed, Error> {
        let id = conclusion.request.asked.id;
        Ok(self.step(id, |found, now| state::conclude(found, conclusion, now)))
    }

    async fn withdraw(
        &self,
        id: OperationId,
        claim_id: ClaimId,
        retention: Duration,
    ) -> Result<(), Error> {
        self.step(id, |found, now| state::withdraw(found, claim_id, retention, now));
        Ok(())
    }

    async fn get(&self, id: OperationId) -> Result<Option<Operation>, Error> {
        let found = self.lock().operations.get(&id).cloned();
        Ok(state::lapse(found, self.clock.now()).operation)
    }

    async fn resolve(&self, id: OperationId, resolution: &Resolution) -> Result<Decided, Error> {
        Ok(self.step(id, |found, now| state::resolve(found, resolution, now)))
    }

    async fn forget(&self, id: OperationId, by: &str, reason: &str) -> Result<Decided, Error> {
        Ok(self.step(id, |found, now| state::forget(found, by, reason, now)))
    }

    async fn watch(&self, id: OperationId) -> Result<Watch, Error> {
        Ok(self.endings.watch(id))
    }

    async fn uncertain(&self) -> Result<u64, Error> {
        let records = self.lock();
        let leases_that_ran_out = records.due(self.clock.now()).filter(|id| {
            let found = records.operations.get(id).map(|found| &found.state);
            matches!(found, Some(State::InFlight(_)))
        });
        Ok(records.uncertain + leases_that_ran_out.count() as u64)
    }

    async fn list(&self, listing: &Listing) -> Result<Listed, Error> {
        Ok(self.lock().page(listing, self.clock.now()))
    }

    async fn sweep(&self, limit: usize) -> Result<Swept, Error> {
        let due: Vec<_> = self.lock().due(self.clock.now()).take(limit).collect();
        let removed = due.iter().filter(|id| self.step(**id, state::expire)).count();
        let more = self.lock().due(self.clock.now()).next().is_some();
        Ok(Swept { removed, holds_ended: self.holds_ended.take(), more })
    }

    async fn probe(&self) -> Result<(), Error> {
        probe::probe(self).await
    }

    async fn close(&self) {}
}
