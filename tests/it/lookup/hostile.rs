//! Whatever an event's id is, a look-up reaches the configured host and path alone.

use serde_json::json;

use super::Asked;
use crate::support::{Act, Answer, Event};

fn with_id(id: &str) -> Event {
    Event::json(&json!({ "id": id, "type": "payment.paid" }))
}

#[tokio::test]
async fn a_hostile_id_is_one_encoded_segment_of_the_configured_path() {
    let asked = Asked::that(|_, _| Act::Close, |_, _| Answer::new(200, "").into()).await;
    let onceward = asked.with("", "").start().await;
    let long = "x".repeat(255);
    for (id, segment) in [
        ("../", "..%2F"),
        ("../../admin", "..%2F..%2Fadmin"),
        ("?a=b", "%3Fa%3Db"),
        ("#fragment", "%23fragment"),
        ("@evil.example", "%40evil.example"),
        ("//evil.example/", "%2F%2Fevil.example%2F"),
        ("%2f", "%252f"),
        ("%2e%2e", "%252e%252e"),
        ("\\..\\", "%5C..%5C"),
        ("a\r\nx-evil: 1\r\n\r\nGET /evil", "a%0D%0Ax-evil%3A%201%0D%0A%0D%0AGET%20%2Fevil"),
        ("caf\u{e9} \u{1f600}", "caf%C3%A9%20%F0%9F%98%80"),
        (&long, &long),
    ] {
        let before = asked.lookups().len();
        onceward.sends(with_id(id)).await.is_executed_as("upstream-broken", 502);
        onceward.sends(with_id(id)).await.is_replayed(200);
        let lookups = asked.lookups();
        assert_eq!(lookups.len(), before + 1, "{id:?}");
        let lookup = lookups.last().unwrap();
        assert_eq!(lookup.target, format!("/internal/events/{segment}"), "{id:?}");
        assert_eq!(lookup.header("host"), Some(&*asked.receiver.address.to_string()));
        assert_eq!(lookup.header("x-evil"), None);
    }
}

#[tokio::test]
async fn an_id_that_means_another_path_is_held_without_asking() {
    let asked = Asked::that(|_, _| Act::Close, |_, _| Answer::new(200, "").into()).await;
    let onceward = asked.with("", "").start().await;
    for id in [".", ".."] {
        onceward.sends(with_id(id)).await.is_executed_as("upstream-broken", 502);
        let copy = onceward.sends(with_id(id)).await;
        super::is_held(&onceward, &copy, "unknown: not asked: the key cannot be a part of the URL")
            .await;
    }
    assert!(asked.lookups().is_empty());
}

/// Without an event there is no event's id: nothing else is put in its place.
#[tokio::test]
async fn a_key_from_a_header_is_no_event_id() {
    let asked = Asked::that(|_, _| Act::Close, |_, _| Answer::new(200, "").into()).await;
    let lookup = format!("[routes.hooks.lookup]\nurl = \"{}/{{event_id}}\"", asked.receiver.url());
    let onceward = crate::support::Onceward::in_front_of(&asked.receiver)
        .defaults("when_uncertain = \"lookup\"")
        .routes(&lookup)
        .expects_log(super::HELD)
        .start()
        .await;
    let keyed = || with_id("evt_1").keyed("k1");
    onceward.sends(keyed()).await.is_executed_as("upstream-broken", 502);
    let copy = onceward.sends(keyed()).await;
    super::is_held(&onceward, &copy, "unknown: not asked: the key is not the id of an event").await;
    assert!(asked.lookups().is_empty());
}
