//! Tables while they are read: each setting is taken out, and what is left over is unknown.

use std::ops::RangeInclusive;
use std::time::Duration;

use figment::value::{Dict, Tag, Value};

use super::key::Key;
use super::leaf::Leaf;
use super::quantity::short;
use super::reader::{ListForm, Reader, Reported};
use super::shown::{Found, Showing, describe};

/// What is expected where a table stands, if nothing more can be said.
pub(super) const A_TABLE: &str = "a table";

const SHORTEST: Duration = Duration::from_millis(1);

/// A table of settings that is being read.
///
/// A mistake never ends the reading. It is reported, and what stands in for the setting depends on
/// how the setting is read: the built-in value ([`setting`](Table::setting)), no value
/// ([`optional`](Table::optional)), or nothing ([`written`](Table::written)) where a stand-in could
/// lead to a second, false report. The configuration is refused in any case.
pub(super) struct Table<'t, 's> {
    pub(super) reader: &'t mut Reader<'s>,
    pub(super) key: Key,
    settings: Dict,
    /// The settings that were asked for. They are proposed where a name is unknown.
    known: Vec<&'static str>,
    completeness: Completeness,
}

/// Whether a table has to have all settings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Completeness {
    /// A setting that is missing is a problem.
    Complete,
    /// Some settings stand elsewhere. Only those that are here are looked at.
    Incomplete,
}

impl Table<'_, '_> {
    /// The key of a setting of the table.
    pub(super) fn key(&self, name: &str) -> Key {
        self.key.join(name)
    }

    /// Whether the table still has a setting that has not been taken.
    pub(super) fn has(&self, name: &str) -> bool {
        self.settings.contains_key(name)
    }

    /// Takes a setting out of the table as it was written.
    pub(super) fn take(&mut self, name: &'static str) -> Option<Value> {
        self.known.push(name);
        let value = self.settings.remove(name)?;
        (!matches!(value, Value::Empty(..))).then_some(value)
    }

    /// A setting exactly as it was written, if it was written.
    pub(super) fn written<T: Leaf>(&mut self, name: &'static str) -> Result<Option<T>, Reported> {
        let Some(value) = self.take(name) else { return Ok(None) };
        let key = self.key(name);
        self.reader.leaf(&key, &value).map(Some)
    }

    /// A setting that may be left out. One with a mistake counts as left out.
    pub(super) fn optional<T: Leaf>(&mut self, name: &'static str) -> Option<T> {
        self.written(name).unwrap_or(None)
    }

    /// A setting with a built-in value, which stands in for a mistake.
    pub(super) fn setting<T: Leaf>(&mut self, name: &'static str) -> Result<T, Reported> {
        let written = self.written(name);
        self.or_built_in(name, written)
    }

    /// A setting exactly as it was written, which has to be there.
    pub(super) fn needed<T: Leaf>(
        &mut self,
        name: &'static str,
        hint: Option<&str>,
    ) -> Result<T, Reported> {
        self.written(name)?.ok_or_else(|| self.missing(name, "a value", hint))
    }

    /// A setting with a built-in value that has to be in a range.
    pub(super) fn within<T: Leaf + PartialOrd>(
        &mut self,
        name: &'static str,
        range: &RangeInclusive<T>,
        expected: &str,
    ) -> Result<T, Reported> {
        let written = self.written_within(name, range, expected);
        self.or_built_in(name, written)
    }

    /// A setting exactly as it was written, if it was written and is in a range.
    pub(super) fn written_within<T: Leaf + PartialOrd>(
        &mut self,
        name: &'static str,
        range: &RangeInclusive<T>,
        expected: &str,
    ) -> Result<Option<T>, Reported> {
        let Some(value) = self.take(name) else { return Ok(None) };
        let key = self.key(name);
        let read = self.reader.leaf(&key, &value)?;
        if range.contains(&read) {
            return Ok(Some(read));
        }
        Err(self.reader.wrong(&key, expected, describe(&value, Showing::Text)))
    }

    /// A duration with a built-in value that has to be above zero.
    pub(super) fn above_zero(
        &mut self,
        name: &'static str,
        longest: Duration,
    ) -> Result<Duration, Reported> {
        self.within(name, &(SHORTEST..=longest), &above_zero_expected(longest))
    }

    /// A duration with a built-in value that may be zero.
    pub(super) fn up_to(
        &mut self,
        name: &'static str,
        longest: Duration,
    ) -> Result<Duration, Reported> {
        let expected = format!("a duration of at most `{}`", short(longest));
        self.within(name, &(Duration::ZERO..=longest), &expected)
    }

    /// A duration above zero that may be left out. `""` undoes one that would be inherited.
    pub(super) fn optional_above_zero(
        &mut self,
        name: &'static str,
        longest: Duration,
    ) -> Option<Duration> {
        if self.settings.get(name).and_then(Value::as_str) == Some("") {
            self.take(name);
            return None;
        }
        let expected = above_zero_expected(longest);
        self.written_within(name, &(SHORTEST..=longest), &expected).unwrap_or(None)
    }

    /// A list of texts that may be left out. One with a mistake counts as left out.
    pub(super) fn list<T: Leaf>(&mut self, name: &'static str) -> Option<Vec<T>> {
        self.leaves(name).unwrap_or(None)
    }

    /// A list of texts with a built-in value, which stands in for a mistake.
    pub(super) fn setting_list<T: Leaf>(&mut self, name: &'static str) -> Result<Vec<T>, Reported> {
        if let Ok(Some(items)) = self.leaves(name) {
            return Ok(items);
        }
        let built_in = self.reader.sources.stand_in(&self.key(name));
        let items = built_in.and_then(Value::as_array).unwrap_or_default();
        let items: Option<Vec<T>> = items.iter().map(T::from_value).collect();
        items.ok_or_else(|| self.missing(name, "a value", None))
    }

    /// A list of texts with a built-in value that has to have at least one item.
    pub(super) fn some_of<T: Leaf>(&mut self, name: &'static str) -> Result<Vec<T>, Reported> {
        let items = self.setting_list(name)?;
        if items.is_empty() {
            self.wrong(name, "at least one item", "none");
        }
        Ok(items)
    }

    fn leaves<T: Leaf>(&mut self, name: &'static str) -> Result<Option<Vec<T>>, Reported> {
        self.items(name, "a list of texts", ListForm::Texts, |reader, key, item| {
            reader.leaf(key, &item)
        })
    }

    /// What was written, or else the built-in value of the setting.
    pub(super) fn or_built_in<T: Leaf>(
        &mut self,
        name: &str,
        written: Result<Option<T>, Reported>,
    ) -> Result<T, Reported> {
        if let Ok(Some(value)) = written {
            return Ok(value);
        }
        let built_in = self.reader.sources.stand_in(&self.key(name)).and_then(T::from_value);
        built_in.ok_or_else(|| match written {
            Err(reported) => reported,
            Ok(_) => self.missing(name, "a value", None),
        })
    }

    /// A list, each item of which is read by `read`.
    pub(super) fn items<T>(
        &mut self,
        name: &'static str,
        expected: &str,
        form: ListForm,
        mut read: impl FnMut(&mut Reader<'_>, &Key, Value) -> Result<T, Reported>,
    ) -> Result<Option<Vec<T>>, Reported> {
        let Some(value) = self.take(name) else { return Ok(None) };
        let key = self.key(name);
        let items = self.reader.list(&key, value, expected, form)?.into_iter().enumerate();
        let items: Vec<_> = items
            .map(|(index, item)| read(self.reader, &key.join(index.to_string()), item))
            .collect();
        // All items have been read by now, so that the first problem hides none of the others.
        items.into_iter().collect::<Result<_, _>>().map(Some)
    }

    /// A list of tables that may be left out, each of which is read by `read`.
    pub(super) fn tables<T>(
        &mut self,
        name: &'static str,
        mut read: impl FnMut(&mut Table<'_, '_>) -> Result<T, Reported>,
    ) -> Result<Option<Vec<T>>, Reported> {
        let form = self.form(A_TABLE);
        self.items(name, "a list", ListForm::Tables, |reader, key, item| {
            reader.table(key, item, form, &mut read)
        })
    }

    /// A table within this one that may be left out.
    pub(super) fn table<T>(
        &mut self,
        name: &'static str,
        expected: &'static str,
        read: impl FnOnce(&mut Table<'_, '_>) -> Result<T, Reported>,
    ) -> Result<Option<T>, Reported> {
        let Some(value) = self.take(name) else { return Ok(None) };
        let key = self.key(name);
        let form = self.form(expected);
        self.reader.table(&key, value, form, read).map(Some)
    }

    /// A table within this one whose settings have built-in values. They stand in for a mistake.
    pub(super) fn section<T>(
        &mut self,
        name: &'static str,
        read: impl FnOnce(&mut Table<'_, '_>) -> Result<T, Reported>,
    ) -> Result<T, Reported> {
        let key = self.key(name);
        let value = self.take(name);
        let settings = value.map(|value| self.reader.dict(&key, value, A_TABLE));
        let form = match &settings {
            Some(Ok(_)) => self.form(A_TABLE),
            Some(Err(_)) | None => {
                TableForm { completeness: Completeness::Incomplete, expected: A_TABLE }
            }
        };
        let settings = settings.and_then(Result::ok).unwrap_or_default();
        self.reader.table(&key, Value::Dict(Tag::Default, settings), form, read)
    }

    /// A table whose names are free. Each entry is read by `read`.
    pub(super) fn entries<T>(
        &mut self,
        name: &'static str,
        mut read: impl FnMut(&mut Reader<'_>, &Key, Entry) -> Result<T, Reported>,
    ) -> Result<Option<Vec<T>>, Reported> {
        let Some(value) = self.take(name) else { return Ok(None) };
        let key = self.key(name);
        let entries = self.reader.dict(&key, value, "tables such as `[routes.orders]`")?;
        let entries: Vec<_> = entries
            .into_iter()
            .map(|(name, value)| read(self.reader, &key.join(name.as_str()), Entry { name, value }))
            .collect();
        entries.into_iter().collect::<Result<_, _>>().map(Some)
    }

    /// Takes the settings of these names as a table of its own, which may be incomplete.
    pub(super) fn part<T>(
        &mut self,
        names: &[&'static str],
        read: impl FnOnce(&mut Table<'_, '_>) -> Result<T, Reported>,
    ) -> Result<T, Reported> {
        let mut part = Dict::new();
        for name in names {
            part.extend(self.take(name).map(|value| ((*name).to_owned(), value)));
        }
        let part = Value::Dict(Tag::Default, part);
        let form = TableForm { expected: A_TABLE, completeness: Completeness::Incomplete };
        self.reader.table(&self.key, part, form, read)
    }

    /// What a table within this one has to be.
    pub(super) const fn form(&self, expected: &'static str) -> TableForm {
        TableForm { expected, completeness: self.completeness }
    }

    /// Has other settings proposed where a name is unknown than all those that were asked for.
    pub(super) fn propose(&mut self, known: Vec<&'static str>) {
        self.known = known;
    }

    /// Reports a setting of the table.
    pub(super) fn wrong(
        &mut self,
        name: &str,
        expected: impl Into<String>,
        found: impl Into<Found>,
    ) -> Reported {
        let key = self.key(name);
        self.reader.wrong(&key, expected, found)
    }

    /// Reports that a setting is not there; with a hint of its own if there is one.
    pub(super) fn missing(&mut self, name: &str, expected: &str, hint: Option<&str>) -> Reported {
        if self.completeness == Completeness::Incomplete {
            return Reader::left_out();
        }
        self.reader.missing(&self.key, name, expected, hint)
    }

    /// Reports that the table has none of the settings of which it needs one.
    pub(super) fn lacks(&mut self, expected: &str, found: &str) -> Reported {
        // An unknown setting is reported anyway, and was probably meant to be the one.
        if self.completeness == Completeness::Incomplete || !self.settings.is_empty() {
            return Reader::left_out();
        }
        let key = self.key.clone();
        self.reader.wrong(&key, expected, found)
    }
}

fn above_zero_expected(longest: Duration) -> String {
    format!("a duration from `{}` to `{}`", short(SHORTEST), short(longest))
}

/// One entry of a table whose names are free.
pub(super) struct Entry {
    pub(super) name: String,
    pub(super) value: Value,
}

/// What a table has to be.
#[derive(Debug, Clone, Copy)]
pub(super) struct TableForm {
    pub(super) expected: &'static str,
    pub(super) completeness: Completeness,
}

impl TableForm {
    /// A table that has to be complete.
    pub(super) const fn complete(expected: &'static str) -> Self {
        Self { expected, completeness: Completeness::Complete }
    }
}

impl Reader<'_> {
    /// Reads a table whose settings are those that `read` asks for.
    pub(super) fn table<T>(
        &mut self,
        key: &Key,
        value: Value,
        form: TableForm,
        read: impl FnOnce(&mut Table<'_, '_>) -> Result<T, Reported>,
    ) -> Result<T, Reported> {
        let settings = self.dict(key, value, form.expected)?;
        let mut table = Table {
            reader: self,
            key: key.clone(),
            settings,
            known: Vec::new(),
            completeness: form.completeness,
        };
        let result = read(&mut table);
        let Table { reader, key, settings, known, .. } = table;
        for name in settings.keys() {
            reader.unknown(&key, name, &known);
        }
        result
    }
}
