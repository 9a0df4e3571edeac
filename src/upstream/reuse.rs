//! Decides whether idle connections to an address are used again.
//!
//! RFC 9112, 9.5 allows a server to close an idle connection at any time. Some close right after an
//! answer, without the `Connection: close` that would announce it: uWSGI's HTTP router, uvicorn
//! with `--timeout-keep-alive 0`, TLS terminators in front of a server that closes. A request that
//! is written at that moment is lost. Nobody can know that it is lost, so the event becomes
//! uncertain.
//!
//! So an address first has to prove that it keeps connections open, by a trial or by a promise in
//! `Keep-Alive`. It is no longer proven once it is seen to close a connection.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use parking_lot::Mutex;

use crate::clock::Moment;

/// How long a connection has to stay open and idle after an answer to prove its address.
pub(super) const TRIAL: Duration = Duration::from_millis(250);
/// For how long no connection is used again after the first close.
const PAUSE: Duration = Duration::from_secs(1);
/// The longest pause. Each further close doubles the pause. After this time without a close, the
/// next close counts as the first again.
const PAUSE_MAX: Duration = Duration::from_mins(5);

/// What is known about reuse of connections to one address. All threads share it.
#[derive(Debug, Default)]
pub(super) struct Reuse {
    /// Read for every request, so it does not take the lock.
    proven: AtomicBool,
    history: Mutex<History>,
}

#[derive(Debug, Default)]
struct History {
    /// A connection is being watched.
    on_trial: bool,
    pause: Option<Pause>,
}

#[derive(Debug, Clone, Copy)]
struct Pause {
    ends: Moment,
    length: Duration,
}

impl Reuse {
    /// Whether idle connections to the address may be used.
    pub(super) fn is_proven(&self) -> bool {
        self.proven.load(Ordering::Acquire)
    }

    /// Begins a trial, and returns whether it began: whether a connection that has become idle is
    /// to be watched. One connection is watched at a time, and none during a pause.
    pub(super) fn begin_trial(&self, now: Moment) -> bool {
        let mut history = self.history.lock();
        let begins = !history.on_trial && !history.is_paused(now);
        history.on_trial |= begins;
        begins
    }

    /// Records whether the watched connection stayed open.
    pub(super) fn end_trial(&self, stayed_open: bool, now: Moment) {
        let mut history = self.history.lock();
        history.on_trial = false;
        if !stayed_open {
            history.begin_pause(now);
        }
        // Another connection may have been closed during the trial. The pause of that close goes
        // on.
        self.proven.store(stayed_open && !history.is_paused(now), Ordering::Release);
    }

    /// Records that the server said how long it keeps connections open. The promise counts at once,
    /// without a trial, unless a pause goes on because the server closed connections.
    pub(super) fn record_promise(&self, now: Moment) {
        if !self.is_proven() {
            let history = self.history.lock();
            self.proven.store(!history.is_paused(now), Ordering::Release);
        }
    }

    /// Records that a connection was closed that should have stayed open.
    pub(super) fn record_close(&self, now: Moment) {
        let mut history = self.history.lock();
        self.proven.store(false, Ordering::Release);
        history.begin_pause(now);
    }
}

impl History {
    fn is_paused(&self, now: Moment) -> bool {
        self.pause.is_some_and(|pause| now < pause.ends)
    }

    fn begin_pause(&mut self, now: Moment) {
        let length = match self.pause {
            // A server that restarts closes all its connections together. That is one close, and
            // must not double the pause for each of them.
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

    /// Proves an address and closes a connection of it. Returns for how long no trial begins.
    fn pause(reuse: &Reuse, clock: &Clock) -> Duration {
        reuse.record_close(clock.moment());
        assert!(!reuse.is_proven());
        let mut paused = Duration::ZERO;
        while !reuse.begin_trial(clock.moment()) {
            clock.advance(PAUSE);
            paused += PAUSE;
        }
        reuse.end_trial(true, clock.moment());
        assert!(reuse.is_proven());
        paused
    }

    #[test]
    fn an_address_is_on_probation_until_one_of_its_connections_stayed_open() {
        let reuse = Reuse::default();
        let clock = Clock::manual(Timestamp(0));
        assert!(!reuse.is_proven());
        assert!(reuse.begin_trial(clock.moment()));
        assert!(!reuse.begin_trial(clock.moment()), "one connection at a time is watched");
        reuse.end_trial(true, clock.moment());
        assert!(reuse.is_proven());
    }

    #[test]
    fn each_close_ends_reuse_for_twice_as_long_up_to_five_minutes() {
        let reuse = Reuse::default();
        let clock = Clock::manual(Timestamp(0));
        let pauses: Vec<_> = (0..11).map(|_| pause(&reuse, &clock).as_secs()).collect();
        assert_eq!(pauses, [1, 2, 4, 8, 16, 32, 64, 128, 256, 300, 300]);
        clock.advance(PAUSE_MAX);
        assert_eq!(pause(&reuse, &clock), PAUSE);
    }

    #[test]
    fn connections_that_are_closed_together_count_once() {
        let reuse = Reuse::default();
        let clock = Clock::manual(Timestamp(0));
        (0..100).for_each(|_| reuse.record_close(clock.moment()));
        assert_eq!(pause(&reuse, &clock), PAUSE);
    }

    #[test]
    fn a_promise_counts_at_once_but_not_while_closes_are_remembered() {
        let reuse = Reuse::default();
        let clock = Clock::manual(Timestamp(0));
        reuse.record_promise(clock.moment());
        assert!(reuse.is_proven());
        reuse.record_close(clock.moment());
        reuse.record_promise(clock.moment());
        assert!(!reuse.is_proven());
        clock.advance(PAUSE);
        reuse.record_promise(clock.moment());
        assert!(reuse.is_proven());
    }

    /// The trial began before the close that another connection saw.
    #[test]
    fn a_trial_that_ends_well_does_not_end_a_pause() {
        let reuse = Reuse::default();
        let clock = Clock::manual(Timestamp(0));
        assert!(reuse.begin_trial(clock.moment()));
        reuse.record_close(clock.moment());
        reuse.end_trial(true, clock.moment());
        assert!(!reuse.is_proven());
    }
}
