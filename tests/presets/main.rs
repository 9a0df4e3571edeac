//! What is known of each sender: complete, and right on requests of it.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod handshakes;
mod published;
mod samples;

use std::sync::Arc;
use std::time::Duration;

use http::{Method, StatusCode};
use onceward::config::Config;
use onceward::idempotency::{IfInFlight, Remember};
use onceward::provider::{Provider, presets};
use onceward::proxy::{FingerprintOver, Mode, RouteSettings};

fn route(name: &str) -> RouteSettings {
    Config::of_preset(name).unwrap().unwrap()
}

fn provider(name: &str) -> Arc<Provider> {
    route(name).provider.unwrap()
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

/// A copy waits for the outcome as long as its sender does, and is told to come back with a status
/// after which the sender does. Where nothing is remembered, a copy may be another change, which
/// must not share the attempt before it.
#[test]
fn no_preset_refuses_a_copy_in_a_way_that_loses_the_event() {
    for preset in presets() {
        let route = route(preset.name);
        let facts = &route.provider.as_ref().unwrap().facts;
        let name = preset.name;
        let waits = route.policy.if_in_flight == IfInFlight::Wait;
        assert_eq!(waits, route.policy.remember == Remember::Retention, "{name}");
        let answer_within = route.policy.answer_within.unwrap();
        assert!(facts.patience.is_none_or(|patience| answer_within < patience), "{name}");
        let ends_an_event = facts.retries_after(503) == Some(false) && !facts.never_retries();
        let expected = if ends_an_event { 429 } else { 503 };
        for status in [route.in_flight_status, route.uncertain_status] {
            assert_eq!(status, expected, "{name}");
            let lost = facts.retries_after(status.as_u16()) == Some(false);
            assert!(!lost || facts.never_retries(), "{name}");
        }
    }
}

/// Onceward answers 502 where the upstream is away, 503 where there is no store, too much to do or
/// a process that ends, and 504 where the upstream took too long.
#[test]
fn no_preset_answers_in_a_way_that_ends_an_event_that_is_not_done() {
    for preset in presets() {
        let route = route(preset.name);
        let facts = &route.provider.as_ref().unwrap().facts;
        for own in
            [StatusCode::BAD_GATEWAY, StatusCode::SERVICE_UNAVAILABLE, StatusCode::GATEWAY_TIMEOUT]
        {
            let sent = route.in_place_of(own);
            let is_lost = facts.is_final(sent) == Some(true) && !facts.never_retries();
            assert!(!is_lost, "{}: {sent} in place of {own}", preset.name);
        }
    }
}

#[test]
fn every_preset_remembers_for_longer_than_its_sender_tries_again() {
    for preset in presets() {
        let route = route(preset.name);
        let facts = &route.provider.as_ref().unwrap().facts;
        let retention = match route.policy.remember {
            Remember::Retention => route.policy.durations.retention,
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

/// A sender that changes a field between two deliveries must not get 422 for it.
#[test]
fn no_preset_binds_a_key_to_a_body_that_its_sender_may_change() {
    for preset in presets() {
        assert_eq!(route(preset.name).fingerprint.over, FingerprintOver::Parts(Vec::new()));
    }
}

/// Every change of a payment has the same body.
#[test]
fn a_sender_whose_changes_all_look_the_same_has_nothing_remembered() {
    for preset in presets() {
        let expected = match preset.name {
            "mollie-classic" | "sumup-checkout" => Remember::InFlight,
            _ => Remember::Retention,
        };
        assert_eq!(route(preset.name).policy.remember, expected, "{}", preset.name);
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

/// Without a tolerance a captured request runs again once the operation is forgotten. One that is
/// shorter than the retries refuses genuine ones, unless each is signed anew.
#[test]
fn every_time_that_is_signed_bounds_a_captured_request() {
    for preset in presets() {
        let route = route(preset.name);
        let provider = route.provider.as_deref().unwrap();
        let Some(signature) = provider.signature.as_ref().filter(|it| it.has_timestamp()) else {
            continue;
        };
        let name = preset.name;
        let tolerance = signature.tolerance().unwrap_or_else(|| panic!("{name}: none"));
        assert!(tolerance < route.policy.durations.retention, "{name}");
        let covers = provider.facts.retry_window.is_none_or(|window| window <= tolerance);
        assert!(covers || provider.facts.signed_anew, "{name}");
    }
}
