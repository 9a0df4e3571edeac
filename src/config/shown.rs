//! What a message shows of a value. A value may hold a secret, even where none belongs.

use figment::value::{Num, Value};

use super::origin::Origin;
use crate::provider::looks_like_a_secret;

/// What completes `found …`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Found {
    /// Words of Onceward.
    Described(String),
    /// A piece of what was written. It is not shown if it comes from a variable, whatever the
    /// setting is: people put a secret into the wrong variable.
    Quoted(String),
}

impl Found {
    /// The text to show for a value of this origin.
    pub(super) fn at(self, origin: &Origin) -> String {
        match (self, origin) {
            (Self::Quoted(_), Origin::Variable(_)) => "another value".to_owned(),
            (Self::Described(text) | Self::Quoted(text), _) => text,
        }
    }
}

impl From<String> for Found {
    fn from(text: String) -> Self {
        Self::Described(text)
    }
}

impl From<&str> for Found {
    fn from(text: &str) -> Self {
        Self::Described(text.to_owned())
    }
}

/// Which part of a value a message may show.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Showing {
    /// All of it. The setting is written as text, and so is the value.
    Text,
    /// Numbers and booleans. A text is of the wrong type here, and could be anything.
    NoText,
    /// Only its type, since the setting holds a secret.
    TypeOnly,
}

/// Describes a value as far as it may be shown.
pub(super) fn describe(value: &Value, showing: Showing) -> Found {
    match (value, showing) {
        (Value::String(_, text), Showing::Text) => quoted(text),
        (Value::String(..) | Value::Char(..), _) => "a string".into(),
        (Value::Bool(..), Showing::TypeOnly) => "a boolean".into(),
        (Value::Bool(_, boolean), _) => Found::Quoted(format!("`{boolean}`")),
        (Value::Num(..), Showing::TypeOnly) => "a number".into(),
        (Value::Num(_, number), _) => number_text(*number),
        (Value::Dict(..), _) => "a table".into(),
        (Value::Array(..), _) => "a list".into(),
        (Value::Empty(..), _) => "something else".into(),
    }
}

fn number_text(number: Num) -> Found {
    let whole = number.to_i128().map(|number| Found::Quoted(format!("the number {number}")));
    whole.unwrap_or_else(|| "a number".into())
}

/// A piece of what was written, fit for a message. A text that may be a secret, or a URL with a
/// password or a token, is not shown.
pub(super) fn quoted(text: &str) -> Found {
    const CHARACTERS_SHOWN_MAX: usize = 60;
    if looks_like_a_secret(text) {
        return "a text that looks like a secret".into();
    }
    // `http://user:password@host` is the usual form of a URL with a password.
    if text.contains('@') {
        return "a text with an `@`".into();
    }
    // Services with an API key in their URL have it in the query.
    if text.contains("://") && text.contains('?') {
        return "a URL with a query".into();
    }
    let shown: String = text.chars().take(CHARACTERS_SHOWN_MAX).collect();
    let rest = if shown.len() < text.len() { "…" } else { "" };
    Found::Quoted(format!("`{}{rest}`", shown.escape_debug()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_may_hold_a_secret_is_not_quoted() {
        let shown = |text| quoted(text).at(&Origin::BuiltIn);
        assert_eq!(shown("sometimes"), "`sometimes`");
        assert_eq!(shown("http://user:pass@host"), "a text with an `@`");
        assert_eq!(shown("https://host/?token=abc"), "a URL with a query");
        assert_eq!(shown("whsec_abc"), "a text that looks like a secret");
        assert_eq!(quoted("sometimes").at(&Origin::Variable("A".into())), "another value");
    }
}
