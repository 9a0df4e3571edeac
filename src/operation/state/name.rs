//! The names of the states.

use super::State;

/// The states without the values that are kept in them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[expect(missing_docs, reason = "each is described at `State`")]
pub enum StateName {
    InFlight,
    Uncertain,
    Succeeded,
    Failed,
    Forgotten,
}

impl StateName {
    /// All states, in the order of their discriminants.
    pub const ALL: [Self; 5] =
        [Self::InFlight, Self::Uncertain, Self::Succeeded, Self::Failed, Self::Forgotten];

    /// The word used in stores, metrics, logs and JSON.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::InFlight => "in_flight",
            Self::Uncertain => "uncertain",
            Self::Succeeded => "succeeded",
            Self::Failed => "failed",
            Self::Forgotten => "forgotten",
        }
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
