//! One family of headers for one request: the key is what was signed.

use sha2::Digest;

use super::{Request, base64, hmac_sha256, valid, verifier};
use crate::provider::signature::{Carried, CarriedValue, Unusable};

fn standard(family: &str, id: &str, body: &str) -> Request {
    let message = format!("{id}.1700000000.{body}");
    let signature = format!("v1,{}", base64(&hmac_sha256(b"secret", message.as_bytes())));
    Request::new(body)
        .header(&format!("{family}-id"), id)
        .header(&format!("{family}-timestamp"), "1700000000")
        .header(&format!("{family}-signature"), signature)
}

type Found = Option<Result<CarriedValue, Unusable>>;

#[expect(clippy::unnecessary_wraps, reason = "it is compared with what may be absent")]
fn text(text: &str) -> Found {
    Some(Ok(CarriedValue::Text(text.to_owned())))
}

const DIFFERS: Found = Some(Err(Unusable::Differs));

fn get(carried: &Carried, name: &str) -> Found {
    Some(carried.get(name)?.cloned())
}

/// The values that a request carries, with its signature checked and without.
fn carried(request: &Request, sender: &str, secret: &str) -> [Carried; 2] {
    let verified = request.verified(&verifier(sender, &[secret], None)).unwrap().carried;
    [verified, super::SENDERS[sender].carried(&request.received())]
}

#[test]
fn the_key_is_the_id_of_the_family_that_was_verified() {
    let secret = base64(b"secret");
    for sender in ["standard-webhooks", "svix"] {
        for family in ["webhook", "svix"] {
            let request = standard(family, "msg_1", "{}");
            for carried in carried(&request, sender, &secret) {
                assert_eq!(get(&carried, "id"), text("msg_1"), "{sender} {family}");
            }
            let both = request.clone().header("webhook-id", "msg_1").header("svix-id", " msg_1 ");
            for carried in carried(&both, sender, &secret) {
                assert_eq!(get(&carried, "id"), text("msg_1"), "{sender} {family}");
            }
        }
    }
}

/// The signature of one family, and an id of one's own in the other.
#[test]
fn two_families_that_differ_give_no_key() {
    let secret = base64(b"secret");
    for (family, other) in [("svix", "webhook-id"), ("webhook", "svix-id")] {
        let request = standard(family, "msg_1", "{}").header(other, "msg_2");
        for carried in carried(&request, "standard-webhooks", &secret) {
            assert_eq!(get(&carried, "id"), DIFFERS, "{family}");
        }
    }
    // Two signatures: both families have to say the same.
    let mut both = standard("webhook", "msg_1", "{}");
    both.headers.extend(standard("svix", "msg_2", "{}").headers);
    for carried in carried(&both, "standard-webhooks", &secret) {
        assert_eq!(get(&carried, "id"), DIFFERS);
    }
}

/// A signing token signs `webhook-id`; `Idempotency-Key` beside it is not signed.
#[test]
fn gitlabs_key_is_that_of_the_way_that_was_verified() {
    let signing = format!("whsec_{}", base64(b"secret"));
    let key = |request: &Request, secret: &str| {
        let [verified, unverified] = carried(request, "gitlab", secret);
        assert_eq!(verified, unverified);
        get(&verified, "id")
    };
    let signed = standard("webhook", "id-1", "{}");
    assert_eq!(key(&signed, &signing), text("id-1"));
    let same = signed.clone().header("Idempotency-Key", "id-1");
    assert_eq!(key(&same, &signing), text("id-1"));
    let other = signed.clone().header("Idempotency-Key", "id-2");
    assert_eq!(key(&other, &signing), DIFFERS);
    let renamed = standard("svix", "id-1", "{}").header("Idempotency-Key", "id-2");
    assert_eq!(key(&renamed, &signing), DIFFERS);
    let token = Request::new("{}").header("X-Gitlab-Token", "a token!");
    assert_eq!(key(&token, "a token!"), None);
    assert_eq!(key(&token.header("Idempotency-Key", "id-1"), "a token!"), text("id-1"));
}

#[test]
fn shopifys_key_is_of_the_same_headers_as_its_signature() {
    let tag = base64(&hmac_sha256(b"secret", b"{}"));
    let family = |request: Request, prefix: &str, id: &str| {
        request
            .header(&format!("{prefix}Shopify-Hmac-Sha256"), &tag)
            .header(&format!("{prefix}Shopify-Webhook-Id"), id)
    };
    for prefix in ["", "X-"] {
        let one = family(Request::new("{}"), prefix, "w-1");
        assert_eq!(one.from("shopify", &["secret"]), valid(0));
        for carried in carried(&one, "shopify", "secret") {
            assert_eq!((get(&carried, "id"), get(&carried, "shop")), (text("w-1"), None));
        }
    }
    let both = family(Request::new("{}"), "", "w-1");
    let same = family(both.clone(), "X-", "w-1");
    assert_eq!(get(&carried(&same, "shopify", "secret")[0], "id"), text("w-1"));
    let other = both.clone().header("X-Shopify-Webhook-Id", "w-2");
    assert_eq!(get(&carried(&other, "shopify", "secret")[0], "id"), DIFFERS);
    // The newer signature takes precedence, right or wrong.
    let wrong = family(Request::new("{}"), "X-", "w-1").header("Shopify-Hmac-Sha256", "AAAA");
    assert!(wrong.from("shopify", &["secret"]).is_err());
}

#[test]
fn braintrees_key_is_the_payload_and_nothing_else_of_the_form() {
    let key = ring::hmac::Key::new(
        ring::hmac::HMAC_SHA1_FOR_LEGACY_USE_ONLY,
        &sha1::Sha1::digest(b"private"),
    );
    let payload = "PHg+\nPC94Pg==\n";
    let tag = hex::encode(ring::hmac::sign(&key, payload.as_bytes()).as_ref());
    let expected = text(&hex::encode(sha2::Sha256::digest(b"<x></x>")));
    let encoded = |text: &str| form_urlencoded::byte_serialize(text.as_bytes()).collect::<String>();
    let with = encoded(payload);
    let without = encoded(payload.trim_end());
    for form in [
        format!("bt_signature=a%7C{tag}&bt_payload={with}"),
        // Without its last line end, in another order, with a field and a pair of keys more.
        format!("bt_payload={without}&x=1&bt_signature=b%7C00%26a%7C{tag}"),
    ] {
        let request = Request::new(form)
            .header("Content-Type", "application/x-www-form-urlencoded; charset=utf-8");
        for carried in carried(&request, "braintree", "private") {
            assert_eq!(get(&carried, "payload"), expected);
        }
    }
}

/// Nothing stands between the fields that Twilio signs, and their order is not kept.
#[test]
fn twilios_key_is_what_is_signed_however_its_fields_are_written() {
    let key = ring::hmac::Key::new(ring::hmac::HMAC_SHA1_FOR_LEGACY_USE_ONLY, b"secret");
    let keys = |method: &str, target: &str, text: &str, body: &str| {
        let url = format!("https://hooks.example.test{target}");
        let tag = ring::hmac::sign(&key, format!("{url}{text}").as_bytes());
        let mut request = Request::new(body)
            .header("X-Twilio-Signature", base64(tag.as_ref()))
            .header("Content-Type", "application/x-www-form-urlencoded");
        request.method = method.parse().unwrap();
        request.url = url;
        let [verified, unverified] = carried(&request, "twilio", "secret");
        assert_eq!(verified, unverified, "{body}");
        ["signed", "message"].map(|name| get(&verified, name))
    };
    let digest = |signed: &str| text(&hex::encode(sha2::Sha256::digest(signed)));
    let both = digest("/tw?AccountSidACMessageSidSM1");
    for body in [
        "AccountSid=AC&MessageSid=SM1",
        "MessageSid=SM1&AccountSid=AC",
        "AccountSid=AC&MessageSid=SM1&",
        "AccountSid=AC&&MessageSid=SM1",
        "Account%53id=AC&MessageSid=SM1",
        "AccountSid=AC&MessageSid=SM1&MessageSid=SM1",
        "AccountSid=ACMessageSidSM1",
        "AccountSidACMessageSidSM1",
    ] {
        let found = keys("POST", "/tw?", "AccountSidACMessageSidSM1", body);
        assert_eq!(found, [both.clone(), both.clone()], "{body}");
    }
    // The fields as part of the URL, and of what is signed, at once.
    let found = keys("GET", "/tw?AccountSidACMessageSidSM1", "", "");
    assert_eq!(found, [both.clone(), both.clone()]);
    let get = digest("/tw?MessageSid=SM1&MessageStatus=sent");
    let found = keys("GET", "/tw?MessageSid=SM1&MessageStatus=sent", "", "");
    assert_eq!(found, [get.clone(), get]);
    let other = keys("POST", "/tw?", "AccountSidACMessageSidSM2", "AccountSid=AC&MessageSid=SM2");
    assert!(other[0] != both && other[0] == other[1]);
    // A call: it tells of no message, and only a token names it.
    assert_eq!(keys("POST", "/tw", "CallSidCA", "CallSid=CA"), [digest("/twCallSidCA"), None]);
    // The URL has the digest of the body.
    let target = format!("/tw?bodySHA256={}", hex::encode(sha2::Sha256::digest("MessageSid=SM1")));
    let found = keys("POST", &target, "", "MessageSid=SM1");
    assert_eq!(found, [digest(&target), digest(&target)]);
}

#[test]
fn what_is_signed_and_what_is_not_is_known() {
    let covers = |sender: &str, name: &str| super::SENDERS[sender].covers(name);
    assert!(covers("standard-webhooks", "id") && covers("braintree", "payload"));
    assert!(covers("twilio", "signed") && covers("twilio", "message"));
    // Where it is absent, it is left out of what is signed, and the key has none.
    assert!(covers("mercadopago", "id"));
    assert!(!covers("gitlab", "id") && !covers("shopify", "id") && !covers("stripe", "id"));
    assert!(super::SENDERS["shopify"].carries("shop") && !super::SENDERS["stripe"].carries("id"));
}
