//! Estimates the time on a server's clock.
//!
//! A rule is applied before the server is asked, so the rule needs the server's time beforehand.
//! Each reply brings the server's time. The estimate adds the time that has passed here since the
//! call was *sent*. So the estimate is ahead of the server's clock by as long as the call took to
//! reach the server. It is never behind, unless somebody sets the server's clock forward. A lease
//! that is granted on the estimate therefore ends on the server no sooner than its holder expects.

use parking_lot::Mutex;

use super::server::PARTS_MAX;
use crate::clock::{Clock, Moment};
use crate::operation::Timestamp;

/// The estimates of a server's clocks. A cluster has one clock for each shard.
#[derive(Debug)]
pub(super) struct ServerClocks {
    clock: Clock,
    readings: [Mutex<Option<Reading>>; PARTS_MAX],
}

/// The latest time that a server reported.
#[derive(Debug, Clone, Copy)]
struct Reading {
    /// The time on the server's clock.
    time: Timestamp,
    /// The moment at which the call was sent whose reply brought the time.
    sent: Moment,
}

impl ServerClocks {
    pub(super) fn new(clock: Clock) -> Self {
        Self { clock, readings: [const { Mutex::new(None) }; PARTS_MAX] }
    }

    /// Returns the local time. Callers read it when they send a call.
    pub(super) fn moment(&self) -> Moment {
        self.clock.moment()
    }

    /// Learns the server's time from the reply to a call that was sent at `sent`.
    pub(super) fn learn(&self, part: usize, time: Timestamp, sent: Moment) {
        if let Some(reading) = self.readings.get(part) {
            let mut reading = reading.lock();
            // Replies may overtake each other. The reply to an earlier call is less exact.
            if reading.is_none_or(|latest| latest.sent <= sent) {
                *reading = Some(Reading { time, sent });
            }
        }
    }

    /// Returns the estimated time. Before the first reply it is the earliest possible time, which
    /// no server's clock shows.
    pub(super) fn now(&self, part: usize) -> Timestamp {
        let reading = self.readings.get(part).and_then(|reading| *reading.lock());
        reading.map_or(Timestamp::default(), |Reading { time, sent }| {
            time.plus_floor(sent.until(self.clock.moment()))
        })
    }
}
