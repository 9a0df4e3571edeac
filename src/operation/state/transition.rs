//! The result of a rule: the record to keep, and the reply to the caller.

use crate::operation::{Operation, State};

/// The result of a rule.
#[derive(Debug)]
pub struct Transition<T> {
    /// The record to keep; none if there is nothing to keep.
    pub operation: Option<Operation>,
    /// Whether the record must be written, and how durably.
    pub change: Change,
    /// Whether an uncertain operation was given up because `hold_for` has passed. Nobody ever
    /// learned whether it was done, so an operator should be told.
    pub hold_ended: bool,
    /// The reply to the caller.
    pub reply: T,
}

/// Whether a record must be written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Change {
    /// The record is as it was found.
    None,
    /// The operation is in flight, and the change counts only as long as its process lives: after
    /// that the operation is uncertain, whatever the change was. So a store of one process may keep
    /// the change in memory. For all others it is `Lazy`.
    Volatile,
    /// The record should be written. If the machine fails before that, no promise is broken.
    Lazy,
    /// The record must be durable before the caller gets its reply or anybody reads the record.
    Durable,
}

impl Change {
    /// Whether the change has ended an attempt or a look-up, so that those who wait for the end
    /// must be woken. `operation` is the record after the change.
    pub fn ends_attempt(self, operation: Option<&Operation>) -> bool {
        let goes_on = matches!(operation, Some(Operation { state: State::InFlight(_), .. }));
        self == Self::Durable && !goes_on
    }
}

impl<T> Transition<T> {
    /// Keeps `operation` and gives `reply`.
    pub(super) fn to(operation: impl Into<Option<Operation>>, change: Change, reply: T) -> Self {
        Self { operation: operation.into(), change, hold_ended: false, reply }
    }

    /// Adds the changes that time alone had made before the rule was applied.
    pub(super) fn after(mut self, lapsed: &Transition<()>) -> Self {
        self.change = self.change.max(lapsed.change);
        self.hold_ended |= lapsed.hold_ended;
        self
    }

    /// Adds a change and replaces the reply.
    pub(super) fn replied<A>(self, change: Change, reply: A) -> Transition<A> {
        Transition {
            operation: self.operation,
            change: self.change.max(change),
            hold_ended: self.hold_ended,
            reply,
        }
    }
}
