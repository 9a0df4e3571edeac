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

use crate::store::{Concern, Error};

/// The treatment of claims after a server has lost its records.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum WhenEmptied {
    /// Claims are granted, so operations that were done may run again. The loss is logged.
    #[default]
    Continue,
    /// Claims are refused until a person has acknowledged the loss.
    Stop,
}

/// The marker by which a part of a server shows that it still has its records.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::store) struct EpochMarker {
    /// A random value.
    pub(in crate::store) value: String,
    pub(in crate::store) status: EpochStatus,
}

/// The fate of the records that were there before a marker.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::store) enum EpochStatus {
    /// Their fate is not known. The server had no marker, and was perhaps new.
    Begun,
    /// The records were lost. A process had seen another marker before.
    Emptied,
    /// The records were lost, and a person has acknowledged the loss.
    Acknowledged,
}

/// The markers that this process saw last, and the losses that it noticed.
#[derive(Debug, Default)]
pub(in crate::store) struct EpochTracker {
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

/// The result of a comparison of the markers with those seen before.
#[derive(Debug)]
pub(in crate::store) struct EpochCheck {
    pub(in crate::store) concern: Option<Concern>,
    /// The markers of the parts whose loss no process has noted on the server. Under `stop` the
    /// caller marks them there as [`EpochStatus::Emptied`].
    pub(in crate::store) unmarked: Vec<(usize, EpochMarker)>,
}

impl EpochStatus {
    const ALL: [Self; 3] = [Self::Begun, Self::Emptied, Self::Acknowledged];

    /// The word for the status on servers. It must never change.
    pub(in crate::store) const fn as_str(self) -> &'static str {
        match self {
            Self::Begun => "begun",
            Self::Emptied => "emptied",
            Self::Acknowledged => "acknowledged",
        }
    }

    /// Parses the word for a status on servers.
    pub(in crate::store) fn of(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|status| status.as_str() == name)
    }
}

impl EpochTracker {
    pub(in crate::store) fn new(when_emptied: WhenEmptied) -> Self {
        Self { when_emptied, observed: Mutex::default() }
    }

    /// Compares the markers that were just read with those seen before. The caller leaves out a
    /// part that could not be read, which then counts as not lost.
    ///
    /// A loss stays a concern until it is acknowledged, or for as long as this process runs.
    /// Readiness, metrics and the log each ask for concerns, and none of them may miss the loss.
    pub(in crate::store) fn observe(
        &self,
        found: impl IntoIterator<Item = (usize, EpochMarker)>,
    ) -> EpochCheck {
        let mut observed = self.observed.lock();
        let mut is_lost = false;
        let mut unmarked = Vec::new();
        for (part, marker) in found {
            let before = observed.markers.insert(part, marker.clone());
            let has_changed = before.is_some_and(|before| before.value != marker.value);
            match marker.status {
                EpochStatus::Acknowledged => {
                    observed.lost.remove(&part);
                }
                // Another process noticed this loss. Under `stop` that alone counts as a loss.
                // Under `continue` the loss counts only if this process saw another marker before.
                EpochStatus::Emptied if has_changed || self.when_emptied == WhenEmptied::Stop => {
                    is_lost |= observed.lost.insert(part) || has_changed;
                }
                EpochStatus::Begun if has_changed => {
                    observed.lost.insert(part);
                    is_lost = true;
                    unmarked.push((part, marker));
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
        let concern = (observed.losses > 0).then(|| loss(observed.losses, self.when_emptied));
        EpochCheck { concern, unmarked }
    }

    /// Whether only a server that still has its records may grant claims.
    pub(in crate::store) fn is_guarded(&self) -> bool {
        self.when_emptied == WhenEmptied::Stop
    }

    /// Whether claims are refused until a person acknowledges a loss.
    fn is_stopped(&self) -> bool {
        self.is_guarded() && !self.observed.lock().lost.is_empty()
    }

    /// Returns the marker of a part, as this process saw it last.
    fn marker(&self, part: usize) -> Option<EpochMarker> {
        self.observed.lock().markers.get(&part).cloned()
    }

    /// Returns the marker that a part must have before it grants a claim. Returns none under
    /// [`WhenEmptied::Continue`].
    ///
    /// `look` reads the markers and passes them to [`Self::observe`].
    pub(in crate::store) async fn guard(
        &self,
        part: usize,
        look: impl Future<Output = Result<Option<Concern>, Error>>,
    ) -> Result<Option<EpochMarker>, Error> {
        if !self.is_guarded() {
            return Ok(None);
        }
        if self.marker(part).is_none() {
            look.await?;
        }
        if self.is_stopped() {
            return Err(Error::Emptied);
        }
        self.marker(part).map(Some).ok_or(UNKNOWN)
    }

    /// Returns the reason why a server did not have the marker that a claim needs.
    pub(in crate::store) async fn why_guard_failed(
        &self,
        look: impl Future<Output = Result<Option<Concern>, Error>>,
    ) -> Error {
        match look.await {
            Err(error) => error,
            Ok(_) if self.is_stopped() => Error::Emptied,
            // Another process has acknowledged the loss meanwhile. The next claim uses the new
            // marker.
            Ok(_) => UNKNOWN,
        }
    }

    /// Returns the markers of the parts whose loss is not acknowledged.
    pub(in crate::store) fn lost(&self) -> Vec<(usize, EpochMarker)> {
        let observed = self.observed.lock();
        let marker = |part: &usize| Some((*part, observed.markers.get(part)?.clone()));
        observed.lost.iter().filter_map(marker).collect()
    }
}

impl WhenEmptied {
    /// The word for the choice in settings and logs.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Continue => "continue",
            Self::Stop => "stop",
        }
    }
}

/// The marker has just changed, or could not be read.
const UNKNOWN: Error =
    Error::Unavailable("it is not known whether the server still has its records");

/// The code of the concern that the server lost its records.
pub(in crate::store) const EPOCH_CHANGED: &str = "epoch-changed";

fn loss(losses: u64, when_emptied: WhenEmptied) -> Concern {
    let times = if losses == 1 { "once".to_owned() } else { format!("{losses} times") };
    let then = match when_emptied {
        WhenEmptied::Continue => "operations that were done may run again",
        WhenEmptied::Stop => "nothing new is forwarded until a person acknowledges the loss",
    };
    let text = format!(
        "the server came back without what it was told, {times} since this process began: {then}"
    );
    let hint = "find out why the server lost its records, and set it up to keep them; then \
                acknowledge the loss with `onceward store acknowledge`";
    Concern::new(EPOCH_CHANGED, text, hint)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn marker(value: &str, status: EpochStatus) -> EpochMarker {
        EpochMarker { value: value.to_owned(), status }
    }

    fn look(epoch: &EpochTracker, markers: &[(usize, &str)]) -> Option<String> {
        let begun = |(part, text): &(usize, &str)| (*part, marker(text, EpochStatus::Begun));
        epoch.observe(markers.iter().map(begun)).concern.map(|concern| concern.text)
    }

    #[test]
    fn a_loss_is_told_from_then_on_and_counted_once_for_each_look() {
        let epoch = EpochTracker::default();
        assert_eq!(look(&epoch, &[(0, "a"), (1, "b")]), None);
        assert_eq!(look(&epoch, &[(0, "a"), (1, "b"), (2, "c")]), None);
        let told = look(&epoch, &[(0, "a2"), (1, "b2"), (2, "c")]).unwrap();
        assert!(told.contains("told, once since"), "{told}");
        // a part that gave no answer counts as not lost
        assert_eq!(look(&epoch, &[(0, "a2")]), Some(told));
        let told = look(&epoch, &[(2, "c2")]).unwrap();
        assert!(told.contains("told, 2 times since"), "{told}");
        assert!(!epoch.is_stopped());
    }

    #[test]
    fn a_loss_stops_claims_until_it_is_acknowledged() {
        let epoch = EpochTracker::new(WhenEmptied::Stop);
        let see = |text: &str, status| epoch.observe([(0, marker(text, status))]).unmarked.len();
        assert_eq!(see("a", EpochStatus::Begun), 0);
        assert!(!epoch.is_stopped());
        assert_eq!(see("b", EpochStatus::Begun), 1, "it is to be marked");
        assert!(epoch.is_stopped());
        assert_eq!(see("b", EpochStatus::Emptied), 0);
        assert_eq!(epoch.lost(), [(0, marker("b", EpochStatus::Emptied))]);
        assert_eq!(see("b", EpochStatus::Acknowledged), 0);
        assert!(!epoch.is_stopped());
        assert_eq!(look(&epoch, &[]), None, "nor is it told any more");
        see("c", EpochStatus::Begun);
        assert!(epoch.is_stopped());
    }

    #[test]
    fn whoever_starts_later_stops_as_well_and_a_loss_that_was_acknowledged_meanwhile_is_none() {
        let later = EpochTracker::new(WhenEmptied::Stop);
        assert!(later.observe([(0, marker("b", EpochStatus::Emptied))]).concern.is_some());
        assert!(later.is_stopped());
        let other = EpochTracker::default();
        assert!(other.observe([(0, marker("b", EpochStatus::Emptied))]).concern.is_none());
        let away = EpochTracker::new(WhenEmptied::Stop);
        assert_eq!(look(&away, &[(0, "a")]), None);
        assert!(away.observe([(0, marker("b", EpochStatus::Acknowledged))]).concern.is_none());
        assert!(!away.is_stopped());
    }
}
