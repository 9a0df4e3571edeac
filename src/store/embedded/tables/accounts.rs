//! What the segments of the log still hold.
//!
//! A segment is deleted when no record points into it. So the number of its records may be too high
//! for some time, but never too low.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::operation::{Operation, State, Timestamp};
use crate::store::embedded::log::Place;
use crate::store::probe;

/// The shortest time for which bytes may stay after their record was removed.
const SLACK_MIN: Duration = Duration::from_secs(60);
/// Bytes may stay for this part of the life of their record.
const SLACK_PART: u64 = 10;

/// What is known of a segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::store::embedded) struct Account {
    /// How many records point into it, at least.
    pub(in crate::store::embedded) live: u64,
    /// The bytes of these records.
    pub(in crate::store::embedded) bytes: u64,
    /// The byte at which the last record ends that was ever in it.
    pub(in crate::store::embedded) end: u64,
    /// The time at which it must be gone, because of a record that is removed or replaced.
    pub(in crate::store::embedded) clear_by: Timestamp,
    /// The time at which all its records have ended, as far as known.
    pub(in crate::store::embedded) last_end: Timestamp,
}

impl Account {
    const EMPTY: Self =
        Self { live: 0, bytes: 0, end: 0, clear_by: Timestamp(u64::MAX), last_end: Timestamp(0) };
}

/// The change of a record.
#[derive(Debug, Clone, Copy)]
pub(super) struct RecordChange {
    /// Where it was, and where it is now.
    pub(super) old: Option<Place>,
    pub(super) new: Option<Place>,
    pub(super) life: Life,
    pub(super) now: Timestamp,
}

/// What is known of a record that changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::store::embedded) enum Life {
    /// It stays until this time, or longer.
    Until { ends_at: Timestamp, is_in_flight: bool },
    /// It is removed, and was made at this time, or later.
    Ended { created_at: Timestamp },
    /// Its bytes are moved.
    Moved,
    /// A probe made it, so it may stay for any time.
    ThrowAway,
}

impl Life {
    /// The life of a record that is written.
    pub(in crate::store::embedded) fn of(operation: &Operation) -> Self {
        if probe::is_throw_away(operation) {
            return Self::ThrowAway;
        }
        let is_in_flight = matches!(operation.state, State::InFlight(_));
        Self::Until { ends_at: operation.state.changes_at(), is_in_flight }
    }
}

/// The accounts of all segments.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::store::embedded) struct Accounts {
    segments: BTreeMap<u64, Account>,
    /// No segment has this number or a higher one.
    numbers_from: u64,
    /// The time at which the newest segment must be closed. If it took more records then, a part of
    /// them would stay for too long.
    seal_by: Timestamp,
}

impl Default for Accounts {
    fn default() -> Self {
        Self { segments: BTreeMap::new(), numbers_from: 0, seal_by: Timestamp(u64::MAX) }
    }
}

impl Accounts {
    /// The accounts as a mark had them.
    pub(super) fn noted(segments: BTreeMap<u64, Account>, numbers_from: u64) -> Self {
        Self { segments, numbers_from, ..Self::default() }
    }

    /// Returns a number that no segment has had, nor any higher one.
    pub(super) const fn numbers_from(&self) -> u64 {
        self.numbers_from
    }

    pub(in crate::store::embedded) fn get(&self, segment: u64) -> Option<&Account> {
        self.segments.get(&segment)
    }

    /// Returns all accounts, those of the oldest segments first.
    pub(in crate::store::embedded) fn iter(&self) -> impl Iterator<Item = (u64, &Account)> {
        self.segments.iter().map(|(segment, account)| (*segment, account))
    }

    /// Notes that a segment exists.
    pub(super) fn open(&mut self, segment: u64) -> &mut Account {
        self.numbers_from = self.numbers_from.max(segment.saturating_add(1));
        self.segments.entry(segment).or_insert(Account::EMPTY)
    }

    /// Notes that a segment is deleted.
    pub(super) fn close(&mut self, segment: u64) {
        self.segments.remove(&segment);
    }

    /// Whether these accounts count a record that is at this place. Accounts of an earlier time
    /// know nothing of later places.
    pub(super) fn count(&self, place: Place) -> bool {
        self.get(place.segment).is_some_and(|account| u64::from(place.offset) < account.end)
    }

    /// Notes the change of a record.
    pub(super) fn change(&mut self, RecordChange { old, new, life, now }: RecordChange) {
        let last_end = match life {
            Life::Until { ends_at, .. } => ends_at,
            Life::Moved => {
                old.and_then(|old| self.get(old.segment)).map_or(now, |old| old.last_end)
            }
            Life::Ended { .. } | Life::ThrowAway => now,
        };
        if let Some(Place { segment, offset, length }) = new {
            let account = self.open(segment);
            account.live += 1;
            account.bytes += u64::from(length);
            account.end = account.end.max(u64::from(offset) + u64::from(length));
            account.last_end = account.last_end.max(last_end);
        }
        // The end of a lease is nothing to wait for, because the end of the attempt makes another
        // version of the record.
        if let Life::Until { ends_at, is_in_flight: false } = life {
            self.seal_by = self.seal_by.min(after(now, slack(now, ends_at)));
        }
        let Some(old) = old else { return };
        let clear_by = match (life, new) {
            (Life::Until { ends_at, .. }, Some(new)) if new.segment != old.segment => {
                after(ends_at, slack(now, ends_at))
            }
            (Life::Ended { created_at }, _) => after(now, slack(created_at, now)),
            _ => Timestamp(u64::MAX),
        };
        if let Some(account) = self.segments.get_mut(&old.segment) {
            account.live = account.live.saturating_sub(1);
            account.bytes = account.bytes.saturating_sub(u64::from(old.length));
            account.clear_by = account.clear_by.min(clear_by);
        }
    }

    /// Returns the time at which the newest segment must be closed.
    pub(super) fn seal_by(&self, newest: u64) -> Timestamp {
        let clear_by = self.get(newest).map_or(Timestamp(u64::MAX), |account| account.clear_by);
        self.seal_by.min(clear_by)
    }

    /// Notes that records go to another segment now.
    pub(super) const fn sealed(&mut self) {
        self.seal_by = Timestamp(u64::MAX);
    }

    /// Returns the segments before this one into which no record points.
    pub(super) fn dead_before(&self, segment: u64) -> impl Iterator<Item = u64> {
        let before = self.segments.range(..segment);
        before.filter(|(_, account)| account.live == 0).map(|(number, _)| *number)
    }
}

/// The time for which bytes may stay, after a record has lived from one time to another.
fn slack(from: Timestamp, until: Timestamp) -> u64 {
    let least = u64::try_from(SLACK_MIN.as_millis()).unwrap_or(u64::MAX);
    (until.0.saturating_sub(from.0) / SLACK_PART).max(least)
}

const fn after(time: Timestamp, milliseconds: u64) -> Timestamp {
    Timestamp(time.0.saturating_add(milliseconds))
}
