//! A group of changes that are decided but not yet durable, and the replies that wait for them.

use std::collections::HashMap;

use super::reply::DeferredReply;
use super::tables::{DueRow, IndexEntries, TimeKey};
use crate::operation::state::Change;
use crate::operation::{Operation, OperationId};

/// The most changed records that may wait in memory for the next group.
const LAZY_MAX: usize = 256;

/// The changes that are written and synced together.
#[derive(Default)]
pub(super) struct Group {
    /// The records that the group changes.
    pub(super) changed: HashMap<OperationId, PendingChange>,
    /// The replies that are sent once the group is durable.
    pub(super) replies: Vec<DeferredReply>,
    /// The operations whose hold has ended.
    pub(super) holds_ended: Vec<OperationId>,
    /// The rows of `due` that a sweep has dealt with.
    pub(super) swept: Vec<DueRow>,
    /// The ends that swept rows leave: of records that end later, and those that come next.
    pub(super) moved: Vec<TimeKey>,
}

/// A record that the group changes.
pub(super) struct PendingChange {
    /// The rows that the record has on disk now; none if it is not there.
    pub(super) before: Option<IndexEntries>,
    /// The record as it will be; none if it will be removed.
    pub(super) operation: Option<Operation>,
    /// How durable the change must be.
    pub(super) change: Change,
}

impl Group {
    /// Replaces a record. `before` are the rows that the record has on disk. They count only if the
    /// group has not changed the record yet.
    pub(super) fn put(
        &mut self,
        id: OperationId,
        before: Option<IndexEntries>,
        operation: Option<Operation>,
        change: Change,
    ) {
        let first = PendingChange { before, operation: None, change: Change::None };
        let changed = self.changed.entry(id).or_insert(first);
        changed.operation = operation;
        changed.change = changed.change.max(change);
    }

    /// Replies once the record, as it is now, is durable. That is at once, unless this group makes
    /// a durable change of it.
    pub(super) fn reply(&mut self, id: OperationId, reply: DeferredReply) {
        if self.is_waited_for(id) {
            self.replies.push(reply);
        } else {
            reply.send(Ok(()));
        }
    }

    /// Whether replies about this record wait until the group is durable.
    pub(super) fn is_waited_for(&self, id: OperationId) -> bool {
        self.changed.get(&id).is_some_and(|changed| changed.change == Change::Durable)
    }

    /// Takes out the changes that are kept in memory alone.
    pub(super) fn take_volatile(&mut self) -> HashMap<OperationId, PendingChange> {
        self.changed.extract_if(|_, changed| changed.change == Change::Volatile).collect()
    }

    /// Whether the group may wait and be written with the next one. It may if nobody waits for it
    /// and it has room. A note that a copy was refused is written in this way, so a flood of copies
    /// of a held operation costs no syncs.
    pub(super) fn may_wait(&self) -> bool {
        let is_lazy = |changed: &PendingChange| changed.change < Change::Durable;
        self.replies.is_empty()
            && self.holds_ended.is_empty()
            && self.swept.is_empty()
            && self.changed.len() < LAZY_MAX
            && self.changed.values().all(is_lazy)
    }
}
