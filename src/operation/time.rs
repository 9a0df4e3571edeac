//! A point in time on a store's clock.

use std::time::Duration;

use serde::{Deserialize, Serialize};

/// A point in time, in milliseconds since the Unix epoch, on the clock of the store that wrote it.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize,
)]
pub struct Timestamp(pub u64);

impl Timestamp {
    /// The point `duration` later, rounded up to a millisecond. Saturates at the largest value.
    #[must_use]
    pub fn plus(self, duration: Duration) -> Self {
        Self(self.0.saturating_add(millis(duration)))
    }

    /// The point `duration` later, rounded down to a millisecond. Saturates at the largest value.
    #[must_use]
    pub fn plus_floor(self, duration: Duration) -> Self {
        Self(self.0.saturating_add(u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)))
    }

    /// The point `duration` earlier. Saturates at zero.
    #[must_use]
    pub fn minus(self, duration: Duration) -> Self {
        Self(self.0.saturating_sub(millis(duration)))
    }

    /// The time from `self` until `later`; zero if `later` is not later.
    pub fn until(self, later: Self) -> Duration {
        Duration::from_millis(later.0.saturating_sub(self.0))
    }
}

/// Whole milliseconds, rounded up, so that a lease below a millisecond does not become zero.
fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos().div_ceil(1_000_000)).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_duration_below_a_millisecond_is_not_lost() {
        assert_eq!(Timestamp(5).plus(Duration::from_micros(1)), Timestamp(6));
        assert_eq!(Timestamp(5).plus(Duration::from_millis(2)), Timestamp(7));
    }

    #[test]
    fn the_end_of_time_is_not_passed() {
        assert_eq!(Timestamp(5).plus(Duration::MAX), Timestamp(u64::MAX));
        assert_eq!(Timestamp(5).until(Timestamp(3)), Duration::ZERO);
    }
}
