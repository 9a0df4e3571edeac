//! What the writer and its callers both use.

use super::cache::SuccessCache;
use crate::clock::AnchoredClock;
use crate::store::sweep::HoldsEnded;
use crate::store::watch::Watchers;

/// What the writer and its callers both use.
#[derive(Debug)]
pub(super) struct SharedState {
    pub(super) clock: AnchoredClock,
    pub(super) successes: SuccessCache,
    pub(super) watchers: Watchers,
    pub(super) holds_ended: HoldsEnded,
}
