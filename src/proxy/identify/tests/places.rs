//! Tests of the errors for a value that stands in two places.

use http::HeaderMap;

use super::*;
use crate::json::Document;
use crate::operation::{RequestMode, Timestamp};
use crate::provider::ReceivedRequest;
use crate::provider::signature::SignatureTable;

/// The sender signs its header, and an upstream that reads the body takes the other value.
#[test]
fn two_ids_of_one_event_are_refused_with_both_places() {
    let table = r#"
        scheme = "hmac"
        header = "X-Acme-Signature"
        signed = ["header:X-Acme-Id", "text:.", "body"]
        carries = { id = "header:X-Acme-Id" }
        [otherwise]
        scheme = "hmac"
        name = "plain"
        header = "X-Acme-Hmac"
        carries = { id = "json:/id" }
    "#;
    let settings = toml::from_str::<SignatureTable>(table).unwrap().settings().unwrap();
    let mut headers = HeaderMap::new();
    headers.insert("x-acme-id", HeaderValue::from_static("evt_1"));
    let body = br#"{"id":"evt_2","kind":"paid"}"#;
    let received = ReceivedRequest {
        method: &Method::POST,
        public_url: None,
        target: "/orders",
        headers: &headers,
        body,
        now: Timestamp(0),
    };
    let carried = settings.carried(&received);
    let route = route("acme").id("signature:id").kind("json:/kind");
    let rules = Rules {
        mode: RequestMode::Enforce,
        route: &route.name,
        prefix: None,
        methods: &route.methods,
        key: &route.key,
        fingerprint: &route.fingerprint,
        when_key_missing: route.when_key_missing,
    };
    let request = RequestView {
        method: &Method::POST,
        path: "/orders",
        query: None,
        headers: &headers,
        body: Document::new(body),
        carried: &carried,
    };
    assert_eq!(
        identify(&rules, &request).unwrap_err().to_string(),
        "unusable idempotency key: `signature:id` (header `x-acme-id` and member `/id` of the body) \
         is given twice, with different values"
    );
}
