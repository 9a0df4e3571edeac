//! Estimates the time on a server's clock.
//!
//! A rule is applied before the server is asked, so it needs the server's time beforehand. Each
//! reply brings that time. The estimate adds what has passed here since the call was *sent*, so it
//! is ahead of the server's clock by the time that the call took to get there, and never behind it
//! unless that clock is set forward. A lease that is granted on the estimate therefore ends on the
//! server no sooner than its holder expects.

use parking_lot::Mutex;

use super::server::CLOCKS_MAX;
use crate::clock::{Clock, Moment};
use crate::operation::Timestamp;

/// The clocks of a server: a cluster has one for each shard.
#[derive(Debug)]
pub(super) struct ServerClocks {
    clock: Clock,
    readings: [Mutex<Option<Reading>>; CLOCKS_MAX],
}

/// The latest time that a server told.
#[derive(Debug, Clone, Copy)]
struct Reading {
    /// The time on the server's clock.
    time: Timestamp,
    /// When the call was sent whose reply told it.
    sent: Moment,
}

impl ServerClocks {
    pub(super) fn new(clock: Clock) -> Self {
        Self { clock, readings: [const { Mutex::new(None) }; CLOCKS_MAX] }
    }

    /// The local time, to be taken when a call is sent.
    pub(super) fn moment(&self) -> Moment {
        self.clock.moment()
    }

    /// Learns the time from the reply to a call that was sent at `sent`.
    pub(super) fn learn(&self, which: usize, time: Timestamp, sent: Moment) {
        if let Some(reading) = self.readings.get(which) {
            let mut reading = reading.lock();
            // Replies may overtake each other: one to an earlier call says less.
            if reading.is_none_or(|latest| latest.sent <= sent) {
                *reading = Some(Reading { time, sent });
            }
        }
    }

    /// The estimated time; the earliest time there is before the first reply, which no server takes
    /// for its own.
    pub(super) fn now(&self, which: usize) -> Timestamp {
        let reading = self.readings.get(which).and_then(|reading| *reading.lock());
        reading.map_or(Timestamp::default(), |Reading { time, sent }| {
            time.plus_floor(sent.until(self.clock.moment()))
        })
    }
}
