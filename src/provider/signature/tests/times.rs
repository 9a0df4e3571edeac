//! Timestamps and how far they may be from now.

use std::time::Duration;

use ring::signature::{Ed25519KeyPair, KeyPair};

use super::{Request, hmac_sha256, valid, verifier};
use crate::operation::Timestamp;
use crate::provider::signature::{InvalidReason, Location, SignatureError, TimestampFormat};

fn slack(timestamp: &str) -> Request {
    let message = format!("v0:{timestamp}:{{}}");
    let signature = format!("v0={}", hex::encode(hmac_sha256(b"secret", message.as_bytes())));
    Request::new("{}")
        .header("X-Slack-Request-Timestamp", timestamp)
        .header("X-Slack-Signature", signature)
}

/// Beyond a tolerance of 5 minutes.
fn stale(by: u64, ahead: bool) -> SignatureError {
    stale_beyond(300, by, ahead)
}

fn stale_beyond(tolerance: u64, by: u64, ahead: bool) -> SignatureError {
    let distance = Duration::from_secs(tolerance + by);
    SignatureError::Stale { by: Duration::from_secs(by), distance, ahead }
}

#[test]
fn a_timestamp_may_be_as_far_away_as_the_tolerance_either_way() {
    let now = 1_700_000_000;
    for (at, expected) in [
        (now - 300, valid(0)),
        (now + 300, valid(0)),
        (now - 301, Err(stale(1, false))),
        (now + 301, Err(stale(1, true))),
        (now - 4000, Err(stale(3700, false))),
        (1_000_000_000, Err(stale(now - 300 - 1_000_000_000, false))),
    ] {
        let mut request = slack(&at.to_string());
        assert_eq!(request.from("slack", &["secret"]), expected, "{at}");
        // A part of a second is no second.
        request.now = Timestamp(now * 1000 + 999);
        assert_eq!(request.from("slack", &["secret"]), expected, "{at}");
    }
}

#[test]
fn the_routes_tolerance_stands_for_the_senders() {
    let request = slack("1699999000");
    let verify = |tolerance| request.verify(&verifier("slack", &["secret"], Some(tolerance)));
    assert_eq!(verify(Duration::from_secs(1000)), valid(0));
    assert_eq!(verify(Duration::from_secs(999)), Err(stale_beyond(999, 1, false)));
    assert_eq!(verify(Duration::ZERO), Err(stale_beyond(0, 1000, false)));
    assert_eq!(verify(Duration::MAX), valid(0));
}

#[test]
fn a_wrong_signature_of_another_time_is_invalid_and_not_stale() {
    let request = slack("1000000000");
    let location = Location::Header("x-slack-signature".parse().unwrap());
    assert_eq!(request.from("slack", &["other"]), Err(InvalidReason::Mismatch(location).into()));
}

#[test]
fn what_is_no_time_is_refused_however_well_it_is_signed() {
    let location = Location::Header("x-slack-request-timestamp".parse().unwrap());
    for text in [
        "now",
        "+1700000000",
        "-1",
        "1700000000.0",
        "0x10",
        "1e9",
        "170000000",
        "17000000000",
        "1700000 00",
    ] {
        let expected = InvalidReason::Timestamp(location.clone(), TimestampFormat::Seconds);
        for tolerance in [None, Some(Duration::MAX)] {
            let result = slack(text).verify(&verifier("slack", &["secret"], tolerance));
            assert_eq!(result, Err(expected.clone().into()), "{text}");
        }
    }
}

#[test]
fn a_list_has_one_timestamp() {
    let list = |list: &str| Request::new("{}").header("Stripe-Signature", list);
    let location = || Location::Entry("stripe-signature".parse().unwrap(), "t=".to_owned());
    assert_eq!(
        list("t=1,t=2,v1=00").from("stripe", &["secret"]),
        Err(InvalidReason::Repeated(location()).into())
    );
    assert_eq!(
        list("v1=00").from("stripe", &["secret"]),
        Err(InvalidReason::Absent(location()).into())
    );
}

#[test]
fn a_time_in_rfc_3339_may_have_a_fraction_and_an_offset() {
    let twitch = |timestamp: &str| {
        let message = format!("id-1{timestamp}{{}}");
        let signature =
            format!("sha256={}", hex::encode(hmac_sha256(b"secret", message.as_bytes())));
        Request::new("{}")
            .header("Twitch-Eventsub-Message-Id", "id-1")
            .header("Twitch-Eventsub-Message-Timestamp", timestamp)
            .header("Twitch-Eventsub-Message-Signature", signature)
            .from("twitch", &["secret"])
    };
    // 1 700 000 000 is 22:13:20.
    assert_eq!(twitch("2023-11-14T22:13:20Z"), valid(0));
    assert_eq!(twitch("2023-11-14T22:13:19.634234626Z"), valid(0));
    assert_eq!(twitch("2023-11-14T23:03:21+01:00"), valid(0));
    assert_eq!(twitch("2023-11-14T22:03:19Z"), Err(stale_beyond(600, 1, false)));
    assert!(matches!(
        twitch("yesterday"),
        Err(SignatureError::Invalid(InvalidReason::Timestamp(..)))
    ));
    assert!(matches!(
        twitch("2023-11-14T22:13:20"),
        Err(SignatureError::Invalid(InvalidReason::Timestamp(..)))
    ));
}

#[test]
fn a_timestamp_within_the_signed_body_is_read_there() {
    let linear = |body: &str| {
        let signature = hex::encode(hmac_sha256(b"secret", body.as_bytes()));
        Request::new(body).header("Linear-Signature", signature).from("linear", &["secret"])
    };
    assert_eq!(linear(r#"{"webhookTimestamp":1700000060000}"#), valid(0));
    assert_eq!(linear(r#"{"webhookTimestamp":"1699999940000"}"#), valid(0));
    assert_eq!(linear(r#"{"webhookTimestamp":1699999939000}"#), Err(stale_beyond(60, 1, false)));
    let location = || Location::Member("/webhookTimestamp".to_owned());
    let invalid = |reason: InvalidReason| Err(reason.into());
    for body in [r#"{"webhookTimestamp":null}"#, r#"{"webhookTimestamp":""}"#] {
        assert_eq!(linear(body), invalid(InvalidReason::Absent(location())), "{body}");
    }
    // Nobody can take it out of what is signed: there was none.
    for body in ["{}", "[]"] {
        assert_eq!(linear(body), valid(0), "{body}");
    }
    for body in [r#"{"webhookTimestamp":-1}"#, r#"{"webhookTimestamp":"soon"}"#] {
        let expected = InvalidReason::Timestamp(location(), TimestampFormat::Milliseconds);
        assert_eq!(linear(body), invalid(expected), "{body}");
    }
    for body in [r#"{"webhookTimestamp":{}}"#, r#"{"webhookTimestamp":"\ud800"}"#] {
        assert_eq!(linear(body), invalid(InvalidReason::Unreadable(location())), "{body}");
    }
    // A body that cannot be read is not one without a time.
    for body in ["not json", r#"{"webhookTimestamp":1700000060000"#, r#"{"x":NaN}"#] {
        assert_eq!(linear(body), invalid(InvalidReason::Body("JSON in UTF-8")), "{body}");
    }
    let twice = r#"{"webhookTimestamp":1,"webhookTimestamp":1700000060000}"#;
    assert_eq!(linear(twice), invalid(InvalidReason::Repeated(location())));
}

/// What is not on the way to the timestamp need not be readable, and does not make it absent: not a
/// title that was cut within an emoji, nor a deep body, nor a number that no double holds.
#[test]
fn a_timestamp_is_found_beside_what_no_tree_could_hold() {
    let deep = format!("{}{}", "[".repeat(200), "]".repeat(200));
    for beside in [r#""Caf\ud83d""#, &deep, "1e999"] {
        for (at, expected) in [
            (1_700_000_000_000_u64, valid(0)),
            (1_668_000_000_000, Err(stale_beyond(60, 31_999_940, false))),
        ] {
            let body = format!(r#"{{"title":{beside},"webhookTimestamp":{at}}}"#);
            let signature = hex::encode(hmac_sha256(b"secret", body.as_bytes()));
            let request = Request::new(body).header("Linear-Signature", signature);
            assert_eq!(request.from("linear", &["secret"]), expected, "{beside:.20}");
        }
    }
}

/// Many of one size say that a clock is wrong.
#[test]
fn a_stale_signature_says_how_far_the_clocks_are_apart() {
    let offset = |at: &str| slack(at).from("slack", &["secret"]).unwrap_err().offset_millis();
    assert_eq!(offset("1700000900"), Some(900_000));
    assert_eq!(offset("1699999100"), Some(-900_000));
    let other = slack("1700000900").from("slack", &["other"]).unwrap_err();
    assert_eq!(other.offset_millis(), None);
}

#[test]
fn a_digit_cannot_be_moved_between_timestamp_and_body() {
    let pair = Ed25519KeyPair::from_seed_unchecked(&[9; 32]).unwrap();
    let public = hex::encode(pair.public_key());
    let signature = hex::encode(pair.sign(b"17000000001{}"));
    for (timestamp, body, is_valid) in
        [("1700000000", "1{}", true), ("17000000001", "{}", false), ("170000000", "01{}", false)]
    {
        let request = Request::new(body)
            .header("X-Signature-Timestamp", timestamp)
            .header("X-Signature-Ed25519", &signature);
        let result = request.from("discord", &[&public]);
        assert_eq!(result.is_ok(), is_valid, "{timestamp} {result:?}");
    }
}
