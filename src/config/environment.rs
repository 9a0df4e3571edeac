//! Variables of the environment: settings as a layer, and the variables that hold secrets.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use figment::value::{Tag, Value};

use super::file;
use super::key::Key;
use super::layer::Layer;
use super::origin::Origin;

const PREFIX: &str = "ONCEWARD_";

/// Stands between two parts of a key. A variable without it is not a setting.
const SEPARATOR: &str = "__";

/// The variables that the process was started with. Never printed: any of them may be a secret.
pub(super) struct Environment(BTreeMap<String, String>);

impl Environment {
    pub(super) fn new(variables: impl IntoIterator<Item = (String, String)>) -> Self {
        Self(variables.into_iter().collect())
    }

    pub(super) fn get(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str)
    }

    /// The variables that are settings. `routes` are the names of the routes in the file. A
    /// variable names one of them in capitals, and with `_` for `-`.
    pub(super) fn layer(&self, name: &'static str, routes: &BTreeSet<String>) -> Layer {
        let mut layer = Layer::empty(name, Origin::BuiltIn);
        for (variable, text) in &self.0 {
            if let Some(key) = key_of(variable, routes) {
                layer.set(&key, value_of(text), &Origin::Variable(variable.clone()));
            }
        }
        layer
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
        let nearly = |variable: &String| {
            let rest = variable.strip_prefix(PREFIX).filter(|rest| !rest.contains(SEPARATOR))?;
            let words: Vec<String> = rest.split('_').map(str::to_ascii_lowercase).collect();
            let others = OTHERS.contains(&variable.as_str());
            if others || words.len() > WORDS_MAX || words.iter().any(String::is_empty) {
                return None;
            }
            let parts =
                divisions(&words).find(|parts| is_setting(&Key::from_parts(parts.clone())))?;
            // Most shells take no `-` in the name of a variable.
            let meant = parts.join(SEPARATOR).replace('-', "_").to_ascii_uppercase();
            Some((variable.clone(), format!("{PREFIX}{meant}")))
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
/// wants a number. A table in braces is one at once, since layers are merged table by table.
fn value_of(text: &str) -> Value {
    let table = text.trim_start().starts_with('{').then(|| file::value(text.trim(), Tag::Default));
    table.flatten().unwrap_or_else(|| Value::String(Tag::Default, text.to_owned()))
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
