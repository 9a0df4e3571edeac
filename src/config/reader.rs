//! The one pass over a configuration: every setting is read once, and everything wrong is
//! collected.

use std::collections::BTreeMap;

use figment::value::{Dict, Value};

use super::environment;
use super::hint;
use super::key::Key;
use super::leaf::Leaf;
use super::meant::meant_by;
use super::origin::Origin;
use super::problem::{Problem, Problems};
use super::shown::{Found, Showing, describe, quoted};
use super::sources::Sources;
use crate::provider::looks_like_a_secret;

/// No value can be made of a setting, and that has been reported.
///
/// Only a reader can make one, and only when it reports a problem. The exception are tables that
/// may be incomplete: what they lack is no problem, and nobody uses their values.
#[derive(Debug, Clone, Copy)]
pub(super) struct Reported(());

/// How a list may be written in a variable.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ListForm {
    /// As TOML, or as texts with commas between them.
    Texts,
    /// As TOML.
    Tables,
}

/// Reads a configuration and collects its problems.
pub(super) struct Reader<'s> {
    pub(super) sources: &'s Sources,
    problems: Problems,
    reports: usize,
    typed: BTreeMap<Key, Value>,
}

/// What a reader has collected.
pub(super) struct Collected {
    pub(super) problems: Problems,
    /// The values of variables whose text was read as something else: as a number, a boolean, a
    /// list or a table.
    pub(super) typed: BTreeMap<Key, Value>,
}

impl<'s> Reader<'s> {
    pub(super) fn new(sources: &'s Sources) -> Self {
        Self { sources, problems: Problems::default(), reports: 0, typed: BTreeMap::new() }
    }

    /// How often a problem has been reported, those that were known included.
    pub(super) const fn reports(&self) -> usize {
        self.reports
    }

    /// Fails if a problem has been reported since there were so many `reports`.
    pub(super) const fn none_since(&self, reports: usize) -> Result<(), Reported> {
        if self.reports == reports { Ok(()) } else { Err(Reported(())) }
    }

    pub(super) fn into_collected(self) -> Collected {
        Collected { problems: self.problems, typed: self.typed }
    }

    /// Reports what is wrong with the setting `named`. The hint tells how the setting is written.
    pub(super) fn wrong(
        &mut self,
        named: &Key,
        expected: impl Into<String>,
        found: impl Into<Found>,
    ) -> Reported {
        self.report(named, expected, found, None)
    }

    /// Reports what is wrong with the setting `named`, with a hint of its own.
    pub(super) fn report(
        &mut self,
        named: &Key,
        expected: impl Into<String>,
        found: impl Into<Found>,
        hint: Option<&str>,
    ) -> Reported {
        let (origin, key) = self.sources.locate(named);
        let hint = hint.map_or_else(|| hint::usual(self.sources, &key), str::to_owned);
        let found = found.into().at(&origin);
        let key = key.shown_for(&origin);
        self.reports += 1;
        self.problems.push(Problem { origin, key, expected: expected.into(), found, hint });
        Reported(())
    }

    /// Reports that the table lacks this setting.
    pub(super) fn missing(
        &mut self,
        table: &Key,
        name: &str,
        expected: &str,
        hint: Option<&str>,
    ) -> Reported {
        let named = table.join(name);
        let (origin, _) = self.sources.locate(&named);
        let hint = hint.map_or_else(|| hint::usual(self.sources, &named), str::to_owned);
        // The name is a word of Onceward's, and shown even if the table stands in a variable.
        let shown = table.clone().shown_for(&origin);
        let key = if shown == *table { named } else { shown };
        self.reports += 1;
        let expected = expected.to_owned();
        self.problems.push(Problem { origin, key, expected, found: "none".to_owned(), hint });
        Reported(())
    }

    /// Reports a value that is not one of its setting. `is_text`: the setting is written as text.
    fn mismatch(
        &mut self,
        key: &Key,
        value: &Value,
        expected: impl Into<String>,
        is_text: bool,
    ) -> Reported {
        let expected = expected.into();
        let is_variable = self.is_variable(key);
        let showing = match (key.is_secret(), is_text || is_variable) {
            (true, _) => Showing::TypeOnly,
            (false, true) => Showing::Text,
            (false, false) => Showing::NoText,
        };
        let found = describe(value, showing);
        let hint = match &found {
            // The hint would show the value.
            Found::Quoted(_) if is_variable => None,
            Found::Quoted(_) => meant_by(&expected, value),
            Found::Described(_) => None,
        };
        self.report(key, expected, found, hint.as_deref())
    }

    /// Reports a setting that the table around it does not have.
    pub(super) fn unknown(&mut self, table: &Key, name: &str, known: &[&str]) {
        let named = table.join(name);
        let (origin, key) = self.sources.locate(&named);
        // A name that stands in the value of a variable is a part of that value. And people paste a
        // secret anywhere, also where the name of a setting belongs.
        let is_secret = named.is_secret();
        let in_variable = key.clone().shown_for(&origin) != key;
        let found = match quoted(name) {
            Found::Quoted(name) if !in_variable && !is_secret => Found::Described(name),
            Found::Described(_) | Found::Quoted(_) => "another".into(),
        };
        let problem = Problem {
            key: if is_secret { table.clone() } else { key.shown_for(&origin) },
            expected: "a known key".to_owned(),
            found: found.at(&origin),
            hint: hint::for_unknown(name, known),
            origin,
        };
        self.reports += 1;
        self.problems.push(problem);
    }

    /// A value that is not there, in a table that may be incomplete.
    pub(super) const fn left_out() -> Reported {
        Reported(())
    }

    /// Whether the name can be that of a route, a provider or a step; if not, it is reported. Names
    /// stand in the log and in metrics, so that none may be a secret.
    pub(super) fn check_name(&mut self, key: &Key, name: &str) -> Result<(), Reported> {
        let letter =
            |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"_-".contains(&byte);
        let is_name = (1..=64).contains(&name.len()) && name.bytes().all(letter);
        if is_name && !looks_like_a_secret(name) {
            return Ok(());
        }
        let expected = "a name of 1 to 64 letters a to z, digits, `_` and `-`";
        let hint = "such as `orders` or `shop-eu`";
        Err(self.report(key, expected, quoted(name), Some(hint)))
    }

    /// Notes what a setting made of the text of a variable.
    fn note_typed(&mut self, key: &Key, value: &Value) {
        self.typed.insert(key.clone(), value.clone());
    }

    /// Whether a value was written in the environment, where everything is text.
    fn is_variable(&self, key: &Key) -> bool {
        matches!(self.sources.origin(key), Origin::Variable(_))
    }

    /// Reads a leaf.
    pub(super) fn leaf<T: Leaf>(&mut self, key: &Key, value: &Value) -> Result<T, Reported> {
        if let Some(read) = T::from_value(value) {
            return Ok(read);
        }
        // Where text is wanted, `12` in a variable is text, and not a number.
        if !T::IS_TEXT
            && let Some(typed) = self.typed(key, value)
            && let Some(read) = T::from_value(&typed)
        {
            self.note_typed(key, &typed);
            return Ok(read);
        }
        Err(self.mismatch(key, value, T::expected_for(value), T::IS_TEXT))
    }

    /// Reads a table as it is, without looking at its settings.
    pub(super) fn dict(
        &mut self,
        key: &Key,
        value: Value,
        expected: &str,
    ) -> Result<Dict, Reported> {
        if let Value::Dict(_, dict) = value {
            return Ok(dict);
        }
        if let Some(Value::Dict(tag, dict)) = self.typed(key, &value) {
            self.note_typed(key, &Value::Dict(tag, dict.clone()));
            return Ok(dict);
        }
        Err(self.mismatch(key, &value, expected, false))
    }

    /// Reads a list as it is, without looking at its items.
    pub(super) fn list(
        &mut self,
        key: &Key,
        value: Value,
        expected: &str,
        form: ListForm,
    ) -> Result<Vec<Value>, Reported> {
        if let Value::Array(_, items) = value {
            return Ok(items);
        }
        let in_variable = match form {
            ListForm::Texts if self.is_variable(key) => environment::list(&value),
            ListForm::Texts => None,
            ListForm::Tables => self.typed(key, &value),
        };
        if let Some(Value::Array(tag, items)) = in_variable {
            self.note_typed(key, &Value::Array(tag, items.clone()));
            return Ok(items);
        }
        Err(self.mismatch(key, &value, expected, false))
    }

    /// The text of a variable, read as something else.
    fn typed(&self, key: &Key, value: &Value) -> Option<Value> {
        self.is_variable(key).then(|| environment::typed(value))?
    }
}
