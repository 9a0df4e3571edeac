//! Shows by how much this machine's clock seems to be wrong, as the timestamps in the signatures of
//! each route suggest.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;

/// What all routes suspect of the clock.
#[derive(Debug, Default)]
pub(super) struct ClockSkews {
    pub(super) seconds: Family<RouteLabels, Gauge>,
    /// How many routes suspect the clock.
    routes: Arc<AtomicUsize>,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(super) struct RouteLabels {
    route: String,
}

/// What one route suspects of the clock.
#[derive(Debug)]
pub struct ClockSkew {
    seconds: Gauge,
    /// How many routes suspect the clock.
    routes: Arc<AtomicUsize>,
}

impl ClockSkews {
    pub(super) fn of_route(&self, route: &str) -> ClockSkew {
        let seconds = self.seconds.get_or_create(&RouteLabels { route: route.to_owned() }).clone();
        ClockSkew { seconds, routes: Arc::clone(&self.routes) }
    }

    pub(super) fn are_suspected(&self) -> bool {
        self.routes.load(Ordering::Acquire) > 0
    }
}

impl ClockSkew {
    /// The name of this concern in the log and in `/readyz`.
    pub const CONCERN: &str = "clock-skew";

    /// Shows by how many seconds the clock seems to be ahead; a negative number means behind, 0
    /// means that it seems to be right. Returns what was shown before.
    pub fn set(&self, seconds: i64) -> i64 {
        let before = self.seconds.set(seconds);
        // The count changes only when this route begins to suspect the clock, or ceases to.
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
        let one = skews.of_route("one");
        let other = skews.of_route("other");
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
