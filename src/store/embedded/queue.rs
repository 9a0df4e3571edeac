//! What the writer is asked to do, and how it answers.

use std::sync::Arc;

use tokio::sync::oneshot;

use super::{Error, ListPage, ListQuery, RuleCall, SweepReport};
use crate::operation::{Operation, OperationId};

/// Where an answer goes. Closed when the caller has stopped waiting.
pub(super) type Reply<T> = oneshot::Sender<Result<T, Error>>;

/// A call that waits for the writer.
pub(super) enum Command {
    /// One step on one record, by one of the rules of [`crate::operation::state`].
    Change { call: Arc<dyn RuleCall>, reply: Reply<()> },
    /// Reads a record.
    Get { id: OperationId, reply: Reply<Option<Operation>> },
    /// A part of a list.
    Page { listing: ListQuery, reply: Reply<ListPage> },
    /// Counts what is uncertain.
    Uncertain { reply: Reply<u64> },
    /// One pass of expiry.
    Sweep { limit: usize, reply: Reply<SweepReport> },
    /// Does what has queued before, lets go of the database, and ends.
    Close { reply: oneshot::Sender<()> },
}

/// An answer that waits for its change to be durable.
pub(super) type Pending = Box<dyn FnOnce(Result<(), Error>) + Send>;

/// An answer, made ready to be sent.
pub(super) fn pending<T: Send + 'static>(reply: Reply<T>, answer: T) -> Pending {
    Box::new(move |written| {
        // an error means that the caller has stopped waiting
        let _unsent = reply.send(written.map(|()| answer));
    })
}
