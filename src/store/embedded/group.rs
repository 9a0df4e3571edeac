//! Changes that are decided but not yet durable, and the answers that wait for them.

use std::collections::HashMap;
use std::mem;

use super::Error;
use super::queue::Pending;
use super::tables::{Dated, Standing};
use crate::operation::state::Change;
use crate::operation::{Operation, OperationId, State};

/// Changed records that may wait in memory for the next group.
const NOTES_MAX: usize = 256;

/// What is written and synced together.
#[derive(Default)]
pub(super) struct Group {
    changed: HashMap<OperationId, Changed>,
    answers: Vec<Pending>,
    holds_ended: Vec<OperationId>,
    /// Rows of `due` that a sweep came by, and those that take their place.
    pub(super) swept: Vec<Dated>,
    pub(super) moved: Vec<Dated>,
}

/// A record as it will be.
pub(super) struct Changed {
    /// Where it stands on disk.
    pub(super) before: Standing,
    /// The record as it will be.
    pub(super) operation: Option<Operation>,
    /// How it must be written.
    pub(super) change: Change,
}

impl Changed {
    /// Whether it is kept in memory alone: a renewal, or the note that a copy was refused. A
    /// restart makes an operation in flight uncertain whatever its lease was.
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
    pub(super) fn get(&self, id: OperationId) -> Option<&Changed> {
        self.changed.get(&id)
    }

    /// Replaces a record that stands on disk as `before`.
    pub(super) fn put(
        &mut self,
        id: OperationId,
        before: Standing,
        operation: Option<Operation>,
        change: Change,
    ) {
        let first = Changed { before, operation: None, change: Change::None };
        let changed = self.changed.entry(id).or_insert(first);
        changed.operation = operation;
        changed.change = changed.change.max(change);
    }

    /// Answers once the record is durable as it is now: at once, unless this group changes it.
    pub(super) fn answer(&mut self, id: OperationId, answer: Pending) {
        match self.changed.get(&id) {
            Some(Changed { change: Change::Durable, .. }) => self.answers.push(answer),
            Some(Changed { change: Change::None | Change::Lazy, .. }) | None => answer(Ok(())),
        }
    }

    /// Answers with the group, whatever it changes.
    pub(super) fn answer_last(&mut self, answer: Pending) {
        self.answers.push(answer);
    }

    pub(super) fn note_hold_ended(&mut self, id: OperationId) {
        self.holds_ended.push(id);
    }

    /// The records that it changes.
    pub(super) fn changed(&self) -> impl Iterator<Item = (OperationId, &Changed)> {
        self.changed.iter().map(|(id, changed)| (*id, changed))
    }

    /// Takes out what is kept in memory alone.
    pub(super) fn take_in_memory_alone(&mut self) -> HashMap<OperationId, Changed> {
        self.changed.extract_if(|_, changed| changed.is_in_memory_alone()).collect()
    }

    /// Whether nobody waits for it, and it has room: then it is written with the next group. That
    /// a copy was refused is noted in this way, so that a flood of copies of an operation that is
    /// held costs no syncs.
    pub(super) fn may_wait(&self) -> bool {
        let is_lazy = |changed: &Changed| changed.change < Change::Durable;
        self.answers.is_empty()
            && self.holds_ended.is_empty()
            && self.swept.is_empty()
            && self.changed.len() < NOTES_MAX
            && self.changed.values().all(is_lazy)
    }

    /// Takes the changes out, to keep them.
    pub(super) fn take_changed(&mut self) -> HashMap<OperationId, Changed> {
        mem::take(&mut self.changed)
    }

    /// Takes out the operations that were given up.
    pub(super) fn take_holds_ended(&mut self) -> Vec<OperationId> {
        mem::take(&mut self.holds_ended)
    }

    /// Gives all answers.
    pub(super) fn finish(self, result: impl Fn() -> Result<(), Error>) {
        for answer in self.answers {
            answer(result());
        }
    }
}
