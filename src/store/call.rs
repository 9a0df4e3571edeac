//! Carries a rule to a store, and its reply back to the caller.
//!
//! A [`Store`] is used as a trait object, so it cannot have a method that is generic over the type
//! of the reply. Instead it applies a [`RuleCall`], which keeps the reply until the caller takes
//! the reply out.

use std::fmt;
use std::sync::Arc;

use parking_lot::Mutex;

use super::{Error, Store};
use crate::operation::state::{Rule, RuleName, Transition};
use crate::operation::{Operation, OperationId, Timestamp};

/// A rule without the type of its reply.
pub trait RuleCall: fmt::Debug + Send + Sync {
    /// The name of the rule.
    fn name(&self) -> RuleName;

    /// The operation that the rule changes.
    fn operation(&self) -> OperationId;

    /// Whether the caller will wait for the end of the attempt if one is in flight.
    fn waits(&self) -> bool;

    /// Applies the rule, and keeps its reply. A store may apply the rule several times, because the
    /// record may have changed in between. Only the last reply counts.
    fn apply(&self, found: Option<Operation>, now: Timestamp) -> Transition<IfUnwritten>;
}

/// What to do with a reply when the change that belongs to it cannot be written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IfUnwritten {
    /// The call fails.
    Fails,
    /// The caller gets the reply all the same, because the reply only turns it away.
    Stands,
}

/// A rule, with the reply of its latest application.
#[derive(Debug)]
pub(super) struct TypedCall<R: Rule> {
    rule: R,
    reply: Mutex<Option<R::Reply>>,
}

impl<R: Rule> TypedCall<R> {
    pub(super) const fn new(rule: R) -> Self {
        Self { rule, reply: Mutex::new(None) }
    }

    /// Takes out the reply of the latest application.
    pub(super) fn reply(&self) -> Result<R::Reply, Error> {
        let reply = self.reply.lock().take();
        reply.ok_or_else(|| Error::Failed("it reported success without applying the rule".into()))
    }
}

impl<R: Rule> RuleCall for TypedCall<R> {
    fn name(&self) -> RuleName {
        R::NAME
    }

    fn operation(&self) -> OperationId {
        self.rule.operation()
    }

    fn waits(&self) -> bool {
        self.rule.waits()
    }

    fn apply(&self, found: Option<Operation>, now: Timestamp) -> Transition<IfUnwritten> {
        let Transition { operation, change, hold_ended, reply } = self.rule.apply(found, now);
        // The store decides what to do about a failed write, but does not know the type of the
        // reply. This value tells the store all that it needs.
        let stands = R::is_valid_unwritten(&reply);
        *self.reply.lock() = Some(reply);
        let reply = if stands { IfUnwritten::Stands } else { IfUnwritten::Fails };
        Transition { operation, change, hold_ended, reply }
    }
}

/// How callers apply rules to a [`Store`].
pub trait StoreExt: Store {
    /// Applies a rule to its operation in one atomic step, and returns its reply once the change is
    /// as durable as the rule asks.
    ///
    /// Not cancel safe: if the future is dropped, the change may have been made or may still be
    /// made.
    ///
    /// # Errors
    /// [`Error::may_have_applied`] says whether the change may have been made although the call
    /// failed.
    fn apply<R: Rule>(&self, rule: R) -> impl Future<Output = Result<R::Reply, Error>> + Send {
        let call = Arc::new(TypedCall::new(rule));
        async move {
            self.call(Arc::<TypedCall<R>>::clone(&call)).await?;
            call.reply()
        }
    }
}

impl<S: Store + ?Sized> StoreExt for S {}
