//! What every rule has in common, so that a store needs one call for all of them.

use std::fmt;

use super::Transition;
use crate::operation::{Operation, OperationId, Timestamp};

/// A request that changes one operation, and the rule by which it does.
///
/// A store applies it in one atomic step. It may apply it again, to what it has found by then, if
/// the record has changed meanwhile; what counts is the last application.
pub trait Rule: fmt::Debug + Send + Sync + 'static {
    /// What the caller is told.
    type Answer: fmt::Debug + Send + 'static;

    /// Which call it is.
    const CALL: Call;

    /// The operation that it changes.
    fn operation(&self) -> OperationId;

    /// The record as it must be kept, given the one that was `found` and the time on the store's
    /// clock.
    fn apply(&self, found: Option<Operation>, now: Timestamp) -> Transition<Self::Answer>;

    /// Whether an answer is right even if the change that comes with it cannot be written: it only
    /// turns the caller away.
    fn stands_unwritten(answer: &Self::Answer) -> bool;

    /// Whether the caller waits for the end of the attempt if one is in flight.
    fn waits(&self) -> bool {
        false
    }
}

/// The calls by which operations change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Call {
    /// Asks for the right to attempt an operation.
    Claim,
    /// Makes a lease last longer.
    Renew,
    /// Records the end of an attempt.
    Settle,
    /// Records the end of a step, and that the next one begins.
    Advance,
    /// Records what a look-up has found.
    Conclude,
    /// Settles a claim whose reply never came as never sent.
    Withdraw,
    /// Ends an operation by a person's decision.
    Resolve,
    /// Takes an operation back by a person's decision.
    Forget,
    /// Does what time has done.
    Expire,
}
