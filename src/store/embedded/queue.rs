//! The commands to the writer, and its replies.

use std::sync::Arc;

use tokio::sync::oneshot;

use crate::operation::{Operation, OperationId};
use crate::store::{Error, ListPage, ListQuery, RuleCall, SweepReport};

/// The channel for a reply. It is closed once the caller has stopped waiting.
pub(super) type Reply<T> = oneshot::Sender<Result<T, Error>>;

/// A command that waits for the writer.
pub(super) enum Command {
    /// Applies a rule to a record.
    Change { call: Arc<dyn RuleCall>, reply: Reply<()> },
    /// Reads a record.
    Get { id: OperationId, reply: Reply<Option<Operation>> },
    /// Reads a part of a list.
    Page { query: ListQuery, reply: Reply<ListPage> },
    /// Counts the uncertain operations.
    Uncertain { reply: Reply<u64> },
    /// Makes one pass of expiry.
    Sweep { limit: usize, reply: Reply<SweepReport> },
    /// Does all earlier commands, closes the database, and ends the writer.
    Close { reply: oneshot::Sender<()> },
}

/// A reply that waits until its change is durable.
pub(super) type DeferredReply = Box<dyn FnOnce(Result<(), Error>) + Send>;

/// Makes a reply that sends this answer, or the error with which the change failed.
pub(super) fn deferred<T: Send + 'static>(reply: Reply<T>, answer: T) -> DeferredReply {
    Box::new(move |written| {
        // An error means that the caller has stopped waiting.
        let _unsent = reply.send(written.map(|()| answer));
    })
}
