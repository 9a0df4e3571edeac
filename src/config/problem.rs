//! What is wrong with a configuration.
//!
//! No text here comes from the error of a library. Those of figment, serde and toml show the value
//! or the line, and either may hold a secret.

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

/// Everything that is wrong with a configuration, in the order of its lines.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Problems(Vec<Problem>);

impl Problems {
    /// A file with more problems than these is not a configuration.
    const MAX: usize = 100;

    /// Adds a problem, unless it is known. A mistake in `[defaults]` is found once for each route,
    /// and it is one mistake.
    pub(super) fn push(&mut self, problem: Problem) {
        if self.0.len() < Self::MAX && !self.0.contains(&problem) {
            self.0.push(problem);
            // An operator mends a file from its top to its end.
            self.0.sort();
        }
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
        Self(vec![problem])
    }
}

impl fmt::Display for Problems {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let count = self.0.len();
        let s = if count == 1 { "" } else { "s" };
        write!(f, "the configuration has {count} problem{s}")?;
        self.0.iter().try_for_each(|problem| write!(f, "\n  {problem}"))
    }
}

impl std::error::Error for Problems {}
