//! Every setting with the value that counts, and where it comes from.

use std::collections::BTreeMap;

use figment::value::Value;

use super::check;
use super::file::as_toml;
use super::key::Key;
use super::origin::Origin;
use super::sources::Sources;

/// A setting, its value, and where the value was written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Effective {
    /// The setting.
    pub key: Key,
    /// The value as TOML writes it; `***` for a secret.
    pub value: String,
    /// Where the value was written.
    pub origin: Origin,
}

/// All settings, by the names of their keys.
pub(super) fn of(sources: &Sources) -> Vec<Effective> {
    let mut collector = Collector { sources, typed: check::typed(sources), settings: Vec::new() };
    collector.collect(&Key::default(), sources.tree());
    let mut settings = collector.settings;
    // What a route takes from a preset is listed at the route.
    let is_of_preset = |it: &Effective| {
        let is_provider = it.key.parts().first().is_some_and(|table| table == "providers");
        is_provider && matches!(it.origin, Origin::Preset(_))
    };
    settings.retain(|it| !is_of_preset(it));
    settings
}

struct Collector<'s> {
    sources: &'s Sources,
    typed: BTreeMap<Key, Value>,
    settings: Vec<Effective>,
}

impl Collector<'_> {
    fn collect(&mut self, key: &Key, written: &Value) {
        let typed = self.typed.get(key).cloned();
        match typed.as_ref().unwrap_or(written) {
            Value::Dict(_, table) if !table.is_empty() => {
                for (name, value) in table {
                    self.collect(&key.join(name.as_str()), value);
                }
            }
            // Steps are settings of their own. A list of secrets is shown as one secret.
            Value::Array(_, items)
                if !key.is_secret() && items.iter().any(|item| item.as_dict().is_some()) =>
            {
                for (index, item) in items.iter().enumerate() {
                    self.collect(&key.join(index.to_string()), item);
                }
            }
            value @ (Value::Dict(..)
            | Value::String(..)
            | Value::Char(..)
            | Value::Bool(..)
            | Value::Num(..)
            | Value::Empty(..)
            | Value::Array(..)) => {
                let text = if key.is_secret() { "***".to_owned() } else { as_toml(value) };
                let origin = self.sources.origin(key);
                self.settings.push(Effective { key: key.clone(), value: text, origin });
            }
        }
    }
}
