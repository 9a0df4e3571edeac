//! Changes that are decided but not yet durable, and the answers that wait for them.

use std::collections::HashMap;
use std::mem;

use super::queue::DeferredReply;
use super::tables::{IndexEntries, TimeKey};
use crate::operation::state::Change;
use crate::operation::{Operation, OperationId, State};
use crate::store::Error;

/// The most changed records that may wait in memory for the next group.
const LAZY_MAX: usize = 256;

/// The changes that are written and synced together.
#[derive(Default)]
pub(super) struct Group {
    changed: HashMap<OperationId, PendingChange>,
    replies: Vec<DeferredReply>,
    holds_ended: Vec<OperationId>,
    /// Rows of `due` that a sweep has dealt with.
    pub(super) swept: Vec<TimeKey>,
    /// Rows of `due` that take the place of some of those: their records end later.
    pub(super) moved: Vec<TimeKey>,
}

/// A record as it will be.
pub(super) struct PendingChange {
    /// The rows that the record has on disk now.
    pub(super) before: IndexEntries,
    /// The record as it will be; none if it will be gone.
    pub(super) operation: Option<Operation>,
    /// How durable it must be.
    pub(super) change: Change,
}

impl PendingChange {
    /// Whether it need not be written: a renewal, or a note that a copy was refused. A restart
    /// makes every operation in flight uncertain, whatever its lease was.
    pub(super) fn is_in_memory_alone(&self) -> bool {
        let in_flight = matches!(
            self.operation.as_ref().map(|operation| &operation.state),
            Some(State::InFlight(_))
        );
        in_flight && self.change < Change::Durable
    }
}

impl Group {
    /// The record as this group has changed it, if it has.
    pub(super) fn get(&self, id: OperationId) -> Option<&PendingChange> {
        self.changed.get(&id)
    }

    /// Replaces a record. `before` are the rows that it has on disk, if the group has not changed
    /// it yet.
    pub(super) fn put(
        &mut self,
        id: OperationId,
        before: IndexEntries,
        operation: Option<Operation>,
        change: Change,
    ) {
        let first = PendingChange { before, operation: None, change: Change::None };
        let changed = self.changed.entry(id).or_insert(first);
        changed.operation = operation;
        changed.change = changed.change.max(change);
    }

    /// Replies once the record is durable as it is now: at once, unless this group changes it.
    pub(super) fn reply(&mut self, id: OperationId, reply: DeferredReply) {
        match self.changed.get(&id) {
            Some(PendingChange { change: Change::Durable, .. }) => self.replies.push(reply),
            Some(PendingChange { change: Change::None | Change::Lazy, .. }) | None => reply(Ok(())),
        }
    }

    /// Replies once the group is durable, whatever it changes.
    pub(super) fn reply_last(&mut self, reply: DeferredReply) {
        self.replies.push(reply);
    }

    pub(super) fn note_hold_ended(&mut self, id: OperationId) {
        self.holds_ended.push(id);
    }

    /// The records that the group changes.
    pub(super) fn changed(&self) -> impl Iterator<Item = (OperationId, &PendingChange)> {
        self.changed.iter().map(|(id, changed)| (*id, changed))
    }

    /// Takes out the changes that need not be written.
    pub(super) fn take_in_memory_alone(&mut self) -> HashMap<OperationId, PendingChange> {
        self.changed.extract_if(|_, changed| changed.is_in_memory_alone()).collect()
    }

    /// Whether nobody waits for the group, and it has room: then it is written with the next one.
    /// Notes that a copy was refused are written in this way, so that a flood of copies of a held
    /// operation costs no syncs.
    pub(super) fn may_wait(&self) -> bool {
        let is_lazy = |changed: &PendingChange| changed.change < Change::Durable;
        self.replies.is_empty()
            && self.holds_ended.is_empty()
            && self.swept.is_empty()
            && self.changed.len() < LAZY_MAX
            && self.changed.values().all(is_lazy)
    }

    /// Takes out the changes.
    pub(super) fn take_changed(&mut self) -> HashMap<OperationId, PendingChange> {
        mem::take(&mut self.changed)
    }

    /// Takes out the operations whose hold has ended.
    pub(super) fn take_holds_ended(&mut self) -> Vec<OperationId> {
        mem::take(&mut self.holds_ended)
    }

    /// Sends all replies.
    pub(super) fn finish(self, result: impl Fn() -> Result<(), Error>) {
        for reply in self.replies {
            reply(result());
        }
    }
}
