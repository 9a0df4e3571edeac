//! The routes: raw -> `RouteSettings`. What a route takes from `[defaults]` is in it already.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use http::HeaderName;

use super::check::{Check, count, text};
use super::leaf::{List, RetryStatus, Text};
use super::problem::{Key, quoted};
use super::raw::{RawEvent, RawFingerprint, RawKey, RawOutcome, RawReplay, RawRoute};
use super::value::{InFlightWord, Over, Size, UncertainWord};
use crate::idempotency::{Policy, WhenInFlight};
use crate::operation::Terms;
use crate::proxy::{
    EventRule, FingerprintOver, FingerprintRule, KeyRule, PathPattern, RouteSettings,
};
use crate::upstream::{self, OutcomeRule, Target};

/// A body is held in memory as a whole.
const BODY: Size = Size(1 << 30);

/// The heartbeat comes at a third of the lease; below this it would do nothing else.
const LEASE_MIN: Duration = Duration::from_millis(300);
const LEASE_MAX: Duration = Duration::from_hours(1);

/// Checks what all routes share, though none may use it.
pub(super) fn defaults(check: &mut Check<'_>, raw: Option<RawRoute>) {
    let at = Key::of(&["defaults"]);
    if let Some(raw) = raw {
        let of_a_route = [raw.host.is_some(), raw.path.is_some(), raw.upstream.is_some()];
        for (name, given) in ["host", "path", "upstream"].into_iter().zip(of_a_route) {
            if given {
                check.wrong(&at.join(name), "it in a route", "it for all of them".to_owned());
            }
        }
        settings(check, &at, "defaults", Entry::default(), raw);
    }
}

/// Checks each route, and that no two are the same.
pub(super) fn routes(
    check: &mut Check<'_>,
    raw: Option<BTreeMap<String, Option<RawRoute>>>,
    bodies_max: Option<Size>,
) -> Option<Vec<RouteSettings>> {
    let at = Key::of(&["routes"]);
    let raw = raw.unwrap_or_default();
    if raw.is_empty() && check.sources.value(&at).is_none_or(|routes| routes.as_dict().is_some()) {
        let hint = "`[routes.orders]` with a `path` and an `upstream`";
        check.report(&at, "at least one route", "none".to_owned(), Some(hint));
        return None;
    }
    same_place(check, &at, &raw);
    raw.into_iter()
        .map(|(name, raw)| route(check, &at.join(name.as_str()), &name, raw?, bodies_max))
        .collect::<Vec<Option<_>>>()
        .into_iter()
        .collect()
}

/// On what is written, so that another mistake in one of the two does not hide it.
fn same_place(check: &mut Check<'_>, at: &Key, routes: &BTreeMap<String, Option<RawRoute>>) {
    let mut seen: Vec<(&String, _)> = Vec::new();
    for (name, route) in routes {
        let Some(RawRoute { host, path: Some(Text(path)), .. }) = route else {
            continue;
        };
        let served = (host.as_ref().and_then(|Text(host)| host.as_ref()), path);
        if let Some((twin, _)) = seen.iter().find(|(_, other)| *other == served) {
            let found = format!("that of route {}", quoted(twin));
            let key = at.join(name.as_str()).join("path");
            check.wrong(&key, "a path that no other route of this host has", found);
        }
        seen.push((name, served));
    }
}

fn route(
    check: &mut Check<'_>,
    at: &Key,
    name: &str,
    mut raw: RawRoute,
    bodies_max: Option<Size>,
) -> Option<RouteSettings> {
    let named = is_name(name);
    if !named {
        let expected = "a name of 1 to 64 letters a to z, digits, `_` and `-`";
        check.wrong(at, expected, quoted(name));
    }
    let entry = Entry {
        host: text(raw.host.take()).flatten().map(|host| host.0),
        path: needed(check, at, "path", text(raw.path.take())),
        target: needed(check, at, "upstream", text(raw.upstream.take())),
    };
    let request_bytes_max = raw.request_bytes_max.as_ref().map(|size| size.0);
    if let (Some(request), Some(all)) = (request_bytes_max, bodies_max)
        && request > all
    {
        let found = "more, so that no such body could ever be read".to_owned();
        let expected = "at most `server.limits.buffered_bytes_max`";
        check.wrong(&at.join("request_bytes_max"), expected, found);
    }
    settings(check, at, name, entry, raw).filter(|_| named)
}

fn is_name(name: &str) -> bool {
    let letter =
        |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"_-".contains(&byte);
    (1..=64).contains(&name.len()) && name.bytes().all(letter)
}

/// What `[defaults]` cannot have.
#[derive(Default)]
struct Entry {
    host: Option<String>,
    path: Option<PathPattern>,
    target: Option<Target>,
}

/// A setting without a built-in value. If it stands there, it has been reported.
fn needed<T>(check: &mut Check<'_>, at: &Key, name: &str, value: Option<T>) -> Option<T> {
    let key = at.join(name);
    if value.is_none() && check.sources.value(&key).is_none() {
        let hint = match name {
            "path" => "`path = \"/webhooks/orders\"`",
            _ => "`upstream = \"http://127.0.0.1:3000\"`",
        };
        check.report(&key, "a value", "none".to_owned(), Some(hint));
    }
    value
}

fn settings(
    check: &mut Check<'_>,
    at: &Key,
    name: &str,
    entry: Entry,
    mut raw: RawRoute,
) -> Option<RouteSettings> {
    let methods = some_of(check, &at.join("methods"), raw.methods.take());
    let connect_timeout = text(raw.connect_timeout.take());
    let connect_timeout = check.above_zero(&at.join("connect_timeout"), connect_timeout);
    let bodies = Size(1)..=BODY;
    let request_bytes_max = text(raw.request_bytes_max.take());
    let key = at.join("request_bytes_max");
    let request_bytes_max =
        check.within(&key, request_bytes_max, &bodies, "a size from `1B` to `1GiB`");
    let key = raw.key.take().and_then(key_rule);
    let fingerprint = raw.fingerprint.take();
    let fingerprint = fingerprint.and_then(|raw| fingerprint_rule(check, at, raw));
    let (keepalive, preserve_host) = (text(raw.keepalive.take()), raw.preserve_host);
    let (when_key_missing, forward_key) =
        (text(raw.when_key_missing.take()), text(raw.forward_key.take()));
    let (in_flight, uncertain) = (raw.in_flight_status, raw.uncertain_status);
    let when_uncertain = text(raw.when_uncertain.take());
    let public_url = text(raw.public_url.take()).flatten().map(|url| url.0);
    // Nothing is retried under `hold`; what is written must be a number all the same.
    let _attempts_max = count(raw.attempts_max.take())?;
    let policy = policy(check, at, raw);
    // There is one way so far, and the policy has no name for it.
    let UncertainWord::Hold = when_uncertain?;
    Some(RouteSettings {
        name: Arc::from(name),
        host: entry.host,
        path: entry.path?,
        public_url,
        methods: methods?,
        upstream: upstream::Settings {
            target: entry.target?,
            connect_timeout: connect_timeout?,
            keepalive: keepalive?,
            preserve_host: preserve_host?,
        },
        key: key?,
        fingerprint: fingerprint?,
        policy: policy?,
        in_flight_status: in_flight.map(|RetryStatus(status)| status)?,
        uncertain_status: uncertain.map(|RetryStatus(status)| status)?,
        request_bytes_max: request_bytes_max?.0,
        when_key_missing: when_key_missing?,
        forward_key: forward_key?,
    })
}

fn policy(check: &mut Check<'_>, at: &Key, raw: RawRoute) -> Option<Policy> {
    let leases = LEASE_MIN..=LEASE_MAX;
    let lease = check.within(
        &at.join("lease"),
        text(raw.lease),
        &leases,
        "a duration from `300ms` to `1h`",
    );
    let attempt_timeout = check.above_zero(&at.join("attempt_timeout"), text(raw.attempt_timeout));
    let retention = check.above_zero(&at.join("retention"), text(raw.retention));
    let hold_for = check.above_zero(&at.join("hold_for"), text(raw.hold_for));
    let answer_within = match text(raw.answer_within).flatten() {
        None => Some(None),
        Some(limit) => check.above_zero(&at.join("answer_within"), Some(limit)).map(Some),
    };
    let when_in_flight = match text(raw.when_in_flight) {
        None => None,
        Some(InFlightWord::Refuse) => Some(WhenInFlight::Refuse),
        Some(InFlightWord::Wait) => {
            count(raw.waiters_max).map(|waiters_max| WhenInFlight::Wait { waiters_max })
        }
    };
    let (body_bytes_max, drop_headers) = raw.replay.map(|raw| replay(check, at, raw)).unzip();
    let outcome = raw.outcome.and_then(|raw| outcome_rule(check, at, raw));
    Some(Policy {
        terms: Terms {
            lease: lease?,
            attempt_timeout: attempt_timeout?,
            retention: retention?,
            hold_for: hold_for?,
        },
        answer_within: answer_within?,
        when_in_flight: when_in_flight?,
        when_store_fails: text(raw.when_store_fails)?,
        in_flight_max: count(raw.in_flight_max)?,
        outcome: outcome?,
        body_bytes_max: body_bytes_max.flatten()?.0,
        drop_headers: drop_headers.flatten()?,
    })
}

fn replay(
    check: &mut Check<'_>,
    at: &Key,
    raw: RawReplay,
) -> (Option<Size>, Option<Vec<HeaderName>>) {
    let key = at.join("replay").join("body_bytes_max");
    let bodies = Size(0)..=BODY;
    let body_bytes_max =
        check.within(&key, text(raw.body_bytes_max), &bodies, "a size of at most `1GiB`");
    (body_bytes_max, raw.drop_headers.and_then(List::complete))
}

fn key_rule(raw: RawKey) -> Option<KeyRule> {
    let RawEvent { source, id, kind } = raw.event?;
    let event = EventRule { source: text(source)?, id: text(id)?, kind: text(kind)? };
    Some(KeyRule { headers: raw.header?.complete()?, event, scope: raw.scope?.complete()? })
}

fn fingerprint_rule(
    check: &mut Check<'_>,
    at: &Key,
    raw: RawFingerprint,
) -> Option<FingerprintRule> {
    let over = raw.over.and_then(List::complete);
    let ignore = raw.ignore.and_then(List::complete);
    let over = over.and_then(|over| fingerprint_over(check, at, over));
    Some(FingerprintRule { over: over?, ignore: ignore? })
}

fn fingerprint_over(check: &mut Check<'_>, at: &Key, over: Vec<Over>) -> Option<FingerprintOver> {
    if let [Over::Auto] = over.as_slice() {
        return Some(FingerprintOver::Auto);
    }
    if let [Over::Body] = over.as_slice() {
        return Some(FingerprintOver::Body);
    }
    let selector = |over| match over {
        Over::Part(selector) => Some(selector),
        Over::Auto | Over::Body => None,
    };
    let parts = over.into_iter().map(selector).collect::<Option<Vec<_>>>();
    if parts.is_none() {
        let found = "one of them among others".to_owned();
        let key = at.join("fingerprint").join("over");
        check.wrong(&key, "`auto` or `body` alone, or selectors", found);
    }
    parts.map(FingerprintOver::Parts)
}

fn outcome_rule(check: &mut Check<'_>, at: &Key, raw: RawOutcome) -> Option<OutcomeRule> {
    let succeeded = some_of(check, &at.join("outcome").join("succeeded"), raw.succeeded);
    let uncertain = raw.uncertain.and_then(List::complete);
    Some(OutcomeRule { succeeded: succeeded?, uncertain: uncertain? })
}

/// A list that makes no sense without an item.
fn some_of<T>(check: &mut Check<'_>, key: &Key, list: Option<List<T>>) -> Option<Vec<T>> {
    let items = list.and_then(List::complete)?;
    if items.is_empty() {
        check.wrong(key, "at least one item", "none".to_owned());
        return None;
    }
    Some(items)
}
