//! The shape of secrets: what a provider's table says of it, and which secrets of a configuration
//! have another. No message holds a character of a secret.

use std::ops::RangeInclusive;

use super::Config;
use super::leaf::{List, Text, Written};
use super::problem::Key;
use super::raw_provider::RawFacts;
use super::risk::Risk;
use crate::provider::{Letters, Misshapen, Provider, SecretShape};
use crate::proxy::Mode;
use crate::secret::Secret;

/// How many characters a secret has: `32`, or `10-100`.
#[derive(Debug)]
pub(super) struct Lengths(RangeInclusive<usize>);

impl Written for Lengths {
    const EXPECTED: &'static str = "a number of characters such as `32`, or two such as `10-100`";

    fn read(text: &str) -> Option<Self> {
        let (least, most) = text.split_once('-').unwrap_or((text, text));
        let (least, most) = (least.parse().ok()?, most.parse().ok()?);
        (1 <= least && least <= most).then_some(Self(least..=most))
    }
}

impl Written for Letters {
    const EXPECTED: &'static str = "`hex` or `url-safe`";

    fn read(text: &str) -> Option<Self> {
        match text {
            "hex" => Some(Self::Hex),
            "url-safe" => Some(Self::UrlSafe),
            _ => None,
        }
    }
}

/// Takes what the facts say of a secret's shape.
pub(super) fn shape(raw: &mut RawFacts) -> SecretShape {
    let prefixes = raw.secret_prefix.take().and_then(List::complete);
    SecretShape {
        prefixes: prefixes.unwrap_or_default(),
        length: raw.secret_length.take().map(|Text(Lengths(length))| length),
        letters: raw.secret_characters.take().map(|Text(letters)| letters),
    }
}

/// Every secret that is most likely not the one that is meant.
pub(super) fn risks(config: &Config) -> Vec<Risk> {
    let token = config.admin.token.as_ref();
    let token = token.and_then(|token| SecretShape::surroundings(token.reveal()));
    let token = token.map(|misshapen| of_token(&Key::of(&["admin", "token"]), &misshapen));
    let verifying = config.routes.iter().filter(|route| route.mode != Mode::Pass);
    let of_routes = verifying.flat_map(|route| {
        let at = Key::of(&["routes", &route.name, "secrets"]);
        let of_one = move |(index, secret): (usize, &Secret)| {
            of_sender(&at.join(index.to_string()), route.provider.as_deref()?, secret)
        };
        route.secrets.iter().enumerate().filter_map(of_one)
    });
    token.into_iter().chain(of_routes).collect()
}

const WITHOUT: &str = "give it without that; one newline at the end is cut off anyway";

fn of_token(key: &Key, misshapen: &Misshapen) -> Risk {
    Risk {
        code: misshapen.code(),
        key: key.clone(),
        text: format!("it {misshapen}, which is then a part of it"),
        hint: WITHOUT.into(),
    }
}

fn of_sender(key: &Key, sender: &Provider, secret: &Secret) -> Option<Risk> {
    let misshapen = sender.facts.secret_shape.misshapen(secret.reveal())?;
    let title = &sender.title;
    let (text, hint) = if misshapen.was_added() {
        let text =
            format!("it {misshapen}: if {title} did not give it out so, every event is a 401");
        (text, WITHOUT.into())
    } else {
        let text = format!("it {misshapen}, as those of {title} do: every event may be a 401");
        let found = sender.facts.secret.as_ref().map(|found| format!("it is here: {found}"));
        (text, found.map_or("take that of the webhook, not of the API".into(), Into::into))
    };
    Some(Risk { code: misshapen.code(), key: key.clone(), text, hint })
}
