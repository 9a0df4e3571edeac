//! Whether a server still keeps what it was told: a word that it was given once must still be there.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use super::Concern;

/// The words that this process saw last, and how often they were others than before.
#[derive(Debug, Default)]
pub(super) struct Epoch(Mutex<Seen>);

#[derive(Debug, Default)]
struct Seen {
    /// Of each part of the server that may be lost by itself.
    words: HashMap<usize, String>,
    losses: u64,
}

impl Epoch {
    /// These words were found in one look. A loss stays a concern for as long as this process runs:
    /// there are several who ask, and none may miss it.
    pub(super) fn see(&self, found: impl IntoIterator<Item = (usize, String)>) -> Option<Concern> {
        let mut seen = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let mut is_lost = false;
        for (part, word) in found {
            let before = seen.words.insert(part, word.clone());
            is_lost |= before.is_some_and(|before| before != word);
        }
        seen.losses += u64::from(is_lost);
        (seen.losses > 0).then(|| lost(seen.losses))
    }
}

fn lost(losses: u64) -> Concern {
    let times = if losses == 1 { "once".to_owned() } else { format!("{losses} times") };
    Concern {
        code: "epoch-changed",
        text: format!(
            "the server came back without what it was told, {times} since this process began: \
             operations that were done may run again"
        ),
        hint: "find out why it came back empty; let it keep what it is told, and let nobody empty \
               it"
        .to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn look(epoch: &Epoch, words: &[(usize, &str)]) -> Option<String> {
        let concern = epoch.see(words.iter().map(|(part, word)| (*part, (*word).to_owned())));
        concern.map(|concern| concern.text)
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
    }
}
