//! The commands to the writer.

use std::sync::Arc;

use tokio::sync::oneshot;

use super::reply::Reply;
use crate::operation::{Operation, OperationId};
use crate::store::{ListPage, ListQuery, RuleCall, SweepReport};

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
