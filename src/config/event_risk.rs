//! What a route does with requests of which nobody can say whether they are events, or which.

use super::problem::Key;
use super::risk::Risk;
use crate::provider::Provider;
use crate::proxy::{FingerprintOver, Mode, RouteSettings};

/// Nobody knows of this sender whether one id of it is one event.
pub(super) fn untyped(at: &Key, route: &RouteSettings) -> Option<Risk> {
    let compared = route.fingerprint.over == FingerprintOver::Auto { untyped_events: true };
    (compared && route.key.event.kind.optional && route.mode != Mode::Pass).then(|| Risk {
        code: "event-without-type",
        key: at.join("key").join("event"),
        text: "of two events with one id and no type, the second one is refused with 422"
            .to_owned(),
        hint: "`key.event.type`, without `?`, names where their type is; a provider knows it"
            .into(),
    })
}

/// They ask for nothing to be done, as far as HTTP is concerned.
pub(super) fn probes(at: &Key, route: &RouteSettings, sender: &Provider) -> Option<Risk> {
    let passing = route.passing_methods();
    let verifies = sender.signature.is_some() && !route.secrets.is_empty();
    (verifies && !passing.is_empty() && route.mode != Mode::Pass).then(|| Risk {
        code: "methods-unverified",
        key: at.join("methods"),
        text: format!("without content, {} are forwarded unverified", passing.join(", ")),
        hint: "a method that `methods` names is verified and deduplicated".into(),
    })
}
