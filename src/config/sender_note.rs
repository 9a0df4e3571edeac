//! What is worth knowing of a route's sender, though nothing has to be done about it.

use super::captured::captured;
use super::event_risk::probes;
use super::problem::Key;
use super::quantity::short;
use super::risk::Risk;
use super::sender_risk::is_remembered;
use crate::provider::{Provider, preset};
use crate::proxy::{Mode, RouteSettings, WhenKeyMissing};

/// All of it, as far as the sender is known.
pub(super) fn notes(at: &Key, route: &RouteSettings) -> Vec<Risk> {
    let observing = (route.mode == Mode::Observe).then(|| Risk {
        code: "observing",
        key: at.join("mode"),
        text: "every copy is forwarded, forged ones too, which leave no record; what would have \
               become of it is reported"
            .to_owned(),
        hint: "`mode = \"enforce\"` forwards each event once".into(),
    });
    let unchecked = by_choice(at, route);
    let Some(sender) = route.provider.as_deref() else {
        return observing.into_iter().chain(unchecked).collect();
    };
    [
        observing,
        unchecked,
        probes(at, route, sender),
        unsigned(at, sender),
        captured_request(at, route),
        nothing_remembered(at, route, sender),
        without_key(at, route, sender),
        resent_by_hand(at, route, sender),
        never_again(at, sender),
        unconfirmed(at, sender),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// Somebody has decided it.
fn by_choice(at: &Key, route: &RouteSettings) -> Option<Risk> {
    (route.is_unverified() && !route.verify).then(|| Risk {
        code: "signature-unchecked",
        key: at.join("verify"),
        text: "no signature is checked: who knows the URL can send what looks like an event"
            .to_owned(),
        hint: "let nobody but the sender reach it, by its network or a path that is hard to guess"
            .into(),
    })
}

fn unsigned(at: &Key, sender: &Provider) -> Option<Risk> {
    sender.signature.is_none().then(|| Risk {
        code: "sender-does-not-sign",
        key: at.join("provider"),
        text: format!("no signature of {} can be checked", sender.title),
        hint: "have it send a secret in a header, and check that with a `[signature]`".into(),
    })
}

fn captured_request(at: &Key, route: &RouteSettings) -> Option<Risk> {
    let text = captured(route).filter(|_| !route.secrets.is_empty())?;
    let sender = route.provider.as_deref()?;
    let signature = sender.signature.as_ref()?;
    // The headers that are built in for those who send a key, which this sender may not be.
    let by_header = route.key.headers.iter().any(|name| !signature.covers_header(name));
    let hint = if by_header && preset(&sender.name).is_none() {
        "`key.header = []` where it sends no such header: the key is then in what it signs"
    } else {
        "let nothing but TLS carry its requests, and change the secret if one was seen"
    };
    Some(Risk { code: "captured-request", key: at.join("provider"), text, hint: hint.into() })
}

fn nothing_remembered(at: &Key, route: &RouteSettings, sender: &Provider) -> Option<Risk> {
    (!is_remembered(route)).then(|| Risk {
        code: "nothing-remembered",
        key: at.join("replay").join("remember"),
        text: format!(
            "two events of {} may look the same: nothing is replayed, a later one is forwarded",
            sender.title
        ),
        hint: "the application has to know an event that it has had".into(),
    })
}

fn without_key(at: &Key, route: &RouteSettings, sender: &Provider) -> Option<Risk> {
    (route.when_key_missing == WhenKeyMissing::Forward).then(|| Risk {
        code: "events-without-key",
        key: at.join("when_key_missing"),
        text: format!("of {} every copy without a key is forwarded", sender.title),
        hint: "the application has to know an event that it has had".into(),
    })
}

fn resent_by_hand(at: &Key, route: &RouteSettings, sender: &Provider) -> Option<Risk> {
    let window = sender.facts.resend_window.filter(|_| is_remembered(route))?;
    (route.policy.durations.retention <= window).then(|| Risk {
        code: "retention-below-resends",
        key: at.join("retention"),
        text: format!(
            "a person can have {} send an event again for {}: it then runs again",
            sender.title,
            short(window)
        ),
        hint: "make it longer if that is not meant".into(),
    })
}

fn never_again(at: &Key, sender: &Provider) -> Option<Risk> {
    sender.facts.never_retries().then(|| Risk {
        code: "sender-never-retries",
        key: at.join("provider"),
        text: format!(
            "{} does not try again: what fails is lost unless a person sends it again",
            sender.title
        ),
        hint: "watch for failed attempts".into(),
    })
}

fn unconfirmed(at: &Key, sender: &Provider) -> Option<Risk> {
    let facts = &sender.facts.unconfirmed;
    (!facts.is_empty()).then(|| Risk {
        code: "facts-unconfirmed",
        key: at.join("provider"),
        text: format!("of {} it is not confirmed: {}", sender.title, facts.join("; ")),
        hint: "try it with `mode = \"observe\"` first".into(),
    })
}
