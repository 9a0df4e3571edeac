//! The sources of a configuration, one over the other: presets, built-in, file, environment,
//! arguments.

use std::collections::BTreeSet;
use std::path::Path;

use figment::value::{Dict, Tag, Value};
use figment::{Figment, Profile, Provider};

use super::arguments::Arguments;
use super::environment::Environment;
use super::file;
use super::inherit;
use super::layer::Layer;
use super::problem::{Key, Place, Problem, Problems};

/// The reference file is where the built-in values come from, so that it cannot be wrong.
const REFERENCE: &str = include_str!("../../config/onceward.toml");

/// Stores that the reference does not choose, and where their built-in values come from.
const OTHER_STORES: [(&str, &str); 2] = [
    ("redis", include_str!("../../config/redis.toml")),
    ("postgres", include_str!("../../config/postgres.toml")),
];

/// What was written, by whomever, not yet checked.
#[derive(Debug)]
pub struct Sources {
    /// Lowest first.
    layers: Vec<Layer>,
    /// Knows which layer a value of `tree` is of.
    figment: Figment,
    /// All layers merged, and each route with what it takes from its provider and `[defaults]`.
    tree: Value,
    pub(super) environment: Environment,
    /// What was found while merging.
    pub(super) problems: Problems,
}

impl Sources {
    /// A file, and the variables of the environment over it. Fails if the file cannot be read or
    /// is not TOML; nothing else can be said about it then.
    pub fn from_file(
        path: &Path,
        environment: impl IntoIterator<Item = (String, String)>,
    ) -> Result<Self, Problems> {
        let file = file::layer("file", path)?;
        let routes = file.table("routes").into_iter().flat_map(Dict::keys).cloned().collect();
        let environment = Environment::new(environment);
        let variables = environment.layer("environment", &routes);
        Self::merge(vec![built_in()?, file, variables], environment)
    }

    /// One route named `default`, as these arguments say, and the variables of the environment.
    pub fn from_arguments(
        given: &Arguments<'_>,
        environment: impl IntoIterator<Item = (String, String)>,
    ) -> Result<Self, Problems> {
        let environment = Environment::new(environment);
        let routes = BTreeSet::from(["default".to_owned()]);
        let variables = environment.layer("environment", &routes);
        Self::merge(vec![built_in()?, variables, given.layer()], environment)
    }

    fn merge(mut layers: Vec<Layer>, environment: Environment) -> Result<Self, Problems> {
        // Above the built-in values, with which they have nothing in common.
        let presets = inherit::presets(&layers)?;
        layers.splice(1..1, presets);
        let mut problems = Problems::default();
        let chosen = keep_one_store(&mut layers, &mut problems);
        if let (Some(lowest), Some(chosen)) = (layers.first_mut(), chosen) {
            fill_in_store(lowest, &chosen);
        }
        let figment = layers.iter().fold(Figment::new(), Figment::merge);
        // Every layer gives its data without fail; it has been read before.
        let mut merged = figment.data().unwrap_or_default();
        let mut tree = merged.remove(&Profile::Default).unwrap_or_default();
        inherit::apply(&mut tree);
        let tree = Value::Dict(Tag::Default, tree);
        Ok(Self { layers, figment, tree, environment, problems })
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

    /// What a setting is where nobody says anything. A route's stands in `[defaults]`, and so does
    /// that of a step.
    pub(super) fn built_in(&self, key: &Key) -> Option<&Value> {
        let shared = key.in_defaults();
        let key = key.in_defaults_of_step().or(shared).unwrap_or_else(|| key.clone());
        let (first, rest) = key.parts().split_first()?;
        let settings = &self.layers.first()?.settings;
        rest.iter().try_fold(settings.get(first)?, |value, part| value.as_dict()?.get(part))
    }

    /// Where a setting's value comes from; of a setting that has none: where it should stand.
    pub fn place(&self, key: &Key) -> Place {
        self.origin(key).0
    }

    /// The same, with the name that the setting has there: a route's may be of its provider or of
    /// `[defaults]`.
    pub(super) fn origin(&self, key: &Key) -> (Place, Key) {
        // An item of a list that a variable holds as text is a place inside that text.
        match key.and_around().find_map(|key| self.value(&key)) {
            Some(value) if value.as_dict().is_none() => self.origin_of(key, value.tag()),
            Some(_) | None => (self.place_of_table(key), key.clone()),
        }
    }

    fn origin_of(&self, key: &Key, tag: Tag) -> (Place, Key) {
        let name = self.figment.get_metadata(tag).map(|metadata| metadata.name.as_ref());
        let layer = self.layers.iter().find(|layer| Some(layer.name) == name);
        let provider = self.provider_of(key);
        layer.map_or_else(|| (Place::BuiltIn, key.clone()), |layer| layer.origin(key, provider))
    }

    /// The provider of the route that a key is of.
    fn provider_of(&self, key: &Key) -> Option<&str> {
        let [_, route, _, ..] = key.parts() else {
            return None;
        };
        self.value(&Key::of(&["routes", route]))
            .and_then(Value::as_dict)
            .and_then(inherit::named_by)
    }

    /// The lowest layer that has the table, or one around it: most likely the file.
    fn place_of_table(&self, key: &Key) -> Place {
        let in_layers =
            |table: Key| self.layers.iter().find_map(|layer| layer.places.get(&table).cloned());
        let wholes = self.layers.iter().map(|layer| layer.whole.clone());
        let mut places = key.and_around().filter_map(in_layers).chain(wholes);
        let written = |place: &Place| !matches!(place, Place::BuiltIn | Place::Preset(_));
        places.find(written).unwrap_or(Place::BuiltIn)
    }

    /// Whether a value was written in the environment, where everything is text.
    pub(super) fn is_variable(&self, key: &Key) -> bool {
        matches!(self.place(key), Place::Variable(_))
    }
}

/// The reference without its routes, which are examples.
fn built_in() -> Result<Layer, Problems> {
    let mut layer = file::parse("built-in", Path::new("built-in"), REFERENCE)?;
    layer.settings.remove("routes");
    layer.places.clear();
    layer.whole = Place::BuiltIn;
    Ok(layer)
}

/// The highest layer that names a store wins; a layer that names two is not understood.
fn keep_one_store(layers: &mut [Layer], problems: &mut Problems) -> Option<String> {
    let mut chosen: Option<String> = None;
    for layer in layers.iter_mut().rev() {
        let names: Vec<String> =
            layer.table("store").into_iter().flat_map(Dict::keys).cloned().collect();
        if let [first, .., last] = names.as_slice() {
            let key = Key::of(&["store", last]);
            problems.push(Problem {
                place: layer.origin(&key, None).0,
                expected: "one store".to_owned(),
                found: format!("`[store.{first}]` beside it"),
                hint: "keep one of them".to_owned(),
                key,
            });
        }
        match &chosen {
            None => chosen = names.first().cloned(),
            Some(chosen) => {
                if let Some(stores) = layer.table_mut("store") {
                    stores.retain(|name, _| name == chosen);
                }
            }
        }
    }
    chosen
}

/// Gives the built-in values of a store that the reference does not choose.
fn fill_in_store(built_in: &mut Layer, chosen: &str) {
    let Some((name, text)) = OTHER_STORES.iter().find(|(name, _)| *name == chosen) else { return };
    // A test proves that they parse.
    let example = file::parse("built-in", Path::new("built-in"), text);
    let table = example.ok().and_then(|mut example| example.table_mut("store")?.remove(*name));
    if let (Some(stores), Some(table)) = (built_in.table_mut("store"), table) {
        stores.insert((*name).to_owned(), table);
    }
}
