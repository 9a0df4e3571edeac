//! When a fetched certificate or key is to be fetched again, and whether its host has denied it
//! since.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use crate::clock::Moment;

/// For how long a certificate or key is used before it is fetched again.
pub(super) const FRESH_FOR: Duration = Duration::from_hours(24);
/// How long after a fetch, which may have failed, the next one is made.
pub(super) const AGAIN_AFTER: Duration = Duration::from_mins(1);

/// The state of renewal of one certificate or key.
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

    /// Whether it is to be fetched now. Of all callers at the same time one gets `true`, so that
    /// only one of them fetches.
    pub(super) fn is_due(&self, moment: Moment) -> bool {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let is_due = state.due <= moment;
        if is_due {
            state.due = moment.plus(AGAIN_AFTER);
        }
        is_due
    }

    /// Notes that the host denies the certificate or key, and returns whether it had done so
    /// before. A host may deny it once while it is being moved or mended. What is in force is given
    /// up only after the second time.
    pub(super) fn deny(&self) -> bool {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        std::mem::replace(&mut state.is_denied, true)
    }
}
