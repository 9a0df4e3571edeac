//! Advice about secrets that do not have the shape of those that the sender gives out.
//!
//! No finding holds a character of a secret.

use super::finding::Finding;
use crate::config::key::Key;
use crate::config::settings::Config;
use crate::provider::{Provider, SecretFlaw, SecretShape};
use crate::proxy::Mode;
use crate::secret::Secret;

/// Every secret that is most likely not the one that the operator meant.
pub(in crate::config) fn misshapen(config: &Config) -> Vec<Finding> {
    let token = config.admin.token.as_ref();
    let token = token.and_then(|token| SecretShape::surroundings(token.reveal()));
    let token = token.map(|misshapen| of_token(&Key::of(&["admin", "token"]), &misshapen));
    // A route that only passes requests on checks no signature.
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

fn of_token(key: &Key, misshapen: &SecretFlaw) -> Finding {
    let (text, hint) = if *misshapen == SecretFlaw::Placeholder {
        (
            format!("it {misshapen}, which others may guess"),
            "make one, for example with `openssl rand -hex 32`",
        )
    } else {
        (format!("it {misshapen}, which is then a part of it"), WITHOUT)
    };
    Finding { code: misshapen.code(), key: key.clone(), text, hint: hint.into() }
}

fn of_sender(key: &Key, sender: &Provider, secret: &Secret) -> Option<Finding> {
    let misshapen = sender.facts.secret_shape.misshapen(secret.reveal())?;
    let title = &sender.title;
    let (text, hint) = if misshapen.was_added() {
        let text =
            format!("it {misshapen}: if {title} did not give it out so, every event is a 401");
        (text, WITHOUT.into())
    } else {
        let text = if misshapen == SecretFlaw::Placeholder {
            format!("it {misshapen}: if it is none that {title} has, every event is a 401")
        } else {
            format!("it {misshapen}, as those of {title} do: every event may be a 401")
        };
        let found = sender.facts.secret.as_ref().map(|found| format!("it is here: {found}"));
        (text, found.map_or("take that of the webhook, not of the API".into(), Into::into))
    };
    Some(Finding { code: misshapen.code(), key: key.clone(), text, hint })
}
