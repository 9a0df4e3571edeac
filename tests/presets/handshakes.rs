//! Handshakes: what names one, and what only looks like one. Those that senders send are in
//! `samples/`.

use http::{HeaderMap, HeaderName, HeaderValue, Method};
use onceward::operation::Timestamp;
use onceward::provider::{Content, ReceivedRequest, presets};

use super::provider;

const FORM: &str = "Content-Type: application/x-www-form-urlencoded";

/// A request: lines of headers, a blank line, the body.
struct Sent<'a> {
    headers: HeaderMap,
    body: &'a str,
}

impl<'a> Sent<'a> {
    fn read(text: &'a str) -> Self {
        let (head, body) = text
            .split_once("\n\n")
            .unwrap_or_else(|| text.strip_prefix('\n').map_or((text, ""), |body| ("", body)));
        let lines = head.lines().map(|line| line.split_once(": ").unwrap());
        let headers = lines.map(|(name, value)| {
            let name: HeaderName = name.parse().unwrap();
            (name, HeaderValue::from_str(value).unwrap())
        });
        Self { headers: headers.collect(), body }
    }
}

/// The POST of this request.
fn received<'a>(target: &'a str, headers: &'a HeaderMap, body: &'a str) -> ReceivedRequest<'a> {
    let (method, body) = (&Method::POST, body.as_bytes());
    ReceivedRequest { method, public_url: None, target, headers, body, now: Timestamp(0) }
}

/// The name of the handshake that a request is.
fn handshake(name: &str, method: &Method, query: Option<&str>, text: &str) -> Option<String> {
    let provider = provider(name);
    let Sent { headers, body } = Sent::read(text);
    let target = query.map_or_else(|| "/".to_owned(), |query| format!("/?{query}"));
    let received = ReceivedRequest { method, ..received(&target, &headers, body) };
    provider.handshake_of(&received).map(|it| it.name.clone())
}

/// The POST with this text.
fn post(name: &str, text: &str) -> Option<String> {
    handshake(name, &Method::POST, None, text)
}

/// Any event could be sent under such a header, past its key, as often as one likes.
#[test]
fn no_header_alone_names_a_handshake() {
    for preset in presets() {
        for handshake in &provider(preset.name).handshakes {
            let by_header = !handshake.headers.is_empty();
            let open = handshake.content == Content::Any;
            assert!(!(by_header && open), "{}: {}", preset.name, handshake.name);
        }
    }
}

/// It could carry any event, past the signature.
#[test]
fn no_handshake_that_is_not_signed_has_an_open_body_where_events_are_signed() {
    for preset in presets().iter().filter(|preset| preset.signs()) {
        for handshake in provider(preset.name).handshakes.iter().filter(|it| !it.signed) {
            let closed = match &handshake.content {
                Content::Any => false,
                Content::Json(json) => json.whole,
                Content::Empty | Content::Form(_) => true,
            };
            assert!(closed, "{}: {}", preset.name, handshake.name);
        }
    }
}

/// An unsigned handshake must not be a way around the signature of an event.
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
    assert_eq!(handshake("meta", &Method::GET, hub, with_body), None);
    let challenge = Some("bt_challenge=a1");
    assert_eq!(handshake("braintree", &Method::GET, challenge, "\nbt_payload=x"), None);
    let twice = "\n{\"type\":\"event_callback\",\"type\":\"url_verification\"}";
    assert_eq!(post("slack", twice), None);
    let test =
        "X-Event-Key: diagnostics:ping\n\n{\"test\":true,\"eventKey\":\"repo:refs_changed\"}";
    assert_eq!(post("bitbucket-server", test), None);
    let hidden = "aeg-event-type: SubscriptionValidation\n\n[{\"eventType\":\"Microsoft.EventGrid.SubscriptionValidationEvent\",\"data\":{\"validationCode\":\"c\"}},{\"id\":\"1\",\"eventType\":\"paid\",\"data\":{}}]";
    assert_eq!(post("eventgrid", hidden), None);
}

#[test]
fn an_empty_request_is_no_handshake() {
    for preset in presets() {
        let provider = provider(preset.name);
        let headers = HeaderMap::new();
        assert_eq!(provider.handshake_of(&received("/", &headers, "")), None, "{}", preset.name);
    }
}
