//! The thread that owns the database.
//!
//! Nobody reads what is not durable: a record that the running group changes is answered with the
//! group, after its sync. A group that only notes what may be lost waits for the next one, or for
//! the next pass of expiry, which comes every second. When a write or a sync fails, nothing is known about the disk any more:
//! it is never tried again, the group is answered with the failure, and from then on the store
//! only turns copies away or replays to them what was durable before.

use std::collections::HashMap;
use std::error::Error as StdError;
use std::mem;
use std::sync::Arc;

use tokio::sync::{mpsc, oneshot};

use super::group::{Changed, Group};
use super::queue::{Command, Reply, pending};
use super::tables::{Mark, Standing, Tables};
use super::{Error, IfUnwritten, RuleCall, Shared};
use crate::operation::state::{self, Change, Transition};
use crate::operation::{Operation, OperationId, State, Timestamp};
use crate::telemetry::chain;

/// Calls that are decided before the next sync.
const GROUP_MAX: usize = 256;

/// What a store says that cannot write any more.
pub(super) const BROKEN: &str = "a write to its disk failed; it only replays until it is restarted";

/// Owns the database, and decides.
pub(super) struct Writer {
    pub(super) tables: Tables,
    commands: mpsc::Receiver<Command>,
    pub(super) shared: Arc<Shared>,
    /// The records that are in flight, as they are on disk but for their leases.
    pub(super) in_flight: HashMap<OperationId, Operation>,
    /// How many records are uncertain on disk.
    uncertain: u64,
    /// There is no row in `due` before this one.
    pub(super) due_from: Timestamp,
    /// A write has failed.
    pub(super) broken: bool,
}

impl Writer {
    pub(super) fn new(
        tables: Tables,
        commands: mpsc::Receiver<Command>,
        shared: Arc<Shared>,
        uncertain: u64,
    ) -> Self {
        let in_flight = HashMap::new();
        let due_from = Timestamp::default();
        Self { tables, commands, shared, in_flight, uncertain, due_from, broken: false }
    }

    /// Works until the store is closed or dropped.
    pub(super) fn run(mut self) {
        let mut closing = Vec::new();
        let mut group = Group::default();
        while let Some(first) = self.commands.blocking_recv() {
            group = self.obey(first, group, &mut closing);
            for _ in 1..GROUP_MAX {
                let Ok(next) = self.commands.try_recv() else {
                    break;
                };
                group = self.obey(next, group, &mut closing);
            }
            for (id, changed) in group.take_in_memory_alone() {
                self.keep(id, changed);
            }
            if !group.may_wait() {
                self.commit(mem::take(&mut group));
            }
        }
        self.commit(group);
        // after a failure nothing is known about the disk, and nothing more is noted
        if !self.broken
            && let Err(error) = self.tables.close()
        {
            tracing::error!(error = %chain(&error), "the store was closed unsynced");
        }
        // the database is closed, and its directory free, before this is told
        drop(self);
        for closed in closing {
            let _gone = closed.send(());
        }
    }

    fn obey(
        &mut self,
        command: Command,
        mut group: Group,
        closing: &mut Vec<oneshot::Sender<()>>,
    ) -> Group {
        match command {
            Command::Change { call, reply } => self.change(&*call, reply, &mut group),
            Command::Get { id, reply } => self.get(id, reply, &mut group),
            Command::Page { listing, reply } => {
                // of what is written
                self.commit(mem::take(&mut group));
                let _unsent = reply.send(self.page(&listing));
            }
            Command::Uncertain { reply } => {
                let _unsent = reply.send(Ok(self.count_uncertain()));
            }
            Command::Sweep { limit, reply } => {
                // a pass of its own, which sees no record that is half changed
                self.commit(mem::take(&mut group));
                self.sweep(limit, reply);
            }
            Command::Close { reply } => {
                self.commands.close();
                closing.push(reply);
            }
        }
        group
    }

    fn change(&mut self, call: &dyn RuleCall, reply: Reply<()>, group: &mut Group) {
        // Nobody waits for the answer any more: it is too late to begin.
        if reply.is_closed() {
            return;
        }
        let id = call.operation();
        let found = match self.find(id, group) {
            Ok(found) => found,
            Err(error) => {
                let _unsent = reply.send(Err(error));
                return;
            }
        };
        let before = Self::standing(id, found.as_ref(), group);
        let done = call.apply(found, self.shared.clock.now());
        if done.change == Change::None {
            self.remember(id, done.operation.as_ref(), group);
        }
        if self.broken {
            return self.answer_unwritten(id, done, reply);
        }
        if done.hold_ended {
            group.note_hold_ended(id);
        }
        if done.change != Change::None {
            group.put(id, before, done.operation, done.change);
        }
        group.answer(id, pending(reply, ()));
    }

    /// A renewal is in memory alone, and goes on.
    fn answer_unwritten(
        &mut self,
        id: OperationId,
        done: Transition<IfUnwritten>,
        reply: Reply<()>,
    ) {
        let changed = Changed {
            before: Standing::of(done.operation.as_ref()),
            operation: done.operation,
            change: done.change,
        };
        let is_allowed = done.result == IfUnwritten::Stands
            || changed.change == Change::None
            || changed.is_in_memory_alone();
        if changed.is_in_memory_alone()
            && let Some(operation) = changed.operation
        {
            self.in_flight.insert(id, operation);
        }
        let answer = if is_allowed { Ok(()) } else { Err(Error::Unavailable(BROKEN)) };
        let _unsent = reply.send(answer);
    }

    fn get(&self, id: OperationId, reply: Reply<Option<Operation>>, group: &mut Group) {
        match self.find(id, group) {
            Ok(found) => {
                let seen = state::lapse(found, self.shared.clock.now()).operation;
                group.answer(id, pending(reply, seen));
            }
            Err(error) => {
                let _unsent = reply.send(Err(error));
            }
        }
    }

    /// A record as it stands now, changes of this group included.
    pub(super) fn find(&self, id: OperationId, group: &Group) -> Result<Option<Operation>, Error> {
        if let Some(changed) = group.get(id) {
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

    /// Where a record stands on disk, given how it was found.
    pub(super) fn standing(id: OperationId, found: Option<&Operation>, group: &Group) -> Standing {
        group.get(id).map_or_else(|| Standing::of(found), |changed| changed.before)
    }

    /// Has a success that is durable at hand for its next copy.
    fn remember(&self, id: OperationId, found: Option<&Operation>, group: &Group) {
        let success = matches!(found, Some(Operation { state: State::Succeeded(_), .. }));
        if success && group.get(id).is_none() {
            self.shared.successes.note(id, found);
        }
    }

    fn count_uncertain(&self) -> u64 {
        let now = self.shared.clock.now();
        let ran_out = self.in_flight.values().filter(|found| found.state.changes_at() <= now);
        self.uncertain + ran_out.count() as u64
    }

    /// Writes what the group has changed, and then answers.
    pub(super) fn commit(&mut self, mut group: Group) {
        match self.write(&group) {
            Ok(()) => {
                for (id, changed) in group.take_changed() {
                    self.keep(id, changed);
                }
                for id in group.take_holds_ended() {
                    self.shared.holds_ended.note(id);
                }
                group.finish(|| Ok(()));
            }
            Err(error) => self.break_down(group, error),
        }
    }

    fn write(&mut self, group: &Group) -> Result<(), Failure> {
        let mut batch = self.tables.batch();
        for (id, changed) in group.changed() {
            if !changed.is_in_memory_alone() {
                batch.write(id, changed.before, changed.operation.as_ref())?;
            }
        }
        group.swept.iter().for_each(|row| batch.remove_due(*row));
        group.moved.iter().for_each(|row| batch.add_due(*row));
        if batch.is_empty() {
            return Ok(());
        }
        let earliest = batch.earliest_due();
        batch.commit(self.shared.clock.now())?;
        let swept_until = group.swept.last().map_or(self.due_from, |row| row.at);
        self.due_from = earliest.map_or(swept_until, |earliest| earliest.min(swept_until));
        Ok(())
    }

    /// Takes over a record that is as durable as it must be, before anybody is answered.
    fn keep(&mut self, id: OperationId, changed: Changed) {
        let after = Standing::of(changed.operation.as_ref());
        let held = |standing: Standing| u64::from(standing.mark() == Some(Mark::Uncertain));
        self.uncertain = (self.uncertain + held(after)).saturating_sub(held(changed.before));
        self.shared.successes.note(id, changed.operation.as_ref());
        match changed.operation {
            Some(operation) if after.mark() == Some(Mark::InFlight) => {
                self.in_flight.insert(id, operation);
            }
            Some(_) | None => {
                self.in_flight.remove(&id);
                if changed.change == Change::Durable {
                    self.shared.endings.announce(id);
                }
            }
        }
    }

    /// A write failed: what it was about is neither done nor undone.
    fn break_down(&mut self, mut group: Group, error: Failure) {
        self.broken = true;
        tracing::error!(error = %chain(&*error), "{BROKEN}");
        for (id, changed) in group.take_changed() {
            if changed.is_in_memory_alone() {
                self.keep(id, changed);
            }
        }
        let error: Arc<dyn StdError + Send + Sync> = error.into();
        group.finish(|| Err(Error::Failed(Box::new(Arc::clone(&error)))));
    }
}

type Failure = Box<dyn StdError + Send + Sync>;
