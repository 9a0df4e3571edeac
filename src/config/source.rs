//! The sources of a configuration, one over the other: built-in, file, environment, arguments.

use std::collections::BTreeSet;
use std::path::Path;

use figment::value::{Dict, Tag, Value};
use figment::{Figment, Profile, Provider};

use super::environment::Environment;
use super::file;
use super::layer::Layer;
use super::problem::{Key, Place, Problem, Problems};

/// The reference file is where the built-in values come from, so that it cannot be wrong.
const REFERENCE: &str = include_str!("../../config/onceward.toml");

/// What only a route may say.
const OF_A_ROUTE_ALONE: [&str; 3] = ["host", "path", "upstream"];

/// What was written, by whomever, not yet checked.
#[derive(Debug)]
pub struct Sources {
    /// Lowest first.
    layers: Vec<Layer>,
    /// Knows which layer a value of `tree` is of.
    figment: Figment,
    /// All layers merged, and each route with what it takes from `[defaults]`.
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
        Ok(Self::merge(vec![built_in()?, file, variables], environment))
    }

    /// One route named `default` to `upstream`, and the variables of the environment.
    pub fn from_upstream(
        upstream: &str,
        path: &str,
        environment: impl IntoIterator<Item = (String, String)>,
    ) -> Result<Self, Problems> {
        let environment = Environment::new(environment);
        let routes = BTreeSet::from(["default".to_owned()]);
        let variables = environment.layer("environment", &routes);
        let mut arguments = Layer::empty("arguments", Place::BuiltIn);
        for (name, option, text) in [("path", "--path", path), ("upstream", "--upstream", upstream)]
        {
            let key = Key::of(&["routes", "default", name]);
            let value = Value::String(Tag::Default, text.to_owned());
            arguments.set(&key, value, &Place::Argument(option));
        }
        Ok(Self::merge(vec![built_in()?, variables, arguments], environment))
    }

    fn merge(mut layers: Vec<Layer>, environment: Environment) -> Self {
        let mut problems = Problems::default();
        keep_one_store(&mut layers, &mut problems);
        let figment = layers.iter().fold(Figment::new(), Figment::merge);
        // Every layer gives its data without fail; it has been read before.
        let mut merged = figment.data().unwrap_or_default();
        let mut tree = merged.remove(&Profile::Default).unwrap_or_default();
        apply_defaults(&mut tree);
        let tree = Value::Dict(Tag::Default, tree);
        Self { layers, figment, tree, environment, problems }
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

    /// Where a setting's value comes from; of a setting that has none: where it should stand.
    pub fn place(&self, key: &Key) -> Place {
        self.origin(key).0
    }

    /// The same, with the name that the setting has there: a route's may be of `[defaults]`.
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
        layer.map_or_else(|| (Place::BuiltIn, key.clone()), |layer| layer.origin(key))
    }

    /// The lowest layer that has the table, or one around it: most likely the file.
    fn place_of_table(&self, key: &Key) -> Place {
        let in_layers =
            |table: Key| self.layers.iter().find_map(|layer| layer.places.get(&table).cloned());
        let wholes = self.layers.iter().map(|layer| layer.whole.clone());
        let mut places = key.and_around().filter_map(in_layers).chain(wholes);
        places.find(|place| *place != Place::BuiltIn).unwrap_or(Place::BuiltIn)
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
fn keep_one_store(layers: &mut [Layer], problems: &mut Problems) {
    let mut chosen: Option<String> = None;
    for layer in layers.iter_mut().rev() {
        let names: Vec<String> =
            layer.table("store").into_iter().flat_map(Dict::keys).cloned().collect();
        if let [first, .., last] = names.as_slice() {
            let key = Key::of(&["store", last]);
            problems.push(Problem {
                place: layer.origin(&key).0,
                expected: "one store".to_owned(),
                found: format!("`[store.{first}]` beside it"),
                hint: Some("keep one of them".to_owned()),
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
}

/// Gives each route what it does not say itself, setting by setting.
fn apply_defaults(tree: &mut Dict) {
    let mut defaults = tree.get("defaults").and_then(Value::as_dict).cloned().unwrap_or_default();
    defaults.retain(|name, _| !OF_A_ROUTE_ALONE.contains(&name.as_str()));
    if let Some(Value::Dict(_, routes)) = tree.get_mut("routes") {
        for (name, route) in routes {
            if let Value::Dict(_, route) = route {
                fill(route, &defaults);
                fill(route, &source_of_events(name));
            }
        }
    }
}

/// The one built-in value that is not the same for all routes.
fn source_of_events(route: &str) -> Dict {
    let table = |name: &str, value| Dict::from([(name.to_owned(), value)]);
    let source = table("source", Value::String(Tag::Default, route.to_owned()));
    let event = table("event", Value::Dict(Tag::Default, source));
    table("key", Value::Dict(Tag::Default, event))
}

fn fill(own: &mut Dict, lower: &Dict) {
    for (name, value) in lower {
        match (own.get_mut(name), value) {
            (None, value) => {
                own.insert(name.clone(), value.clone());
            }
            (Some(Value::Dict(_, own)), Value::Dict(_, lower)) => fill(own, lower),
            (Some(_), _) => {}
        }
    }
}
