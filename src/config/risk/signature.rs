//! Advice about what a signature does not protect.

use super::captured::captured;
use super::finding::{ExaminedRoute, Finding};
use crate::provider::preset;
use crate::proxy::Mode;

/// A missing check is a risk unless it was chosen. It was chosen where `verify = false` is written
/// (see [`unchecked_by_choice`]), or where the preset of the sender says that it never signs (see
/// [`sender_does_not_sign`]).
pub(super) fn unchecked_by_default(examined: &ExaminedRoute<'_>) -> Option<Finding> {
    let sender = examined.sender;
    let unsigned = sender.filter(|sender| sender.signature.is_none());
    let never_signs = unsigned.is_some_and(|sender| preset(&sender.name).is_some());
    if !examined.route.is_unverified() || !examined.route.verify || never_signs {
        return None;
    }
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
    let title = sender.map_or("the sender", |sender| &sender.title);
    let text = format!("who knows the URL can send what looks like an event of {title}");
    Some(examined.finding("signature-unchecked", setting, text, hint))
}

pub(super) fn unchecked_by_choice(examined: &ExaminedRoute<'_>) -> Option<Finding> {
    (examined.route.is_unverified() && !examined.route.verify).then(|| {
        examined.finding(
            "signature-unchecked",
            "verify",
            "no signature is checked: who knows the URL can send what looks like an event",
            "let nobody but the sender reach it, by its network or a path that is hard to guess",
        )
    })
}

pub(super) fn sender_does_not_sign(examined: &ExaminedRoute<'_>) -> Option<Finding> {
    let sender = examined.sender.filter(|sender| sender.signature.is_none())?;
    Some(examined.finding(
        "sender-does-not-sign",
        "provider",
        format!("no signature of {} can be checked", sender.title),
        "have it send a secret in a header, and check that with a `[signature]`",
    ))
}

/// PayPal's simulator signs for everybody who has an account there.
pub(super) fn secret_of_a_simulator(examined: &ExaminedRoute<'_>) -> Option<Finding> {
    let sender = examined.sender?;
    let signature = sender.signature.as_ref()?;
    let secrets = &examined.route.secrets;
    secrets.iter().any(|secret| signature.is_public_secret(secret)).then(|| {
        examined.finding(
            "secret-of-a-simulator",
            "secrets",
            format!("one of them is that of the simulator of {}: anybody can send", sender.title),
            "leave it out in production",
        )
    })
}

/// Without a separator between two signed parts, one captured signature fits several requests.
pub(super) fn signed_without_separator(examined: &ExaminedRoute<'_>) -> Option<Finding> {
    let sender = examined.sender.filter(|_| examined.verifies())?;
    let [first, second] = sender.signature.as_ref()?.divisible()?;
    Some(examined.finding(
        "signed-without-separator",
        "provider",
        format!(
            "`{first}` and `{second}` are signed with nothing between them: who has captured one \
             request can move bytes from one to the other under its signature"
        ),
        "name the text that the sender puts between them as `text:…`, or say `body = \"json\"` \
         where every body is a JSON object or array",
    ))
}

/// GET, HEAD and OPTIONS ask for nothing to be done, so that they are passed on without a check,
/// unless `methods` names them.
pub(super) fn methods_unverified(examined: &ExaminedRoute<'_>) -> Option<Finding> {
    let signs = examined.sender?.signature.is_some();
    // Where nothing is verified, `signature-unchecked` says so of all methods.
    let passing = examined.route.passing_methods();
    (signs && examined.verifies() && !passing.is_empty() && !examined.is_pass()).then(|| {
        examined.finding(
            "methods-unverified",
            "methods",
            format!(
                "{} without a body are forwarded, and no signature is checked",
                passing.join(", ")
            ),
            "a method that `methods` names is verified and deduplicated",
        )
    })
}

pub(super) fn captured_request(examined: &ExaminedRoute<'_>) -> Option<Finding> {
    let sender = examined.sender.filter(|_| examined.verifies())?;
    let text = captured(examined.route)?;
    let signature = sender.signature.as_ref()?;
    // The built-in `key.header` names headers of senders that send a key. A sender without a preset
    // may send no such header, and then an attacker can add one.
    let by_header = examined.route.key.headers.iter().any(|name| !signature.covers_header(name));
    let hint = if by_header && preset(&sender.name).is_none() {
        "`key.header = []` where it sends no such header: the key is then in what it signs"
    } else {
        "let nothing but TLS carry its requests, and change the secret if one was seen"
    };
    Some(examined.finding("captured-request", "provider", text, hint))
}

pub(super) fn observing(examined: &ExaminedRoute<'_>) -> Option<Finding> {
    (examined.route.mode == Mode::Observe).then(|| {
        examined.finding(
            "observing",
            "mode",
            "every copy is forwarded, forged ones too, which leave no record; what would have \
             become of it is reported",
            "`mode = \"enforce\"` forwards each event once",
        )
    })
}
