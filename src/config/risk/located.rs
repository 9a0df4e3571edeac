//! Findings with the origins of their settings.

use super::finding::Finding;
use crate::config::key::Key;
use crate::config::origin::Origin;
use crate::config::sources::Sources;

impl Sources {
    /// Each finding with the origin of its setting.
    ///
    /// Several routes may have one setting from one place, such as a line of `[defaults]`. That is
    /// one thing to decide, so their findings become one, about the shared setting.
    pub fn located(&self, findings: Vec<Finding>) -> Vec<(Origin, Finding)> {
        let mut located: Vec<(Origin, Finding)> = Vec::new();
        for finding in findings {
            let (origin, key) = self.locate(&finding.key);
            // Where the setting stands if several routes take it from there.
            let shared = match origin {
                Origin::File(_) | Origin::Line(..) | Origin::Variable(_) | Origin::Argument(_) => {
                    (key != finding.key).then_some(key)
                }
                Origin::BuiltIn => finding.key.in_defaults(),
                Origin::Preset(_) => None,
            };
            let same = |(known_origin, known): &&mut (Origin, Finding)| {
                let is_shared = shared.as_ref().is_some_and(|it| is_shared(&known.key, it));
                *known_origin == origin && known.code == finding.code && is_shared
            };
            match (located.iter_mut().find(same), shared) {
                (Some((_, known)), Some(shared)) => {
                    known.key = shared;
                    append(&mut known.text, &finding.text);
                    append(known.hint.to_mut(), &finding.hint);
                }
                // A built-in value stays the matter of its route until a second route has it too.
                (None, Some(shared)) if origin != Origin::BuiltIn => {
                    located.push((origin, Finding { key: shared, ..finding }));
                }
                (Some(_), None) | (None, Some(_) | None) => located.push((origin, finding)),
            }
        }
        located
    }
}

/// Whether `key` is the shared setting itself, or that of a route that takes it from there.
fn is_shared(key: &Key, shared: &Key) -> bool {
    key == shared || key.in_defaults().as_ref() == Some(shared)
}

/// Adds a text that is not there yet: routes of two senders may differ in their words.
fn append(text: &mut String, more: &str) {
    if !text.contains(more) {
        text.push_str("; ");
        text.push_str(more);
    }
}
