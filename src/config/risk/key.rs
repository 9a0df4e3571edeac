//! Advice about what an event is recognised by, and about events that have nothing of the kind.

use super::finding::{ExaminedRoute, Finding};
use crate::idempotency::IfInFlight;
use crate::proxy::{FingerprintOver, Place, WhenKeyMissing};

pub(super) fn forwards_without_key(examined: &ExaminedRoute<'_>) -> Option<Finding> {
    match examined.route.when_key_missing {
        WhenKeyMissing::Refuse | WhenKeyMissing::HashBody => None,
        // Some senders give their events no id, and their presets say `forward` for that reason.
        // `events-without-key` is the note about them.
        WhenKeyMissing::Forward if examined.sender.is_some() => None,
        WhenKeyMissing::Forward => Some(examined.finding(
            "forwards-without-key",
            "when_key_missing",
            "without a key every copy is forwarded",
            "`\"refuse\"`, or `\"hash-body\"` where copies are equal to the byte",
        )),
    }
}

/// Nobody knows of a sender without a preset whether one id stands for one event. Two events of an
/// order, `created` and `paid`, may both have the id of the order.
pub(super) fn event_without_type(examined: &ExaminedRoute<'_>) -> Option<Finding> {
    let route = examined.route;
    let compared = route.fingerprint.over == FingerprintOver::Auto { untyped_events: true };
    // With a type that must be there, an event without one is refused as it comes.
    (compared && route.key.event.kind.optional).then(|| {
        examined.finding(
            "event-without-type",
            "key.event",
            "of two events with one id and no type, the second one is refused with 422",
            "`key.event.type`, without `?`, names where their type is; a provider knows it",
        )
    })
}

/// A selector `signature:NAME` with a name that the sender's signature does not carry finds nothing
/// in any request.
pub(super) fn key_never_found(examined: &ExaminedRoute<'_>) -> Option<Finding> {
    let sender = examined.sender?;
    let key = &examined.route.key;
    let mut selectors = [&key.event.id, &key.event.kind].into_iter().chain(&key.scope);
    let is_unknown = |place: &Place| match place {
        Place::Signature(name) => {
            !sender.signature.as_ref().is_some_and(|signature| signature.carries(name))
        }
        Place::Header(_) | Place::Json(_) | Place::Form(_) | Place::Query(_) | Place::Body => false,
    };
    let unknown = selectors.find(|selector| selector.places.iter().any(is_unknown))?;
    Some(examined.finding(
        "key-never-found",
        "key",
        format!("no signature of {} has what `{unknown}` names", sender.title),
        "name it in `carries` of its `[signature]`",
    ))
}

/// Some headers and members look like the id of an event and name something else: an order, or a
/// single delivery. The facts of the sender list them.
pub(super) fn key_not_the_event(examined: &ExaminedRoute<'_>) -> Option<Finding> {
    let facts = &examined.sender?.facts;
    let key = &examined.route.key;
    let headers = key.headers.iter().map(|name| ("key.header", format!("header:{name}")));
    let id = ("key.event", key.event.id.to_string());
    // In a request, too, a key header counts before the event.
    let mut named = headers.chain([id]).filter(|_| examined.is_remembered());
    named.find_map(|(setting, selector)| {
        let what = facts.not_the_event.get(selector.trim_end_matches('?'))?;
        Some(examined.finding(
            "key-not-the-event",
            setting,
            format!("`{selector}` is {what}: what has the same is taken for a copy"),
            "name what is the event's own, or leave the key to the preset",
        ))
    })
}

/// Where nothing is remembered, two different events may look the same. One that waits for the
/// attempt of the other is lost: the upstream may have looked before the second event happened.
pub(super) fn events_shared(examined: &ExaminedRoute<'_>) -> Option<Finding> {
    examined.sender?;
    let waits = examined.route.policy.if_in_flight != IfInFlight::Refuse;
    (waits && !examined.is_remembered()).then(|| {
        examined.finding(
            "events-shared",
            "when_in_flight",
            "an event that comes during the attempt for another one that looks the same is \
             answered with the outcome of that attempt, and lost",
            "`when_in_flight = \"refuse\"` lets the sender send it again",
        )
    })
}

pub(super) fn nothing_remembered(examined: &ExaminedRoute<'_>) -> Option<Finding> {
    let sender = examined.sender?;
    (!examined.is_remembered()).then(|| {
        examined.finding(
            "nothing-remembered",
            "replay.remember",
            format!(
                "two events of {} may look the same: nothing is replayed, a later one is forwarded",
                sender.title
            ),
            "the application has to know an event that it has had",
        )
    })
}

pub(super) fn events_without_key(examined: &ExaminedRoute<'_>) -> Option<Finding> {
    let sender = examined.sender?;
    (examined.route.when_key_missing == WhenKeyMissing::Forward).then(|| {
        examined.finding(
            "events-without-key",
            "when_key_missing",
            format!("of {} every copy without a key is forwarded", sender.title),
            "the application has to know an event that it has had",
        )
    })
}
