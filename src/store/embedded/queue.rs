//! What callers ask the writer to do, and how it replies.

use std::sync::Arc;

use tokio::sync::oneshot;

use crate::operation::{Operation, OperationId};
use crate::store::{Error, ListPage, ListQuery, RuleCall, SweepReport};

/// Where a reply goes. It is closed when the caller has stopped waiting.
pub(super) type Reply<T> = oneshot::Sender<Result<T, Error>>;

/// A call that waits for the writer.
pub(super) enum Command {
    /// Applies a rule to a record.
    Change { call: Arc<dyn RuleCall>, reply: Reply<()> },
    /// Reads a record.
    Get { id: OperationId, reply: Reply<Option<Operation>> },
    /// Reads a part of a list.
    Page { query: ListQuery, reply: Reply<ListPage> },
    /// Counts the uncertain operations.
    Uncertain { reply: Reply<u64> },
    /// One pass of expiry.
    Sweep { limit: usize, reply: Reply<SweepReport> },
    /// Does what was queued before, closes the database, and ends.
    Close { reply: oneshot::Sender<()> },
}

/// A reply that waits until its change is durable.
pub(super) type DeferredReply = Box<dyn FnOnce(Result<(), Error>) + Send>;

/// A reply of this answer, or of the error with which its change failed.
pub(super) fn deferred<T: Send + 'static>(reply: Reply<T>, answer: T) -> DeferredReply {
    Box::new(move |written| {
        // An error means that the caller has stopped waiting.
        let _unsent = reply.send(written.map(|()| answer));
    })
}
