//! What a route takes that it does not say itself: its provider's settings, then the defaults.

use std::collections::BTreeSet;

use figment::value::{Dict, Tag, Value};

use super::file;
use super::layer::Layer;
use super::problem::{Key, Place, Problems};
use super::raw_provider::RawProvider;
use super::read;
use super::steps;
use crate::provider;

/// What only a route may say.
pub(super) const OF_A_ROUTE_ALONE: [&str; 8] =
    ["host", "path", "upstream", "steps", "answer_from", "provider", "secrets", "verify"];

/// The presets that these layers name, each a layer of its own below them. An operator's own
/// provider of the same name changes the preset, setting by setting.
pub(super) fn presets(layers: &[Layer]) -> Result<Vec<Layer>, Problems> {
    let mut names = BTreeSet::new();
    for layer in layers {
        names.extend(layer.table("providers").into_iter().flat_map(Dict::keys).cloned());
        let routes = layer.table("routes").into_iter().flat_map(Dict::values);
        names.extend(routes.filter_map(|route| named_by(route.as_dict()?)).map(str::to_owned));
    }
    names.iter().filter_map(|name| provider::preset(name)).map(preset).collect()
}

/// A preset as a layer: as if it stood under `[providers.NAME]`.
fn preset(preset: &provider::Preset) -> Result<Layer, Problems> {
    let mut layer = file::parse(preset.name, preset.name.as_ref(), preset.toml)?;
    let settings = std::mem::take(&mut layer.settings);
    layer.places.clear();
    layer.whole = Place::Preset(preset.name);
    let place = layer.whole.clone();
    let settings = Value::Dict(Tag::Default, settings);
    layer.set(&Key::of(&["providers", preset.name]), settings, &place);
    layer.places.clear();
    Ok(layer)
}

/// Gives each route what it does not say itself, setting by setting.
pub(super) fn apply(tree: &mut Dict) {
    let table = |name: &str| tree.get(name).and_then(Value::as_dict).cloned().unwrap_or_default();
    let (mut defaults, providers) = (table("defaults"), table("providers"));
    defaults.retain(|name, _| !OF_A_ROUTE_ALONE.contains(&name.as_str()));
    if let Some(Value::Dict(_, routes)) = tree.get_mut("routes") {
        for (name, route) in routes {
            if let Value::Dict(_, route) = route {
                if let Some(settings) = of_provider(route, &providers) {
                    add_scope(route, &settings);
                    fill(route, &settings);
                }
                fill(route, &defaults);
                fill(route, &source_of_events(name));
                steps::inherit(route);
            }
        }
    }
}

/// The provider that a route names.
pub(super) fn named_by(route: &Dict) -> Option<&str> {
    route.get("provider").and_then(Value::as_str)
}

fn of_provider(route: &Dict, providers: &Dict) -> Option<Dict> {
    let mut settings = providers.get(named_by(route)?)?.as_dict()?.clone();
    let is_setting = |name: &str| {
        !RawProvider::OF_THE_SENDER.contains(&name) && !OF_A_ROUTE_ALONE.contains(&name)
    };
    settings.retain(|name, _| is_setting(name));
    Some(settings)
}

/// The one list that a route adds to its provider's instead of replacing it: without those parts
/// two of the sender's events would be one. Equal ones stand once.
fn add_scope(route: &mut Dict, provider: &Dict) {
    let scope = |settings: &Dict| settings.get("key")?.as_dict()?.get("scope").cloned();
    let (Some(own), Some(Value::Array(_, mut all))) = (scope(route), scope(provider)) else {
        return;
    };
    let own = read::list(&own).unwrap_or(own);
    let Value::Array(tag, own) = own else { return };
    let added = own.into_iter().filter(|own| all.iter().all(|it| it.as_str() != own.as_str()));
    let added: Vec<Value> = added.collect();
    all.extend(added);
    if let Some(Value::Dict(_, key)) = route.get_mut("key") {
        key.insert("scope".to_owned(), Value::Array(tag, all));
    }
}

/// The one built-in value that is not the same for all routes.
fn source_of_events(route: &str) -> Dict {
    let table = |name: &str, value| Dict::from([(name.to_owned(), value)]);
    let source = table("source", Value::String(Tag::Default, route.to_owned()));
    let event = table("event", Value::Dict(Tag::Default, source));
    table("key", Value::Dict(Tag::Default, event))
}

pub(super) fn fill(own: &mut Dict, lower: &Dict) {
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
