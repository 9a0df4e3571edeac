//! What time it is on a server, as far as its replies have told.
//!
//! A rule is applied before the server is asked, so it needs the server's time beforehand. The
//! estimate is never behind the server's time by more than its clock is set forward: it counts from
//! when the call was sent that brought the last reply. So a lease ends on the server no sooner than
//! its holder thinks.

use std::sync::{Mutex, PoisonError};

use super::swap::CLOCKS_MAX;
use crate::clock::{Clock, Moment};
use crate::operation::Timestamp;

/// The server's clocks.
#[derive(Debug)]
pub(super) struct ServerClocks {
    clock: Clock,
    /// What each said last, and when it was asked.
    told: [Mutex<Option<(Timestamp, Moment)>>; CLOCKS_MAX],
}

impl ServerClocks {
    pub(super) fn new(clock: Clock) -> Self {
        Self { clock, told: [const { Mutex::new(None) }; CLOCKS_MAX] }
    }

    /// When a call is sent.
    pub(super) fn moment(&self) -> Moment {
        self.clock.moment()
    }

    /// A reply to a call that was sent at `sent` has told the time.
    pub(super) fn learn(&self, which: usize, at: Timestamp, sent: Moment) {
        if let Some(told) = self.told.get(which) {
            let mut told = told.lock().unwrap_or_else(PoisonError::into_inner);
            if told.is_none_or(|(_, before)| before <= sent) {
                *told = Some((at, sent));
            }
        }
    }

    /// The time on a server's clock; the beginning of time before its first reply.
    pub(super) fn now(&self, which: usize) -> Timestamp {
        let told = self.told.get(which);
        let told = told.and_then(|told| *told.lock().unwrap_or_else(PoisonError::into_inner));
        told.map_or(Timestamp::default(), |(at, sent)| {
            at.plus_floor(sent.until(self.clock.moment()))
        })
    }
}
