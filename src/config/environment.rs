//! Variables of the environment: settings as a layer, and the variables that hold secrets.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{OsStr, OsString};
use std::fmt;

use figment::value::{Tag, Value};

use super::file;
use super::key::Key;
use super::layer::Layer;
use super::origin::Origin;
use super::problem::{Problem, Problems};

const PREFIX: &str = "ONCEWARD_";

/// Stands between two parts of a key. A variable without it is not a setting.
const SEPARATOR: &str = "__";

/// The variables that the process was started with. Never printed: any of them may be a secret.
pub(super) struct Environment(BTreeMap<OsString, OsString>);

impl Environment {
    pub(super) fn new(variables: impl IntoIterator<Item = (OsString, OsString)>) -> Self {
        Self(variables.into_iter().collect())
    }

    pub(super) fn get(&self, name: &str) -> Option<&OsStr> {
        self.0.get(OsStr::new(name)).map(OsString::as_os_str)
    }

    /// The variables that are settings. `routes` are the names of the routes in the file. A
    /// variable names one of them in capitals, and with `_` for `-`.
    ///
    /// # Errors
    ///
    /// Every setting that is not text. Nobody can say what it means, so nothing is read without it.
    pub(super) fn layer(
        &self,
        name: &'static str,
        routes: &BTreeSet<String>,
    ) -> Result<Layer, Problems> {
        let mut layer = Layer::empty(name, Origin::BuiltIn);
        let mut problems = Problems::default();
        for (variable, value) in &self.0 {
            let shown = variable.to_string_lossy();
            let Some(key) = key_of(&shown, routes) else { continue };
            let origin = Origin::Variable(shown.into_owned());
            match (variable.to_str(), value.to_str()) {
                (Some(_), Some(text)) => layer.set(&key, value_of(text), &origin),
                (None, _) => problems.push(not_text(origin, key, "a name in UTF-8")),
                (Some(_), None) => problems.push(not_text(origin, key, "a value in UTF-8")),
            }
        }
        if problems.is_empty() { Ok(layer) } else { Err(problems) }
    }
}

/// The problem of a setting whose name or value is not text.
fn not_text(origin: Origin, key: Key, expected: &str) -> Problem {
    Problem {
        origin,
        key,
        expected: expected.to_owned(),
        found: "one with other bytes".to_owned(),
        hint: "set it anew where Onceward is started, or take it out there".to_owned(),
    }
}

impl fmt::Debug for Environment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Environment({} variables)", self.0.len())
    }
}

fn key_of(variable: &str, routes: &BTreeSet<String>) -> Option<Key> {
    let rest = variable.strip_prefix(PREFIX).filter(|rest| rest.contains(SEPARATOR))?;
    // A name with more parts is no setting. Cut off, it is unknown, and its tables are not too
    // deep.
    let mut parts: Vec<String> =
        rest.split(SEPARATOR).take(Key::DEPTH_MAX).map(str::to_ascii_lowercase).collect();
    if let [table, route, ..] = parts.as_mut_slice()
        && table == "routes"
        && !routes.contains(route)
    {
        // Two routes that differ only in this are both not meant, since either could be.
        let mut meant = routes.iter().filter(|known| folded(known) == *route);
        if let (Some(known), None) = (meant.next(), meant.next()) {
            known.clone_into(route);
        }
    }
    Some(Key::from_parts(parts))
}

fn folded(route: &str) -> String {
    route.to_ascii_lowercase().replace('-', "_")
}

/// Variables of Onceward that are not settings.
const OTHERS: [&str; 5] = [
    "ONCEWARD_LOG",
    "ONCEWARD_LOG_FORMAT",
    "ONCEWARD_SECRET",
    "ONCEWARD_ADMIN_URL",
    "ONCEWARD_ADMIN_TOKEN",
];

/// No setting has more words. The ways to divide them double with each word.
const WORDS_MAX: usize = 10;

impl Environment {
    /// The variables that would be settings with `__` in place of some `_`, each with the name that
    /// would be read.
    pub(super) fn nearly(&self, is_setting: impl Fn(&Key) -> bool) -> Vec<(String, String)> {
        let nearly = |variable: &OsString| {
            let variable = variable.to_str()?;
            let rest = variable.strip_prefix(PREFIX).filter(|rest| !rest.contains(SEPARATOR))?;
            let words: Vec<String> = rest.split('_').map(str::to_ascii_lowercase).collect();
            let others = OTHERS.contains(&variable);
            if others || words.len() > WORDS_MAX || words.iter().any(String::is_empty) {
                return None;
            }
            let parts =
                divisions(&words).find(|parts| is_setting(&Key::from_parts(parts.clone())))?;
            // Most shells take no `-` in the name of a variable.
            let meant = parts.join(SEPARATOR).replace('-', "_").to_ascii_uppercase();
            Some((variable.to_owned(), format!("{PREFIX}{meant}")))
        };
        self.0.keys().filter_map(nearly).collect()
    }
}

/// Every way to make two parts or more of these words.
fn divisions(words: &[String]) -> impl Iterator<Item = Vec<String>> {
    let gaps = words.len().saturating_sub(1);
    (1..1_u32 << gaps).map(move |cuts| {
        let mut parts: Vec<String> = Vec::new();
        for (index, word) in words.iter().enumerate() {
            let is_new = index == 0 || cuts & (1 << (index - 1)) != 0;
            match parts.last_mut().filter(|_| !is_new) {
                Some(part) => *part = format!("{part}_{word}"),
                None => parts.push(word.clone()),
            }
        }
        parts
    })
}

/// The value of a variable. It is text, whatever it looks like: only the setting knows whether it
/// wants a number.
///
/// A table in braces is one at once, since layers are merged table by table. So is a list of such
/// tables, since a step takes settings from its route.
fn value_of(text: &str) -> Value {
    let is_table = |value: &Value| value.as_dict().is_some();
    let tables = file::value(text.trim(), Tag::Default).filter(|value| {
        let items = value.as_array().unwrap_or_default();
        is_table(value) || !items.is_empty() && items.iter().all(is_table)
    });
    tables.unwrap_or_else(|| Value::String(Tag::Default, text.to_owned()))
}

/// The text of a variable as a list: as TOML, or with commas between the items.
pub(super) fn list(value: &Value) -> Option<Value> {
    let Value::String(tag, text) = value else {
        return None;
    };
    // Texts with commas in them have to be written as TOML.
    if text.trim_start().starts_with('[') {
        return typed(value);
    }
    let items = text.split(',').map(str::trim).filter(|item| !item.is_empty());
    let items = items.map(|item| Value::String(*tag, item.to_owned()));
    Some(Value::Array(*tag, items.collect()))
}

/// The text of a variable as TOML, if that is something else than a text.
pub(super) fn typed(value: &Value) -> Option<Value> {
    let Value::String(tag, text) = value else {
        return None;
    };
    file::value(text.trim(), *tag).filter(|typed| typed.as_str().is_none())
}
