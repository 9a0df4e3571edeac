//! The state that the writer and its callers share.

use super::cache::SuccessCache;
use crate::clock::AnchoredClock;
use crate::store::sweep::HoldsEnded;
use crate::store::watch::Watchers;

/// The state that the writer and its callers share.
#[derive(Debug)]
pub(super) struct SharedState {
    pub(super) clock: AnchoredClock,
    pub(super) successes: SuccessCache,
    pub(super) watchers: Watchers,
    pub(super) holds_ended: HoldsEnded,
}
