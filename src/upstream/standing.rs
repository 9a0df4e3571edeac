//! Whether connections to an address are used again.
//!
//! RFC 9112, 9.5 lets a server close an idle connection at any time. Some do so right after an
//! answer, without the `Connection: close` that would say it: uWSGI's HTTP router, uvicorn with
//! `--timeout-keep-alive 0`, TLS terminators in front of a server that closes. What is written in
//! that moment is lost, and nobody can tell that it is. So an address shows first that it keeps its
//! connections open, and loses its standing when it is seen to close one.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::clock::Moment;

/// How long a connection has to stay open and idle after an answer.
pub(super) const SHOWN_AFTER: Duration = Duration::from_millis(250);
/// How long nothing is used again after the first close.
const PAUSE: Duration = Duration::from_secs(1);
/// The longest that this becomes, doubled close by close. After as long without a close the next
/// one counts as the first.
const PAUSE_MAX: Duration = Duration::from_mins(5);

/// What is known of one address, to all threads.
#[derive(Debug, Default)]
pub(super) struct Standing {
    proven: AtomicBool,
    record: Mutex<Record>,
}

#[derive(Debug, Default)]
struct Record {
    /// A connection is being watched.
    on_trial: bool,
    pause: Option<Pause>,
}

#[derive(Debug, Clone, Copy)]
struct Pause {
    ends: Moment,
    length: Duration,
}

impl Standing {
    /// Whether its idle connections may be used.
    pub(super) fn is_proven(&self) -> bool {
        self.proven.load(Ordering::Acquire)
    }

    /// Whether a connection that has become idle is to be watched. One at a time is.
    pub(super) fn begins_trial(&self, now: Moment) -> bool {
        let mut record = self.record();
        let begins = !record.on_trial && !record.is_paused(now);
        record.on_trial |= begins;
        begins
    }

    /// The connection that was watched stayed open, or did not.
    pub(super) fn ends_trial(&self, stayed_open: bool, now: Moment) {
        let mut record = self.record();
        record.on_trial = false;
        if !stayed_open {
            record.pauses(now);
        }
        self.proven.store(stayed_open && !record.is_paused(now), Ordering::Release);
    }

    /// The server said for how long it keeps connections open.
    pub(super) fn promised(&self, now: Moment) {
        if !self.is_proven() {
            let record = self.record();
            self.proven.store(!record.is_paused(now), Ordering::Release);
        }
    }

    /// A connection that should have stayed open was closed.
    pub(super) fn closed(&self, now: Moment) {
        let mut record = self.record();
        self.proven.store(false, Ordering::Release);
        record.pauses(now);
    }

    /// A record is whole after any panic.
    fn record(&self) -> MutexGuard<'_, Record> {
        self.record.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Record {
    fn is_paused(&self, now: Moment) -> bool {
        self.pause.is_some_and(|pause| now < pause.ends)
    }

    /// Connections that are closed together, as when a server restarts, are one close.
    fn pauses(&mut self, now: Moment) {
        let length = match self.pause {
            Some(pause) if now < pause.ends => return,
            Some(pause) if pause.ends.until(now) < PAUSE_MAX => (pause.length * 2).min(PAUSE_MAX),
            Some(_) | None => PAUSE,
        };
        self.pause = Some(Pause { ends: now.plus(length), length });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::Clock;
    use crate::operation::Timestamp;

    /// Proves itself, and is closed; gives how long it was on probation.
    fn pause(standing: &Standing, clock: &Clock) -> Duration {
        standing.closed(clock.moment());
        assert!(!standing.is_proven());
        let mut paused = Duration::ZERO;
        while !standing.begins_trial(clock.moment()) {
            clock.advance(PAUSE);
            paused += PAUSE;
        }
        standing.ends_trial(true, clock.moment());
        assert!(standing.is_proven());
        paused
    }

    #[test]
    fn an_address_is_on_probation_until_one_of_its_connections_stayed_open() {
        let standing = Standing::default();
        let clock = Clock::manual(Timestamp(0));
        assert!(!standing.is_proven());
        assert!(standing.begins_trial(clock.moment()));
        assert!(!standing.begins_trial(clock.moment()), "one connection at a time is watched");
        standing.ends_trial(true, clock.moment());
        assert!(standing.is_proven());
    }

    #[test]
    fn each_close_ends_reuse_for_twice_as_long_up_to_five_minutes() {
        let standing = Standing::default();
        let clock = Clock::manual(Timestamp(0));
        let pauses: Vec<_> = (0..11).map(|_| pause(&standing, &clock).as_secs()).collect();
        assert_eq!(pauses, [1, 2, 4, 8, 16, 32, 64, 128, 256, 300, 300]);
        clock.advance(PAUSE_MAX);
        assert_eq!(pause(&standing, &clock), PAUSE);
    }

    #[test]
    fn connections_that_are_closed_together_count_once() {
        let standing = Standing::default();
        let clock = Clock::manual(Timestamp(0));
        (0..100).for_each(|_| standing.closed(clock.moment()));
        assert_eq!(pause(&standing, &clock), PAUSE);
    }

    #[test]
    fn a_promise_counts_at_once_but_not_while_closes_are_remembered() {
        let standing = Standing::default();
        let clock = Clock::manual(Timestamp(0));
        standing.promised(clock.moment());
        assert!(standing.is_proven());
        standing.closed(clock.moment());
        standing.promised(clock.moment());
        assert!(!standing.is_proven());
        clock.advance(PAUSE);
        standing.promised(clock.moment());
        assert!(standing.is_proven());
    }

    /// The trial began before the close that another connection saw.
    #[test]
    fn a_trial_that_ends_well_does_not_end_a_pause() {
        let standing = Standing::default();
        let clock = Clock::manual(Timestamp(0));
        assert!(standing.begins_trial(clock.moment()));
        standing.closed(clock.moment());
        standing.ends_trial(true, clock.moment());
        assert!(!standing.is_proven());
    }
}
