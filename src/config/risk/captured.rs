//! What an attacker can do with one captured request, and for how long.
//!
//! A signature proves that the sender made the request once. It does not prove that the request
//! comes for the first time. Two things keep a captured request from running again: the record of
//! its operation and the tolerance of its timestamp. Both end.

use std::time::Duration;

use crate::config::quantity::short;
use crate::idempotency::Remember;
use crate::provider::signature::{Binding, Settings};
use crate::proxy::{Place, RouteSettings, Selector};

/// Says what an attacker who has captured one request of a route's sender can do with it, if
/// anything. It is one sentence without a full stop.
pub fn captured(route: &RouteSettings) -> Option<String> {
    let settings = route.provider.as_deref()?.signature.as_ref()?;
    let tolerance = settings.has_timestamp().then(|| route.tolerance.or(settings.tolerance()));
    let tolerance = tolerance.flatten();
    let until = tolerance.map_or_else(
        || "for as long as the secret is valid".to_owned(),
        |tolerance| format!("for {} from its signature on", short(tolerance)),
    );
    match settings.binding() {
        // Every request carries the secret itself, so that nothing else matters.
        Binding::Bearer => {
            return Some(
                "the secret itself is sent along: who has seen one request can make any other, for \
                 as long as the secret is valid"
                    .to_owned(),
            );
        }
        Binding::Loose => {
            return Some(format!(
                "the signature does not bind the event: who has captured one request can make any \
                 event pass, {until}"
            ));
        }
        Binding::Event => {}
    }
    let unsigned = unsigned(route, settings);
    if !unsigned.is_empty() {
        return Some(format!(
            "nothing signs {}: who has captured one request can have it run again under another \
             value, {until}",
            listed(&unsigned)
        ));
    }
    // Everything is signed. What is left is a copy that comes after its operation was forgotten.
    let remembered = match route.policy.remember {
        Remember::Retention => route.policy.durations.retention,
        Remember::InFlight => Duration::ZERO,
    };
    tolerance.is_none_or(|tolerance| tolerance > remembered).then(|| {
        format!(
            "who has captured one request can have it run again once it is forgotten, after {}, \
             {until}",
            short(remembered)
        )
    })
}

fn listed(parts: &[String]) -> String {
    match parts {
        [first @ .., last] if !first.is_empty() => format!("{} and {last}", first.join(", ")),
        parts => parts.join(", "),
    }
}

/// The selectors of the identity that no signature covers.
fn unsigned(route: &RouteSettings, settings: &Settings) -> Vec<String> {
    let key = &route.key;
    let by_header = key.headers.iter().filter(|name| !settings.covers_header(name));
    let mut unsigned: Vec<String> = by_header.map(|name| format!("`header:{name}`")).collect();
    let is_open = |place: &Place| match place {
        Place::Header(name) => !settings.covers_header(name),
        Place::Signature(name) => !settings.covers(name),
        Place::Query(_) => !settings.covers_query(),
        Place::Json(_) | Place::Form(_) | Place::Body => false,
    };
    let is_unsigned = |selector: &&Selector| selector.places.iter().any(is_open);
    let event = [&key.event.id, &key.event.kind].into_iter().chain(&key.scope);
    for selector in event.filter(is_unsigned) {
        let part = format!("`{}`", selector.to_string().trim_end_matches('?'));
        if !unsigned.contains(&part) {
            unsigned.push(part);
        }
    }
    unsigned
}
