//! Notices that a server lost its records.
//!
//! Each part of a server that can lose its records by itself (a shard of a cluster, a database)
//! holds a random *marker*. A server without one gets one. A process that finds another marker than
//! before knows that the records from before are gone too, because they were stored beside it.
//!
//! A marker also has a status. The process that noticed the loss marks the new marker as `emptied`,
//! so that processes that start later know of it. A person acknowledges it.

use std::collections::{BTreeSet, HashMap};

use parking_lot::Mutex;

use crate::store::Concern;

/// What becomes of claims when a server has lost its records.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum WhenEmptied {
    /// They are granted: operations that were done may run again. The loss is logged.
    #[default]
    Continue,
    /// They are refused until a person has acknowledged the loss.
    Stop,
}

/// What a part of a server holds to show that it still has its records.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::store) struct EpochMarker {
    /// Random.
    pub(in crate::store) value: String,
    pub(in crate::store) status: EpochStatus,
}

/// What is known about the records that were there before a marker.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::store) enum EpochStatus {
    /// Nothing: the server had no marker, and was perhaps new.
    Begun,
    /// They were lost: a process knew another marker before.
    Emptied,
    /// They were lost, and a person has acknowledged it.
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
    /// By the number of the part.
    markers: HashMap<usize, EpochMarker>,
    /// The parts whose records were lost, until that is acknowledged.
    lost: BTreeSet<usize>,
    /// How often a loss was noticed.
    losses: u64,
}

/// What came of comparing the markers with those seen before.
#[derive(Debug)]
pub(in crate::store) struct EpochCheck {
    pub(in crate::store) concern: Option<Concern>,
    /// Markers that the caller should mark as [`EpochStatus::Emptied`] on the server.
    pub(in crate::store) unmarked: Vec<(usize, EpochMarker)>,
}

impl EpochStatus {
    const ALL: [Self; 3] = [Self::Begun, Self::Emptied, Self::Acknowledged];

    /// The word that is kept on servers. It must never change.
    pub(in crate::store) const fn as_str(self) -> &'static str {
        match self {
            Self::Begun => "begun",
            Self::Emptied => "emptied",
            Self::Acknowledged => "acknowledged",
        }
    }

    /// Parses the word that is kept on servers.
    pub(in crate::store) fn of(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|status| status.as_str() == name)
    }
}

impl EpochTracker {
    pub(in crate::store) fn new(when_emptied: WhenEmptied) -> Self {
        Self { when_emptied, observed: Mutex::default() }
    }

    /// Compares the markers that were just read with those seen before. A part that could not be
    /// read is left out: it has lost nothing.
    ///
    /// A loss stays a concern until it is acknowledged, or for as long as this process runs.
    /// Readiness, metrics and the log each ask for concerns, and none of them may miss it.
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
                // Another process noticed it. Under `stop` that is enough; under `continue` only a
                // process that knew the earlier records has lost anything.
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

    /// Whether claims are granted only by a server that still has its records.
    pub(in crate::store) fn is_guarded(&self) -> bool {
        self.when_emptied == WhenEmptied::Stop
    }

    /// Whether no claim is granted until a person has acknowledged a loss.
    pub(in crate::store) fn is_stopped(&self) -> bool {
        self.is_guarded() && !self.observed.lock().lost.is_empty()
    }

    /// The marker of a part, as this process saw it last.
    pub(in crate::store) fn marker(&self, part: usize) -> Option<EpochMarker> {
        self.observed.lock().markers.get(&part).cloned()
    }

    /// The markers of the parts whose loss is not acknowledged.
    pub(in crate::store) fn lost(&self) -> Vec<(usize, EpochMarker)> {
        let observed = self.observed.lock();
        let marker = |part: &usize| Some((*part, observed.markers.get(part)?.clone()));
        observed.lost.iter().filter_map(marker).collect()
    }
}

impl WhenEmptied {
    /// The word in settings and logs.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Continue => "continue",
            Self::Stop => "stop",
        }
    }
}

/// The code of the concern that the server lost its records.
pub(in crate::store) const EPOCH_CHANGED: &str = "epoch-changed";

fn loss(losses: u64, when_emptied: WhenEmptied) -> Concern {
    let times = if losses == 1 { "once".to_owned() } else { format!("{losses} times") };
    let then = match when_emptied {
        WhenEmptied::Continue => "operations that were done may run again",
        WhenEmptied::Stop => "nothing new is forwarded until that is acknowledged",
    };
    Concern {
        code: EPOCH_CHANGED,
        text: format!(
            "the server came back without what it was told, {times} since this process began: {then}"
        ),
        hint: "find out why it came back empty; let it keep what it is told, and let nobody empty \
               it. `onceward store acknowledge` says that this is known"
            .to_owned(),
    }
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
        // a part that gave no answer has lost nothing
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
