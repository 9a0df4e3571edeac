//! What is wrong with a configuration: where, what was expected, what was found, what may help.
//!
//! Nothing here comes from a library's error text: those of figment, serde and toml show the value
//! or the line, and either may hold a secret.

use std::fmt;
use std::path::Path;
use std::sync::Arc;

/// The name of a setting: `routes.orders.key.header`, as its parts.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Key(Vec<String>);

impl Key {
    /// No setting is as deep; what is written below it is not looked at.
    pub(super) const DEPTH_MAX: usize = 8;

    /// The setting at these names.
    pub fn of(parts: &[&str]) -> Self {
        Self(parts.iter().map(|&part| part.to_owned()).collect())
    }

    pub(super) const fn from_parts(parts: Vec<String>) -> Self {
        Self(parts)
    }

    pub(super) fn join(&self, part: impl Into<String>) -> Self {
        let mut parts = self.0.clone();
        parts.push(part.into());
        Self(parts)
    }

    pub(super) fn parts(&self) -> &[String] {
        &self.0
    }

    /// This key, and then those of the tables around it, from the inside out.
    pub(super) fn and_around(&self) -> impl Iterator<Item = Self> + '_ {
        (1..=self.0.len())
            .rev()
            .filter_map(|length| self.0.get(..length))
            .map(|parts| Self(parts.to_vec()))
    }

    /// Where a route's setting stands if neither the route nor its provider has one of its own.
    pub(super) fn in_defaults(&self) -> Option<Self> {
        self.of_a_route().map(|rest| Self([&["defaults".to_owned()], rest].concat()))
    }

    /// Where a step's setting stands if neither it nor its route has one of its own.
    pub(super) fn in_defaults_of_step(&self) -> Option<Self> {
        match self.of_a_route()? {
            [steps, rest @ ..] if steps == "steps" && !rest.is_empty() => {
                Some(Self([&["defaults".to_owned()], rest].concat()))
            }
            _ => None,
        }
    }

    /// Where a route's setting stands if this provider gave it.
    pub(super) fn in_provider(&self, provider: &str) -> Option<Self> {
        let table = ["providers".to_owned(), provider.to_owned()];
        self.of_a_route().map(|rest| Self([&table, rest].concat()))
    }

    fn of_a_route(&self) -> Option<&[String]> {
        match self.0.as_slice() {
            [routes, _, rest @ ..] if routes == "routes" && !rest.is_empty() => Some(rest),
            _ => None,
        }
    }

    /// The part of it that the name of this variable says; what is below that stands in its value.
    pub(super) fn named_by(self, place: &Place) -> Self {
        let Place::Variable(name) = place else { return self };
        let named = name.split("__").count();
        let index = |part: &&String| part.bytes().all(|byte| byte.is_ascii_digit());
        let known = |part: &&String| index(part) || matches!(part.as_str(), "env" | "file");
        let below = self.0.iter().skip(named).take_while(known).count();
        Self(self.0.into_iter().take(named + below).collect())
    }

    /// Whether the setting holds a secret, or may hold one that somebody wrote in the wrong shape.
    pub fn is_secret(&self) -> bool {
        const SECRETS: [&[&str]; 7] = [
            &["admin", "token"],
            &["routes", "*", "secrets"],
            &["defaults", "secrets"],
            &["store", "redis", "urls"],
            &["store", "redis", "password"],
            &["store", "postgres", "url"],
            &["store", "postgres", "listen_url"],
        ];
        SECRETS.iter().any(|secret| {
            self.0.len() >= secret.len()
                && self.0.iter().zip(*secret).all(|(own, part)| *part == "*" || own == part)
        }) || self.0.windows(2).any(|pair| *pair == ["lookup", "headers"])
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, part) in self.0.iter().enumerate() {
            let separator = if index == 0 { "" } else { "." };
            let bare = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
            if !part.is_empty() && part.chars().all(bare) {
                write!(f, "{separator}{part}")?;
            } else {
                write!(f, "{separator}\"{}\"", part.escape_debug())?;
            }
        }
        Ok(())
    }
}

/// Where a value comes from.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Place {
    /// An option of the command line.
    Argument(&'static str),
    /// A file as a whole.
    File(Arc<Path>),
    /// A line of a file, counted from 1.
    Line(Arc<Path>, usize),
    /// A variable of the environment.
    Variable(String),
    /// What is known of a sender.
    Preset(&'static str),
    /// Nobody said anything.
    BuiltIn,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Argument(name) => f.write_str(name),
            Self::File(file) => write!(f, "{}", file.display()),
            Self::Line(file, line) => write!(f, "{}:{line}", file.display()),
            Self::Variable(name) => f.write_str(name),
            Self::Preset(name) => write!(f, "preset {name}"),
            Self::BuiltIn => f.write_str("built-in"),
        }
    }
}

/// One thing that is wrong.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Problem {
    /// Where it was written.
    pub place: Place,
    /// The setting; empty if it is about no single one.
    pub key: Key,
    /// Completes `expected …`.
    pub expected: String,
    /// Completes `found …`. Never a secret.
    pub found: String,
    /// What may help.
    pub hint: String,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.place {
            Place::BuiltIn => {}
            place @ (Place::Argument(_)
            | Place::File(_)
            | Place::Line(..)
            | Place::Variable(_)
            | Place::Preset(_)) => {
                write!(f, "{place}: ")?;
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
    /// A file with more than this many is not a configuration.
    const MAX: usize = 100;

    /// Adds one, unless it is known: a mistake in `[defaults]` is one mistake, not one a route.
    pub(super) fn push(&mut self, problem: Problem) {
        if self.have_room() && !self.0.contains(&problem) {
            self.0.push(problem);
            self.0.sort();
        }
    }

    pub(super) fn have_room(&self) -> bool {
        self.0.len() < Self::MAX
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Each of them.
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

/// What completes `found …`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Found {
    /// Words of ours.
    Said(String),
    /// A piece of what was written. Of a variable's value nothing is shown, whatever it is a value
    /// of: a secret may have been put into the wrong variable.
    Written(String),
}

impl Found {
    /// What may be shown of it where it was written at this place.
    pub(super) fn at(self, place: &Place) -> String {
        match (self, place) {
            (Self::Written(_), Place::Variable(_)) => "another value".to_owned(),
            (Self::Said(text) | Self::Written(text), _) => text,
        }
    }
}

impl From<String> for Found {
    fn from(text: String) -> Self {
        Self::Said(text)
    }
}

impl From<&str> for Found {
    fn from(text: &str) -> Self {
        Self::Said(text.to_owned())
    }
}

/// A piece of what was written, fit for a message. What may be a URL with a password or
/// a token is not shown.
pub(super) fn quoted(text: &str) -> Found {
    const SHOWN_MAX: usize = 60;
    if text.contains('@') {
        return "a text with an `@`".into();
    }
    if text.contains("://") && text.contains('?') {
        return "a URL with a query".into();
    }
    let shown: String = text.chars().take(SHOWN_MAX).collect();
    let rest = if shown.len() < text.len() { "…" } else { "" };
    Found::Written(format!("`{}{rest}`", shown.escape_debug()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_may_hold_a_secret_is_not_quoted() {
        let shown = |text| quoted(text).at(&Place::BuiltIn);
        assert_eq!(shown("sometimes"), "`sometimes`");
        assert_eq!(shown("http://user:pass@host"), "a text with an `@`");
        assert_eq!(shown("https://host/?token=abc"), "a URL with a query");
        assert_eq!(quoted("sometimes").at(&Place::Variable("A".into())), "another value");
    }
}
