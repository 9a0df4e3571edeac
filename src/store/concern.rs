//! What makes a store unsafe: not wrong, but not what the promises need.

use super::{Settings, epoch, postgres, redis};

/// Something about a store that a person should know.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Concern {
    /// A stable word for it, for metrics and programs.
    pub code: &'static str,
    /// What is so, in one sentence.
    pub text: String,
    /// What to do about it.
    pub hint: String,
}

impl Settings {
    /// The codes of all concerns that a store of this kind may have.
    pub fn concern_codes(&self) -> Vec<&'static str> {
        match self {
            Self::Embedded(_) | Self::Memory => Vec::new(),
            Self::Redis(_) => redis::concern_codes().chain([epoch::CODE]).collect(),
            Self::Postgres(_) => postgres::concern_codes().chain([epoch::CODE]).collect(),
        }
    }
}
