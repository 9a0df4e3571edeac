//! What the language of signature tables can say beyond a header over a body.

use std::time::Duration;

use ring::rand::SystemRandom;
use ring::signature::{ECDSA_P256_SHA256_ASN1_SIGNING, EcdsaKeyPair, KeyPair};

use super::{CERTIFICATES, Request, SENDERS, base64, hmac_sha256, valid, verifier};
use crate::provider::signature::{
    InvalidReason, Location, Settings, SignatureError, SignatureTable, Verifier,
};
use crate::secret::Secret;

fn hex_hmac(secret: &str, message: &str) -> String {
    hex::encode(hmac_sha256(secret.as_bytes(), message.as_bytes()))
}

fn table(text: &str) -> Settings {
    toml::from_str::<SignatureTable>(text).unwrap().settings().unwrap()
}

fn with(settings: &Settings, secret: &str) -> Verifier {
    let secrets = [Secret::new(secret.to_owned())];
    Verifier::new(settings, &secrets, None, &CERTIFICATES).unwrap()
}

/// The manifest of mercadopago/sdk-nodejs `src/utils/webhook/index.ts`: what is absent is left out.
#[test]
fn a_part_of_the_query_is_signed_and_left_out_where_it_is_absent() {
    let sent = |target: &str, request_id: Option<&str>, manifest: &str| {
        let mut request = Request::new("{}");
        request.url = format!("https://hooks.example.test{target}");
        let time = manifest.rsplit_once("ts:").unwrap().1.trim_end_matches(';');
        let tag = hex_hmac("secret", manifest);
        let request = request.header("x-signature", format!("ts={time},v1={tag}"));
        let request = match request_id {
            Some(id) => request.header("x-request-id", id),
            None => request,
        };
        request.from("mercadopago", &["secret"])
    };
    let all = "id:123456;request-id:r-1;ts:1700000000;";
    assert_eq!(sent("/in?data.id=123456&type=payment", Some("r-1"), all), valid(0));
    assert_eq!(sent("/in?type=payment&data%2Eid=12345%36", Some("r-1"), all), valid(0));
    assert_eq!(sent("/in?data.id=123456", None, "id:123456;ts:1700000000000;"), valid(0));
    assert_eq!(sent("/in", Some("r-1"), "request-id:r-1;ts:1700000000;"), valid(0));
    assert_eq!(sent("/in?data.id=", None, "ts:1700000000;"), valid(0));
    for (target, request_id) in [
        ("/in?data.id=123457", Some("r-1")),
        ("/in?data.id=123456", Some("r-2")),
        ("/in?data.id=123456", None),
        ("/in", Some("r-1")),
        ("/in?data.id=123456&data.id=1", Some("r-1")),
    ] {
        assert!(
            matches!(sent(target, request_id, all), Err(SignatureError::Invalid(_))),
            "{target}"
        );
    }
    // The same text, divided in another way.
    let moved = sent("/in?data.id=123456;request-id:r-1", None, all);
    let data_id = Location::Parameter("data.id".to_owned());
    assert_eq!(moved, Err(InvalidReason::Ambiguous(data_id, ';').into()));
    let stale = sent("/in?data.id=1", None, "id:1;ts:1600000000;");
    assert!(matches!(stale, Err(SignatureError::Stale { .. })), "{stale:?}");
    assert!(!SENDERS["mercadopago"].covers_body());
}

/// "Webhook Best Practices" (docs.withpersona.com): two sets with a space between in rotation.
#[test]
fn a_list_may_hold_two_pairs_of_timestamp_and_signature() {
    let pair =
        |secret: &str, at: u64| format!("t={at},v1={}", hex_hmac(secret, &format!("{at}.{{}}")));
    let result = |value: &str| {
        Request::new("{}").header("Persona-Signature", value).from("persona", &["secret"])
    };
    let old = pair("old", 1_700_000_000);
    let new = pair("secret", 1_700_000_000);
    assert_eq!(result(&new), valid(0));
    assert_eq!(result(&format!("{old} {new}")), valid(0));
    assert_eq!(result(&format!("{new} {old}")), valid(0));
    let later = pair("secret", 1_700_000_001);
    assert_eq!(result(&format!("{old} {later}")), valid(0));
    // A signature counts with its own timestamp only.
    let (_, signature) = new.split_once(',').unwrap();
    assert!(result(&format!("{old} t=1700000001,{signature}")).is_err());
    let stale = pair("secret", 1_600_000_000);
    assert!(matches!(result(&format!("{old} {stale}")), Err(SignatureError::Stale { .. })));
}

/// "Event signature" (docs.worldpay.com): `keyId/hashFunction/signature`, several with `,`.
#[test]
fn an_entry_counts_whatever_the_number_of_its_key() {
    let tag = hex_hmac("secret", "{}");
    let result = |value: String| {
        Request::new("{}").header("Event-Signature", value).from("worldpay", &["secret"])
    };
    assert_eq!(result(format!("1/SHA256/{tag}")), valid(0));
    assert_eq!(result(format!("2/SHA256/00, 17/SHA256/{tag}")), valid(0));
    for other in [format!("1/SHA512/{tag}"), format!("/SHA256/{tag}"), tag] {
        assert!(matches!(result(other), Err(SignatureError::Invalid(InvalidReason::Prefix(..)))));
    }
}

#[test]
fn numbered_headers_hold_signatures_of_several_keys() {
    let tag = base64(&hmac_sha256(b"secret", b"{}"));
    let wrong = base64(&hmac_sha256(b"other", b"{}"));
    for (first, second) in [(&tag, None), (&wrong, Some(&tag)), (&tag, Some(&wrong))] {
        let request = Request::new("{}").header("X-DocuSign-Signature-1", first);
        let request = match second {
            Some(second) => request.header("X-DocuSign-Signature-2", second),
            None => request,
        };
        assert_eq!(request.from("docusign", &["secret"]), valid(0));
    }
    let third = Request::new("{}").header("X-DocuSign-Signature-3", &tag);
    assert!(matches!(third.from("docusign", &["secret"]), Err(SignatureError::Missing(_))));
}

const PUBLIC_PEM: &str = include_str!("../../../../tests/fixtures/rsa_public.pem");
const RSA_SIGNATURE: &str = include_str!("../../../../tests/fixtures/rsa_signature.txt");

/// The key and the signature were made with `openssl genrsa`, `openssl rsa -pubout` and `openssl
/// dgst -sha256 -sign` over `{"event":"transfer"}`.
#[test]
fn rsa_is_checked_with_a_given_public_key() {
    let body = r#"{"event":"transfer"}"#;
    let bare: String =
        PUBLIC_PEM.lines().filter(|line| !line.starts_with("-----")).collect::<Vec<_>>().join("\n");
    for key in [PUBLIC_PEM, &bare] {
        let request = Request::new(body).header("X-Signature-SHA256", RSA_SIGNATURE.trim());
        assert_eq!(request.from("wise", &[key]), valid(0));
        let other = Request::new("{}").header("X-Signature-SHA256", RSA_SIGNATURE.trim());
        assert!(matches!(
            other.from("wise", &[key]),
            Err(SignatureError::Invalid(InvalidReason::Mismatch(_)))
        ));
    }
    let secrets = [Secret::new("MFkwEwYHKoZI".to_owned())];
    let error = Verifier::check_secrets(&SENDERS["wise"], &secrets).unwrap_err();
    assert_eq!(error.expected, "an RSA public key (PEM, or SubjectPublicKeyInfo in base64)");
}

/// A key of the curve, bare and as PEM; a key of another kind is refused where it is configured.
#[test]
fn ecdsa_is_checked_with_a_given_public_key() {
    let random = SystemRandom::new();
    let document = EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_ASN1_SIGNING, &random).unwrap();
    let pair =
        EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_ASN1_SIGNING, document.as_ref(), &random);
    let pair = pair.unwrap();
    let head = hex::decode("3059301306072a8648ce3d020106082a8648ce3d030107034200").unwrap();
    let info = base64(&[&head, pair.public_key().as_ref()].concat());
    let pem = format!("-----BEGIN PUBLIC KEY-----\n{info}\n-----END PUBLIC KEY-----\n");
    let settings = table("scheme = \"ecdsa-p256\"\nheader = \"X-Sig\"\nencoding = \"base64\"");
    let tag = base64(pair.sign(&random, b"{}").unwrap().as_ref());
    for key in [&info, &pem] {
        let request = Request::new("{}").header("X-Sig", &tag);
        assert_eq!(request.verify(&with(&settings, key)), valid(0));
        assert!(Request::new("{ }").header("X-Sig", &tag).verify(&with(&settings, key)).is_err());
    }
    let rsa = [Secret::new(PUBLIC_PEM.to_owned())];
    assert!(Verifier::check_secrets(&settings, &rsa).is_err());
    let ecdsa = [Secret::new(pem)];
    assert!(Verifier::check_secrets(&SENDERS["wise"], &ecdsa).is_err());
}

fn dropbox(json: &str) -> Request {
    let body =
        format!("--b\r\nContent-Disposition: form-data; name=\"json\"\r\n\r\n{json}\r\n--b--\r\n");
    Request::new(body).header("Content-Type", "multipart/form-data; boundary=b")
}

/// hellosign/hellosign-php-sdk `examples/EventCallback.php`: the hash is of time and type.
#[test]
fn signed_json_is_read_from_a_field_of_a_form() {
    let hash = hex_hmac("key", "1700000000signature_request_sent");
    let json = format!(
        r#"{{"event":{{"event_time":"1700000000","event_type":"signature_request_sent",
        "event_hash":"{hash}"}},"signature_request":{{"signature_request_id":"r-1"}}}}"#
    );
    let urlencoded: String = form_urlencoded::byte_serialize(json.as_bytes()).collect();
    let urlencoded = Request::new(format!("json={urlencoded}"))
        .header("Content-Type", "application/x-www-form-urlencoded");
    for request in [dropbox(&json), urlencoded] {
        let verified = request.verified(&verifier("dropbox-sign", &["key"], None)).unwrap();
        let text = |name| match verified.carried.get(name) {
            Some(Ok(super::super::CarriedValue::Text(text))) => text.clone(),
            other => panic!("{name}: {other:?}"),
        };
        assert_eq!((text("hash"), text("request")), (hash.clone(), "r-1".to_owned()));
    }
    for (from, to) in [("request_sent", "request_signed"), ("1700000000", "1700000001")] {
        let changed = dropbox(&json.replace(from, to)).from("dropbox-sign", &["key"]);
        assert!(
            matches!(changed, Err(SignatureError::Invalid(InvalidReason::Mismatch(_)))),
            "{changed:?}"
        );
    }
    let missing = Err(SignatureError::Missing(Location::Member("/event/event_hash".to_owned())));
    assert_eq!(Request::new(json.clone()).from("dropbox-sign", &["key"]), missing);
    assert_eq!(dropbox("no json").from("dropbox-sign", &["key"]), missing);
    let late = json.replace("1700000000", "1600000000");
    let late = late.replace(&hash, &hex_hmac("key", "1600000000signature_request_sent"));
    let late = dropbox(&late).from("dropbox-sign", &["key"]);
    assert!(matches!(late, Err(SignatureError::Stale { .. })), "{late:?}");
}

/// anymail/django-anymail `tests/test_mailgun_webhooks.py`: the older webhooks and received mail
/// have the signature among the fields of a form, urlencoded or multipart.
#[test]
fn mailgun_signs_json_and_forms_alike() {
    let tag = hex_hmac("key", "1700000000token");
    let json = format!(
        r#"{{"signature":{{"timestamp":"1700000000","token":"token","signature":"{tag}"}},
        "event-data":{{"id":"e-1","title":"\ud800"}}}}"#
    );
    let form =
        Request::new(format!("event=opened&timestamp=1700000000&token=token&signature={tag}"))
            .header("Content-Type", "application/x-www-form-urlencoded");
    let part = |name: &str, value: &str| {
        format!("--b\r\nContent-Disposition: form-data; name=\"{name}\"\r\n\r\n{value}\r\n")
    };
    let parts =
        part("timestamp", "1700000000") + &part("token", "token") + &part("signature", &tag);
    let multipart =
        Request::new(parts + "--b--\r\n").header("Content-Type", "multipart/form-data; boundary=b");
    let within = Some(Duration::from_hours(9));
    let verifier = verifier("mailgun", &["key"], within);
    for request in [Request::new(json), form, multipart] {
        assert_eq!(request.verify(&verifier), valid(0));
        let changed =
            String::from_utf8(request.body.clone()).unwrap().replace("1700000000", "1700000001");
        let changed = Request { body: changed.into_bytes(), ..request.clone() };
        assert!(matches!(
            changed.verify(&verifier),
            Err(SignatureError::Invalid(InvalidReason::Mismatch(_)))
        ));
        let mut late = request;
        late.now = crate::operation::Timestamp(1_800_000_000_000);
        assert!(matches!(late.verify(&verifier), Err(SignatureError::Stale { .. })));
    }
    assert!(matches!(Request::new("{}").verify(&verifier), Err(SignatureError::Missing(_))));
    assert!(!SENDERS["mailgun"].covers_body());
}

/// twilio/twilio-node `examples/WebhookSignatureValidation.md`.
#[test]
fn twilio_names_the_hash_in_a_header() {
    let form = |settings: Option<&str>, tag: &str| {
        let request = Request::new("B=2&A=1")
            .header("X-Twilio-Signature", tag)
            .header("Content-Type", "application/x-www-form-urlencoded");
        match settings {
            Some(settings) => request.header("X-Twilio-Webhooks-Signature-Settings", settings),
            None => request,
        }
    };
    let message = format!("{}A1B2", Request::new("").url);
    let key = ring::hmac::Key::new(ring::hmac::HMAC_SHA1_FOR_LEGACY_USE_ONLY, b"secret");
    let sha1 = base64(ring::hmac::sign(&key, message.as_bytes()).as_ref());
    let sha256 = base64(&hmac_sha256(b"secret", message.as_bytes()));
    let named = Some("key=KEY1,algorithm=HMAC_SHA256");
    assert_eq!(form(None, &sha1).from("twilio", &["secret"]), valid(0));
    assert_eq!(form(named, &sha256).from("twilio", &["token", "secret"]), valid(1));
    assert!(form(named, &sha1).from("twilio", &["secret"]).is_err());
    assert!(form(None, &sha256).from("twilio", &["secret"]).is_err());
    let unknown = form(Some("algorithm=NONE"), &sha1).from("twilio", &["secret"]);
    assert!(
        matches!(unknown, Err(SignatureError::Invalid(InvalidReason::Unknown(..)))),
        "{unknown:?}"
    );
}

/// A URL in the query is never taken for the public URL.
#[test]
fn the_path_that_is_signed_is_the_one_that_was_sent() {
    let table =
        table("scheme = \"hmac\"\nheader = \"X-Sig\"\nsigned = [\"path\", \"text:\\n\", \"body\"]");
    let verifier = with(&table, "secret");
    let captured = "/h/hook?id=evt_1";
    let tag = hex_hmac("secret", &format!("{captured}\n{{}}"));
    let mut request = Request::new("{}").header("X-Sig", tag);
    captured.clone_into(&mut request.url);
    assert_eq!(request.verify(&verifier), valid(0));
    for target in ["/hook?id=evt_2&z=://h/h/hook?id=evt_1", "/x://h/h/hook?id=evt_1"] {
        target.clone_into(&mut request.url);
        assert!(request.verify(&verifier).is_err(), "{target}");
        request.url = format!("https://hooks.example.test{target}");
        assert!(request.verify(&verifier).is_err(), "{target}");
    }
}

/// The same for Twilio, whose check tries the URL with and without a port.
#[test]
fn a_port_in_the_query_is_no_port_of_ours() {
    let key = ring::hmac::Key::new(ring::hmac::HMAC_SHA1_FOR_LEGACY_USE_ONLY, b"secret");
    let tag = |url: &str| base64(ring::hmac::sign(&key, url.as_bytes()).as_ref());
    let mut request = Request::new("").header("X-Twilio-Signature", tag("/in?x=http://a/b"));
    for (url, is_valid) in [("/in?x=http://a/b", true), ("/in?x=http://a:80/b", false)] {
        url.clone_into(&mut request.url);
        assert_eq!(request.from("twilio", &["secret"]).is_ok(), is_valid, "{url}");
    }
}

#[test]
fn paypals_simulator_is_taken_with_a_warning() {
    let simulator = Secret::new("WEBHOOK_ID".to_owned());
    let own = Secret::new("8PT597110X687430LKGECATA".to_owned());
    for secret in [&simulator, &own] {
        assert!(Verifier::check_secrets(&SENDERS["paypal"], std::slice::from_ref(secret)).is_ok());
    }
    assert!(SENDERS["paypal"].is_public_secret(&simulator));
    assert!(!SENDERS["paypal"].is_public_secret(&own));
    assert!(!SENDERS["github"].is_public_secret(&simulator));
}

#[test]
fn a_tolerance_may_be_given_in_days() {
    assert_eq!(SENDERS["persona"].tolerance(), Some(Duration::from_hours(72)));
}
