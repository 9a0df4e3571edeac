//! What the writer is asked to do, and how it answers.

use tokio::sync::oneshot;

use super::{Error, Listed, Listing, Swept};
use crate::operation::state::{Advanced, Change, Claimed, Decided, Renewed, Settled, Transition};
use crate::operation::{Operation, OperationId, Timestamp};

/// Where an answer goes. Closed when the caller has stopped waiting.
pub(super) type Reply<T> = oneshot::Sender<Result<T, Error>>;

/// A call that waits for the writer.
pub(super) enum Command {
    /// One step on one record.
    Change(Box<dyn Changing>),
    /// Reads a record.
    Get { id: OperationId, reply: Reply<Option<Operation>> },
    /// A part of a list.
    Page { listing: Listing, reply: Reply<Listed> },
    /// Counts what is uncertain.
    Uncertain { reply: Reply<u64> },
    /// One pass of expiry.
    Sweep { limit: usize, reply: Reply<Swept> },
    /// Does what has queued before, lets go of the database, and ends.
    Close { reply: oneshot::Sender<()> },
}

/// One step on one record, whatever its answer is.
pub(super) trait Changing: Send {
    fn id(&self) -> OperationId;

    /// Whether nobody waits for the answer any more. Then it is too late to begin.
    fn is_given_up(&self) -> bool;

    /// What becomes of the record.
    fn decide(self: Box<Self>, found: Option<Operation>, now: Timestamp) -> Ruling;

    /// The record cannot be read.
    fn fail(self: Box<Self>, error: Error);
}

/// A transition whose answer is sent when it may be.
pub(super) struct Ruling {
    pub(super) operation: Option<Operation>,
    pub(super) change: Change,
    pub(super) hold_ended: bool,
    /// Whether the answer is right even if nothing can be written.
    pub(super) stands_unwritten: bool,
    pub(super) answer: Pending,
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

/// The answer to a step.
pub(super) trait Answer: Send + 'static {
    /// Whether it is right even if the change that it comes with is not written: it only turns
    /// somebody away.
    fn stands_unwritten(&self) -> bool;
}

impl Answer for Claimed {
    fn stands_unwritten(&self) -> bool {
        match self {
            Self::Granted { .. } | Self::Begun { .. } | Self::LookUp { .. } => false,
            Self::Free
            | Self::Succeeded { .. }
            | Self::InFlight { .. }
            | Self::Uncertain { .. }
            | Self::Mismatched { .. } => true,
        }
    }
}

impl Answer for Renewed {
    fn stands_unwritten(&self) -> bool {
        match self {
            Self::Renewed => false,
            Self::Superseded => true,
        }
    }
}

impl Answer for Settled {
    fn stands_unwritten(&self) -> bool {
        match self {
            Self::Recorded { .. } | Self::RecordLost => false,
            Self::Superseded => true,
        }
    }
}

impl Answer for Advanced {
    fn stands_unwritten(&self) -> bool {
        match self {
            Self::Next { .. } | Self::Recorded | Self::Ended { .. } | Self::RecordLost => false,
            Self::Superseded => true,
        }
    }
}

impl Answer for Decided {
    fn stands_unwritten(&self) -> bool {
        match self {
            Self::Done => false,
            Self::Unknown | Self::Refused => true,
        }
    }
}

/// A withdrawal.
impl Answer for () {
    fn stands_unwritten(&self) -> bool {
        false
    }
}

/// One step on one record, by one of the rules of [`crate::operation::state`].
pub(super) struct Step<T, F> {
    pub(super) id: OperationId,
    pub(super) rule: F,
    pub(super) reply: Reply<T>,
}

impl<T, F> Changing for Step<T, F>
where
    T: Answer,
    F: FnOnce(Option<Operation>, Timestamp) -> Transition<T> + Send,
{
    fn id(&self) -> OperationId {
        self.id
    }

    fn is_given_up(&self) -> bool {
        self.reply.is_closed()
    }

    fn decide(self: Box<Self>, found: Option<Operation>, now: Timestamp) -> Ruling {
        let Transition { operation, change, hold_ended, result } = (self.rule)(found, now);
        let stands_unwritten = result.stands_unwritten();
        let answer = pending(self.reply, result);
        Ruling { operation, change, hold_ended, stands_unwritten, answer }
    }

    fn fail(self: Box<Self>, error: Error) {
        let _unsent = self.reply.send(Err(error));
    }
}
