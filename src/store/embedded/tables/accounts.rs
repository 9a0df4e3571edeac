//! Counts the records that lie in each segment of the log, to know which segments are needed.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::operation::Timestamp;
use crate::store::embedded::log::Place;

/// The least time for which a record may lie in its segment after its end.
const SLACK_MIN: Duration = Duration::from_secs(60);
/// A record may lie in its segment after its end for this part of its life.
const SLACK_PART: u32 = 10;

/// Returns the time by which a record must have left its segment that lives from `begin` to `end`.
pub(super) fn clear_by(begin: Timestamp, end: Timestamp) -> Timestamp {
    end.plus(SLACK_MIN.max(begin.until(end) / SLACK_PART))
}

/// Returns the time by which the segment must be full in which a record is written now that lives
/// until `end`.
pub(super) fn close_by(now: Timestamp, end: Timestamp) -> Timestamp {
    now.plus(SLACK_MIN.max(now.until(end) / SLACK_PART))
}

/// What is known of a segment.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(in crate::store::embedded) struct Account {
    /// The number of records that lie in the segment. It may err on the high side.
    pub(in crate::store::embedded) live: u64,
    /// The number of their bytes.
    pub(in crate::store::embedded) bytes: u64,
    /// The time by which a record that has ended must be gone.
    pub(in crate::store::embedded) clear_by: Option<Timestamp>,
}

/// The segments of the log.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(in crate::store::embedded) struct Accounts(BTreeMap<u64, Account>);

impl Accounts {
    /// Notes that there is a segment.
    pub(super) fn begin(&mut self, segment: u64) {
        self.0.entry(segment).or_insert(Account { live: 0, bytes: 0, clear_by: None });
    }

    pub(super) fn contains(&self, segment: u64) -> bool {
        self.0.contains_key(&segment)
    }

    /// Notes that a record lies at this place.
    pub(super) fn add(&mut self, place: Place) {
        self.begin(place.segment);
        if let Some(account) = self.0.get_mut(&place.segment) {
            account.live += 1;
            account.bytes += u64::from(place.length);
        }
    }

    /// Notes that a record no longer lies at this place, and when its bytes must be gone.
    pub(super) fn remove(&mut self, place: Place, clear_by: Option<Timestamp>) {
        if let Some(account) = self.0.get_mut(&place.segment) {
            account.live = account.live.saturating_sub(1);
            account.bytes = account.bytes.saturating_sub(place.length.into());
            account.clear_by = account.clear_by.into_iter().chain(clear_by).min();
        }
    }

    /// Forgets a segment that is gone.
    pub(super) fn forget(&mut self, segment: u64) {
        self.0.remove(&segment);
    }

    /// The segments before this one that nothing needs.
    pub(super) fn dead(&self, before: u64) -> impl Iterator<Item = u64> {
        self.0.range(..before).filter(|(_, account)| account.live == 0).map(|(number, _)| *number)
    }

    /// The segments, in the order of their numbers.
    pub(in crate::store::embedded) fn iter(&self) -> impl Iterator<Item = (u64, &Account)> {
        self.0.iter().map(|(number, account)| (*number, account))
    }
}
