//! The errors of a store.

use std::sync::Arc;
use std::time::Duration;

use super::Corrupt;
use crate::operation::OperationId;

/// A call to a store failed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The store turned the call away before it took effect.
    #[error("the store is unavailable: {0}")]
    Unavailable(&'static str),
    /// No reply came in time. The call may have taken effect, or may still do so.
    #[error("the store did not answer within {0:?}")]
    NoReply(Duration),
    /// The change was made, but too few replicas confirmed it in time. A failover may lose the
    /// change.
    #[error("{had} of the {wanted} replicas that must confirm the change did so in time")]
    TooFewReplicas {
        /// The number of replicas that must confirm a change, by the settings.
        wanted: usize,
        /// The number of replicas that confirmed this change.
        had: usize,
    },
    /// The connection, the server or the disk failed. The call may have taken effect.
    #[error("the store failed")]
    Failed(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// The record of this operation cannot be read. A store never takes such a record for a free
    /// key.
    #[error("the record of `{0}` is unreadable")]
    Unreadable(OperationId, #[source] Corrupt),
    /// The server lost its records, and nobody has acknowledged the loss.
    #[error("the store came back empty: see `onceward store acknowledge`")]
    Emptied,
    /// A part of the server's tables is gone, and the records may be gone with it. The store makes
    /// no tables beside those that are left.
    #[error("the store is unavailable: {0}")]
    TablesGone(&'static str),
    /// A claim failed, and its operation was seen in flight or uncertain.
    #[error("the call failed, and an attempt at the operation is known to exist")]
    AttemptExists(#[source] Box<Self>),
}

impl Error {
    /// Whether the call may have taken effect although it failed.
    pub fn may_have_applied(&self) -> bool {
        match self {
            Self::NoReply(_) | Self::TooFewReplicas { .. } | Self::Failed(_) => true,
            Self::Unavailable(_) | Self::Unreadable(..) | Self::Emptied | Self::TablesGone(_) => {
                false
            }
            Self::AttemptExists(error) => error.may_have_applied(),
        }
    }

    /// Returns the error of work that several calls share, for one of them.
    pub(super) fn copy_of(shared: &Arc<Self>) -> Self {
        match &**shared {
            Self::Unavailable(text) => Self::Unavailable(text),
            Self::NoReply(time) => Self::NoReply(*time),
            Self::TablesGone(text) => Self::TablesGone(text),
            Self::Emptied => Self::Emptied,
            Self::Failed(_)
            | Self::TooFewReplicas { .. }
            | Self::Unreadable(..)
            | Self::AttemptExists(_) => Self::Failed(Box::new(Arc::clone(shared))),
        }
    }

    /// The error for the caller of a claim that has failed. `attempt_seen`: whether the operation was
    /// seen in flight or uncertain.
    pub(crate) fn of_claim(self, attempt_seen: bool) -> Self {
        if attempt_seen && self.leaves_state_unknown() {
            Self::AttemptExists(Box::new(self))
        } else {
            self
        }
    }

    /// Whether the error says nothing about the operation.
    ///
    /// Only after such an error may `when_store_fails = "forward"` send the request on without a
    /// claim. After any other error, an attempt is known to exist, or may have existed in a record
    /// that is lost or damaged.
    pub const fn leaves_state_unknown(&self) -> bool {
        match self {
            Self::Unavailable(_)
            | Self::NoReply(_)
            | Self::TooFewReplicas { .. }
            | Self::Failed(_) => true,
            Self::Unreadable(..) | Self::Emptied | Self::TablesGone(_) | Self::AttemptExists(_) => {
                false
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_an_error_that_says_nothing_of_the_operation_is_told_as_that_of_a_known_attempt() {
        let unavailable = || Error::Unavailable("this is a test");
        assert!(matches!(unavailable().of_claim(true), Error::AttemptExists(_)));
        assert!(matches!(unavailable().of_claim(false), Error::Unavailable(_)));
        assert!(matches!(Error::Emptied.of_claim(true), Error::Emptied));
        let gone = Error::TablesGone("this is a test").of_claim(true);
        assert!(matches!(gone, Error::TablesGone(_)));
    }
}
