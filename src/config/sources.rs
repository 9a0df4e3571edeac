//! The sources of a configuration, one over the other.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::path::Path;

use figment::value::{Dict, Tag, Value};
use figment::{Figment, Profile, Provider};

use super::arguments::Arguments;
use super::environment::Environment;
use super::file;
use super::inherit;
use super::key::Key;
use super::layer::Layer;
use super::origin::Origin;
use super::problem::{Problem, Problems};

/// The file that documents every setting. The built-in values come from it, so that it cannot be
/// wrong.
const REFERENCE: &str = include_str!("../../config/onceward.toml");

/// The store that the reference chooses.
const BUILT_IN_STORE: &str = "embedded";

/// The names of all stores.
const STORES: [&str; 4] = [BUILT_IN_STORE, "memory", "postgres", "redis"];

/// Where the built-in values of the other stores come from.
const OTHER_STORES: [(&str, &str); 2] = [
    ("redis", include_str!("../../config/redis.toml")),
    ("postgres", include_str!("../../config/postgres.toml")),
];

/// All that was written, not yet checked.
#[derive(Debug)]
pub struct Sources {
    /// The sources, the lowest first.
    layers: Vec<Layer>,
    /// The built-in values, those of all stores included.
    built_in: Dict,
    /// Knows the layer of each value in `tree`.
    figment: Figment,
    /// All layers merged, and each route with what it takes from its provider and `[defaults]`.
    tree: Value,
    pub(super) environment: Environment,
    /// The problems that were found while the layers were merged.
    pub(super) problems: Problems,
}

impl Sources {
    /// A file, and the variables of the environment over it.
    ///
    /// # Errors
    ///
    /// The file cannot be read or is not TOML, or variables are not UTF-8. Then that is all that is
    /// reported.
    pub fn from_file(
        path: &Path,
        environment: impl IntoIterator<Item = (OsString, OsString)>,
    ) -> Result<Self, Problems> {
        let file = file::layer("file", path)?;
        let routes = file.table("routes").into_iter().flat_map(Dict::keys).cloned().collect();
        let environment = Environment::new(environment);
        let variables = environment.layer("environment", &routes)?;
        Self::merge(vec![built_in()?, file, variables], environment)
    }

    /// One route named `default`, as these arguments say, and the variables of the environment.
    ///
    /// # Errors
    ///
    /// Variables are not UTF-8, or a preset cannot be read, which a test rules out.
    pub fn from_arguments(
        given: &Arguments<'_>,
        environment: impl IntoIterator<Item = (OsString, OsString)>,
    ) -> Result<Self, Problems> {
        let environment = Environment::new(environment);
        let routes = BTreeSet::from(["default".to_owned()]);
        let variables = environment.layer("environment", &routes)?;
        Self::merge(vec![built_in()?, variables, given.layer()], environment)
    }

    /// Merges the layers, the first of which holds the built-in values.
    fn merge(mut layers: Vec<Layer>, environment: Environment) -> Result<Self, Problems> {
        let built_in = layers.first().map(|layer| layer.settings.clone()).unwrap_or_default();
        // Presets come right above the built-in values: whatever an operator wrote wins.
        let presets = inherit::presets(&layers)?;
        layers.splice(1..1, presets);
        let mut rest = layers.as_mut_slice();
        while let Some((lower, higher)) = rest.split_first_mut() {
            for higher in higher.iter() {
                lower.give_way_to(higher);
            }
            rest = higher;
        }
        let mut problems = Problems::default();
        keep_one_store(&mut layers, &mut problems);
        let figment = layers.iter().fold(Figment::new(), Figment::merge);
        // A layer has been read before, so that figment never fails to get its data.
        let mut merged = figment.data().unwrap_or_default();
        let mut tree = merged.remove(&Profile::Default).unwrap_or_default();
        inherit::apply(&mut tree);
        let tree = Value::Dict(Tag::Default, tree);
        Ok(Self { layers, built_in, figment, tree, environment, problems })
    }

    pub(super) const fn tree(&self) -> &Value {
        &self.tree
    }

    pub(super) fn value(&self, key: &Key) -> Option<&Value> {
        key.parts().iter().try_fold(&self.tree, |value, part| match value {
            Value::Dict(_, dict) => dict.get(part),
            Value::Array(_, items) => items.get(part.parse::<usize>().ok()?),
            Value::String(..)
            | Value::Char(..)
            | Value::Bool(..)
            | Value::Num(..)
            | Value::Empty(..) => None,
        })
    }

    /// The built-in value of a setting. That of a route or of a step stands in `[defaults]`.
    pub(super) fn built_in(&self, key: &Key) -> Option<&Value> {
        let of_route = key.in_route_of_step();
        let key = of_route.as_ref().unwrap_or(key);
        let key = key.in_defaults().unwrap_or_else(|| key.clone());
        let (first, rest) = key.parts().split_first()?;
        rest.iter().try_fold(self.built_in.get(first)?, |value, part| value.as_dict()?.get(part))
    }

    /// The built-in value that stands in for a setting that cannot be read. A provider has some of
    /// the settings of `[defaults]`.
    pub(super) fn stand_in(&self, key: &Key) -> Option<&Value> {
        match key.parts() {
            [providers, _, rest @ ..] if providers == "providers" => {
                self.built_in(&Key::from_parts([&["defaults".to_owned()], rest].concat()))
            }
            _ => self.built_in(key),
        }
    }

    /// Where the value of a setting was written. If the setting has no value, it is the table that
    /// should hold it.
    pub fn origin(&self, key: &Key) -> Origin {
        self.locate(key).0
    }

    /// The origin of a setting, and the name that the setting has there. That of a route may stand
    /// at its provider or in `[defaults]`.
    pub(super) fn locate(&self, key: &Key) -> (Origin, Key) {
        // An item of a list that a variable holds as text has no value of its own in the tree. Its
        // origin is that of the text.
        match key.and_around().find_map(|key| self.value(&key)) {
            Some(value) if value.as_dict().is_none() => self.origin_of(key, value.tag()),
            Some(_) | None => {
                let inherited = self.origin_of_inherited_table(key);
                inherited.unwrap_or_else(|| (self.origin_of_table(key), key.clone()))
            }
        }
    }

    /// The origin of a table that a route or a step has, or takes from elsewhere, as a whole.
    fn origin_of_inherited_table(&self, key: &Key) -> Option<(Origin, Key)> {
        // A setting that is not there was not written anywhere.
        self.value(key)?;
        let provider = self.provider_of(key);
        key.levels(provider).into_iter().flatten().find_map(|key| {
            let origin = self.layers.iter().find_map(|layer| layer.origins.get(&key))?;
            Some((origin.clone(), key))
        })
    }

    fn origin_of(&self, key: &Key, tag: Tag) -> (Origin, Key) {
        let name = self.figment.get_metadata(tag).map(|metadata| metadata.name.as_ref());
        let layer = self.layers.iter().find(|layer| Some(layer.name) == name);
        let provider = self.provider_of(key);
        layer.map_or_else(|| (Origin::BuiltIn, key.clone()), |layer| layer.locate(key, provider))
    }

    /// The provider of the route to which a key belongs.
    fn provider_of(&self, key: &Key) -> Option<&str> {
        let [_, route, _, ..] = key.parts() else {
            return None;
        };
        self.value(&Key::of(&["routes", route]))
            .and_then(Value::as_dict)
            .and_then(inherit::provider_of)
    }

    /// The origin of a table that has no value of its own: the lowest layer that has it or a table
    /// around it, which is most likely the file.
    fn origin_of_table(&self, key: &Key) -> Origin {
        let in_layers =
            |table: Key| self.layers.iter().find_map(|layer| layer.origins.get(&table).cloned());
        let wholes = self.layers.iter().map(|layer| layer.whole.clone());
        let mut origins = key.and_around().filter_map(in_layers).chain(wholes);
        let written = |origin: &Origin| !matches!(origin, Origin::BuiltIn | Origin::Preset(_));
        origins.find(written).unwrap_or(Origin::BuiltIn)
    }
}

/// The built-in values: the reference without its routes, which are examples, and every store.
fn built_in() -> Result<Layer, Problems> {
    let mut layer = file::parse("built-in", Path::new("built-in"), REFERENCE)?;
    for (name, text) in OTHER_STORES {
        let mut example = file::parse("built-in", Path::new("built-in"), text)?;
        let store = example.table_mut("store").and_then(|stores| stores.remove(name));
        if let (Some(stores), Some(store)) = (layer.table_mut("store"), store) {
            stores.insert(name.to_owned(), store);
        }
    }
    layer.settings.remove("routes");
    layer.origins.clear();
    layer.whole = Origin::BuiltIn;
    Ok(layer)
}

/// Keeps the store of the highest layer that names one. Two stores in one layer are a problem.
fn keep_one_store(layers: &mut [Layer], problems: &mut Problems) {
    let mut chosen: Option<String> = None;
    let written = layers.get_mut(1..).unwrap_or_default();
    for layer in written.iter_mut().rev() {
        let names: Vec<String> =
            layer.table("store").into_iter().flat_map(Dict::keys).cloned().collect();
        if let [first, .., last] = names.as_slice() {
            let key = Key::of(&["store", last]);
            let (origin, _) = layer.locate(&key, None);
            // Any other name stands in the value of a variable, perhaps.
            let is_known = STORES.contains(&first.as_str());
            let other = if is_known { format!("`[store.{first}]`") } else { "another".to_owned() };
            problems.push(Problem {
                expected: "one store".to_owned(),
                found: format!("{other} beside it"),
                hint: "keep one of them".to_owned(),
                key: key.shown_for(&origin),
                origin,
            });
        }
        chosen = chosen.or_else(|| names.first().cloned());
    }
    let chosen = chosen.unwrap_or_else(|| BUILT_IN_STORE.to_owned());
    for layer in layers {
        if let Some(stores) = layer.table_mut("store") {
            stores.retain(|name, _| *name == chosen);
        }
    }
}
