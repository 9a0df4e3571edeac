//! What holds for all bodies, headers and secrets.

use std::time::Duration;

use http::HeaderMap;
use http::header::{HeaderName, HeaderValue};
use proptest::prelude::*;

use super::{Request, SENDERS, base64, hmac_sha256, valid, verifier};

/// A sender that signs the whole body, and how it writes the tag of a message.
#[derive(Debug, Clone, Copy)]
enum Kind {
    GitHub,
    Stripe,
    Slack,
    Shopify,
    Recurly,
    Standard,
    Square,
}

const KINDS: [Kind; 7] = [
    Kind::GitHub,
    Kind::Stripe,
    Kind::Slack,
    Kind::Shopify,
    Kind::Recurly,
    Kind::Standard,
    Kind::Square,
];

impl Kind {
    fn sender(self) -> &'static str {
        match self {
            Self::GitHub => "github",
            Self::Stripe => "stripe",
            Self::Slack => "slack",
            Self::Shopify => "shopify",
            Self::Recurly => "recurly",
            Self::Standard => "standard-webhooks",
            Self::Square => "square",
        }
    }

    fn secret(self, key: &[u8]) -> String {
        if matches!(self, Self::Standard) { base64(key) } else { hex::encode(key) }
    }

    fn signed(self, key: &[u8], body: &[u8]) -> Request {
        let request = Request::new(body);
        let text = hex::encode(key);
        let tag = |before: &str| match self {
            Self::Standard => hmac_sha256(key, &[before.as_bytes(), body].concat()),
            Self::GitHub
            | Self::Stripe
            | Self::Slack
            | Self::Shopify
            | Self::Recurly
            | Self::Square => hmac_sha256(text.as_bytes(), &[before.as_bytes(), body].concat()),
        };
        let url = request.url.clone();
        let now = "1700000000";
        match self {
            Self::GitHub => {
                request.header("X-Hub-Signature-256", format!("sha256={}", hex::encode(tag(""))))
            }
            Self::Stripe => {
                let tag = hex::encode(tag(&format!("{now}.")));
                request.header("Stripe-Signature", format!("t={now},v1={tag}"))
            }
            Self::Slack => request.header("X-Slack-Request-Timestamp", now).header(
                "X-Slack-Signature",
                format!("v0={}", hex::encode(tag(&format!("v0:{now}:")))),
            ),
            Self::Shopify => request.header("X-Shopify-Hmac-Sha256", base64(&tag(""))),
            Self::Recurly => {
                let tag = hex::encode(tag(&format!("{now}000.")));
                request.header("Recurly-Signature", format!("{now}000,{tag}"))
            }
            Self::Standard => {
                request.header("webhook-id", "msg_1").header("webhook-timestamp", now).header(
                    "webhook-signature",
                    format!("v1,{}", base64(&tag(&format!("msg_1.{now}.")))),
                )
            }
            Self::Square => request.header("x-square-hmacsha256-signature", base64(&tag(&url))),
        }
    }
}

fn kinds() -> impl Strategy<Value = Kind> {
    proptest::sample::select(&KINDS)
}

proptest! {
    #[test]
    fn what_was_signed_is_valid(kind in kinds(), key: [u8; 32], body: Vec<u8>) {
        let request = kind.signed(&key, &body);
        prop_assert_eq!(request.from(kind.sender(), &["00ff", &kind.secret(&key)]), valid(1));
    }

    #[test]
    fn a_body_with_another_byte_is_invalid(
        kind in kinds(),
        key: [u8; 32],
        body in proptest::collection::vec(any::<u8>(), 1..64),
        at: prop::sample::Index,
        by in 1..=255_u8,
    ) {
        let mut request = kind.signed(&key, &body);
        let at = at.index(body.len());
        request.body[at] ^= by;
        prop_assert!(request.from(kind.sender(), &[&kind.secret(&key)]).is_err());
    }

    #[test]
    fn a_body_that_is_longer_or_shorter_is_invalid(
        kind in kinds(),
        key: [u8; 32],
        body in proptest::collection::vec(any::<u8>(), 1..64),
        more: u8,
    ) {
        let mut request = kind.signed(&key, &body);
        request.body.push(more);
        prop_assert!(request.from(kind.sender(), &[&kind.secret(&key)]).is_err());
        request.body.truncate(body.len() - 1);
        prop_assert!(request.from(kind.sender(), &[&kind.secret(&key)]).is_err());
    }

    #[test]
    fn a_header_with_another_byte_is_invalid(
        kind in kinds(),
        key: [u8; 32],
        which: prop::sample::Index,
        at: prop::sample::Index,
        to in 0x21..0x7f_u8,
    ) {
        let mut request = kind.signed(&key, b"{}");
        let names: Vec<HeaderName> = request.headers.keys().cloned().collect();
        let name = &names[which.index(names.len())];
        let mut value = request.headers[name].as_bytes().to_vec();
        let at = at.index(value.len());
        // Hexadecimal is read in either case.
        prop_assume!(!value[at].eq_ignore_ascii_case(&to));
        value[at] = to;
        request.headers.insert(name, HeaderValue::from_bytes(&value).unwrap());
        prop_assert!(request.from(kind.sender(), &[&kind.secret(&key)]).is_err());
    }

    #[test]
    fn another_secret_is_invalid(
        kind in kinds(),
        key: [u8; 32],
        at in 0..32_usize,
        by in 1..=255_u8,
        body: Vec<u8>,
    ) {
        let request = kind.signed(&key, &body);
        let mut other = key;
        other[at] ^= by;
        prop_assert!(request.from(kind.sender(), &[&kind.secret(&other)]).is_err());
    }

    #[test]
    fn no_header_and_no_body_makes_it_panic(
        values in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 0..40), 0..4),
        mut body in proptest::collection::vec(any::<u8>(), 0..80),
        json: bool,
        url in "(https://a\\.test)?/[ -~]{0,20}",
    ) {
        if json {
            body = format!("{{\"signature\":{{\"timestamp\":\"{}\"}}}}", body.escape_ascii()).into();
        }
        for (sender, secret) in secrets() {
            let mut request = Request::new(body.clone());
            request.url.clone_from(&url);
            request.headers = headers(&values);
            let verifier = verifier(sender, &[secret], Some(Duration::from_secs(1)));
            prop_assert!(request.verify(&verifier).is_err());
        }
    }
}

/// Every header that any of the schemes reads, with the values one after the other.
fn headers(values: &[Vec<u8>]) -> HeaderMap {
    const NAMES: [&str; 25] = [
        "stripe-signature",
        "paddle-signature",
        "recurly-signature",
        "x-hub-signature-256",
        "x-slack-signature",
        "x-slack-request-timestamp",
        "webhook-id",
        "webhook-timestamp",
        "webhook-signature",
        "x-twilio-signature",
        "content-type",
        "x-hubspot-signature-v3",
        "x-hubspot-signature",
        "x-hubspot-signature-version",
        "x-signature-ed25519",
        "x-signature-timestamp",
        "x-twilio-email-event-webhook-signature",
        "x-twilio-email-event-webhook-timestamp",
        "paypal-transmission-sig",
        "paypal-cert-url",
        "plaid-verification",
        "hmacsignature",
        "x-gitlab-token",
        "linear-signature",
        "twitch-eventsub-message-signature",
    ];
    let mut headers = HeaderMap::new();
    let valid = values.iter().filter_map(|value| HeaderValue::from_bytes(value).ok());
    for (index, value) in valid.enumerate() {
        for name in NAMES.iter().skip(index % 2) {
            headers.append(HeaderName::from_static(name), value.clone());
        }
    }
    headers
}

fn secrets() -> impl Iterator<Item = (&'static str, &'static str)> {
    SENDERS.keys().map(|sender| {
        let secret = match sender.as_str() {
            "plaid" => "client:secret",
            "sns" => "arn:aws:sns:us-east-2:123456789012:MyTopic",
            "discord" => "d52880e28f61caa4c2a48a82e55f4751a92289a78009ea9f6532270c16ce8abe",
            "sendgrid" => {
                "MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAE83T4O/n84iotIvIW4mdBgQ/7dAfSmpqIM8kF9mN1flpVKS3GRqe62gw+2fNNRaINXvVpiglSI8eNEc6wEA3F+g=="
            }
            "wise" => include_str!("../../../../tests/fixtures/rsa_public.pem"),
            _ => "00ff00ff",
        };
        (sender.as_str(), secret)
    })
}
