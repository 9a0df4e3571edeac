//! What is wrong with a configuration.
//!
//! No text here comes from the error of a library. Those of figment, serde and toml show the value
//! or the line, and either may hold a secret.

use std::collections::BTreeSet;
use std::fmt;

use super::key::Key;
use super::origin::Origin;

/// One mistake in a configuration.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Problem {
    /// Where the mistake was written.
    pub origin: Origin,
    /// The setting; empty if the problem is about no single one.
    pub key: Key,
    /// Completes `expected …`.
    pub expected: String,
    /// Completes `found …`. It never holds a secret.
    pub found: String,
    /// What may help.
    pub hint: String,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.origin {
            // There is no place that an operator could go to.
            Origin::BuiltIn => {}
            origin @ (Origin::Argument(_)
            | Origin::File(_)
            | Origin::Line(..)
            | Origin::Variable(_)
            | Origin::Preset(_)) => {
                write!(f, "{origin}: ")?;
            }
        }
        if !self.key.parts().is_empty() {
            write!(f, "`{}`: ", self.key)?;
        }
        write!(f, "expected {}, found {}", self.expected, self.found)?;
        write!(f, "\n    hint: {}", self.hint)
    }
}

/// Everything that is wrong with a configuration. An operator mends a file from its top to its end,
/// so the problems are in the order of its lines.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Problems(BTreeSet<Problem>);

impl Problems {
    /// Nobody reads more problems than these at once.
    const SHOWN_MAX: usize = 100;

    /// Adds a problem, unless it is known. A mistake in `[defaults]` is found once for each route,
    /// and it is one mistake.
    pub(super) fn push(&mut self, problem: Problem) {
        self.0.insert(problem);
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Each of the problems.
    pub fn iter(&self) -> impl Iterator<Item = &Problem> {
        self.0.iter()
    }
}

impl From<Problem> for Problems {
    fn from(problem: Problem) -> Self {
        Self(BTreeSet::from([problem]))
    }
}

impl fmt::Display for Problems {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let count = self.0.len();
        let s = if count == 1 { "" } else { "s" };
        write!(f, "the configuration has {count} problem{s}")?;
        let mut shown = self.0.iter().take(Self::SHOWN_MAX);
        shown.try_for_each(|problem| write!(f, "\n  {problem}"))?;
        match count.saturating_sub(Self::SHOWN_MAX) {
            0 => Ok(()),
            more => write!(f, "\n  {more} more: `onceward check --config FILE --json` has all"),
        }
    }
}

impl std::error::Error for Problems {}
