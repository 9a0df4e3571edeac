//! Signatures as senders make them, written from their documents and with other libraries than
//! those that check them.

use std::sync::LazyLock;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, KeyInit as _, Mac as _};
use onceward::clock::Clock;
use ring::rand::SystemRandom;
use ring::signature::{ECDSA_P256_SHA256_ASN1_SIGNING, EcdsaKeyPair, Ed25519KeyPair, KeyPair as _};
use serde_json::{Value, json};
use sha1::{Digest as _, Sha1};
use sha2::{Sha256, Sha512};

use super::Event;

/// How senders see the proxy, for those that sign it.
pub const PUBLIC_URL: &str = "https://hooks.example.com";

/// The time of day in seconds.
pub fn now() -> u64 {
    Clock::system().wall().0 / 1000
}

pub fn rfc3339(seconds: u64) -> String {
    jiff::Timestamp::from_second(seconds.try_into().unwrap()).unwrap().to_string()
}

pub fn sha1(key: &[u8], message: &[u8]) -> Vec<u8> {
    Hmac::<Sha1>::new_from_slice(key)
        .unwrap()
        .chain_update(message)
        .finalize()
        .into_bytes()
        .to_vec()
}

pub fn sha256(key: &[u8], message: &[u8]) -> Vec<u8> {
    let mac = Hmac::<Sha256>::new_from_slice(key).unwrap().chain_update(message);
    mac.finalize().into_bytes().to_vec()
}

pub fn sha512(key: &[u8], message: &[u8]) -> Vec<u8> {
    let mac = Hmac::<Sha512>::new_from_slice(key).unwrap().chain_update(message);
    mac.finalize().into_bytes().to_vec()
}

pub fn base64(bytes: &[u8]) -> String {
    STANDARD.encode(bytes)
}

/// `Stripe-Signature`.
pub fn stripe(secret: &str, at: u64, body: &[u8]) -> String {
    format!("t={at},v1={}", stripe_v1(secret, at, body))
}

/// One `v1` of it.
pub fn stripe_v1(secret: &str, at: u64, body: &[u8]) -> String {
    hex::encode(sha256(secret.as_bytes(), &[format!("{at}.").as_bytes(), body].concat()))
}

/// `webhook-signature`; the secret is `whsec_` and base64.
pub fn standard(secret: &str, id: &str, at: u64, body: &[u8]) -> String {
    let key = STANDARD.decode(secret.strip_prefix("whsec_").unwrap()).unwrap();
    let signature = sha256(&key, &[format!("{id}.{at}.").as_bytes(), body].concat());
    format!("v1,{}", base64(&signature))
}

/// `X-Hub-Signature-256`.
pub fn github(secret: &str, body: &[u8]) -> String {
    format!("sha256={}", hex::encode(sha256(secret.as_bytes(), body)))
}

/// `X-Shopify-Hmac-Sha256`.
pub fn shopify(secret: &str, body: &[u8]) -> String {
    base64(&sha256(secret.as_bytes(), body))
}

/// `x-square-hmacsha256-signature`.
pub fn square(secret: &str, url: &str, body: &[u8]) -> String {
    base64(&sha256(secret.as_bytes(), &[url.as_bytes(), body].concat()))
}

/// `X-Twilio-Signature` of a form: the URL, then each field and its value, sorted.
pub fn twilio(secret: &str, url: &str, body: &[u8]) -> String {
    let mut fields: Vec<_> = form_urlencoded::parse(body).into_owned().collect();
    fields.sort();
    let fields: String = fields.into_iter().map(|(name, value)| name + &value).collect();
    base64(&sha1(secret.as_bytes(), format!("{url}{fields}").as_bytes()))
}

/// `X-HubSpot-Signature-v3`, of a POST at this millisecond.
pub fn hubspot(secret: &str, url: &str, body: &[u8], millis: u64) -> String {
    let message = [b"POST", url.as_bytes(), body, millis.to_string().as_bytes()].concat();
    base64(&sha256(secret.as_bytes(), &message))
}

/// The secret of a sender as its configuration has it; none if it does not sign.
pub fn secret(provider: &str) -> Option<String> {
    Some(match provider {
        "mollie-classic" | "chargebee" | "postmark" | "cloudevents" | "eventgrid" | "pubsub"
        | "msgraph" => return None,
        "adyen" | "adyen-platform" => hex::encode(provider.repeat(3)),
        "standard-webhooks" | "svix" => format!("whsec_{}", base64(provider.as_bytes())),
        "discord" => hex::encode(DISCORD.public_key()),
        "sendgrid" => {
            let head = "3059301306072a8648ce3d020106082a8648ce3d030107034200";
            let mut key = hex::decode(head).unwrap();
            key.extend_from_slice(SENDGRID.public_key().as_ref());
            base64(&key)
        }
        "stripe" | "stripe-thin" => format!("whsec_{provider}"),
        "paddle" => "pdl_ntfset_paddle".to_owned(),
        "paystack" => "sk_test_paystack".to_owned(),
        "revolut" => "wsk_revolut".to_owned(),
        "slack" => hex::encode("a secret of theirs").chars().take(32).collect(),
        "telegram" => "the-secret-of-telegram".to_owned(),
        other => format!("the secret of {other}"),
    })
}

static DISCORD: LazyLock<Ed25519KeyPair> = LazyLock::new(|| {
    let document = Ed25519KeyPair::generate_pkcs8(&SystemRandom::new()).unwrap();
    Ed25519KeyPair::from_pkcs8(document.as_ref()).unwrap()
});

static SENDGRID: LazyLock<EcdsaKeyPair> = LazyLock::new(|| {
    let (method, random) = (&ECDSA_P256_SHA256_ASN1_SIGNING, SystemRandom::new());
    let document = EcdsaKeyPair::generate_pkcs8(method, &random).unwrap();
    EcdsaKeyPair::from_pkcs8(method, document.as_ref(), &random).unwrap()
});

type Hash = fn(&[u8], &[u8]) -> Vec<u8>;
type Encoding = fn(&[u8]) -> String;

fn lower_hex(bytes: &[u8]) -> String {
    hex::encode(bytes)
}

/// Senders that sign the body and nothing else: header, hash, prefix, encoding.
const OF_THE_BODY: [(&str, &str, Hash, &str, Encoding); 19] = [
    ("authorize-net", "X-ANET-Signature", sha512, "sha512=", lower_hex),
    ("bitbucket", "X-Hub-Signature", sha256, "sha256=", lower_hex),
    ("checkout", "Cko-Signature", sha256, "", lower_hex),
    ("coinbase-commerce", "X-CC-Webhook-Signature", sha256, "", lower_hex),
    ("flutterwave", "flutterwave-signature", sha256, "", base64),
    ("github", "X-Hub-Signature-256", sha256, "sha256=", lower_hex),
    ("gocardless", "Webhook-Signature", sha256, "", lower_hex),
    ("intercom", "X-Hub-Signature", sha1, "sha1=", lower_hex),
    ("klarna", "Klarna-Signature", sha256, "", lower_hex),
    ("lemonsqueezy", "X-Signature", sha256, "", lower_hex),
    ("linear", "Linear-Signature", sha256, "", lower_hex),
    ("meta", "X-Hub-Signature-256", sha256, "sha256=", lower_hex),
    ("mollie", "X-Mollie-Signature", sha256, "sha256=", lower_hex),
    ("paystack", "x-paystack-signature", sha512, "", lower_hex),
    ("razorpay", "X-Razorpay-Signature", sha256, "", lower_hex),
    ("shopify", "X-Shopify-Hmac-Sha256", sha256, "", base64),
    ("woocommerce", "X-WC-Webhook-Signature", sha256, "", base64),
    ("worldpay", "Event-Signature", sha256, "", lower_hex),
    ("adyen-platform", "HmacSignature", sha256, "", base64),
];

/// The event as its sender would send it at this second; of one that does not sign, as it is. What
/// SNS and PayPal send cannot be made here: they sign with keys of their own.
pub fn signed(provider: &str, event: Event, at: u64) -> Event {
    let Some(secret) = secret(provider) else { return event };
    let event = timed(provider, event, at);
    let of_the_body = OF_THE_BODY.iter().find(|(name, ..)| *name == provider);
    if let Some((_, header, hash, prefix, encoding)) = of_the_body {
        let key = if provider == "adyen-platform" {
            hex::decode(secret).unwrap()
        } else {
            secret.into_bytes()
        };
        let signature = format!("{prefix}{}", encoding(&hash(&key, &event.body)));
        return event.with(header, &signature);
    }
    in_its_own_way(provider, event, at, &secret)
}

/// What is signed along has to be there first.
fn timed(provider: &str, event: Event, at: u64) -> Event {
    if provider == "linear" {
        return event.rewritten(|body| body["webhookTimestamp"] = json!(at * 1000));
    }
    event
}

fn in_its_own_way(provider: &str, event: Event, at: u64, secret: &str) -> Event {
    let url = format!("{PUBLIC_URL}{}", event.path);
    let (key, body) = (secret.as_bytes(), event.body.clone());
    let over = |before: &str| [before.as_bytes(), &body].concat();
    match provider {
        "stripe" | "stripe-thin" => event.with("Stripe-Signature", &stripe(secret, at, &body)),
        "gitlab" => event.with("X-Gitlab-Token", secret),
        "square" => event.with("x-square-hmacsha256-signature", &square(secret, &url, &body)),
        "twilio" => event.with("X-Twilio-Signature", &twilio(secret, &url, &body)),
        "hubspot" => {
            let signature = hubspot(secret, &url, &body, at * 1000);
            let event = event.with("X-HubSpot-Request-Timestamp", &(at * 1000).to_string());
            event.with("X-HubSpot-Signature-v3", &signature)
        }
        "paddle" => {
            let signature = hex::encode(sha256(key, &over(&format!("{at}:"))));
            event.with("Paddle-Signature", &format!("ts={at};h1={signature}"))
        }
        "recurly" => {
            let signature = hex::encode(sha256(key, &over(&format!("{at}000."))));
            event.with("Recurly-Signature", &format!("{at}000,{signature}"))
        }
        "slack" | "zoom" => {
            let signature = hex::encode(sha256(key, &over(&format!("v0:{at}:"))));
            let [time, header] = match provider {
                "slack" => ["X-Slack-Request-Timestamp", "X-Slack-Signature"],
                _ => ["x-zm-request-timestamp", "x-zm-signature"],
            };
            event.with(time, &at.to_string()).with(header, &format!("v0={signature}"))
        }
        "zendesk" => {
            let time = rfc3339(at);
            let signature = base64(&sha256(key, &over(&time)));
            let event = event.with("X-Zendesk-Webhook-Signature-Timestamp", &time);
            event.with("X-Zendesk-Webhook-Signature", &signature)
        }
        "twitch" => {
            let (id, time) = (event.value("Twitch-Eventsub-Message-Id"), rfc3339(at));
            let signature = hex::encode(sha256(key, &over(&format!("{id}{time}"))));
            let event = event.with("Twitch-Eventsub-Message-Timestamp", &time);
            event.with("Twitch-Eventsub-Message-Signature", &format!("sha256={signature}"))
        }
        "standard-webhooks" | "svix" => {
            let prefix = if provider == "svix" { "svix" } else { "webhook" };
            let id = event.value(&format!("{prefix}-id"));
            let signature = standard(secret, &id, at, &body);
            let event = event.with(&format!("{prefix}-timestamp"), &at.to_string());
            event.with(&format!("{prefix}-signature"), &signature)
        }
        _ => beyond_an_hmac_of_the_head(provider, event, at, secret),
    }
}

/// With keys of two halves, or with the signature in the body.
fn beyond_an_hmac_of_the_head(provider: &str, event: Event, at: u64, secret: &str) -> Event {
    let (key, body) = (secret.as_bytes(), event.body.clone());
    let timed = [at.to_string().as_bytes(), &body].concat();
    match provider {
        "discord" => {
            let signature = hex::encode(DISCORD.sign(&timed));
            let event = event.with("X-Signature-Timestamp", &at.to_string());
            event.with("X-Signature-Ed25519", &signature)
        }
        "sendgrid" => {
            let made = SENDGRID.sign(&SystemRandom::new(), &timed).unwrap();
            let event = event.with("X-Twilio-Email-Event-Webhook-Timestamp", &at.to_string());
            event.with("X-Twilio-Email-Event-Webhook-Signature", &base64(made.as_ref()))
        }
        "mailgun" => {
            let token = hex::encode(sha256(b"token", &[&body[..], &at.to_be_bytes()].concat()));
            let signature = hex::encode(sha256(key, format!("{at}{token}").as_bytes()));
            let signature =
                json!({ "timestamp": at.to_string(), "token": token, "signature": signature });
            event.rewritten(|body| body["signature"] = signature)
        }
        "braintree" => {
            let payload = event.field("bt_payload");
            let signature = sha1(&Sha1::digest(key), payload.as_bytes());
            let signature = format!("other|00&public|{}", hex::encode(signature));
            let form = form_urlencoded::Serializer::new(String::new())
                .append_pair("bt_signature", &signature)
                .append_pair("bt_payload", &payload)
                .finish();
            Event { body: form.into_bytes(), ..event }
        }
        "adyen" => event.rewritten(|body| {
            for item in body["notificationItems"].as_array_mut().unwrap() {
                adyen(&mut item["NotificationRequestItem"], &hex::decode(secret).unwrap());
            }
        }),
        other => panic!("`{other}` signs in a way that is not known here"),
    }
}

/// Signs one item of a notification.
fn adyen(item: &mut Value, key: &[u8]) {
    let text = |pointer: &str| match item.pointer(pointer) {
        None => String::new(),
        Some(Value::String(text)) => text.clone(),
        Some(other) => other.to_string(),
    };
    let values = [
        "/pspReference",
        "/originalReference",
        "/merchantAccountCode",
        "/merchantReference",
        "/amount/value",
        "/amount/currency",
        "/eventCode",
        "/success",
    ];
    let message = values.map(text).join(":");
    item["additionalData"] = json!({ "hmacSignature": base64(&sha256(key, message.as_bytes())) });
}
