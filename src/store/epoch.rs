//! Whether a server still keeps what it was told: a word that it was given once must still be there.
//!
//! A word also has a standing. A process that knew another word before has found that the server
//! came back empty, and marks the new word, so that processes that start later know it as well. A
//! person acknowledges it.

use std::collections::{BTreeSet, HashMap};
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::Concern;

/// What becomes of claims when a server has come back without what it was told.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum WhenEmptied {
    /// They are granted: operations that were done may run again. The loss is logged.
    #[default]
    Continue,
    /// They are refused until a person has acknowledged it.
    Stop,
}

/// What a part of a server holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Word {
    /// Random.
    pub(super) text: String,
    pub(super) standing: Standing,
}

/// How a word came there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Standing {
    /// The server had none.
    Begun,
    /// The same, and somebody knew another one before.
    Emptied,
    /// The same, and a person has acknowledged it.
    Acknowledged,
}

/// The words that this process saw last, and how often they were others than before.
#[derive(Debug, Default)]
pub(super) struct Epoch {
    when_emptied: WhenEmptied,
    seen: Mutex<Seen>,
}

#[derive(Debug, Default)]
struct Seen {
    /// Of each part of the server that may be lost by itself.
    words: HashMap<usize, Word>,
    /// The parts that were lost, until that is acknowledged.
    lost: BTreeSet<usize>,
    losses: u64,
}

/// What came of a look.
#[derive(Debug)]
pub(super) struct Sight {
    pub(super) concern: Option<Concern>,
    /// Words that are to be marked as [`Standing::Emptied`].
    pub(super) unmarked: Vec<(usize, Word)>,
}

impl Standing {
    /// All of them.
    const ALL: [Self; 3] = [Self::Begun, Self::Emptied, Self::Acknowledged];

    /// The word used in stores.
    pub(super) const fn as_str(self) -> &'static str {
        match self {
            Self::Begun => "begun",
            Self::Emptied => "emptied",
            Self::Acknowledged => "acknowledged",
        }
    }

    /// The one of this name.
    pub(super) fn of(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|standing| standing.as_str() == name)
    }
}

impl Epoch {
    pub(super) fn new(when_emptied: WhenEmptied) -> Self {
        Self { when_emptied, seen: Mutex::default() }
    }

    /// These words were found in one look. A loss stays a concern until it is acknowledged, or for as
    /// long as this process runs: there are several who ask, and none may miss it.
    pub(super) fn see(&self, found: impl IntoIterator<Item = (usize, Word)>) -> Sight {
        let mut seen = self.lock();
        let mut is_lost = false;
        let mut unmarked = Vec::new();
        for (part, word) in found {
            let before = seen.words.insert(part, word.clone());
            let is_other = before.is_some_and(|before| before.text != word.text);
            match word.standing {
                Standing::Acknowledged => {
                    seen.lost.remove(&part);
                }
                Standing::Emptied if is_other || self.when_emptied == WhenEmptied::Stop => {
                    is_lost |= seen.lost.insert(part) || is_other;
                }
                Standing::Begun if is_other => {
                    seen.lost.insert(part);
                    is_lost = true;
                    unmarked.push((part, word));
                }
                Standing::Begun | Standing::Emptied => {}
            }
        }
        if is_lost {
            seen.losses += 1;
            tracing::error!(
                when_store_emptied = self.when_emptied.as_str(),
                "the store came back without what it was told: operations that were done may run again"
            );
        } else if seen.lost.is_empty() {
            seen.losses = 0;
        }
        let concern = (seen.losses > 0).then(|| lost(seen.losses, self.when_emptied));
        Sight { concern, unmarked }
    }

    /// Whether a claim needs to know that the server has still what it was told.
    pub(super) fn is_guarded(&self) -> bool {
        self.when_emptied == WhenEmptied::Stop
    }

    /// Whether no claim is granted until a person has acknowledged a loss.
    pub(super) fn is_stopped(&self) -> bool {
        self.is_guarded() && !self.lock().lost.is_empty()
    }

    /// The word of a part, as this process knows it.
    pub(super) fn word(&self, part: usize) -> Option<Word> {
        self.lock().words.get(&part).cloned()
    }

    /// The words of the parts whose loss is not acknowledged.
    pub(super) fn lost(&self) -> Vec<(usize, Word)> {
        let seen = self.lock();
        let word = |part: &usize| Some((*part, seen.words.get(part)?.clone()));
        seen.lost.iter().filter_map(word).collect()
    }

    /// A panic cannot have left it half changed.
    fn lock(&self) -> MutexGuard<'_, Seen> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl WhenEmptied {
    /// The word used in settings and logs.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Continue => "continue",
            Self::Stop => "stop",
        }
    }
}

/// The code of that concern.
pub(super) const CODE: &str = "epoch-changed";

fn lost(losses: u64, when_emptied: WhenEmptied) -> Concern {
    let times = if losses == 1 { "once".to_owned() } else { format!("{losses} times") };
    let then = match when_emptied {
        WhenEmptied::Continue => "operations that were done may run again",
        WhenEmptied::Stop => "nothing new is forwarded until that is acknowledged",
    };
    Concern {
        code: CODE,
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

    fn word(text: &str, standing: Standing) -> Word {
        Word { text: text.to_owned(), standing }
    }

    fn look(epoch: &Epoch, words: &[(usize, &str)]) -> Option<String> {
        let begun = |(part, text): &(usize, &str)| (*part, word(text, Standing::Begun));
        epoch.see(words.iter().map(begun)).concern.map(|concern| concern.text)
    }

    #[test]
    fn a_loss_is_told_from_then_on_and_counted_once_for_each_look() {
        let epoch = Epoch::default();
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
        let epoch = Epoch::new(WhenEmptied::Stop);
        let see = |text: &str, standing| epoch.see([(0, word(text, standing))]).unmarked.len();
        assert_eq!(see("a", Standing::Begun), 0);
        assert!(!epoch.is_stopped());
        assert_eq!(see("b", Standing::Begun), 1, "it is to be marked");
        assert!(epoch.is_stopped());
        assert_eq!(see("b", Standing::Emptied), 0);
        assert_eq!(epoch.lost(), [(0, word("b", Standing::Emptied))]);
        assert_eq!(see("b", Standing::Acknowledged), 0);
        assert!(!epoch.is_stopped());
        assert_eq!(look(&epoch, &[]), None, "nor is it told any more");
        see("c", Standing::Begun);
        assert!(epoch.is_stopped());
    }

    #[test]
    fn whoever_starts_later_stops_as_well_and_a_loss_that_was_acknowledged_meanwhile_is_none() {
        let later = Epoch::new(WhenEmptied::Stop);
        assert!(later.see([(0, word("b", Standing::Emptied))]).concern.is_some());
        assert!(later.is_stopped());
        let other = Epoch::default();
        assert!(other.see([(0, word("b", Standing::Emptied))]).concern.is_none());
        let away = Epoch::new(WhenEmptied::Stop);
        assert_eq!(look(&away, &[(0, "a")]), None);
        assert!(away.see([(0, word("b", Standing::Acknowledged))]).concern.is_none());
        assert!(!away.is_stopped());
    }
}
