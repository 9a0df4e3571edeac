//! What a route's settings say about copies of an operation in each state.

use std::time::Duration;

/// What happens to a copy of an operation in flight.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IfInFlight {
    /// The copy is refused: its sender is told to come back. The record notes that, because a
    /// sender that does not come back loses the event if the attempt fails.
    Refuse,
    /// The copy waits for the outcome.
    Wait,
}

/// What happens to a copy of an uncertain operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IfUncertain {
    /// The copy is refused until an operator resolves the operation.
    Hold,
    /// The copy makes the next attempt as soon as the last one must have ended. An upstream that
    /// was paused may still finish the last attempt, so an operation may be done twice.
    Retry {
        /// The number of uncertain attempts at which the operation is held.
        attempts_max: u32,
    },
    /// The receiver is asked whether the operation was done, by one copy at a time. If it was not
    /// done, the copy makes the next attempt under the conditions of `Retry`.
    LookUp {
        /// The number of uncertain attempts at which the operation is not sent again.
        attempts_max: u32,
        /// How long one look-up keeps other copies from asking.
        lease: Duration,
    },
}

impl IfUncertain {
    /// Whether something may be sent again after this number of uncertain attempts.
    pub const fn allows_another(self, uncertain: u32) -> bool {
        match self {
            Self::Hold => false,
            Self::Retry { attempts_max } | Self::LookUp { attempts_max, .. } => {
                uncertain < attempts_max
            }
        }
    }
}

/// Which copies of a success get its answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Remember {
    /// All copies, until the retention has passed.
    Retention,
    /// Only copies that arrived while the attempt was in flight and waited for it. Every later
    /// request is a new event. This is for senders whose events have no id.
    InFlight,
}
