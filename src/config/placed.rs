//! Risks with the places that they come from. What is said once, for all routes, is told once.

use super::problem::{Key, Place};
use super::risk::Risk;
use super::source::Sources;

impl Sources {
    /// Each risk at the place of its setting. Those that several routes have from one place, such as
    /// a line of `[defaults]`, are one.
    pub fn placed(&self, risks: Vec<Risk>) -> Vec<(Place, Risk)> {
        let mut placed: Vec<(Place, Risk)> = Vec::new();
        for risk in risks {
            let (place, key) = self.origin(&risk.key);
            let shared = match place {
                Place::File(_) | Place::Line(..) | Place::Variable(_) | Place::Argument(_) => {
                    (key != risk.key).then_some(key)
                }
                Place::BuiltIn => risk.key.in_defaults(),
                Place::Preset(_) => None,
            };
            let same = |(at, other): &&mut (Place, Risk)| {
                let from_there = shared.as_ref().is_some_and(|shared| is_at(&other.key, shared));
                *at == place && other.code == risk.code && from_there
            };
            match (placed.iter_mut().find(same), shared) {
                (Some((_, known)), Some(shared)) => {
                    known.key = shared;
                    add(&mut known.text, &risk.text);
                    add(known.hint.to_mut(), &risk.hint);
                }
                // What is built in is a route's own matter while it is that of one route.
                (None, Some(shared)) if place != Place::BuiltIn => {
                    placed.push((place, Risk { key: shared, ..risk }));
                }
                (Some(_), None) | (None, Some(_) | None) => placed.push((place, risk)),
            }
        }
        placed
    }
}

/// Whether this is the setting that all share, or a route's that it has from there.
fn is_at(key: &Key, shared: &Key) -> bool {
    key == shared || key.in_defaults().as_ref() == Some(shared)
}

/// Routes of two senders may each have its own words for it.
fn add(said: &mut String, more: &str) {
    if !said.contains(more) {
        said.push_str("; ");
        said.push_str(more);
    }
}
