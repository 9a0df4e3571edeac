//! The only place where the time is read. Timers, which only wait, are tokio's.
//!
//! There are two kinds of time. The time of day is what records on disk and signatures have; it can
//! be set back. A [`Moment`] never goes back, and measures how long something took.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use crate::operation::Timestamp;

/// A clock: the machine's, or one that a test moves by hand. Clones share the same time.
#[derive(Debug, Clone)]
pub struct Clock(Source);

#[derive(Debug, Clone)]
enum Source {
    System,
    Manual(Arc<AtomicU64>),
}

/// A point on a clock that never goes back, and that goes on while the machine is suspended.
///
/// It can be compared only with moments of the same process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Moment(Duration);

impl Moment {
    /// The moment `duration` later.
    #[must_use]
    pub fn plus(self, duration: Duration) -> Self {
        Self(self.0.saturating_add(duration))
    }

    /// The time from `self` until `later`. Zero if `later` is earlier.
    pub fn until(self, later: Self) -> Duration {
        later.0.saturating_sub(self.0)
    }
}

impl Clock {
    /// The machine's clock.
    pub const fn system() -> Self {
        Self(Source::System)
    }

    /// A clock that stands still at `start` until it is moved with [`Clock::advance`].
    pub fn manual(start: Timestamp) -> Self {
        Self(Source::Manual(Arc::new(AtomicU64::new(start.0))))
    }

    /// Moves a manual clock forward. It does nothing to the machine's clock.
    pub fn advance(&self, duration: Duration) {
        if let Source::Manual(millis) = &self.0 {
            let by = u64::try_from(duration.as_millis()).unwrap_or(u64::MAX);
            millis.fetch_add(by, Ordering::SeqCst);
        }
    }

    /// The time of day. It can be set back or forward at any moment.
    #[expect(clippy::disallowed_methods, reason = "the only place that may")]
    pub fn wall(&self) -> Timestamp {
        match &self.0 {
            Source::System => {
                // A machine without a battery-backed clock may start before 1970.
                let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
                Timestamp(since.map_or(0, |since| since.as_millis().try_into().unwrap_or(u64::MAX)))
            }
            Source::Manual(millis) => Timestamp(millis.load(Ordering::SeqCst)),
        }
    }

    /// The current moment.
    pub fn moment(&self) -> Moment {
        match &self.0 {
            Source::System => {
                let now = rustix::time::clock_gettime(MONOTONIC_CLOCK);
                let seconds = u64::try_from(now.tv_sec).unwrap_or(0);
                let nanos = u32::try_from(now.tv_nsec).unwrap_or(0);
                Moment(Duration::new(seconds, nanos))
            }
            Source::Manual(millis) => Moment(Duration::from_millis(millis.load(Ordering::SeqCst))),
        }
    }
}

/// On Linux `CLOCK_MONOTONIC` stands still while the machine is suspended. A lease in a shared
/// store goes on, so a process that wakes up must see that its lease has ended.
#[cfg(target_os = "linux")]
const MONOTONIC_CLOCK: rustix::time::ClockId = rustix::time::ClockId::Boottime;
#[cfg(not(target_os = "linux"))]
const MONOTONIC_CLOCK: rustix::time::ClockId = rustix::time::ClockId::Monotonic;

/// A time of day that never goes back. It starts at the machine's time of day, or at the last time
/// that was written down if that is later. From then on it counts moments: setting the machine's
/// clock does not move it.
#[derive(Debug, Clone)]
pub struct AnchoredClock {
    clock: Clock,
    /// The time of day at `started`.
    anchor: Timestamp,
    started: Moment,
}

impl AnchoredClock {
    /// Starts the clock. `kept`: the last time that was written down before.
    pub fn start(clock: Clock, kept: Timestamp) -> Self {
        // The machine's clock may have been set back while the process was not running. A time
        // before those in the records would make leases and retentions last longer than they were
        // given.
        let anchor = clock.wall().max(kept);
        let started = clock.moment();
        Self { clock, anchor, started }
    }

    /// The current time.
    pub fn now(&self) -> Timestamp {
        self.anchor.plus_floor(self.started.until(self.clock.moment()))
    }
}

/// Parses a duration as settings have it: a whole number and `ms`, `s`, `m`, `h` or `d`. None if it
/// is not one, or is longer than ten years.
///
/// The `humantime` format is not used, because it reads `30M` as thirty months.
pub fn parse_duration(text: &str) -> Option<Duration> {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let (number, unit) = text.split_at_checked(digits)?;
    let millis = match unit {
        "ms" => 1,
        "s" => 1_000,
        "m" => 60_000,
        "h" => 3_600_000,
        "d" => 86_400_000,
        _ => return None,
    };
    let number: u64 = number.parse().ok()?;
    number.checked_mul(millis).map(Duration::from_millis).filter(|it| *it <= LONGEST)
}

/// Ten years: far above every sensible setting, far below every overflow.
pub const LONGEST: Duration = Duration::from_hours(24 * 3650);
