//! One source of settings: what it says, and where it says it.

use std::collections::BTreeMap;

use figment::value::{Dict, Map, Tag, Value};
use figment::{Metadata, Profile, Provider};

use super::problem::{Key, Place};

/// One source of settings.
#[derive(Debug)]
pub(super) struct Layer {
    /// Tells the layers apart.
    pub(super) name: &'static str,
    pub(super) settings: Dict,
    /// Where each key was written, tables and list items included.
    pub(super) places: BTreeMap<Key, Place>,
    /// Where that is said which is about no single key.
    pub(super) whole: Place,
}

impl Layer {
    pub(super) const fn empty(name: &'static str, whole: Place) -> Self {
        Self { name, settings: Dict::new(), places: BTreeMap::new(), whole }
    }

    /// Where this layer says `key`, and under which name: there, for the route's provider, for all
    /// routes, or in a table around it.
    pub(super) fn origin(&self, key: &Key, provider: Option<&str>) -> (Place, Key) {
        for table in key.and_around() {
            if let Some(place) = self.places.get(&table) {
                return (place.clone(), key.clone());
            }
            let of_provider = |key: &Key| key.in_provider(provider?);
            for shared in [&of_provider as &dyn Fn(&Key) -> Option<Key>, &Key::in_defaults] {
                let place = shared(&table).and_then(|table| self.places.get(&table));
                if let (Some(place), Some(key)) = (place, shared(key)) {
                    return (place.clone(), key);
                }
            }
        }
        (self.whole.clone(), key.clone())
    }

    /// Says `key`, and notes where.
    pub(super) fn set(&mut self, key: &Key, value: Value, place: &Place) {
        for table in key.and_around() {
            self.places.entry(table).or_insert_with(|| place.clone());
        }
        if let Some((last, tables)) = key.parts().split_last() {
            let mut dict = &mut self.settings;
            for table in tables {
                let inner = dict.entry(table.clone()).or_insert_with(empty_table);
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

/// A value of no layer yet; figment marks it when the layer is merged.
const UNMARKED: Tag = Tag::Default;

pub(super) fn empty_table() -> Value {
    Value::Dict(UNMARKED, Dict::new())
}
