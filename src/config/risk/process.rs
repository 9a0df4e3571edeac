//! Advice about the process as a whole: its listeners, its shutdown and its store.

use std::time::Duration;

use super::finding::{ExaminedRoute, Finding};
use super::secret;
use crate::budget::Share;
use crate::config::key::Key;
use crate::config::quantity::short;
use crate::config::settings::Config;
use crate::idempotency::WhenStoreFails;
use crate::proxy::RouteSettings;
use crate::secret::Secret;
use crate::store;
use crate::store::embedded::Durability;

/// What a shutdown needs beyond the longest attempt, to record its outcome and to answer.
const SHUTDOWN_ROOM: Duration = Duration::from_secs(5);

/// A token with fewer characters is likely to be a word.
const TOKEN_CHARACTERS_MIN: usize = 16;

/// The risks that belong to no route, in the order in which they are printed.
pub(super) fn risks(config: &Config) -> Vec<Finding> {
    let mut risks = Vec::new();
    risks.extend(everybody_trusted(config));
    risks.extend(peer_is_a_proxy(config));
    risks.extend(shutdown_below_attempt(config));
    risks.extend(admin_token_short(config));
    risks.extend(secret::misshapen(config));
    risks.extend(forgetful_store(&config.store));
    risks
}

fn everybody_trusted(config: &Config) -> Option<Finding> {
    let everybody = config.server.trusted_proxies.iter().any(|network| network.prefix_len() == 0);
    everybody.then(|| Finding {
        code: "everybody-trusted",
        key: Key::of(&["server", "trusted_proxies"]),
        text: "every sender can claim any address in `X-Forwarded-For`".to_owned(),
        hint: "name the networks of your own proxies".into(),
    })
}

fn peer_is_a_proxy(config: &Config) -> Option<Finding> {
    // A peer whose share is the whole is not limited.
    let is_limited = config.server.limits.per_peer_max != Share::WHOLE;
    (is_limited && config.server.trusted_proxies.is_empty()).then(|| Finding {
        code: "peer-is-a-proxy",
        key: Key::of(&["server", "limits", "per_peer_max"]),
        text: "behind a proxy all senders are one peer and share its places".to_owned(),
        hint: "name your proxies in `server.trusted_proxies`, if there are any".into(),
    })
}

/// An attempt that a shutdown cuts off leaves its operation uncertain.
fn shutdown_below_attempt(config: &Config) -> Option<Finding> {
    let longest = config.routes.iter().map(longest_attempt).max()?;
    (config.server.shutdown_timeout < longest).then(|| Finding {
        code: "shutdown-below-attempt",
        key: Key::of(&["server", "shutdown_timeout"]),
        text: format!(
            "a restart cuts off attempts, which may take {}, and leaves them uncertain",
            short(longest)
        ),
        hint: format!("`shutdown_timeout = \"{}\"`", short(longest + SHUTDOWN_ROOM)).into(),
    })
}

/// The timeout of the route, or of its slowest step.
fn longest_attempt(route: &RouteSettings) -> Duration {
    let steps = route.steps.iter().flat_map(|steps| steps.steps.iter());
    let of_steps = steps.map(|step| step.attempt_timeout).max();
    of_steps.unwrap_or(route.policy.durations.attempt_timeout)
}

fn admin_token_short(config: &Config) -> Option<Finding> {
    let is_short = |token: &&Secret| token.reveal().len() < TOKEN_CHARACTERS_MIN;
    config.admin.token.as_ref().filter(is_short).map(|_| Finding {
        code: "admin-token-short",
        key: Key::of(&["admin", "token"]),
        text: format!(
            "it has fewer than {TOKEN_CHARACTERS_MIN} characters, so that it can be guessed"
        ),
        hint: "`openssl rand -hex 32` makes one".into(),
    })
}

fn forgetful_store(store: &store::Settings) -> Option<Finding> {
    match store {
        store::Settings::Memory => Some(Finding {
            code: "store-in-memory",
            key: Key::of(&["store", "memory"]),
            text: "every operation is forgotten at exit, so that a later copy runs again"
                .to_owned(),
            hint: "`[store.embedded]` remembers".into(),
        }),
        // Only the server itself knows how durable it is. The store asks it when it connects.
        store::Settings::Redis(_) | store::Settings::Postgres(_) => None,
        store::Settings::Embedded(embedded) => match embedded.durability {
            Durability::Sync => None,
            Durability::Os => Some(Finding {
                code: "durability-of-the-system",
                key: Key::of(&["store", "embedded", "durability"]),
                text: "if the machine crashes, the last operations may be forgotten and run again"
                    .to_owned(),
                hint: "`durability = \"sync\"` survives that".into(),
            }),
        },
    }
}

pub(super) fn forwards_without_store(examined: &ExaminedRoute<'_>) -> Option<Finding> {
    match examined.route.policy.when_store_fails {
        WhenStoreFails::Refuse => None,
        WhenStoreFails::Forward => Some(examined.finding(
            "forwards-without-store",
            "when_store_fails",
            "while the store fails, every copy is forwarded",
            "`\"refuse\"` lets the sender try again later",
        )),
    }
}
