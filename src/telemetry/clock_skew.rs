//! By how much this machine's clock seems to be wrong, as the signatures of each route show it.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;

/// The suspicions of all routes.
#[derive(Debug, Default)]
pub(super) struct ClockSkews {
    pub(super) seconds: Family<OfRoute, Gauge>,
    routes: Arc<AtomicUsize>,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(super) struct OfRoute {
    route: String,
}

/// The suspicion of one route.
#[derive(Debug)]
pub struct ClockSkew {
    seconds: Gauge,
    /// How many routes have a suspicion.
    routes: Arc<AtomicUsize>,
}

impl ClockSkews {
    pub(super) fn of(&self, route: &str) -> ClockSkew {
        let seconds = self.seconds.get_or_create(&OfRoute { route: route.to_owned() }).clone();
        ClockSkew { seconds, routes: Arc::clone(&self.routes) }
    }

    pub(super) fn are_suspected(&self) -> bool {
        self.routes.load(Ordering::Acquire) > 0
    }
}

impl ClockSkew {
    /// The word for it in the log and in `/readyz`.
    pub const CONCERN: &str = "clock-skew";

    /// Shows by how many seconds the clock seems to be ahead, or behind if that is negative; 0: it
    /// seems to be right. Gives what was shown before.
    pub fn set(&self, seconds: i64) -> i64 {
        let before = self.seconds.set(seconds);
        match (before != 0, seconds != 0) {
            (false, true) => _ = self.routes.fetch_add(1, Ordering::AcqRel),
            (true, false) => _ = self.routes.fetch_sub(1, Ordering::AcqRel),
            (false, false) | (true, true) => {}
        }
        before
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_clock_is_suspected_for_as_long_as_one_route_suspects_it() {
        let skews = ClockSkews::default();
        let one = skews.of("one");
        let other = skews.of("other");
        assert!(!skews.are_suspected());
        assert_eq!(one.set(0), 0);
        assert!(!skews.are_suspected());
        assert_eq!(one.set(400), 0);
        assert_eq!(one.set(401), 400);
        assert_eq!(other.set(-7), 0);
        assert_eq!(one.set(0), 401);
        assert!(skews.are_suspected());
        assert_eq!(other.set(0), -7);
        assert!(!skews.are_suspected());
    }
}
