//! One source of settings: its values, and where each of them was written.

use std::collections::BTreeMap;

use figment::value::{Dict, Map, Tag, Value};
use figment::{Metadata, Profile, Provider};

use super::key::Key;
use super::origin::Origin;

/// Where each key was written.
type Origins = BTreeMap<Key, Origin>;

/// One source of settings.
#[derive(Debug)]
pub(super) struct Layer {
    /// Tells the layers apart. figment marks each value with it.
    pub(super) name: &'static str,
    pub(super) settings: Dict,
    /// Where each key was written, tables and list items included.
    pub(super) origins: Origins,
    /// Where the layer as a whole comes from.
    pub(super) whole: Origin,
}

impl Layer {
    pub(super) const fn empty(name: &'static str, whole: Origin) -> Self {
        Self { name, settings: Dict::new(), origins: BTreeMap::new(), whole }
    }

    /// Where this layer has the setting `key`, and under which name. If only a table around the
    /// setting is known, the origin is that of the table.
    pub(super) fn locate(&self, key: &Key, provider: Option<&str>) -> (Origin, Key) {
        let named = key.levels(provider);
        for table in key.and_around() {
            for (table, named) in table.levels(provider).iter().zip(&named) {
                let origin = table.as_ref().and_then(|table| self.origins.get(table));
                if let (Some(origin), Some(named)) = (origin, named) {
                    return (origin.clone(), named.clone());
                }
            }
        }
        (self.whole.clone(), key.clone())
    }

    /// Sets a value, and notes its origin.
    pub(super) fn set(&mut self, key: &Key, value: Value, origin: &Origin) {
        let Some((last, tables)) = key.parts().split_last() else { return };
        let mut dict = &mut self.settings;
        let mut at = Key::default();
        for table in tables {
            at = at.join(table.as_str());
            let inner = dict.entry(table.clone()).or_insert_with(empty_table);
            // Of the variables `ONCEWARD_A__B` and `ONCEWARD_A__B__C` the second one says more.
            if inner.as_dict().is_none() {
                *inner = empty_table();
                forget(&mut self.origins, &at);
            }
            // Several variables may fill one table. The first one stands for it.
            self.origins.entry(at.clone()).or_insert_with(|| origin.clone());
            let Value::Dict(_, inner) = inner else { return };
            dict = inner;
        }
        forget(&mut self.origins, key);
        note(&mut self.origins, key, &value, origin);
        dict.insert(last.clone(), value);
    }

    /// Forgets where those settings were written that a higher layer replaces. A mistake in the
    /// higher layer would otherwise be said to stand here.
    pub(super) fn give_way_to(&mut self, higher: &Self) {
        let mut replaced = Vec::new();
        find_replaced(&Key::default(), &self.settings, &higher.settings, &mut replaced);
        for key in replaced {
            forget(&mut self.origins, &key);
        }
    }

    /// The table under a key of the uppermost level.
    pub(super) fn table(&self, name: &str) -> Option<&Dict> {
        self.settings.get(name)?.as_dict()
    }

    pub(super) fn table_mut(&mut self, name: &str) -> Option<&mut Dict> {
        match self.settings.get_mut(name) {
            Some(Value::Dict(_, dict)) => Some(dict),
            Some(_) | None => None,
        }
    }
}

impl Provider for Layer {
    fn metadata(&self) -> Metadata {
        Metadata::named(self.name)
    }

    fn data(&self) -> Result<Map<Profile, Dict>, figment::Error> {
        Ok(Profile::Default.collect(self.settings.clone()))
    }
}

/// Notes the origin of a value and of everything in it.
fn note(origins: &mut Origins, key: &Key, value: &Value, origin: &Origin) {
    origins.insert(key.clone(), origin.clone());
    match value {
        Value::Dict(_, table) => {
            for (name, value) in table {
                note(origins, &key.join(name.as_str()), value, origin);
            }
        }
        Value::Array(_, items) => {
            for (index, item) in items.iter().enumerate() {
                note(origins, &key.join(index.to_string()), item, origin);
            }
        }
        Value::String(..)
        | Value::Char(..)
        | Value::Bool(..)
        | Value::Num(..)
        | Value::Empty(..) => {}
    }
}

/// Forgets the origin of a value and of everything in it.
fn forget(origins: &mut Origins, key: &Key) {
    origins.retain(|known, _| !known.is_in(key));
}

/// Finds what a higher table replaces in a lower one. Two tables are merged, and any other value
/// is replaced.
fn find_replaced(at: &Key, lower: &Dict, higher: &Dict, replaced: &mut Vec<Key>) {
    for (name, value) in higher {
        let key = at.join(name.as_str());
        match (lower.get(name), value) {
            (Some(Value::Dict(_, lower)), Value::Dict(_, higher)) => {
                find_replaced(&key, lower, higher, replaced);
            }
            (Some(_), _) => replaced.push(key),
            (None, _) => {}
        }
    }
}

/// A value of no layer yet; figment marks it when the layer is merged.
const UNMARKED: Tag = Tag::Default;

pub(super) fn empty_table() -> Value {
    Value::Dict(UNMARKED, Dict::new())
}
