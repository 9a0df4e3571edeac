//! Notices that a server lost its records.
//!
//! A shard of a cluster, or a whole database, can lose its records by itself. Each such part holds
//! a random *marker*, and a part without a marker gets one. If a process finds another marker than
//! before, it knows that the earlier records are gone too, because they were stored beside the
//! earlier marker.
//!
//! A marker also has a status. With `when_store_emptied = "stop"`, the process that notices the
//! loss sets the status of the new marker to `emptied`, so that processes that start later know of
//! the loss. The status stays `emptied` until a person acknowledges the loss.

use std::collections::{BTreeSet, HashMap};

use parking_lot::Mutex;

use crate::store::Concern;
use crate::words::enum_of_words;

enum_of_words! {
    /// The treatment of claims after a server has lost its records. The words are those of settings
    /// and logs.
    #[derive(Default)]
    pub enum WhenEmptied {
        /// Claims are granted, so operations that were done may run again. The loss is logged.
        #[default]
        Continue = "continue",
        /// Claims are refused until a person has acknowledged the loss.
        Stop = "stop",
    }
}

/// The marker by which a part of a server shows that it still has its records.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::store) struct EpochMarker {
    /// The number of the part.
    pub(in crate::store) part: usize,
    /// A random value.
    pub(in crate::store) value: String,
    pub(in crate::store) status: EpochStatus,
}

enum_of_words! {
    /// The fate of the records that were there before a marker. The words are on servers, so they
    /// must never change.
    pub(in crate::store) enum EpochStatus {
        /// Their fate is not known. The server had no marker, and was perhaps new.
        Begun = "begun",
        /// The records were lost. A process had seen another marker before.
        Emptied = "emptied",
        /// The records were lost, and a person has acknowledged the loss.
        Acknowledged = "acknowledged",
    }
}

/// The markers that this process saw last, and the losses that it noticed.
#[derive(Debug, Default)]
pub(super) struct EpochTracker {
    when_emptied: WhenEmptied,
    observed: Mutex<Observed>,
}

#[derive(Debug, Default)]
struct Observed {
    /// The markers, by the number of their part.
    markers: HashMap<usize, EpochMarker>,
    /// The parts whose records were lost. A part leaves this set when a person acknowledges the
    /// loss.
    lost: BTreeSet<usize>,
    /// The number of losses that were noticed since all earlier ones were acknowledged.
    losses: u64,
}

impl EpochStatus {
    /// Parses the word for a status.
    pub(in crate::store) fn of(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|status| status.as_str() == word)
    }
}

impl EpochTracker {
    pub(super) fn new(when_emptied: WhenEmptied) -> Self {
        Self { when_emptied, observed: Mutex::default() }
    }

    /// Compares the markers that were just read with those seen before. The caller leaves out a
    /// part that could not be read, which then counts as not lost.
    ///
    /// Returns the markers of the parts whose loss no process has noted on the server, for the
    /// caller to mark them there as [`EpochStatus::Emptied`]. Under [`WhenEmptied::Continue`] it
    /// returns none.
    pub(super) fn observe(&self, found: Vec<EpochMarker>) -> Vec<EpochMarker> {
        let mut observed = self.observed.lock();
        let mut is_lost = false;
        let mut unmarked = Vec::new();
        for marker in found {
            let part = marker.part;
            let before = observed.markers.insert(part, marker.clone());
            let has_changed = before.is_some_and(|before| before.value != marker.value);
            match marker.status {
                EpochStatus::Acknowledged => {
                    observed.lost.remove(&part);
                }
                // Another process noticed this loss. Under `stop` that alone counts as a loss.
                // Under `continue` the loss counts only if this process saw another marker before.
                EpochStatus::Emptied if has_changed || self.is_guarded() => {
                    is_lost |= observed.lost.insert(part) || has_changed;
                }
                EpochStatus::Begun if has_changed => {
                    observed.lost.insert(part);
                    is_lost = true;
                    unmarked.extend(self.is_guarded().then_some(marker));
                }
                EpochStatus::Begun | EpochStatus::Emptied => {}
            }
        }
        if is_lost {
            observed.losses += 1;
            tracing::error!(
                when_store_emptied = self.when_emptied.as_str(),
                "the store came back without what it was told: operations that were done may run again"
            );
        } else if observed.lost.is_empty() {
            observed.losses = 0;
        }
        unmarked
    }

    /// Returns the concern that the server lost its records.
    ///
    /// A loss stays a concern until it is acknowledged, or for as long as this process runs.
    /// Readiness, metrics and the log each ask for concerns, and none of them may miss the loss.
    pub(super) fn concern(&self) -> Option<Concern> {
        let times = match self.observed.lock().losses {
            0 => return None,
            1 => "once".to_owned(),
            losses => format!("{losses} times"),
        };
        let then = match self.when_emptied {
            WhenEmptied::Continue => "operations that were done may run again",
            WhenEmptied::Stop => "nothing new is forwarded until a person acknowledges the loss",
        };
        let text = format!(
            "the server came back without what it was told, {times} since this process began: {then}"
        );
        let hint = "find out why the server lost its records, and set it up to keep them; then \
                    acknowledge the loss with `onceward store acknowledge`";
        Some(Concern::new(EPOCH_CHANGED, text, hint))
    }

    /// Whether only a server that still has its records may grant claims.
    pub(super) fn is_guarded(&self) -> bool {
        self.when_emptied == WhenEmptied::Stop
    }

    /// Whether claims are refused until a person acknowledges a loss.
    pub(super) fn is_stopped(&self) -> bool {
        self.is_guarded() && !self.observed.lock().lost.is_empty()
    }

    /// Returns the marker of a part, as this process saw it last.
    pub(super) fn marker(&self, part: usize) -> Option<EpochMarker> {
        self.observed.lock().markers.get(&part).cloned()
    }

    /// Returns the markers of the parts whose loss is not acknowledged.
    pub(super) fn lost(&self) -> Vec<EpochMarker> {
        let observed = self.observed.lock();
        observed.lost.iter().filter_map(|part| observed.markers.get(part).cloned()).collect()
    }
}

/// The code of the concern that the server lost its records.
pub const EPOCH_CHANGED: &str = "epoch-changed";

#[cfg(test)]
mod tests {
    use super::*;

    fn marker(part: usize, value: &str, status: EpochStatus) -> EpochMarker {
        EpochMarker { part, value: value.to_owned(), status }
    }

    fn look(epoch: &EpochTracker, markers: &[(usize, &str)]) -> Option<String> {
        let begun = |(part, text): &(usize, &str)| marker(*part, text, EpochStatus::Begun);
        epoch.observe(markers.iter().map(begun).collect());
        epoch.concern().map(|concern| concern.text)
    }

    #[test]
    fn a_loss_is_told_from_then_on_and_counted_once_for_each_look() {
        let epoch = EpochTracker::default();
        assert_eq!(look(&epoch, &[(0, "a"), (1, "b")]), None);
        assert_eq!(look(&epoch, &[(0, "a"), (1, "b"), (2, "c")]), None);
        let told = look(&epoch, &[(0, "a2"), (1, "b2"), (2, "c")]).unwrap();
        assert!(told.contains("told, once since"), "{told}");
        // a part that gave no reply counts as not lost
        assert_eq!(look(&epoch, &[(0, "a2")]), Some(told));
        let told = look(&epoch, &[(2, "c2")]).unwrap();
        assert!(told.contains("told, 2 times since"), "{told}");
        assert!(!epoch.is_stopped());
    }

    #[test]
    fn a_loss_stops_claims_until_it_is_acknowledged() {
        let epoch = EpochTracker::new(WhenEmptied::Stop);
        let see = |text: &str, status| epoch.observe(vec![marker(0, text, status)]).len();
        assert_eq!(see("a", EpochStatus::Begun), 0);
        assert!(!epoch.is_stopped());
        assert_eq!(see("b", EpochStatus::Begun), 1, "it is to be marked");
        assert!(epoch.is_stopped());
        assert_eq!(see("b", EpochStatus::Emptied), 0);
        assert_eq!(epoch.lost(), [marker(0, "b", EpochStatus::Emptied)]);
        assert_eq!(see("b", EpochStatus::Acknowledged), 0);
        assert!(!epoch.is_stopped());
        assert_eq!(look(&epoch, &[]), None, "nor is it told any more");
        see("c", EpochStatus::Begun);
        assert!(epoch.is_stopped());
    }

    #[test]
    fn whoever_starts_later_stops_as_well_and_a_loss_that_was_acknowledged_meanwhile_is_none() {
        let later = EpochTracker::new(WhenEmptied::Stop);
        later.observe(vec![marker(0, "b", EpochStatus::Emptied)]);
        assert!(later.concern().is_some());
        assert!(later.is_stopped());
        let other = EpochTracker::default();
        other.observe(vec![marker(0, "b", EpochStatus::Emptied)]);
        assert!(other.concern().is_none());
        let away = EpochTracker::new(WhenEmptied::Stop);
        assert_eq!(look(&away, &[(0, "a")]), None);
        away.observe(vec![marker(0, "b", EpochStatus::Acknowledged)]);
        assert!(away.concern().is_none());
        assert!(!away.is_stopped());
    }
}
