//! What is known of each sender: complete, and right on an event of it.
#![expect(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

mod handshakes;
mod samples;

use std::sync::Arc;
use std::time::Duration;

use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode};
use onceward::config::Config;
use onceward::idempotency::{Remember, WhenInFlight};
use onceward::provider::{Provider, presets};
use onceward::proxy::{FingerprintOver, Identity, Mode, RequestView, RouteSettings};
use onceward::proxy::{Rules, WhenKeyMissing, identify};
use samples::SAMPLES;

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

fn route(name: &str) -> RouteSettings {
    Config::of_preset(name).unwrap().unwrap()
}

fn provider(name: &str) -> Arc<Provider> {
    route(name).provider.unwrap()
}

/// The operation that a preset takes a request for; none: it is forwarded without one.
fn operation(route: &RouteSettings, text: &str) -> Option<String> {
    let sent = Sent::read(text);
    let view = RequestView {
        method: &Method::POST,
        path: "/hooks",
        query: None,
        headers: &sent.headers,
        body: sent.body.as_bytes(),
    };
    let name = &route.provider.as_ref().unwrap().name;
    match identify(&Rules::from(route), &view) {
        Ok(Identity::Keyed(identified)) => Some(identified.asked.id.to_string()),
        Ok(Identity::Passed) => None,
        Err(error) => panic!("{name}: {error}\n{text}"),
    }
}

#[test]
fn every_preset_is_read_and_complete() {
    for preset in presets() {
        let route = route(preset.name);
        let provider = route.provider.as_deref().unwrap();
        let name = preset.name;
        assert_eq!(provider.name, name);
        assert!(!provider.title.is_empty(), "{name}");
        assert!(provider.facts.success.is_some(), "{name}");
        assert!(provider.facts.on_failure.is_some(), "{name}");
        assert_eq!(provider.signature.is_some(), provider.facts.secret.is_some(), "{name}");
        assert!(preset.toml.lines().all(|line| !line.ends_with(' ')), "{name}");
        // Nothing that only an operator may decide.
        assert_eq!(route.mode, Mode::Enforce, "{name}");
        assert_eq!(route.methods, [Method::POST, Method::PUT, Method::PATCH, Method::DELETE]);
    }
}

/// C04, C12: a copy waits for the outcome as long as its sender does, and is told to come back with
/// a status after which the sender does.
#[test]
fn no_preset_refuses_a_copy_in_a_way_that_loses_the_event() {
    for preset in presets() {
        let route = route(preset.name);
        let facts = &route.provider.as_ref().unwrap().facts;
        let name = preset.name;
        assert!(matches!(route.policy.when_in_flight, WhenInFlight::Wait { .. }), "{name}");
        let answer_within = route.policy.answer_within.unwrap();
        assert!(facts.patience.is_none_or(|patience| answer_within < patience), "{name}");
        for status in [route.in_flight_status, route.uncertain_status] {
            assert_eq!(status, StatusCode::SERVICE_UNAVAILABLE, "{name}");
            let lost = facts.retries_after(status.as_u16()) == Some(false);
            assert!(!lost || facts.never_retries(), "{name}");
        }
    }
}

/// C93
#[test]
fn every_preset_remembers_for_longer_than_its_sender_tries_again() {
    for preset in presets() {
        let route = route(preset.name);
        let facts = &route.provider.as_ref().unwrap().facts;
        let retention = match route.policy.remember {
            Remember::Retention => route.policy.terms.retention,
            Remember::InFlight => Duration::MAX,
        };
        for window in [facts.retry_window, facts.resend_window].into_iter().flatten() {
            assert!(retention > window, "{}", preset.name);
        }
        if let Some(largest) = facts.largest_event_bytes {
            assert!(route.request_bytes_max >= largest, "{}", preset.name);
        }
    }
}

/// C31: a sender that changes a field between two deliveries must not get 422 for it.
#[test]
fn no_preset_binds_a_key_to_a_body_that_its_sender_may_change() {
    for preset in presets() {
        assert_eq!(route(preset.name).fingerprint.over, FingerprintOver::Parts(Vec::new()));
    }
}

/// C13, C14, C17, C20, C22, C23
#[test]
fn every_preset_knows_a_retry_from_a_sibling() {
    let sampled: Vec<&str> = SAMPLES.iter().map(|sample| sample.provider).collect();
    let named: Vec<&str> = presets().iter().map(|preset| preset.name).collect();
    assert_eq!(sampled, named);
    for sample in SAMPLES {
        let route = route(sample.provider);
        let name = sample.provider;
        let event = operation(&route, sample.event);
        assert!(event.is_some(), "{name}");
        assert_eq!(operation(&route, sample.retry), event, "{name}: its retry");
        for sibling in sample.siblings {
            assert_ne!(operation(&route, sibling), event, "{name}: {sibling}");
        }
    }
}

/// C15: every change of a payment has the same body.
#[test]
fn a_sender_whose_changes_all_look_the_same_has_nothing_remembered() {
    assert_eq!(route("mollie-classic").policy.remember, Remember::InFlight);
    let others = presets().iter().filter(|preset| preset.name != "mollie-classic");
    for preset in others {
        assert_eq!(route(preset.name).policy.remember, Remember::Retention, "{}", preset.name);
    }
}

/// Two changes of one object that have no id may look the same, so that nothing is taken for a copy.
#[test]
fn what_has_no_identity_is_forwarded_where_the_body_is_none_either() {
    for (name, text) in [
        (
            "msgraph",
            "\n{\"value\":[{\"subscriptionId\":\"s\",\"changeType\":\"updated\",\"resource\":\"/me/drive/root\"}]}",
        ),
        (
            "twilio",
            "Content-Type: application/x-www-form-urlencoded\n\nAccountSid=AC1&CallSid=CA1&CallStatus=in-progress",
        ),
    ] {
        let route = route(name);
        assert_eq!(route.when_key_missing, WhenKeyMissing::Forward);
        assert_eq!(operation(&route, text), None, "{name}");
    }
}

/// A preset's own key is none of what it says is not the event.
#[test]
fn no_preset_keys_on_what_is_not_the_event() {
    for preset in presets() {
        let route = route(preset.name);
        let facts = &route.provider.as_ref().unwrap().facts;
        let id = route.key.event.id.to_string();
        let remembered = route.policy.remember == Remember::Retention;
        assert!(!(remembered && facts.not_the_event.contains_key(&id)), "{}", preset.name);
    }
}
