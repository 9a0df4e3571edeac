//! What is allowed, but may not be meant.

use std::borrow::Cow;
use std::time::Duration;

use super::problem::Key;
use super::quantity::short;
use super::{Config, lookup_risk, secret_shape, sender_note, sender_risk};
use crate::budget::Share;
use crate::idempotency::{IfInFlight, StepsPolicy, WhenStoreFails};
use crate::proxy::{Mode, RouteSettings, WhenKeyMissing};
use crate::secret::Secret;
use crate::store::{self, embedded::Durability};

/// Something that an operator should have decided, not overlooked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Risk {
    /// A stable word for it: programs match this, since the text may change.
    pub code: &'static str,
    /// The setting that it comes from.
    pub key: Key,
    /// What may happen.
    pub text: String,
    /// What would help.
    pub hint: Cow<'static, str>,
}

/// A third of the lease has to have room for one renewal that takes as long as a store may take.
const LEASE_ROOM: Duration = Duration::from_secs(6);

/// What a shutdown has beyond the longest attempt, to record its outcome and answer.
const SHUTDOWN_ROOM: Duration = Duration::from_secs(5);

/// Below this a token is likely to be a word.
const TOKEN_MIN: usize = 16;

pub(super) fn of(config: &Config) -> Vec<Risk> {
    let mut risks = Vec::new();
    risks.extend(of_trust(config));
    risks.extend(of_peers(config));
    risks.extend(of_shutdown(config));
    risks.extend(of_token(config));
    risks.extend(secret_shape::risks(config));
    risks.extend(of_store(&config.store));
    // What only passes has no operation, no lease and no key, and nobody checks its signature.
    for route in config.routes.iter().filter(|route| route.mode != Mode::Pass) {
        let at = Key::of(&["routes", &route.name]);
        risks.extend(of_waiting(&at, route));
        risks.extend(of_lease(&at, route, &config.store));
        risks.extend(of_durations(&at, route));
        risks.extend(of_gaps(&at, route));
        risks.extend(sender_risk::risks(&at, route));
        risks.extend(lookup_risk::risks(&at, route));
    }
    risks
}

pub(super) fn notes(config: &Config) -> Vec<Risk> {
    let of = |route: &RouteSettings| sender_note::notes(&Key::of(&["routes", &route.name]), route);
    config.routes.iter().flat_map(of).collect()
}

fn of_trust(config: &Config) -> Option<Risk> {
    let everybody = config.server.trusted_proxies.iter().any(|network| network.prefix_len() == 0);
    everybody.then(|| Risk {
        code: "everybody-trusted",
        key: Key::of(&["server", "trusted_proxies"]),
        text: "every sender can claim any address in `X-Forwarded-For`".to_owned(),
        hint: "name the networks of your own proxies".into(),
    })
}

fn of_peers(config: &Config) -> Option<Risk> {
    let is_limited = config.server.limits.per_peer_max != Share::WHOLE;
    (is_limited && config.server.trusted_proxies.is_empty()).then(|| Risk {
        code: "peer-is-a-proxy",
        key: Key::of(&["server", "limits", "per_peer_max"]),
        text: "behind a proxy all senders are one peer and share its places".to_owned(),
        hint: "name your proxies in `server.trusted_proxies`, if there are any".into(),
    })
}

/// An attempt that is cut off leaves its operation uncertain.
fn of_shutdown(config: &Config) -> Option<Risk> {
    let of_steps = |steps: &StepsPolicy| steps.steps.iter().map(|step| step.attempt_timeout).max();
    let longest = |route: &RouteSettings| {
        let own = route.policy.durations.attempt_timeout;
        route.steps.as_ref().and_then(of_steps).unwrap_or(own)
    };
    let longest = config.routes.iter().map(longest).max()?;
    (config.server.shutdown_timeout < longest).then(|| Risk {
        code: "shutdown-below-attempt",
        key: Key::of(&["server", "shutdown_timeout"]),
        text: format!(
            "a restart cuts off attempts, which may take {}, and leaves them uncertain",
            short(longest)
        ),
        hint: format!("`shutdown_timeout = \"{}\"`", short(longest + SHUTDOWN_ROOM)).into(),
    })
}

fn of_token(config: &Config) -> Option<Risk> {
    let short = |token: &&Secret| token.reveal().len() < TOKEN_MIN;
    config.admin.token.as_ref().filter(short).map(|_| Risk {
        code: "admin-token-short",
        key: Key::of(&["admin", "token"]),
        text: format!("it has fewer than {TOKEN_MIN} characters, so that it can be guessed"),
        hint: "`openssl rand -hex 32` makes one".into(),
    })
}

fn of_store(store: &store::Settings) -> Option<Risk> {
    match store {
        store::Settings::Memory => Some(Risk {
            code: "store-in-memory",
            key: Key::of(&["store", "memory"]),
            text: "every operation is forgotten at exit, so that a later copy runs again"
                .to_owned(),
            hint: "`[store.embedded]` remembers".into(),
        }),
        // what is risky about a server is asked of itself
        store::Settings::Redis(_) | store::Settings::Postgres(_) => None,
        store::Settings::Embedded(embedded) => match embedded.durability {
            Durability::Sync => None,
            Durability::Os => Some(Risk {
                code: "durability-of-the-system",
                key: Key::of(&["store", "embedded", "durability"]),
                text: "if the machine crashes, the last operations may be forgotten and run again"
                    .to_owned(),
                hint: "`durability = \"sync\"` survives that".into(),
            }),
        },
    }
}

fn of_waiting(at: &Key, route: &RouteSettings) -> Option<Risk> {
    // Of a sender that is known it is said in its own words.
    if route.provider.as_ref().is_some_and(|sender| sender.facts.patience.is_some()) {
        return None;
    }
    match (route.policy.if_in_flight, route.policy.answer_within) {
        (IfInFlight::Waits, None) => Some(Risk {
            code: "wait-without-limit",
            key: at.join("when_in_flight"),
            text: format!(
                "without `answer_within` a copy waits up to {}, and most senders hang up sooner",
                short(route.policy.durations.attempt_timeout)
            ),
            hint: "`answer_within = \"8s\"`, or what is below the patience of the sender".into(),
        }),
        (IfInFlight::Waits, Some(_)) | (IfInFlight::Refused, _) => None,
    }
}

fn of_durations(at: &Key, route: &RouteSettings) -> Vec<Risk> {
    let durations = &route.policy.durations;
    let mut risks = Vec::new();
    let within = route.policy.answer_within;
    if within.is_some_and(|within| within > durations.attempt_timeout) && route.steps.is_none() {
        risks.push(Risk {
            code: "answer-after-attempt",
            key: at.join("answer_within"),
            text: "it changes nothing: every attempt ends before it, at `attempt_timeout`"
                .to_owned(),
            hint: format!(
                "make it shorter than `attempt_timeout`, which is {}, or that one longer",
                short(durations.attempt_timeout)
            )
            .into(),
        });
    }
    if durations.hold_for < durations.attempt_timeout {
        risks.push(Risk {
            code: "hold-below-attempt",
            key: at.join("hold_for"),
            text: "an operation is given free while the upstream may still work on it".to_owned(),
            hint: format!(
                "`hold_for = \"30d\"`, or what is above `attempt_timeout`, which is {}",
                short(durations.attempt_timeout)
            )
            .into(),
        });
    }
    risks
}

/// One lease fits both: with room for renewals, and not above what is left of an attempt, where
/// that is longer than the room.
fn of_lease(at: &Key, route: &RouteSettings, store: &store::Settings) -> Option<Risk> {
    // What is embedded knows at once after a crash that nobody holds its leases any more.
    let outlives = match store {
        store::Settings::Redis(_) | store::Settings::Postgres(_) => true,
        store::Settings::Embedded(_) | store::Settings::Memory => false,
    };
    let durations = &route.policy.durations;
    let longest = durations.attempt_timeout.max(LEASE_ROOM);
    if durations.lease < LEASE_ROOM {
        return Some(Risk {
            code: "lease-without-room",
            key: at.join("lease"),
            text: "one renewal that takes the store 2s leaves no room for another".to_owned(),
            hint: format!("`lease = \"{}\"`", short(LEASE_ROOM)).into(),
        });
    }
    (outlives && durations.lease > longest).then(|| Risk {
        code: "lease-above-attempt",
        key: at.join("lease"),
        text: "after a crash, copies are told `in flight` for longer than an attempt can take"
            .to_owned(),
        hint: format!("`lease = \"{}\"`", short(longest)).into(),
    })
}

fn of_gaps(at: &Key, route: &RouteSettings) -> Vec<Risk> {
    let mut risks = Vec::new();
    match route.policy.when_store_fails {
        WhenStoreFails::Refuse => {}
        WhenStoreFails::Forward => risks.push(Risk {
            code: "forwards-without-store",
            key: at.join("when_store_fails"),
            text: "while the store fails, every copy is forwarded".to_owned(),
            hint: "`\"refuse\"` lets the sender try again later".into(),
        }),
    }
    match route.when_key_missing {
        WhenKeyMissing::Refuse | WhenKeyMissing::HashBody => {}
        // A preset that says so has its reason.
        WhenKeyMissing::Forward if route.provider.is_some() => {}
        WhenKeyMissing::Forward => risks.push(Risk {
            code: "forwards-without-key",
            key: at.join("when_key_missing"),
            text: "without a key every copy is forwarded".to_owned(),
            hint: "`\"refuse\"`, or `\"hash-body\"` where copies are equal to the byte".into(),
        }),
    }
    risks
}
