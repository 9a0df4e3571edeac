//! What a route takes from its provider and from `[defaults]`, and a step from its route.

use std::collections::BTreeSet;

use figment::value::{Dict, Tag, Value};

use super::environment;
use super::file;
use super::key::Key;
use super::layer::Layer;
use super::origin::Origin;
use super::problem::Problems;
use crate::provider;

/// The settings that only a route can have.
pub(super) const OF_A_ROUTE_ALONE: [&str; 8] =
    ["host", "path", "upstream", "steps", "answer_from", "provider", "secrets", "verify"];

/// The settings that a provider can have for its routes.
pub(super) const OF_A_PROVIDER: [&str; 19] = [
    "methods",
    "tolerance",
    "retention",
    "attempt_timeout",
    "answer_within",
    "when_in_flight",
    "waiters_max",
    "in_flight_status",
    "when_uncertain",
    "uncertain_status",
    "retry_status",
    "refusal_body",
    "attempts_max",
    "when_key_missing",
    "request_bytes_max",
    "replay",
    "key",
    "fingerprint",
    "outcome",
];

/// The settings that a step takes from its route. `receiver` reads them.
const OF_A_STEP: [&str; 10] = [
    "attempt_timeout",
    "connect_timeout",
    "keepalive",
    "keepalive_max",
    "preserve_host",
    "forward_key",
    "when_uncertain",
    "attempts_max",
    "outcome",
    "lookup",
];

/// The presets that these layers name, each as a layer of its own.
///
/// They come below the layers. So an operator's provider with the name of a preset changes the
/// preset, setting by setting.
pub(super) fn presets(layers: &[Layer]) -> Result<Vec<Layer>, Problems> {
    let mut names = BTreeSet::new();
    for layer in layers {
        names.extend(layer.table("providers").into_iter().flat_map(Dict::keys).cloned());
        let routes = layer.table("routes").into_iter().flat_map(Dict::values);
        names.extend(routes.filter_map(|route| provider_of(route.as_dict()?)).map(str::to_owned));
    }
    names.iter().filter_map(|name| provider::preset(name)).map(preset).collect()
}

/// A preset as a layer, as if its text stood under `[providers.NAME]`.
fn preset(preset: &provider::Preset) -> Result<Layer, Problems> {
    let mut parsed = file::parse(preset.name, preset.name.as_ref(), preset.toml)?;
    let settings = Value::Dict(Tag::Default, std::mem::take(&mut parsed.settings));
    let mut layer = Layer::empty(preset.name, Origin::Preset(preset.name));
    layer.set(&Key::of(&["providers", preset.name]), settings, &Origin::Preset(preset.name));
    // The lines of a preset mean nothing to an operator, only its name does.
    layer.origins.clear();
    Ok(layer)
}

/// Gives each route and each step what it does not say itself, setting by setting.
pub(super) fn apply(tree: &mut Dict) {
    let table = |name: &str| tree.get(name).and_then(Value::as_dict).cloned().unwrap_or_default();
    let providers = table("providers");
    let mut defaults = table("defaults");
    // `[defaults]` may not have these. They are reported there, and once is enough.
    defaults.retain(|name, _| !OF_A_ROUTE_ALONE.contains(&name.as_str()));
    if let Some(Value::Dict(_, routes)) = tree.get_mut("routes") {
        for (name, route) in routes {
            if let Value::Dict(_, route) = route {
                if let Some(settings) = settings_of_provider(route, &providers) {
                    // Before `fill`, which would take the list of the route for the whole scope.
                    add_scope(route, &settings);
                    fill(route, &settings);
                }
                fill(route, &defaults);
                fill(route, &event_source(name));
                // Last, since a step also takes what its route takes from elsewhere.
                fill_steps(route);
            }
        }
    }
}

/// The name of the provider that a route names.
pub(super) fn provider_of(route: &Dict) -> Option<&str> {
    route.get("provider").and_then(Value::as_str)
}

fn settings_of_provider(route: &Dict, providers: &Dict) -> Option<Dict> {
    let mut settings = providers.get(provider_of(route)?)?.as_dict()?.clone();
    settings.retain(|name, _| OF_A_PROVIDER.contains(&name.as_str()));
    Some(settings)
}

/// Puts the scope of the provider before that of the route. It is the one list that a route adds to
/// instead of replacing it: without the provider's parts, two of the sender's events would be one.
/// Equal parts stand once.
fn add_scope(route: &mut Dict, provider: &Dict) {
    let scope = |settings: &Dict| settings.get("key")?.as_dict()?.get("scope").cloned();
    let (Some(own), Some(Value::Array(_, mut all))) = (scope(route), scope(provider)) else {
        return;
    };
    // In a variable the list is still a text.
    let own = environment::list(&own).unwrap_or(own);
    let Value::Array(tag, own) = own else { return };
    let added = own.into_iter().filter(|own| all.iter().all(|it| it.as_str() != own.as_str()));
    let added: Vec<Value> = added.collect();
    all.extend(added);
    if let Some(Value::Dict(_, key)) = route.get_mut("key") {
        key.insert("scope".to_owned(), Value::Array(tag, all));
    }
}

/// `key.event.source`, the one built-in value that differs from route to route.
fn event_source(route: &str) -> Dict {
    let table = |name: &str, value| Dict::from([(name.to_owned(), value)]);
    let source = table("source", Value::String(Tag::Default, route.to_owned()));
    let event = table("event", Value::Dict(Tag::Default, source));
    table("key", Value::Dict(Tag::Default, event))
}

fn fill_steps(route: &mut Dict) {
    let shared: Dict = OF_A_STEP
        .iter()
        .filter_map(|name| Some(((*name).to_owned(), route.get(*name)?.clone())))
        .collect();
    if let Some(Value::Array(_, steps)) = route.get_mut("steps") {
        for step in steps {
            if let Value::Dict(_, step) = step {
                fill(step, &shared);
            }
        }
    }
}

/// Adds what the table does not have, setting by setting.
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
