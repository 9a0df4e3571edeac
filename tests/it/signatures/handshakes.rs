//! Handshakes: they reach the upstream as they are, each time, and nothing remembers them.

use std::collections::BTreeSet;

use super::{CLAIMS, with_senders};
use crate::support::{Act, Answer, Event, Receiver, signing};

struct Handshake {
    provider: &'static str,
    method: &'static str,
    /// What follows the path.
    query: &'static str,
    /// Lines of headers, a blank line, the body.
    text: &'static str,
    signed: bool,
}

const fn signed(provider: &'static str, text: &'static str) -> Handshake {
    Handshake { provider, method: "POST", query: "", text, signed: true }
}

const fn unsigned(
    provider: &'static str,
    method: &'static str,
    query: &'static str,
    text: &'static str,
) -> Handshake {
    Handshake { provider, method, query, text, signed: false }
}

const HUB: &str = "?hub.mode=subscribe&hub.challenge=111&hub.verify_token=t";

/// Those of SNS need a certificate; they have a test of their own.
const HANDSHAKES: [Handshake; 16] = [
    signed("slack", "\n{\"token\":\"t\",\"challenge\":\"c\",\"type\":\"url_verification\"}"),
    signed(
        "zoom",
        "\n{\"event\":\"endpoint.url_validation\",\"payload\":{\"plainToken\":\"p\"},\"event_ts\":1}",
    ),
    signed("discord", "\n{\"version\":1,\"application_id\":\"1\",\"type\":0}"),
    signed(
        "twitch",
        "Twitch-Eventsub-Message-Id: m1\n\
         Twitch-Eventsub-Message-Type: webhook_callback_verification\n\n{\"challenge\":\"c\"}",
    ),
    signed("github", "X-GitHub-Event: ping\nX-GitHub-Delivery: G1\n\n{\"zen\":\"z\"}"),
    signed("stripe-thin", "\n{\"id\":\"evt_1\",\"type\":\"v2.core.event_destination.ping\"}"),
    signed("intercom", "\n{\"type\":\"notification_event\",\"topic\":\"ping\"}"),
    unsigned("bitbucket-server", "POST", "", "X-Event-Key: diagnostics:ping\n\n{\"test\":true}"),
    unsigned(
        "slack",
        "POST",
        "",
        "Content-Type: application/x-www-form-urlencoded\n\nssl_check=1&token=t",
    ),
    unsigned(
        "woocommerce",
        "POST",
        "",
        "Content-Type: application/x-www-form-urlencoded\n\nwebhook_id=17",
    ),
    unsigned("meta", "GET", HUB, ""),
    unsigned("braintree", "GET", "?bt_challenge=20f9f8ed05f77439fe955c977e4c8a53", ""),
    unsigned("msgraph", "POST", "?validationToken=abc%20def%2B1", ""),
    unsigned(
        "eventgrid",
        "POST",
        "",
        "aeg-event-type: SubscriptionValidation\n\n[{\"eventType\":\"Microsoft.EventGrid.SubscriptionValidationEvent\",\"data\":{\"validationCode\":\"c\"}}]",
    ),
    unsigned("cloudevents", "OPTIONS", "", "WebHook-Request-Origin: eventgrid.azure.net\n\n"),
    unsigned("slack", "POST", "", "Content-Type: application/x-www-form-urlencoded\n\nssl_check=1"),
];

impl Handshake {
    fn event(&self) -> Event {
        let path = format!("/{}{}", self.provider, self.query);
        Event::written(self.text).to(&path).by(self.method)
    }

    fn sent(&self) -> Event {
        if !self.signed {
            return self.event();
        }
        signing::signed(self.provider, self.event(), signing::now())
    }

    /// The same, as somebody else would send it.
    fn forged(&self) -> Event {
        let forged = Event::bytes("{\"forged\":true}").header("Twitch-Eventsub-Message-Id", "m");
        let forged = signing::signed(self.provider, forged, signing::now());
        let signatures = forged
            .headers
            .into_iter()
            .filter(|(name, _)| !name.to_ascii_lowercase().ends_with("message-id"));
        signatures.fold(self.event(), |event, (name, value)| event.with(&name, &value))
    }
}

fn providers() -> Vec<&'static str> {
    HANDSHAKES.iter().map(|it| it.provider).collect::<BTreeSet<_>>().into_iter().collect()
}

/// Answers with how many it has had: an answer that is remembered would be an old number.
async fn that_counts() -> Receiver {
    let count = std::sync::atomic::AtomicUsize::new(0);
    Receiver::that(move |_, _| -> Act {
        let before = count.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
        Answer::new(200, before.to_string()).into()
    })
    .await
}

#[tokio::test]
async fn a_handshake_passes_untouched_each_time_it_comes() {
    let receiver = that_counts().await;
    let (onceward, _secrets) = with_senders(&receiver, &providers()).await;
    for handshake in &HANDSHAKES {
        for _ in 0..2 {
            let event = handshake.sent();
            let before = receiver.count();
            let what = format!("{}: {}", handshake.provider, handshake.text);
            let reply = onceward.sends(event.clone().header("onceward-verified", "me")).await;
            assert_eq!(reply.status, 200, "{what}: {}", reply.text());
            reply.is_passed(200);
            assert_eq!(reply.text(), before.to_string(), "{what}");
            let seen = receiver.seen().pop().unwrap();
            assert_eq!(seen.method, handshake.method, "{what}");
            assert_eq!((&seen.target, &seen.body), (&event.path, &event.body), "{what}");
            for (name, value) in &event.headers {
                assert_eq!(seen.header(name), Some(value.as_str()), "{what}");
            }
            let verified = handshake.signed.then_some(handshake.provider);
            assert_eq!(seen.header("onceward-verified"), verified, "{what}");
            assert_eq!(seen.header("onceward-operation"), None, "{what}");
            assert_eq!(seen.header("onceward-attempt"), None, "{what}");
        }
    }
    receiver.was_called(2 * HANDSHAKES.len());
    assert_eq!(onceward.metric(CLAIMS).await, 0.0);
}

/// Discord asks for it: it sends a ping with a wrong signature and expects a 401.
#[tokio::test]
async fn a_signed_handshake_with_a_wrong_signature_is_401() {
    let receiver = that_counts().await;
    let (onceward, _secrets) = with_senders(&receiver, &providers()).await;
    for handshake in HANDSHAKES.iter().filter(|it| it.signed) {
        let reply = onceward.sends(handshake.forged()).await;
        assert_eq!(reply.status, 401, "{}: {}", handshake.text, reply.text());
        reply.is_refused(401, "signature-invalid");
        let reply = onceward.sends(handshake.event()).await;
        assert_eq!(reply.status, 401, "{}: {}", handshake.text, reply.text());
    }
    receiver.was_called(0);
    assert_eq!(onceward.metric(CLAIMS).await, 0.0);
}

/// What is not signed must not be a way around the signature of an event.
#[tokio::test]
async fn what_is_more_than_an_unsigned_handshake_needs_a_signature() {
    let receiver = that_counts().await;
    let (onceward, _secrets) = with_senders(&receiver, &providers()).await;
    let form = |fields: &str| {
        Event::bytes(fields).header("content-type", "application/x-www-form-urlencoded")
    };
    let test_of = |body: &str| Event::bytes(body).header("x-event-key", "diagnostics:ping");
    for (path, event) in [
        ("/slack", form("ssl_check=1&payload=%7B%7D")),
        ("/slack", form("ssl_check=2")),
        ("/slack", form("ssl_check=1&ssl_check=1")),
        ("/slack", form("ssl_check=1").by("PUT")),
        ("/slack", Event::bytes("ssl_check=1")),
        ("/woocommerce", form("webhook_id=1&order=2")),
        ("/woocommerce", form("webhook_id=x")),
        ("/woocommerce", Event::bytes("webhook_id=17")),
        (&format!("/meta{HUB}"), Event::bytes("{\"entry\":[]}")),
        ("/braintree?bt_challenge=a1", form("bt_payload=AAA")),
        ("/bitbucket-server", test_of("{\"test\":true,\"eventKey\":\"repo:refs_changed\"}")),
        ("/bitbucket-server", test_of("{\"test\":\"true\"}")),
    ] {
        let text = String::from_utf8_lossy(&event.body).into_owned();
        let reply = onceward.sends(event.to(path)).await;
        assert_eq!(reply.status, 401, "{path}: {text}: {}", reply.text());
    }
    receiver.was_called(0);
    assert_eq!(onceward.metric(CLAIMS).await, 0.0);
}

/// Senders probe with what no preset describes. It is forwarded, and vouched for by nobody.
#[tokio::test]
async fn what_asks_for_nothing_to_be_done_passes_unsigned() {
    let receiver = that_counts().await;
    let (onceward, _secrets) = with_senders(&receiver, &["stripe"]).await;
    for method in ["GET", "HEAD", "OPTIONS"] {
        for _ in 0..2 {
            let before = receiver.count();
            let probe = Event::bytes("").to("/stripe?challenge=1").by(method);
            onceward.sends(probe).await.is_passed(200);
            receiver.was_called(before + 1);
            assert_eq!(receiver.seen().pop().unwrap().header("onceward-verified"), None);
        }
    }
    let refused = onceward.sends(Event::bytes("{}").to("/stripe").by("PUT")).await;
    refused.is_refused(401, "signature-missing");
    receiver.was_called(6);
    assert_eq!(onceward.metric(CLAIMS).await, 0.0);
}

/// Each token is answered by the upstream itself.
#[tokio::test]
async fn each_validation_token_is_answered_afresh() {
    let receiver = Receiver::that(|seen, _| -> Act {
        let (_, token) = seen.target.split_once("validationToken=").unwrap();
        let token = token.replace("%20", " ").replace("%2B", "+");
        Answer::new(200, token).header("content-type", "text/plain").into()
    });
    let receiver = receiver.await;
    let (onceward, _secrets) = with_senders(&receiver, &["msgraph"]).await;
    for (token, answer) in
        [("abc%20def%2B1", "abc def+1"), ("2", "2"), ("abc%20def%2B1", "abc def+1")]
    {
        let path = format!("/msgraph?validationToken={token}");
        let reply = onceward.sends(Event::bytes("").to(&path)).await;
        reply.is_passed(200);
        assert_eq!(
            (reply.text(), reply.header("content-type")),
            (answer.into(), Some("text/plain"))
        );
    }
    receiver.was_called(3);
}
