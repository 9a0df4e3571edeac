//! The thread that owns the database and makes every change.
//!
//! The writer applies rules to records in memory and collects the changes in a group. It writes and
//! syncs the group, and then replies to the calls about a record of which the group makes a durable
//! change. So nobody acts on a state that is not durable. All other calls get their replies at
//! once. A group of changes that may be lost waits for the next group, or for the next pass of
//! expiry, which comes every second.
//!
//! When a write or a sync fails, the calls of its group fail, and nothing of the group counts. Until
//! the log can be written again, the store only turns copies away, or replays answers that were
//! durable before. Every pass of expiry tries whether it can.

use std::collections::HashMap;
use std::error::Error as StdError;
use std::mem;
use std::sync::Arc;
use std::thread;

use tokio::sync::{mpsc, oneshot};

use super::SharedState;
use super::batch::Batch;
use super::group::{Group, PendingChange};
use super::queue::Command;
use super::reply::{self, Reply};
use super::tables::{IndexEntries, Tables};
use super::unsettled::Unsettled;
use crate::operation::state::{self, Change, RuleName, Transition};
use crate::operation::{Operation, OperationId, State, Timestamp};
use crate::store::{Error, IfUnwritten, RuleCall};
use crate::telemetry::chain;

/// The most calls in one group.
const GROUP_MAX: usize = 256;

/// The reason that a refused call gets from a store that can no longer write.
pub(super) const BROKEN: &str =
    "a write to its disk failed; it only replays until its disk works again";

/// The thread's state. It owns the database, and applies the rules.
pub(super) struct Writer {
    pub(super) tables: Tables,
    commands: mpsc::Receiver<Command>,
    pub(super) shared: Arc<SharedState>,
    /// The operations in flight. Renewed leases are only here and not on disk, so a renewal costs
    /// no sync.
    pub(super) in_flight: HashMap<OperationId, Operation>,
    /// The number of records that are uncertain on disk.
    uncertain: u64,
    /// The earliest time at which `due` may have a row.
    pub(super) due_from: Timestamp,
    /// Whether a write has failed, and none has succeeded since.
    pub(super) broken: bool,
}

impl Writer {
    pub(super) fn new(
        tables: Tables,
        commands: mpsc::Receiver<Command>,
        shared: Arc<SharedState>,
        uncertain: u64,
    ) -> Self {
        let in_flight = HashMap::new();
        let due_from = Timestamp::default();
        Self { tables, commands, shared, in_flight, uncertain, due_from, broken: false }
    }

    /// Executes commands until the store is closed or dropped.
    pub(super) fn run(mut self) {
        let mut closing = Vec::new();
        let mut group = Group::default();
        while let Some(first) = self.commands.blocking_recv() {
            // Lets callers that just got a reply call again. What they change shares the next sync.
            thread::yield_now();
            self.execute(first, &mut group, &mut closing);
            for _ in 1..GROUP_MAX {
                let Ok(next) = self.commands.try_recv() else {
                    break;
                };
                self.execute(next, &mut group, &mut closing);
            }
            self.apply_volatile(&mut group);
            if !group.may_wait() {
                self.commit(mem::take(&mut group));
            }
        }
        self.commit(group);
        // The database is closed and its directory unlocked before `close` returns, so that another
        // process can then open the store.
        if let Err(error) = self.tables.close() {
            tracing::error!(error = %chain(&error), "the store was closed unsynced");
        }
        for closed in closing {
            let _gone = closed.send(());
        }
    }

    fn execute(
        &mut self,
        command: Command,
        group: &mut Group,
        closing: &mut Vec<oneshot::Sender<()>>,
    ) {
        match command {
            Command::Change { call, reply } => self.change(&*call, reply, group),
            Command::Get { id, reply } => self.get(id, reply, group),
            Command::Page { query, reply } => {
                // A list shows only what is durable.
                self.commit(mem::take(group));
                reply.send(self.page(&query));
            }
            Command::Uncertain { reply } => {
                // A renewal gets its reply before the end of its group, and the count must show it.
                self.commit(mem::take(group));
                reply.send(Ok(self.count_uncertain()));
            }
            Command::Sweep { limit, reply } => {
                // The sweep reads the tables, so all changes must be in them.
                self.commit(mem::take(group));
                self.sweep(limit, reply);
            }
            Command::Close { reply } => {
                self.commands.close();
                closing.push(reply);
            }
        }
    }

    fn change(&mut self, call: &dyn RuleCall, reply: Reply<()>, group: &mut Group) {
        // The caller has given up, so nobody would learn of the change.
        if reply.is_closed() {
            return;
        }
        let id = call.operation();
        let found = match self.find(id, group) {
            Ok(found) => found,
            Err(error) => return reply.send(Err(error)),
        };
        let before = Self::entries_on_disk(id, found.as_ref(), group);
        self.shared.seen_attempts.note_found(id, found.as_ref().and_then(Unsettled::of));
        let done = call.apply(found, self.shared.clock.now());
        if done.change == Change::None {
            self.cache_success(id, done.operation.as_ref(), group);
        }
        if self.broken {
            return self.reply_unwritten(id, done, reply);
        }
        if call.name() == RuleName::Claim
            && done.change == Change::Durable
            && let Some(reason) = self.tables.refuses_claims()
        {
            return reply.send(Err(Error::Unavailable(reason)));
        }
        if done.hold_ended {
            group.holds_ended.push(id);
        }
        // A reply that rests on another change of this group does not outlive the group.
        let if_unwritten = if group.is_waited_for(id) { IfUnwritten::Fails } else { done.reply };
        if done.change != Change::None {
            group.put(id, before, done.operation, done.change);
        }
        group.reply(id, reply.deferred(if_unwritten, || ()));
    }

    /// Replies to a call whose change cannot be written. A renewal is never written, so attempts in
    /// flight can keep their leases until they have finished.
    fn reply_unwritten(
        &mut self,
        id: OperationId,
        done: Transition<IfUnwritten>,
        reply: Reply<()>,
    ) {
        let is_allowed = match done.change {
            Change::None | Change::Volatile => true,
            Change::Lazy | Change::Durable => done.reply == IfUnwritten::Stands,
        };
        if done.change == Change::Volatile
            && let Some(operation) = done.operation
        {
            self.in_flight.insert(id, operation);
        }
        reply.send(if is_allowed { Ok(()) } else { Err(Error::Unavailable(BROKEN)) });
    }

    fn get(&self, id: OperationId, reply: Reply<Option<Operation>>, group: &mut Group) {
        match self.find(id, group) {
            Ok(found) => {
                let seen = state::lapse(found, self.shared.clock.now()).operation;
                group.reply(id, reply.deferred(IfUnwritten::Fails, || seen));
            }
            Err(error) => reply.send(Err(error)),
        }
    }

    /// Returns a record as it is now, with the changes of this group.
    pub(super) fn find(&self, id: OperationId, group: &Group) -> Result<Option<Operation>, Error> {
        // The group has the latest state. After it comes the memory, which alone has renewed
        // leases.
        if let Some(changed) = group.changed.get(&id) {
            return Ok(changed.operation.clone());
        }
        if let Some(in_flight) = self.in_flight.get(&id) {
            return Ok(Some(in_flight.clone()));
        }
        if let Some(success) = self.shared.successes.get(id) {
            return Ok(Some(Operation::clone(&success)));
        }
        self.tables.read(id)
    }

    /// Returns the rows that a record has on disk. `found` is the record that [`Self::find`]
    /// returned.
    pub(super) fn entries_on_disk(
        id: OperationId,
        found: Option<&Operation>,
        group: &Group,
    ) -> Option<IndexEntries> {
        let changed = group.changed.get(&id);
        changed.map_or_else(|| found.map(IndexEntries::of), |changed| changed.before)
    }

    /// Caches a durable success for its next copy.
    fn cache_success(&self, id: OperationId, found: Option<&Operation>, group: &Group) {
        let success = matches!(found, Some(Operation { state: State::Succeeded(_), .. }));
        if success && !group.changed.contains_key(&id) {
            self.shared.successes.update(id, found.cloned());
        }
    }

    fn count_uncertain(&self) -> u64 {
        let now = self.shared.clock.now();
        // An operation becomes uncertain when its lease runs out, before anything is written.
        let ran_out = self.in_flight.values().filter(|found| found.state.changes_at() <= now);
        self.uncertain + ran_out.count() as u64
    }

    /// Writes the changes of the group, and then replies.
    pub(super) fn commit(&mut self, group: Group) {
        if let Err(error) = self.write(&group) {
            return self.fail(group, error);
        }
        let Group { changed, replies, holds_ended, .. } = group;
        for (id, changed) in changed {
            self.apply_written(id, changed);
        }
        for id in holds_ended {
            self.shared.holds_ended.count(id);
        }
        reply::send_all(replies, &Ok(()));
    }

    fn write(&mut self, group: &Group) -> Result<(), WriteError> {
        let mut batch = Batch::new(&mut self.tables);
        for (id, changed) in &group.changed {
            if changed.change != Change::Volatile {
                batch.write(*id, changed.before, changed.operation.as_ref())?;
            }
        }
        group.swept.iter().for_each(|row| batch.remove_due(row));
        group.moved.iter().for_each(|row| batch.add_due(*row));
        // An empty group would still cost milliseconds for its sync.
        if batch.is_empty() {
            return Ok(());
        }
        let earliest = batch.earliest_due();
        batch.commit(&mut self.tables, self.shared.clock.now())?;
        let swept_until = group.swept.last().map_or(self.due_from, |row| row.at);
        self.due_from = earliest.map_or(swept_until, |earliest| earliest.min(swept_until));
        Ok(())
    }

    /// Updates the memory with a record that is as durable as it must be. This comes before the
    /// replies, so that nobody sees an older state after a reply.
    fn apply_written(&mut self, id: OperationId, changed: PendingChange) {
        let after = changed.operation.as_ref().and_then(Unsettled::of);
        self.shared.seen_attempts.note_written(id, after);
        let before = changed.before.and_then(|entries| entries.unsettled);
        let uncertain =
            |unsettled: Option<Unsettled>| u64::from(unsettled == Some(Unsettled::Uncertain));
        self.uncertain = (self.uncertain + uncertain(after)).saturating_sub(uncertain(before));
        let ended = changed.change.ends_attempt(changed.operation.as_ref());
        match changed.operation {
            Some(operation) if after == Some(Unsettled::InFlight) => {
                self.shared.successes.update(id, None);
                self.in_flight.insert(id, operation);
            }
            ended @ (Some(_) | None) => {
                self.shared.successes.update(id, ended);
                self.in_flight.remove(&id);
            }
        }
        if ended {
            self.shared.watchers.announce(id);
        }
    }

    /// Makes the changes of a group that are kept in memory alone.
    fn apply_volatile(&mut self, group: &mut Group) {
        for (id, changed) in group.take_volatile() {
            self.apply_written(id, changed);
        }
    }

    /// Notes that a write failed.
    pub(super) fn note_failure(&mut self, error: &(dyn StdError + 'static)) {
        self.broken = self.tables.is_suspended();
        if self.broken {
            tracing::error!(error = %chain(error), "{BROKEN}");
        } else {
            tracing::error!(error = %chain(error), "changes cannot be written");
        }
    }

    /// Fails the calls of a group whose write failed.
    fn fail(&mut self, mut group: Group, error: WriteError) {
        self.note_failure(&*error);
        // The failure does not affect a change that is not written.
        self.apply_volatile(&mut group);
        reply::send_all(group.replies, &Err(error.into()));
    }
}

type WriteError = Box<dyn StdError + Send + Sync>;
