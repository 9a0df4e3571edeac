//! Several secrets, several signatures, several headers.

use super::{Request, base64, hmac_sha256, valid, verifier};
use crate::provider::signature::{Encoding, InvalidReason, Location, SignatureError};

const NOW: u64 = 1_700_000_000;

fn stripe(secret: &str, body: &str) -> String {
    hex::encode(hmac_sha256(secret.as_bytes(), format!("{NOW}.{body}").as_bytes()))
}

fn header(name: &str) -> Location {
    Location::Header(name.parse().unwrap())
}

#[test]
fn any_signature_that_any_secret_made_is_enough() {
    let old = stripe("old", "{}");
    let new = stripe("new", "{}");
    for list in [
        format!("t={NOW},v1=zz-not-hex,v1={old},v0=aa,v1={new}"),
        format!("t={NOW},v1={new},v1={old},v1=zz-not-hex"),
        format!("v1={new}, t={NOW} ,v2=x"),
    ] {
        let request = Request::new("{}").header("Stripe-Signature", &list);
        assert_eq!(request.from("stripe", &["new"]), valid(0), "{list}");
        assert_eq!(request.from("stripe", &["other", "new"]), valid(1), "{list}");
        assert_eq!(
            request.from("stripe", &["other"]),
            Err(InvalidReason::Mismatch(header("stripe-signature")).into())
        );
    }
}

#[test]
fn a_signature_of_another_version_counts_for_nothing() {
    let signature = stripe("secret", "{}");
    let request = Request::new("{}")
        .header("Stripe-Signature", format!("t={NOW},v0={signature},{signature}"));
    let expected = InvalidReason::Prefix(header("stripe-signature"), "v1=".to_owned());
    assert_eq!(request.from("stripe", &["secret"]), Err(expected.into()));
}

#[test]
fn more_signatures_than_anybody_sends_are_not_tried() {
    let right = stripe("secret", "{}");
    let list = |wrong: usize| format!("t={NOW}{},v1={right}", ",v1=00".repeat(wrong));
    let request = |wrong| Request::new("{}").header("Stripe-Signature", list(wrong));
    assert_eq!(request(15).from("stripe", &["secret"]), valid(0));
    let expected = InvalidReason::TooMany(header("stripe-signature"));
    assert_eq!(request(16).from("stripe", &["secret"]), Err(expected.into()));
}

#[test]
fn no_signature_and_an_empty_one_are_missing() {
    let location = || header("x-hub-signature-256");
    for nothing in [Request::new("{}"), Request::new("{}").header("X-Hub-Signature", "sha1=00")] {
        assert_eq!(nothing.from("github", &["secret"]), Err(SignatureError::Missing(location())));
    }
    let empty = Err(SignatureError::Empty(location()));
    for request in [
        Request::new("{}").header("X-Hub-Signature-256", ""),
        Request::new("{}").header("X-Hub-Signature-256", " \t"),
    ] {
        assert_eq!(request.from("github", &["secret"]), empty);
    }
}

#[test]
fn a_signature_that_is_there_twice_has_to_be_the_same() {
    let right = format!("sha256={}", hex::encode(hmac_sha256(b"secret", b"{}")));
    let once = Request::new("{}").header("X-Hub-Signature-256", &right);
    assert_eq!(once.from("github", &["secret"]), valid(0));
    let same = once.clone().header("x-hub-signature-256", &right);
    assert_eq!(same.from("github", &["secret"]), valid(0));
    let repeated = Err(InvalidReason::Repeated(header("x-hub-signature-256")).into());
    for other in ["", "sha256=00", "\u{e9}"] {
        let both = once.clone().header("X-Hub-Signature-256", other);
        assert_eq!(both.from("github", &["secret"]), repeated, "{other:?}");
    }
}

#[test]
fn a_sender_that_repeats_its_header_is_understood() {
    let right = format!("sha256={}", hex::encode(hmac_sha256(b"secret", b"{}")));
    let request = Request::new("{}")
        .header("X-Mollie-Signature", "sha256=00")
        .header("X-Mollie-Signature", &right);
    assert_eq!(request.from("mollie", &["secret"]), valid(0));
    assert_eq!(
        Request::new("{}").header("X-Mollie-Signature", "").from("mollie", &["secret"]),
        Err(SignatureError::Empty(header("x-mollie-signature")))
    );
}

#[test]
fn what_cannot_be_decoded_is_named() {
    let request = |value| Request::new("{}").header("X-Hub-Signature-256", value);
    let location = || header("x-hub-signature-256");
    let undecodable = Err(InvalidReason::Undecodable(location(), Encoding::Hex).into());
    for value in ["sha256=zz", "sha256=", "sha256=abc", "sha256=ab cd"] {
        assert_eq!(request(value).from("github", &["secret"]), undecodable, "{value}");
    }
    let expected = InvalidReason::Prefix(location(), "sha256=".to_owned());
    assert_eq!(request("SHA256=ab").from("github", &["secret"]), Err(expected.into()));
    // Right as far as it goes.
    let short = &hex::encode(hmac_sha256(b"secret", b"{}"))[..32];
    assert_eq!(
        request(&format!("sha256={short}")).from("github", &["secret"]),
        Err(InvalidReason::Mismatch(location()).into())
    );
}

#[test]
fn the_covered_headers_must_be_there_once() {
    let message = "msg_1.1700000000.{}";
    let signature = format!("v1,{}", base64(&hmac_sha256(b"secret", message.as_bytes())));
    let secret = base64(b"secret");
    let request = || Request::new("{}").header("webhook-signature", &signature);
    let id = |request: Request, id: &str| request.header("webhook-id", id);
    let time = |request: Request| request.header("webhook-timestamp", "1700000000");
    let result = |request: Request| request.from("standard-webhooks", &[&secret]);
    assert_eq!(result(time(id(request(), "msg_1"))), valid(0));
    assert_eq!(
        result(id(request(), "msg_1")),
        Err(InvalidReason::Absent(header("webhook-timestamp")).into())
    );
    assert_eq!(result(time(request())), Err(InvalidReason::Absent(header("webhook-id")).into()));
    assert_eq!(
        result(time(id(id(request(), "msg_1"), "msg_2"))),
        Err(InvalidReason::Repeated(header("webhook-id")).into())
    );
}

#[test]
fn an_id_that_could_be_read_as_a_timestamp_is_refused() {
    let message = b"msg_1.1.1700000000.{}";
    let request = Request::new("{}")
        .header("webhook-id", "msg_1.1")
        .header("webhook-timestamp", "1700000000")
        .header("webhook-signature", format!("v1,{}", base64(&hmac_sha256(b"secret", message))));
    assert_eq!(
        request.from("standard-webhooks", &[&base64(b"secret")]),
        Err(InvalidReason::Ambiguous(header("webhook-id"), '.').into())
    );
}

#[test]
fn the_headers_of_two_families_are_not_mixed() {
    let message = b"msg_1.1700000000.{}";
    let signature = format!("v1,{}", base64(&hmac_sha256(b"secret", message)));
    let secret = base64(b"secret");
    let svix = Request::new("{}")
        .header("svix-id", "msg_1")
        .header("svix-timestamp", "1700000000")
        .header("svix-signature", &signature);
    assert_eq!(svix.from("svix", &[&format!("whsec_{secret}")]), valid(0));
    let mixed = Request::new("{}")
        .header("webhook-id", "msg_1")
        .header("svix-timestamp", "1700000000")
        .header("svix-signature", &signature);
    assert_eq!(
        mixed.from("svix", &[&secret]),
        Err(InvalidReason::Absent(header("svix-id")).into())
    );
}

#[test]
fn a_public_key_does_not_make_a_shared_secret() {
    let key = [7; 32];
    let message = b"msg_1.1700000000.{}";
    let forged = base64(&hmac_sha256(&key, message));
    for version in ["v1", "v1a"] {
        let request = Request::new("{}")
            .header("webhook-id", "msg_1")
            .header("webhook-timestamp", "1700000000")
            .header("webhook-signature", format!("{version},{forged}"));
        assert_eq!(
            request.from("standard-webhooks", &[&format!("whpk_{}", base64(&key))]),
            Err(InvalidReason::Mismatch(header("webhook-signature")).into())
        );
    }
}

#[test]
fn without_a_secret_nothing_is_valid() {
    for sender in super::SENDERS.keys() {
        let request = Request::new("{}")
            .header("X-Hub-Signature-256", format!("sha256={}", hex::encode([0; 32])))
            .header("X-Gitlab-Token", "x");
        let result = request.verify(&verifier(sender, &[], None));
        assert!(result.is_err(), "{sender}");
    }
}

#[test]
fn neither_a_secret_nor_a_signature_is_ever_shown() {
    let secret = "c2VjcmV0LXRoYXQtaXMtbm90LXNob3du";
    let right = stripe("another", "{}");
    for sender in super::SENDERS.keys() {
        let of_this = match sender.as_str() {
            "adyen" | "adyen-platform" | "discord" => "5ec4e7".repeat(32 / 3 + 1)[..64].to_owned(),
            "plaid" => format!("client:{secret}"),
            "sns" => format!("arn:aws:sns:us-east-2:123456789012:{secret}"),
            // A public key, which is no secret.
            "sendgrid" | "wise" => continue,
            _ => secret.to_owned(),
        };
        let verifier = verifier(sender, &[&of_this], None);
        let written = super::SENDERS[sender].clone();
        let mut request = Request::new(format!("bt_signature={right}&bt_payload=x"));
        for name in [
            "stripe-signature",
            "x-hub-signature-256",
            "x-hub-signature",
            "webhook-signature",
            "x-gitlab-token",
            "x-slack-signature",
            "x-signature-ed25519",
            "x-hubspot-signature-v3",
            "paypal-transmission-sig",
            "plaid-verification",
        ] {
            request = request.header(name, format!("t={NOW},v1={right}"));
        }
        let refused = request.verify(&verifier).unwrap_err();
        for shown in [format!("{refused}"), format!("{refused:?}"), format!("{verifier:?}")] {
            let is_shown = shown.contains(&right) || shown.contains(&of_this);
            // A key of Discord's is public.
            assert!(!is_shown || sender == "discord", "{sender}: {shown} {written:?}");
        }
    }
}
