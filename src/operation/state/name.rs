//! The names of the states.

use super::State;
use crate::words::enum_of_words;

enum_of_words! {
    /// The states without the values that are kept in them. Their words stand in stores, metrics,
    /// logs and JSON.
    #[expect(missing_docs, reason = "each is described at `State`")]
    pub enum StateName {
        InFlight = "in_flight",
        Uncertain = "uncertain",
        Succeeded = "succeeded",
        Failed = "failed",
        Forgotten = "forgotten",
    }
}

impl StateName {
    /// Reads a name as people write it: also with `-`, as in the headers of answers.
    pub fn parse(word: &str) -> Option<Self> {
        let word = word.replace('-', "_");
        Self::ALL.into_iter().find(|state| state.as_str() == word)
    }
}

impl State {
    /// The name of the state.
    pub const fn name(&self) -> StateName {
        match self {
            Self::InFlight(_) => StateName::InFlight,
            Self::Uncertain(_) => StateName::Uncertain,
            Self::Succeeded(_) => StateName::Succeeded,
            Self::Failed(_) => StateName::Failed,
            Self::Forgotten { .. } => StateName::Forgotten,
        }
    }

    /// The word used in metrics, logs and JSON.
    pub const fn as_str(&self) -> &'static str {
        self.name().as_str()
    }
}
