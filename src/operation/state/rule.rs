//! The trait that all rules implement, so that a store needs one call for all of them.

use std::fmt;

use super::Transition;
use crate::operation::{Operation, OperationId, Timestamp};

/// A request to change one operation, together with the rule of the change.
///
/// A store applies a rule in one atomic step. If another process has changed the record meanwhile,
/// the store applies the rule again to the new record. Only the last application has an effect.
pub trait Rule: fmt::Debug + Send + Sync + 'static {
    /// The reply to the caller.
    type Reply: fmt::Debug + Send + 'static;

    /// The name of the rule, for metrics.
    const NAME: RuleName;

    /// The operation that the rule changes.
    fn operation(&self) -> OperationId;

    /// Makes the record to keep from the record that was `found`. `now` is the time on the store's
    /// clock.
    fn apply(&self, found: Option<Operation>, now: Timestamp) -> Transition<Self::Reply>;

    /// Whether the caller may get this reply even if the store could not write the change that goes
    /// with it. True of replies that only turn the caller away.
    fn is_valid_unwritten(_: &Self::Reply) -> bool {
        false
    }

    /// Whether the caller waits for the end of the attempt if the operation is in flight.
    fn waits(&self) -> bool {
        false
    }
}

/// The names of the rules.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum RuleName {
    /// Asks for the right to make an attempt.
    Claim,
    /// Makes a lease longer.
    Renew,
    /// Records how an attempt ended.
    Settle,
    /// Records how a step ended, and begins the next one.
    Advance,
    /// Records what a look-up found.
    Conclude,
    /// Records that nothing was sent under a claim whose reply was lost.
    Withdraw,
    /// Records an operator's statement of how an operation ended.
    Resolve,
    /// Frees an operation because an operator says so.
    Forget,
    /// Makes the changes of time alone.
    Expire,
}
