//! Where the time is read. Timers, which only wait, are tokio's own.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use crate::operation::Timestamp;

/// A clock: the wall's, and one that only counts. Tests bring their own.
#[derive(Debug, Clone)]
pub struct Clock(Source);

#[derive(Debug, Clone)]
enum Source {
    System,
    Manual(Arc<AtomicU64>),
}

/// A point on a clock that never goes back and runs on while the machine sleeps.
///
/// Meaningful only beside others of the same process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Moment(Duration);

impl Moment {
    /// The point `duration` later.
    #[must_use]
    pub fn plus(self, duration: Duration) -> Self {
        Self(self.0.saturating_add(duration))
    }

    /// How long it is from `self` until `later`; zero if `later` is not later.
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

    /// Moves a manual clock on. The machine's clock is not moved by anybody.
    pub fn advance(&self, duration: Duration) {
        if let Source::Manual(millis) = &self.0 {
            let by = u64::try_from(duration.as_millis()).unwrap_or(u64::MAX);
            millis.fetch_add(by, Ordering::SeqCst);
        }
    }

    /// The time of day. It may be set back or forward at any moment.
    #[expect(clippy::disallowed_methods, reason = "this is the place that may")]
    pub fn wall(&self) -> Timestamp {
        match &self.0 {
            Source::System => {
                let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
                Timestamp(since.map_or(0, |since| since.as_millis().try_into().unwrap_or(u64::MAX)))
            }
            Source::Manual(millis) => Timestamp(millis.load(Ordering::SeqCst)),
        }
    }

    /// The time that has passed, counted through suspend. Never goes back.
    pub fn moment(&self) -> Moment {
        match &self.0 {
            Source::System => {
                let now = rustix::time::clock_gettime(COUNTING);
                let seconds = u64::try_from(now.tv_sec).unwrap_or(0);
                let nanos = u32::try_from(now.tv_nsec).unwrap_or(0);
                Moment(Duration::new(seconds, nanos))
            }
            Source::Manual(millis) => Moment(Duration::from_millis(millis.load(Ordering::SeqCst))),
        }
    }
}

/// `CLOCK_MONOTONIC` stops while a Linux machine is suspended; a lease in a shared store does not.
#[cfg(target_os = "linux")]
const COUNTING: rustix::time::ClockId = rustix::time::ClockId::Boottime;
#[cfg(not(target_os = "linux"))]
const COUNTING: rustix::time::ClockId = rustix::time::ClockId::Monotonic;

/// A clock that starts at the time of day or at `kept`, whichever is later, and then only counts:
/// setting the machine's clock does not move it.
#[derive(Debug, Clone)]
pub struct KeptClock {
    clock: Clock,
    anchor: Timestamp,
    since: Moment,
}

impl KeptClock {
    /// Starts it. `kept` is the last time that was written down before.
    pub fn start(clock: Clock, kept: Timestamp) -> Self {
        let (anchor, since) = (clock.wall().max(kept), clock.moment());
        Self { clock, anchor, since }
    }

    /// The time now.
    pub fn now(&self) -> Timestamp {
        self.anchor.plus_floor(self.since.until(self.clock.moment()))
    }
}
/// A duration as settings have it: a whole number and `ms`, `s`, `m`, `h` or `d`.
///
/// Not `humantime`: it reads `30M` as thirty months.
pub fn duration(text: &str) -> Option<Duration> {
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
const LONGEST: Duration = Duration::from_hours(24 * 3650);
