//! What a route does that its sender will not take well, as far as the sender is known.

use http::{HeaderName, StatusCode};

use super::advice;
use super::event_risk::untyped;
use super::problem::Key;
use super::quantity::short;
use super::risk::Risk;
use super::signed_risk::divisible;
use crate::idempotency::{IfInFlight, Remember};
use crate::provider::{Content, Facts, Handshake, Provider, preset};
use crate::proxy::{Mode, Place, RouteSettings};

/// What should have been decided, not overlooked. What is not about a sender's own habits has a file
/// of its own, as `event_risk`.
pub(super) fn risks(at: &Key, route: &RouteSettings) -> Vec<Risk> {
    let unverified = unverified(at, route);
    let Some(sender) = route.provider.as_deref() else {
        return [untyped(at, route), unverified].into_iter().flatten().collect();
    };
    let facts = &sender.facts;
    [
        untyped(at, route),
        unverified,
        open_to_all(at, route, sender),
        never_found(at, route, sender),
        unguarded(at, route, sender),
        divisible(at, route, sender),
        named_by_header(at, sender),
        forgotten(at, route, sender),
        impatient(at, route, sender),
        ended_by(at, "in_flight_status", route.in_flight_status, sender),
        ended_by(at, "uncertain_status", route.uncertain_status, sender),
        given_up(at, route, sender),
        disabled(at, route, facts),
        too_large(at, route, sender),
        not_the_event(at, route, facts),
        shared(at, route),
        stale_retries(at, route, sender),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// Of a sender that is known to sign nothing it is a note, since nothing can be done about it, and so
/// it is where `verify = false` says that it is meant.
fn unverified(at: &Key, route: &RouteSettings) -> Option<Risk> {
    let sender = route.provider.as_deref();
    let known = sender.filter(|sender| sender.signature.is_none());
    let cannot_sign = known.is_some_and(|sender| preset(&sender.name).is_some());
    let (setting, hint) = match sender {
        Some(sender) if sender.signature.is_some() => ("verify", "give its `secrets`"),
        Some(_) => (
            "provider",
            "describe its `[signature]`, and give its `secrets`; `verify = false` says that it has none",
        ),
        None => (
            "provider",
            "name the sender with `provider`, or describe its signature in `[providers.NAME]`; \
             `verify = false` says that it has none",
        ),
    };
    let who = sender.map_or("the sender", |sender| &sender.title);
    (route.is_unverified() && route.verify && !cannot_sign).then(|| Risk {
        code: "signature-unchecked",
        key: at.join(setting),
        text: format!("who knows the URL can send what looks like an event of {who}"),
        hint: hint.into(),
    })
}

/// PayPal's simulator signs for everybody who has an account there.
fn open_to_all(at: &Key, route: &RouteSettings, sender: &Provider) -> Option<Risk> {
    let signature = sender.signature.as_ref()?;
    route.secrets.iter().any(|secret| signature.is_public_secret(secret)).then(|| Risk {
        code: "secret-of-a-simulator",
        key: at.join("secrets"),
        text: format!("one of them is that of the simulator of {}: anybody can send", sender.title),
        hint: "leave it out in production".into(),
    })
}

/// A name that the sender's signature does not have is absent from every request.
fn never_found(at: &Key, route: &RouteSettings, sender: &Provider) -> Option<Risk> {
    let key = &route.key;
    let mut selectors = [&key.event.id, &key.event.kind].into_iter().chain(&key.scope);
    let is_unknown = |place: &Place| match place {
        Place::Signature(name) => {
            !sender.signature.as_ref().is_some_and(|signature| signature.carries(name))
        }
        Place::Header(_) | Place::Json(_) | Place::Form(_) | Place::Query(_) | Place::Body => false,
    };
    let unknown = selectors.find(|selector| selector.places.iter().any(is_unknown))?;
    Some(Risk {
        code: "key-never-found",
        key: at.join("key"),
        text: format!("no signature of {} has what `{unknown}` names", sender.title),
        hint: "name it in `carries` of its `[signature]`".into(),
    })
}

/// Any event can be sent under a header that nothing signs, past its key.
fn named_by_header(at: &Key, sender: &Provider) -> Option<Risk> {
    let covered =
        |name: &HeaderName| sender.signature.as_ref().is_some_and(|it| it.covers_header(name));
    let by_header = |handshake: &&Handshake| {
        let open = handshake.content == Content::Any && !handshake.method.is_safe();
        open && handshake.query.is_empty()
            && !handshake.headers.iter().any(|(name, _)| covered(name))
    };
    let handshake = sender.handshakes.iter().find(by_header)?;
    Some(Risk {
        code: "handshake-by-header",
        key: at.join("provider"),
        text: format!(
            "an event under the header of the handshake `{}` is forwarded without a key, as often \
             as it comes",
            handshake.name
        ),
        hint: "describe what only its body has: `json`, `form`, `empty_body`".into(),
    })
}

/// What is not signed has to be the handshake and nothing else, or it is a way around the signature.
fn unguarded(at: &Key, route: &RouteSettings, sender: &Provider) -> Option<Risk> {
    let with_body = |handshake: &&Handshake| {
        let any_event = match handshake.content {
            Content::Any => !handshake.method.is_safe(),
            Content::Json(ref json) => !json.whole,
            Content::Empty | Content::Form(_) => false,
        };
        any_event && !handshake.signed
    };
    let handshake =
        sender.handshakes.iter().find(with_body).filter(|_| !route.secrets.is_empty())?;
    Some(Risk {
        code: "handshake-open",
        key: at.join("provider"),
        text: format!(
            "what looks like the handshake `{}` is forwarded unverified, whatever else is in it",
            handshake.name
        ),
        hint: "`signed = true`, or describe all of its body: `whole_body`, `form`, `empty_body`"
            .into(),
    })
}

/// Retention must be longer than the sender keeps retrying.
fn forgotten(at: &Key, route: &RouteSettings, sender: &Provider) -> Option<Risk> {
    let window = sender.facts.retry_window.filter(|_| is_remembered(route))?;
    (route.policy.durations.retention <= window).then(|| Risk {
        code: "retention-below-retries",
        key: at.join("retention"),
        text: format!(
            "{} tries again for {}: a later copy runs again",
            sender.title,
            short(window)
        ),
        hint: advice::set(sender, "retention", &advice::longer_than(window)),
    })
}

/// An answer that comes after the sender has hung up is a failure to it.
fn impatient(at: &Key, route: &RouteSettings, sender: &Provider) -> Option<Risk> {
    let patience = sender.facts.patience?;
    let policy = &route.policy;
    let waits = policy.answer_within.unwrap_or(policy.durations.attempt_timeout);
    (waits >= patience).then(|| Risk {
        code: "answer-after-patience",
        key: at.join("answer_within"),
        text: format!("{} hangs up after {}", sender.title, short(patience)),
        hint: advice::set(sender, "answer_within", &advice::shorter_than(patience)),
    })
}

/// Where nothing is ever sent again, no status could help.
fn ended_by(at: &Key, setting: &str, status: StatusCode, sender: &Provider) -> Option<Risk> {
    let facts = &sender.facts;
    let ended = facts.retries_after(status.as_u16()) == Some(false) && !facts.never_retries();
    ended.then(|| Risk {
        code: "status-not-retried",
        key: at.join(setting),
        text: format!(
            "the sender does not try again after a {}: if the attempt fails, the event is lost",
            status.as_u16()
        ),
        hint: advice::set(sender, setting, &advice::retried(facts, &[503, 429, 409, 425])),
    })
}

/// Onceward itself answers 502 and 504 where the event is not done.
fn given_up(at: &Key, route: &RouteSettings, sender: &Provider) -> Option<Risk> {
    let facts = &sender.facts;
    let own = [StatusCode::BAD_GATEWAY, StatusCode::GATEWAY_TIMEOUT];
    let is_final = own.into_iter().any(|status| facts.is_final(status) == Some(true));
    let may_help = !facts.never_retries() && route.mode != Mode::Pass;
    (is_final && may_help && route.retry_status.is_none()).then(|| Risk {
        code: "final-statuses",
        key: at.join("retry_status"),
        text: format!(
            "{} does not try again after a 502 or 504: while the upstream is away, its events are lost",
            sender.title
        ),
        hint: advice::set(
            sender,
            "retry_status",
            &advice::retried(facts, &[503, 429, 500, 409, 425]),
        ),
    })
}

fn disabled(at: &Key, route: &RouteSettings, facts: &Facts) -> Option<Risk> {
    let limit = facts.disabled_after.as_deref().filter(|_| !facts.never_retries())?;
    let refuses = route.policy.if_in_flight == IfInFlight::Refused;
    (refuses && is_remembered(route)).then(|| Risk {
        code: "refusals-count-as-failures",
        key: at.join("when_in_flight"),
        text: format!("a refused copy is a failure to the sender, which stops after: {limit}"),
        hint: "`when_in_flight = \"wait\"` answers it with the outcome".into(),
    })
}

fn too_large(at: &Key, route: &RouteSettings, sender: &Provider) -> Option<Risk> {
    let largest = sender.facts.largest_event_bytes?;
    (route.request_bytes_max < largest).then(|| Risk {
        code: "event-too-large",
        key: at.join("request_bytes_max"),
        text: format!("an event of {} may have {largest} bytes", sender.title),
        hint: advice::set(sender, "request_bytes_max", &advice::size_for(largest)),
    })
}

/// Headers and members that look like an event's id and name something else.
fn not_the_event(at: &Key, route: &RouteSettings, facts: &Facts) -> Option<Risk> {
    let id = ("event", route.key.event.id.to_string());
    let headers = route.key.headers.iter().map(|name| ("header", format!("header:{name}")));
    let mut named = headers.chain([id]).filter(|_| is_remembered(route));
    named.find_map(|(setting, selector)| {
        let what = facts.not_the_event.get(selector.trim_end_matches('?'))?;
        Some(Risk {
            code: "key-not-the-event",
            key: at.join("key").join(setting),
            text: format!("`{selector}` is {what}: what has the same is taken for a copy"),
            hint: "name what is the event's own, or leave the key to the preset".into(),
        })
    })
}

/// Where nothing is remembered, two events may look the same: one that shares the attempt for
/// another is lost, since the receiver may have looked before the second one happened.
fn shared(at: &Key, route: &RouteSettings) -> Option<Risk> {
    let waits = route.policy.if_in_flight != IfInFlight::Refused;
    (waits && !is_remembered(route)).then(|| Risk {
        code: "events-shared",
        key: at.join("when_in_flight"),
        text: "an event that comes during the attempt for another one that looks the same is \
               answered with the outcome of that attempt, and lost"
            .to_owned(),
        hint: "`when_in_flight = \"refuse\"` lets the sender send it again".into(),
    })
}

/// A retry may carry the time of the first delivery.
fn stale_retries(at: &Key, route: &RouteSettings, sender: &Provider) -> Option<Risk> {
    let settings = sender.signature.as_ref().filter(|settings| settings.has_timestamp())?;
    let tolerance = route.tolerance.or(settings.tolerance())?;
    let window = sender.facts.retry_window.filter(|window| *window > tolerance)?;
    (!sender.facts.signed_anew && !route.secrets.is_empty()).then(|| Risk {
        code: "tolerance-below-retries",
        key: at.join("tolerance"),
        text: format!(
            "{} tries again for {}, and a retry that keeps the first timestamp is refused after {}",
            sender.title,
            short(window),
            short(tolerance)
        ),
        hint: format!("`tolerance = {}`, with a `retention` above it", advice::longer_than(window))
            .into(),
    })
}

pub(super) fn is_remembered(route: &RouteSettings) -> bool {
    match route.policy.remember {
        Remember::Retention => true,
        Remember::InFlight => false,
    }
}
