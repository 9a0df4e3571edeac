//! What is allowed, but may not be meant.

use std::time::Duration;

use super::Config;
use super::problem::Key;
use crate::idempotency::{WhenInFlight, WhenStoreFails};
use crate::proxy::{RouteSettings, WhenKeyMissing};
use crate::store::{self, embedded::Durability};

/// Something that an operator should have decided, not overlooked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Risk {
    /// The setting that it comes from.
    pub key: Key,
    /// What may happen.
    pub text: String,
    /// What would help.
    pub hint: &'static str,
}

/// A third of the lease has to have room for one renewal that takes as long as a store may take.
const LEASE_ROOM: Duration = Duration::from_secs(6);

pub(super) fn of(config: &Config) -> Vec<Risk> {
    let mut risks = Vec::new();
    risks.extend(of_trust(config));
    risks.extend(of_store(&config.store));
    for route in &config.routes {
        let at = Key::of(&["routes", &route.name]);
        risks.extend(of_waiting(&at, route));
        risks.extend(of_terms(&at, route));
        risks.extend(of_gaps(&at, route));
    }
    risks
}

fn of_trust(config: &Config) -> Option<Risk> {
    let everybody = config.server.trusted_proxies.iter().any(|network| network.prefix_len() == 0);
    everybody.then(|| Risk {
        key: Key::of(&["server", "trusted_proxies"]),
        text: "every sender can claim any address in `X-Forwarded-For`".to_owned(),
        hint: "name the networks of your own proxies",
    })
}

fn of_store(store: &store::Settings) -> Option<Risk> {
    match store {
        store::Settings::Memory => Some(Risk {
            key: Key::of(&["store", "memory"]),
            text: "every operation is forgotten at exit, so that a later copy runs again"
                .to_owned(),
            hint: "`[store.embedded]` remembers",
        }),
        store::Settings::Embedded(embedded) => match embedded.durability {
            Durability::Sync => None,
            Durability::Os => Some(Risk {
                key: Key::of(&["store", "embedded", "durability"]),
                text: "if the machine crashes, the last operations may be forgotten and run again"
                    .to_owned(),
                hint: "`durability = \"sync\"` survives that",
            }),
        },
    }
}

fn of_waiting(at: &Key, route: &RouteSettings) -> Option<Risk> {
    match (route.policy.when_in_flight, route.policy.answer_within) {
        (WhenInFlight::Wait { .. }, None) => Some(Risk {
            key: at.join("answer_within"),
            text: format!(
                "unset: a copy waits up to {:?}, and most senders hang up sooner",
                route.policy.terms.attempt_timeout
            ),
            hint: "set it below the patience of the sender, such as `\"8s\"`",
        }),
        (WhenInFlight::Wait { .. }, Some(_)) | (WhenInFlight::Refuse, _) => None,
    }
}

fn of_terms(at: &Key, route: &RouteSettings) -> Vec<Risk> {
    let terms = &route.policy.terms;
    let mut risks = Vec::new();
    if terms.lease < LEASE_ROOM {
        risks.push(Risk {
            key: at.join("lease"),
            text: "one renewal that takes the store 2s leaves no room for another".to_owned(),
            hint: "`6s` or more",
        });
    }
    if terms.hold_for < terms.attempt_timeout {
        risks.push(Risk {
            key: at.join("hold_for"),
            text: "an operation is given free while the upstream may still work on it".to_owned(),
            hint: "make it longer than `attempt_timeout`",
        });
    }
    risks
}

fn of_gaps(at: &Key, route: &RouteSettings) -> Vec<Risk> {
    let mut risks = Vec::new();
    match route.policy.when_store_fails {
        WhenStoreFails::Refuse => {}
        WhenStoreFails::Forward => risks.push(Risk {
            key: at.join("when_store_fails"),
            text: "while the store fails, every copy is forwarded".to_owned(),
            hint: "`\"refuse\"` lets the sender try again later",
        }),
    }
    match route.when_key_missing {
        WhenKeyMissing::Refuse | WhenKeyMissing::HashBody => {}
        WhenKeyMissing::Forward => risks.push(Risk {
            key: at.join("when_key_missing"),
            text: "without a key every copy is forwarded".to_owned(),
            hint: "`\"refuse\"`, or `\"hash-body\"` where copies are equal to the byte",
        }),
    }
    risks
}
