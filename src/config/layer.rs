//! One source of settings: its values, and where each of them was written.

use std::collections::BTreeMap;

use figment::value::{Dict, Map, Tag, Value};
use figment::{Metadata, Profile, Provider};

use super::key::Key;
use super::origin::Origin;

/// One source of settings.
#[derive(Debug)]
pub(super) struct Layer {
    /// Tells the layers apart. figment marks each value with it.
    pub(super) name: &'static str,
    pub(super) settings: Dict,
    /// Where each key was written, tables and list items included.
    pub(super) origins: BTreeMap<Key, Origin>,
    /// Where the layer as a whole comes from.
    pub(super) whole: Origin,
}

impl Layer {
    pub(super) const fn empty(name: &'static str, whole: Origin) -> Self {
        Self { name, settings: Dict::new(), origins: BTreeMap::new(), whole }
    }

    /// Where this layer has the setting `key`, and under which name.
    ///
    /// A setting of a step may stand at the step or at its route, and a setting of a route at the
    /// route, at its provider, or in `[defaults]`. If only a table around the setting is known, the
    /// origin is that of the table.
    pub(super) fn locate(&self, key: &Key, provider: Option<&str>) -> (Origin, Key) {
        let of_provider = |key: &Key| key.in_provider(provider?);
        let own = |key: &Key| Some(key.clone());
        let levels: [Level<'_>; 6] = [
            &own,
            &Key::in_route_of_step,
            &of_provider,
            &Key::in_defaults,
            &|key| of_provider(&key.in_route_of_step()?),
            &|key| key.in_route_of_step()?.in_defaults(),
        ];
        for table in key.and_around() {
            for level in levels {
                let origin = level(&table).and_then(|table| self.origins.get(&table));
                if let (Some(origin), Some(key)) = (origin, level(key)) {
                    return (origin.clone(), key);
                }
            }
        }
        (self.whole.clone(), key.clone())
    }

    /// Sets a value, and notes its origin.
    pub(super) fn set(&mut self, key: &Key, value: Value, origin: &Origin) {
        for table in key.and_around() {
            // Several variables may fill one table. The first one stands for it.
            self.origins.entry(table).or_insert_with(|| origin.clone());
        }
        if let Some((last, tables)) = key.parts().split_last() {
            let mut dict = &mut self.settings;
            for table in tables {
                let inner = dict.entry(table.clone()).or_insert_with(empty_table);
                // Of the variables `ONCEWARD_A__B` and `ONCEWARD_A__B__C` the second one says more.
                if inner.as_dict().is_none() {
                    *inner = empty_table();
                }
                let Value::Dict(_, inner) = inner else { return };
                dict = inner;
            }
            dict.insert(last.clone(), value);
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

/// The name that a setting has at another level, such as `[defaults]`.
type Level<'a> = &'a dyn Fn(&Key) -> Option<Key>;

/// A value of no layer yet; figment marks it when the layer is merged.
const UNMARKED: Tag = Tag::Default;

pub(super) fn empty_table() -> Value {
    Value::Dict(UNMARKED, Dict::new())
}
