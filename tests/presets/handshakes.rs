//! Handshakes, as senders make them, and what looks like one.

use http::{HeaderMap, Method};
use onceward::provider::{Arrived, presets};

use super::samples::SAMPLES;
use super::{Sent, provider};

const FORM: &str = "Content-Type: application/x-www-form-urlencoded";

/// The name of the handshake that a request is, and whether it has to be signed.
fn handshake(
    name: &str,
    method: &Method,
    query: Option<&str>,
    text: &str,
) -> Option<(String, bool)> {
    let provider = provider(name);
    let Sent { headers, body } = Sent::read(text);
    let arrived = Arrived { method, query, headers: &headers, body: body.as_bytes() };
    provider.handshake_of(&arrived).map(|it| (it.name.clone(), it.signed))
}

/// The POST with this text.
fn post(name: &str, text: &str) -> Option<(String, bool)> {
    handshake(name, &Method::POST, None, text)
}

#[expect(clippy::unnecessary_wraps, reason = "it is compared with an option")]
fn is(name: &str, signed: bool) -> Option<(String, bool)> {
    Some((name.to_owned(), signed))
}

#[test]
fn signed_handshakes_are_known() {
    for (sender, name, text) in [
        (
            "slack",
            "URL verification",
            "\n{\"token\":\"t\",\"challenge\":\"c\",\"type\":\"url_verification\"}",
        ),
        (
            "zoom",
            "URL validation",
            "\n{\"event\":\"endpoint.url_validation\",\"payload\":{\"plainToken\":\"p\"},\"event_ts\":1}",
        ),
        (
            "sns",
            "subscription",
            "x-amz-sns-message-type: SubscriptionConfirmation\n\n{\"Type\":\"SubscriptionConfirmation\"}",
        ),
        ("sns", "end of the subscription", "x-amz-sns-message-type: UnsubscribeConfirmation\n\n{}"),
        ("discord", "ping", "\n{\"version\":1,\"application_id\":\"1\",\"type\":0}"),
        ("discord", "ping of interactions", "\n{\"id\":\"2\",\"type\":1}"),
        (
            "twitch",
            "callback verification",
            "Twitch-Eventsub-Message-Type: webhook_callback_verification\n\n{\"challenge\":\"c\"}",
        ),
        ("twitch", "revocation", "Twitch-Eventsub-Message-Type: revocation\n\n{}"),
        ("github", "ping", "X-GitHub-Event: ping\nX-GitHub-Delivery: G1\n\n{\"zen\":\"z\"}"),
        ("stripe-thin", "ping", "\n{\"id\":\"evt_1\",\"type\":\"v2.core.event_destination.ping\"}"),
        ("intercom", "ping", "\n{\"type\":\"notification_event\",\"topic\":\"ping\"}"),
        (
            "bitbucket",
            "ping of Bitbucket Server",
            "X-Event-Key: diagnostics:ping\n\n{\"test\":true}",
        ),
    ] {
        assert_eq!(post(sender, text), is(name, true), "{sender}");
    }
}

/// C53, C54
#[test]
fn unsigned_handshakes_are_known() {
    let form = |fields: &str| format!("{FORM}\n\n{fields}");
    assert_eq!(post("slack", &form("ssl_check=1&token=t")), is("certificate check", false));
    assert_eq!(post("woocommerce", &form("webhook_id=17")), is("saved", false));
    let validation = "aeg-event-type: SubscriptionValidation\n\n[{\"id\":\"1\"}]";
    assert_eq!(post("eventgrid", validation), is("validation", false));
    let by = |name, method: Method, query, text| handshake(name, &method, query, text);
    let token = Some("validationToken=abc%20def%2B1");
    assert_eq!(by("msgraph", Method::POST, token, ""), is("validation", false));
    let hub = Some("hub.mode=subscribe&hub.challenge=111&hub.verify_token=t");
    assert_eq!(by("meta", Method::GET, hub, ""), is("verification", false));
    assert_eq!(by("braintree", Method::GET, Some("bt_challenge=a1"), ""), is("challenge", false));
    let origin = "WebHook-Request-Origin: eventgrid.azure.net\n\n";
    assert_eq!(by("cloudevents", Method::OPTIONS, None, origin), is("validation", false));
}

/// What a sender does not sign must not be a way around the signature of an event.
#[test]
fn an_event_in_the_dress_of_an_unsigned_handshake_is_none() {
    let form = |fields: &str| format!("{FORM}\n\n{fields}");
    for fields in ["ssl_check=1&payload=%7B%7D", "ssl_check=2", "ssl_check=1&ssl_check=1"] {
        assert_eq!(post("slack", &form(fields)), None, "{fields}");
    }
    for fields in ["webhook_id=x", "webhook_id=", "webhook_id=1&order=2"] {
        assert_eq!(post("woocommerce", &form(fields)), None, "{fields}");
    }
    assert_eq!(post("woocommerce", "\nwebhook_id=17"), None);
    let with_body = "\n{\"value\":[]}";
    let token = Some("validationToken=abc");
    assert_eq!(handshake("msgraph", &Method::POST, token, with_body), None);
    let hub = Some("hub.mode=subscribe&hub.challenge=1&hub.verify_token=t");
    assert_eq!(handshake("meta", &Method::POST, hub, with_body), None);
    let twice = "\n{\"type\":\"event_callback\",\"type\":\"url_verification\"}";
    assert_eq!(post("slack", twice), None);
}

#[test]
fn no_event_is_a_handshake() {
    for sample in SAMPLES {
        for text in [sample.event, sample.retry].iter().chain(sample.siblings) {
            assert_eq!(post(sample.provider, text), None, "{}", sample.provider);
        }
    }
    for preset in presets() {
        let provider = provider(preset.name);
        let nothing =
            Arrived { method: &Method::POST, query: None, headers: &HeaderMap::new(), body: b"" };
        assert_eq!(provider.handshake_of(&nothing), None, "{}", preset.name);
    }
}
