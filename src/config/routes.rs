//! The routes: raw -> `RouteSettings`. What a route takes from `[defaults]` is in it already.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use http::{HeaderName, Uri};

use super::check::{Check, count, text};
use super::inherit::OF_A_ROUTE_ALONE;
use super::leaf::{Count, List, ReplacingStatus, RetryStatus, Text};
use super::lookup::lookup;
use super::problem::Key;
use super::providers::Providers;
use super::quantity::Size;
use super::raw::{RawEvent, RawFingerprint, RawKey, RawOutcome, RawReplay, RawRoute};
use super::sender::{self, SeenAs, Sender};
use super::value::{AddedHeader, Over};
use super::word::{InFlightWord, UncertainWord};
use super::{same_place, steps};
use crate::idempotency::{IfInFlight, Policy, Remember, StepsPolicy};
use crate::operation::Durations;
use crate::operation::state::IfUncertain;
use crate::provider;
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
        for key in OF_A_ROUTE_ALONE.map(|name| at.join(name)) {
            if check.sources.value(&key).is_some() {
                let hint = "move it into each `[routes.NAME]` that it is meant for";
                check.report(&key, "it in a route", "it for all of them".to_owned(), Some(hint));
            }
        }
        settings(check, &at, "defaults", Entry::default(), raw);
    }
}

/// What a route has from elsewhere.
pub(super) struct Shared {
    pub(super) bodies_max: Option<Size>,
    /// For those without a `public_url` of their own.
    pub(super) seen: SeenAs,
    pub(super) providers: Providers,
}

/// Checks each route, and that no two are the same.
pub(super) fn routes(
    check: &mut Check<'_>,
    raw: Option<BTreeMap<String, Option<RawRoute>>>,
    shared: &Shared,
) -> Option<Vec<RouteSettings>> {
    let at = Key::of(&["routes"]);
    let raw = raw.unwrap_or_default();
    if raw.is_empty() && check.sources.value(&at).is_none_or(|routes| routes.as_dict().is_some()) {
        let hint = "`[routes.orders]` with a `path` and an `upstream`";
        check.report(&at, "at least one route", "none".to_owned(), Some(hint));
        return None;
    }
    let told = same_place::same_place(check, &at, &raw);
    let routes: Vec<_> = raw
        .into_iter()
        .map(|(name, raw)| route(check, &at.join(name.as_str()), &name, raw?, shared))
        .collect();
    let routes: Vec<RouteSettings> = routes.into_iter().collect::<Option<_>>()?;
    same_place::misread_paths(check, &at, &routes, &told);
    Some(routes)
}

fn route(
    check: &mut Check<'_>,
    at: &Key,
    name: &str,
    mut raw: RawRoute,
    shared: &Shared,
) -> Option<RouteSettings> {
    let named = check.named(at, name);
    let is_written = check.sources.value(&at.join("public_url")).is_some();
    let seen = match raw.public_url.take() {
        Some(Text(Some(url))) => SeenAs::Url(url.0),
        None if is_written => SeenAs::Reported,
        Some(Text(None)) | None => shared.seen.clone(),
    };
    let sender = sender::sender(check, at, &mut raw, &shared.providers, &seen);
    let public_url = seen.url();
    let host = text(raw.host.take()).flatten().map(|host| host.0);
    let path = needed(check, at, "path", text(raw.path.take()));
    let (target, steps) = steps::receivers(check, at, &mut raw);
    let entry = Entry { sender, public_url, host, path, target, steps };
    let request_bytes_max = raw.request_bytes_max.as_ref().map(|size| size.0);
    if let (Some(request), Some(all)) = (request_bytes_max, shared.bodies_max)
        && request > all
    {
        let found = "more, so that no such body could ever be read".to_owned();
        let expected = "at most `server.limits.buffered_bytes_max`";
        let hint = "raise `buffered_bytes_max` in `[server.limits]`, or take less here";
        check.report(&at.join("request_bytes_max"), expected, found, Some(hint));
    }
    settings(check, at, name, entry, raw).filter(|_| named)
}

/// What `[defaults]` cannot have.
#[derive(Default)]
struct Entry {
    sender: Option<Sender>,
    public_url: Option<Uri>,
    host: Option<String>,
    path: Option<PathPattern>,
    target: Option<Target>,
    steps: Option<StepsPolicy>,
}

/// A setting without a built-in value. If it stands there, it has been reported.
pub(super) fn needed<T>(
    check: &mut Check<'_>,
    at: &Key,
    name: &str,
    value: Option<T>,
) -> Option<T> {
    let key = at.join(name);
    if value.is_none() && check.sources.value(&key).is_none() {
        let hint = match name {
            "path" => "`path = \"/webhooks/orders\"`",
            "name" => "`name = \"ledger\"`",
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
    let provider = entry.sender.as_ref().and_then(|sender| sender.provider.as_deref());
    // A table of one's own says what its author knows of the sender, which may not be enough.
    let known = provider.is_some_and(|provider| provider::preset(&provider.name).is_some());
    let fingerprint = fingerprint.and_then(|raw| fingerprint_rule(check, at, raw, !known));
    let (keepalive, preserve_host) = (text(raw.keepalive.take()), raw.preserve_host);
    let keepalive_max = text(raw.keepalive_max.take());
    let when_key_missing = text(raw.when_key_missing.take());
    let (in_flight, uncertain) = (raw.in_flight_status, raw.uncertain_status);
    let (mode, tolerance) = (text(raw.mode.take()), text(raw.tolerance.take()).flatten());
    let retry_status = raw.retry_status.take().map(|ReplacingStatus(status)| status);
    let refusal_body = text(raw.refusal_body.take());
    let verify = raw.verify.unwrap_or(true);
    let policy = policy(check, at, raw);
    let sender = entry.sender?;
    Some(RouteSettings {
        name: Arc::from(name),
        host: entry.host,
        path: entry.path?,
        public_url: entry.public_url,
        methods: methods?,
        upstream: upstream::Settings {
            target: entry.target?,
            connect_timeout: connect_timeout?,
            keepalive: keepalive?,
            keepalive_max: keepalive_max?,
            preserve_host: preserve_host?,
        },
        steps: entry.steps,
        mode: mode?,
        provider: sender.provider,
        secrets: sender.secrets,
        verify,
        tolerance,
        key: key?,
        fingerprint: fingerprint?,
        policy: policy?,
        in_flight_status: in_flight.map(|RetryStatus(status)| status)?,
        uncertain_status: uncertain.map(|RetryStatus(status)| status)?,
        retry_status,
        refusal_body: refusal_body?,
        request_bytes_max: request_bytes_max?.0,
        when_key_missing: when_key_missing?,
    })
}

fn policy(check: &mut Check<'_>, at: &Key, mut raw: RawRoute) -> Option<Policy> {
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
    let if_in_flight = text(raw.when_in_flight).map(|word| match word {
        InFlightWord::Refuse => IfInFlight::Refused,
        InFlightWord::Wait => IfInFlight::Waits,
    });
    let remember = raw.replay.as_mut().and_then(|replay| text(replay.remember.take()));
    // each route may have its own look-up, and each step
    let of_others =
        *at == Key::of(&["defaults"]) || check.sources.value(&at.join("steps")).is_some();
    let when_uncertain = match text(raw.when_uncertain) {
        Some(UncertainWord::LookUp) if of_others => Some(UncertainWord::Hold),
        word => word,
    };
    let wanted = matches!(when_uncertain, Some(UncertainWord::LookUp));
    let lookup = lookup(check, at, raw.lookup, wanted).ok();
    let asked_for = lookup.as_ref().and_then(|lookup| Some(lookup.as_ref()?.timeout));
    let if_uncertain = match remember {
        // Nobody could say later which event was meant: it is free once it must have ended.
        Some(Remember::InFlight) => Some(IfUncertain::Retried { attempts_max: u32::MAX }),
        Some(Remember::Retention) | None => {
            if_uncertain(when_uncertain, raw.attempts_max, asked_for)
        }
    };
    let (body_bytes_max, drop_headers) = raw.replay.map(|raw| replay(check, at, raw)).unzip();
    let reference = raw.outcome.as_mut().and_then(|raw| text(raw.reference.take()));
    let outcome = raw.outcome.and_then(|raw| outcome_rule(check, at, raw));
    Some(Policy {
        durations: Durations {
            lease: lease?,
            attempt_timeout: attempt_timeout?,
            retention: retention?,
            hold_for: hold_for?,
        },
        answer_within: answer_within?,
        if_in_flight: if_in_flight?,
        waiters_max: count(raw.waiters_max)?,
        if_uncertain: if_uncertain?,
        lookup: lookup?,
        reference,
        forward_key: text(raw.forward_key)?.map(|AddedHeader(name)| name),
        remember: remember?,
        when_store_fails: text(raw.when_store_fails)?,
        in_flight_max: count(raw.in_flight_max)?,
        outcome: outcome?,
        body_bytes_max: body_bytes_max.flatten()?.0,
        drop_headers: drop_headers.flatten()?,
    })
}

/// What a look-up's lease has beyond its timeout, for the store's two calls around it.
const LOOKUP_ROOM: Duration = Duration::from_secs(5);

pub(super) fn if_uncertain(
    word: Option<UncertainWord>,
    attempts_max: Option<Count>,
    asked_for: Option<Duration>,
) -> Option<IfUncertain> {
    let attempts_max = attempts_max.map(|Count(number)| number);
    match word? {
        UncertainWord::Hold => Some(IfUncertain::Held),
        UncertainWord::Retry => Some(IfUncertain::Retried { attempts_max: attempts_max? }),
        UncertainWord::LookUp => Some(IfUncertain::LookedUp {
            attempts_max: attempts_max?,
            lease: asked_for?.saturating_add(LOOKUP_ROOM),
        }),
    }
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
    untyped_events: bool,
) -> Option<FingerprintRule> {
    let over = raw.over.and_then(List::complete);
    let ignore = raw.ignore.and_then(List::complete);
    let over = over.and_then(|over| fingerprint_over(check, at, over, untyped_events));
    Some(FingerprintRule { over: over?, ignore: ignore? })
}

fn fingerprint_over(
    check: &mut Check<'_>,
    at: &Key,
    over: Vec<Over>,
    untyped_events: bool,
) -> Option<FingerprintOver> {
    if let [Over::Auto] = over.as_slice() {
        return Some(FingerprintOver::Auto { untyped_events });
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

pub(super) fn outcome_rule(
    check: &mut Check<'_>,
    at: &Key,
    raw: RawOutcome,
) -> Option<OutcomeRule> {
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
