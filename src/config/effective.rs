//! Every setting with the value that counts, and where it comes from.

use figment::value::{Num, Value};

use super::problem::{Key, Place, Problems};
use super::read;
use super::source::Sources;

/// A setting, its value, and where that was written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Effective {
    /// The setting.
    pub key: Key,
    /// As TOML writes it; `***` for a secret.
    pub value: String,
    /// Who said so.
    pub place: Place,
}

/// All of them, by the names of their keys.
pub(super) fn of(sources: &Sources) -> Vec<Effective> {
    let mut settings = Vec::new();
    // A variable's text counts as what its setting made of it.
    let (_, tree) = read::read(sources, &mut Problems::default());
    collect(sources, &Key::default(), &tree, &mut settings);
    // What a route takes from a preset stands at the route.
    let of_preset = |key: &Key| key.parts().first().is_some_and(|table| table == "providers");
    settings.retain(|it| !(of_preset(&it.key) && matches!(it.place, Place::Preset(_))));
    settings
}

fn collect(sources: &Sources, key: &Key, value: &Value, settings: &mut Vec<Effective>) {
    match value {
        Value::Dict(_, table) if !table.is_empty() => {
            for (name, value) in table {
                collect(sources, &key.join(name.as_str()), value, settings);
            }
        }
        Value::Array(_, items)
            if !key.is_secret() && items.iter().any(|item| item.as_dict().is_some()) =>
        {
            for (index, item) in items.iter().enumerate() {
                collect(sources, &key.join(index.to_string()), item, settings);
            }
        }
        Value::Dict(..)
        | Value::String(..)
        | Value::Char(..)
        | Value::Bool(..)
        | Value::Num(..)
        | Value::Empty(..)
        | Value::Array(..) => {
            let text = if key.is_secret() { "***".to_owned() } else { as_toml(value) };
            let place = sources.place(key);
            settings.push(Effective { key: key.clone(), value: text, place });
        }
    }
}

pub(super) fn as_toml(value: &Value) -> String {
    match value {
        Value::String(_, text) => toml::Value::String(text.clone()).to_string(),
        Value::Char(_, c) => toml::Value::String(c.to_string()).to_string(),
        Value::Bool(_, boolean) => boolean.to_string(),
        Value::Num(_, number) => number_as_toml(*number),
        Value::Array(_, items) => {
            let items: Vec<String> = items.iter().map(as_toml).collect();
            format!("[{}]", items.join(", "))
        }
        Value::Dict(_, table) => {
            let pairs = table.iter().map(|(name, value)| format!("{name} = {}", as_toml(value)));
            format!("{{ {} }}", pairs.collect::<Vec<_>>().join(", ")).replace("{  }", "{}")
        }
        Value::Empty(..) => String::new(),
    }
}

fn number_as_toml(number: Num) -> String {
    match (number.to_i128(), number.to_f64()) {
        (Some(whole), _) => whole.to_string(),
        (None, Some(number)) => toml::Value::Float(number).to_string(),
        (None, None) => String::new(),
    }
}
