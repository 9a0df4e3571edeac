//! What is not known to be the sender's reaches neither the receiver nor the store.

use super::{CLAIMS, verifying};
use crate::support::{Event, Receiver, event, signing};

const SECRET: &str = "whsec_c2VjcmV0IG9mIHRoZXNlIHRlc3Rz";

/// One that is checked: where its signature is, and how it signs.
struct Signer {
    provider: &'static str,
    header: &'static str,
    /// What cannot be decoded.
    garbage: &'static str,
    has_time: bool,
    signed: fn(secret: &str, Event, at: u64) -> Event,
}

const SIGNERS: [Signer; 4] = [
    Signer {
        provider: "stripe",
        header: "stripe-signature",
        garbage: "t=1,v1=zz",
        has_time: true,
        signed: |secret, event, at| {
            let signature = signing::stripe(secret, at, &event.body);
            event.with("stripe-signature", &signature)
        },
    },
    Signer {
        provider: "standard-webhooks",
        header: "webhook-signature",
        garbage: "v1,*",
        has_time: true,
        signed: |secret, event, at| {
            let signature = signing::standard(secret, "msg_1", at, &event.body);
            let event = event.with("webhook-id", "msg_1").with("webhook-signature", &signature);
            event.with("webhook-timestamp", &at.to_string())
        },
    },
    Signer {
        provider: "github",
        header: "x-hub-signature-256",
        garbage: "sha256=zz",
        has_time: false,
        signed: |secret, event, _| {
            let signature = signing::github(secret, &event.body);
            let event = event.with("x-github-delivery", "d1").with("x-github-hook-id", "11");
            event.with("x-github-event", "push").with("x-hub-signature-256", &signature)
        },
    },
    Signer {
        provider: "shopify",
        header: "x-shopify-hmac-sha256",
        garbage: "****",
        has_time: false,
        signed: |secret, event, _| {
            let signature = signing::shopify(secret, &event.body);
            let event = event.with("x-shopify-webhook-id", "w1").with("x-shopify-topic", "t");
            let event = event.with("x-shopify-shop-domain", "a.example");
            event.with("x-shopify-hmac-sha256", &signature)
        },
    },
];

impl Signer {
    /// What must not be believed, and why it is not.
    fn forgeries(&self, genuine: &Event) -> Vec<(&'static str, &'static str, Event)> {
        let header = self.header;
        let now = signing::now();
        let genuine_value = genuine.value(header);
        let other = (self.signed)(SECRET, event("evt_2"), now).value(header);
        let with_other_body = {
            let mut event = genuine.clone();
            event.body.push(b' ');
            event
        };
        let stranger = (self.signed)("whsec_c3RyYW5nZXI=", genuine.clone(), now);
        let mut all = vec![
            ("without one", "signature-missing", genuine.clone().without(header)),
            ("an empty one", "signature-missing", genuine.clone().with(header, "")),
            ("a blank one", "signature-missing", genuine.clone().with(header, "  ")),
            ("another behind it", "signature-invalid", genuine.clone().header(header, &other)),
            (
                "another before it",
                "signature-invalid",
                genuine.clone().with(header, &other).header(header, &genuine_value),
            ),
            ("one of another event", "signature-invalid", genuine.clone().with(header, &other)),
            ("undecodable", "signature-invalid", genuine.clone().with(header, self.garbage)),
            ("of another body", "signature-invalid", with_other_body),
            ("of a stranger", "signature-invalid", stranger),
        ];
        if self.has_time {
            let old = (self.signed)(SECRET, genuine.clone(), now - 600);
            let ahead = (self.signed)(SECRET, genuine.clone(), now + 600);
            all.push(("too old", "signature-stale", old));
            all.push(("of the future", "signature-stale", ahead));
        }
        all
    }
}

#[tokio::test]
async fn a_signature_that_is_not_right_is_401_and_reaches_nobody() {
    for signer in &SIGNERS {
        let receiver = Receiver::that_answers(200, "ok").await;
        let onceward = verifying(&receiver, signer.provider, SECRET).start().await;
        let genuine = (signer.signed)(SECRET, event("evt_1"), signing::now());
        let forgeries = signer.forgeries(&genuine);
        let mut counted = 0.0;
        for (what, code, forged) in forgeries {
            let provider = signer.provider;
            let body = forged.body.clone();
            let reply = onceward.sends(forged).await;
            assert_eq!(reply.status, 401, "{provider}, {what}: {}", reply.text());
            reply.is_refused(401, code);
            assert_eq!(reply.header("onceward-operation"), None, "{provider}, {what}");
            assert_eq!(reply.header("www-authenticate"), Some("Signature"), "{provider}");
            let said = reply.text();
            assert!(!said.contains(SECRET), "{provider}, {what}: {said}");
            assert!(!said.contains(std::str::from_utf8(&body).unwrap()), "{provider}: {said}");
            let expected = hex::encode(signing::sha256(SECRET.as_bytes(), &body));
            assert!(!said.contains(&expected), "{provider}, {what}: {said}");
            counted += 1.0;
        }
        receiver.was_called(0);
        assert_eq!(onceward.metric(CLAIMS).await, 0.0);
        let refused = "onceward_requests_total{route=\"hooks\",disposition=\"refused\"}";
        assert_eq!(onceward.metric(refused).await, counted);
        // None of them has left a record: this is the first attempt.
        let reply = onceward.sends(genuine).await;
        reply.is_executed(200);
        let seen = receiver.seen().pop().unwrap();
        assert_eq!(seen.header("onceward-attempt"), Some("1"));
        assert_eq!(seen.header("onceward-verified"), Some(signer.provider));
    }
}

/// The log says why, for the operator; it never holds a secret or a body.
#[tokio::test]
async fn no_secret_and_no_body_comes_into_the_log() {
    let receiver = Receiver::that_answers(200, "ok").await;
    let onceward = verifying(&receiver, "stripe", SECRET).start().await;
    let genuine = (SIGNERS[0].signed)(SECRET, event("evt_1"), signing::now());
    for (_, code, forged) in SIGNERS[0].forgeries(&genuine) {
        onceward.sends(forged).await.is_refused(401, code);
    }
    onceward.sends(genuine.clone()).await.is_executed(200);
    onceward.logs("signature-stale").await;
    let log = serde_json::to_string(&onceward.log()).unwrap();
    for hidden in [SECRET, "payment.paid", &genuine.value("stripe-signature")] {
        assert!(!log.contains(hidden), "{hidden}");
    }
}
