//! When what was fetched is to be fetched again, and what its host has said of it since.

use std::sync::{Mutex, PoisonError};

use super::AGAIN_AFTER;
use crate::clock::Moment;

/// Kept beside something that was fetched.
#[derive(Debug)]
pub(super) struct Renewal(Mutex<State>);

#[derive(Debug)]
struct State {
    due: Moment,
    is_denied: bool,
}

impl Renewal {
    pub(super) const fn new(due: Moment) -> Self {
        Self(Mutex::new(State { due, is_denied: false }))
    }

    /// Whether it is to be fetched now. Says so to one of all that ask at the same time.
    pub(super) fn is_due(&self, moment: Moment) -> bool {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let is_due = state.due <= moment;
        if is_due {
            state.due = moment.plus(AGAIN_AFTER);
        }
        is_due
    }

    /// Notes that its host says that it is none. Gives whether it had said so already. A host that
    /// is being moved or mended says so once; what is in force is not given up for that.
    pub(super) fn deny(&self) -> bool {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        std::mem::replace(&mut state.is_denied, true)
    }
}
