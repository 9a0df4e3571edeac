//! Vectors from the senders' own tests and documents.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::Deserialize;

use super::{CERTIFICATES, Request, SENDERS, base64};
use crate::clock::Clock;
use crate::operation::Timestamp;
use crate::provider::signature::{Certificates, SignatureError, Verifier};
use crate::secret::Secret;

#[derive(Deserialize)]
struct File {
    vectors: Vec<Vector>,
}

#[derive(Deserialize)]
struct Vector {
    id: String,
    scheme: String,
    secret: Option<String>,
    webhook_id: Option<String>,
    certificate_pem: Option<String>,
    method: String,
    url: Option<String>,
    headers: BTreeMap<String, String>,
    body_utf8: Option<String>,
    body_repeat: Option<Repeat>,
    body_len: usize,
    now: Option<u64>,
    expect: String,
    expected_digest: Option<String>,
    expected_response: Option<String>,
}

#[derive(Deserialize)]
struct Repeat {
    text: String,
    count: usize,
}

impl Vector {
    fn sender(&self) -> &str {
        match self.scheme.as_str() {
            "adyen-item" => "adyen",
            "adyen-raw" => "adyen-platform",
            "braintree-digest" | "braintree-challenge" => "braintree",
            "hubspot" if !self.headers.contains_key("X-HubSpot-Signature-v3") => "hubspot-old",
            other => other,
        }
    }

    fn request(&self) -> Request {
        let body = match (&self.body_utf8, &self.body_repeat) {
            (Some(text), None) => text.clone(),
            (None, Some(Repeat { text, count })) => text.repeat(*count),
            _ => panic!("{}: one body", self.id),
        };
        assert_eq!(body.len(), self.body_len, "{}", self.id);
        let mut request = Request::new(self.as_sent(body));
        request.method = self.method.parse().unwrap();
        if let Some(url) = &self.url {
            request.url.clone_from(url);
        }
        for (name, value) in &self.headers {
            request = request.header(name, value);
        }
        if let Some(now) = self.now {
            request.now = Timestamp(now * 1000);
        }
        request
    }

    /// Some vectors are only the innermost part of what is sent.
    fn as_sent(&self, body: String) -> String {
        let form = |payload: &str, signature: &str| {
            form_urlencoded::Serializer::new(String::new())
                .append_pair("bt_signature", signature)
                .append_pair("bt_payload", payload)
                .finish()
        };
        if self.scheme == "adyen-item" && !body.contains("notificationItems") {
            format!("{{\"notificationItems\":[{{\"NotificationRequestItem\":{body}}}]}}")
        } else if let Some(digest) = &self.expected_digest {
            form(&body, &format!("public|{digest}"))
        } else if let Some(response) = &self.expected_response {
            // The answer to a challenge is made as a signature is.
            let (_, challenge) = self.url.as_ref().unwrap().split_once("bt_challenge=").unwrap();
            form(challenge, response)
        } else {
            body
        }
    }

    fn verifier(&self) -> Verifier {
        let secret = self.secret.as_ref().or(self.webhook_id.as_ref()).unwrap();
        let tolerance = if self.now.is_some() { None } else { Some(Duration::MAX) };
        let certificates = self.certificate_pem.as_ref().map(|pem| {
            let url = self.headers["PAYPAL-CERT-URL"].clone();
            let trusted = [(url, pem.clone().into_bytes())];
            Certificates::with_trusted(Clock::system(), trusted).unwrap()
        });
        let certificates = certificates.as_ref().unwrap_or(&CERTIFICATES);
        let settings = &SENDERS[self.sender()];
        Verifier::new(settings, &[Secret::new(secret.clone())], tolerance, certificates).unwrap()
    }
}

fn vectors() -> Vec<Vector> {
    let text = include_str!("../../../../tests/fixtures/signature_vectors.json");
    serde_json::from_str::<File>(text).unwrap().vectors
}

#[test]
fn every_vector_gets_its_verdict() {
    let vectors = vectors();
    assert_eq!(vectors.len(), 100);
    for vector in vectors {
        let result = vector.request().verify(&vector.verifier());
        match (vector.expect.as_str(), &result) {
            ("invalid", Err(SignatureError::Undecided(_))) => panic!("{}: {result:?}", vector.id),
            ("valid", Ok(_)) | ("invalid", Err(_)) => {}
            _ => panic!("{}: expected {}, got {result:?}", vector.id, vector.expect),
        }
    }
}

#[test]
fn a_valid_vector_is_invalid_with_another_body_or_secret() {
    // Mailgun's signature does not cover the body.
    for vector in vectors().iter().filter(|v| v.expect == "valid" && v.scheme != "mailgun") {
        let mut request = vector.request();
        // In Adyen's items and forms most of the body is not what is signed: its start is not.
        if !matches!(vector.sender(), "adyen" | "braintree" | "twilio") {
            request.body.push(b' ');
            assert!(request.verify(&vector.verifier()).is_err(), "{}", vector.id);
            request.body.pop();
        }
        let Some(secret) = &vector.secret else {
            continue;
        };
        let other = match vector.sender() {
            "sendgrid" | "discord" => continue,
            "standard-webhooks" if secret.starts_with("whpk_") => continue,
            "standard-webhooks" => base64(b"another secret"),
            "adyen" | "adyen-platform" => format!("{secret}00").replace("00", "01"),
            _ => format!("{secret}x"),
        };
        let settings = &SENDERS[vector.sender()];
        let secrets = [Secret::new(other)];
        let within = Some(Duration::MAX);
        let verifier = Verifier::new(settings, &secrets, within, &CERTIFICATES).unwrap();
        assert!(request.verify(&verifier).is_err(), "{}", vector.id);
    }
}

/// A vector without `now` says nothing of when it came; most of them are years old.
#[test]
fn an_old_vector_is_stale_by_the_senders_own_tolerance() {
    for vector in vectors().iter().filter(|v| v.expect == "valid" && v.secret.is_some()) {
        let settings = &SENDERS[vector.sender()];
        if settings.tolerance().is_none() {
            continue;
        }
        if vector.scheme == "linear" {
            continue; // It has no timestamp at all.
        }
        let mut request = vector.request();
        request.now = Timestamp(2_000_000_000_000);
        let secrets = [Secret::new(vector.secret.clone().unwrap())];
        let verifier = Verifier::new(settings, &secrets, None, &CERTIFICATES).unwrap();
        let result = request.verify(&verifier);
        assert!(
            matches!(result, Err(SignatureError::Stale { ahead: false, .. })),
            "{}: {result:?}",
            vector.id
        );
    }
}
