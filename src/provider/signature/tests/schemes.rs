//! Senders for which nobody has published a vector, and what is special about one of them.

use ring::signature::{Ed25519KeyPair, KeyPair};

use super::{Request, base64, hmac_sha256, hmac_sha512, valid};
use crate::provider::signature::{Encoding, InvalidReason, Location, SignatureError, Verifier};
use crate::secret::Secret;

const BODY: &str =
    "{\"key\": \"v\",  \"n\": 1.0, \"u\": \"\\u2028\", \"s\": \"a\\/b\", \"e\": 1E5}\n";

fn header(name: &str) -> Location {
    Location::Header(name.parse().unwrap())
}

#[test]
fn the_bytes_of_the_body_are_signed_as_they_came() {
    for body in [BODY.as_bytes(), b"\xef\xbb\xbf{}\r\n", b"", b"\xff\0"] {
        let signature = format!("sha256={}", hex::encode(hmac_sha256(b"secret", body)));
        let mut request = Request::new(body).header("X-Hub-Signature-256", signature);
        assert_eq!(request.from("github", &["secret"]), valid(0));
        request.body.push(b'\n');
        assert!(request.from("github", &["secret"]).is_err());
    }
}

#[test]
fn an_undecided_encoding_is_read_either_way() {
    let tag = hmac_sha256(b"secret", BODY.as_bytes());
    for written in [hex::encode(&tag), hex::encode_upper(&tag), base64(&tag)] {
        let request = Request::new(BODY).header("Klarna-Signature", &written);
        assert_eq!(request.from("klarna", &["old", "secret"]), valid(1), "{written}");
    }
}

#[test]
fn an_undecided_key_is_tried_either_way() {
    let key = "00FF11";
    for bytes in [key.as_bytes(), &[0x00, 0xff, 0x11]] {
        let tag = hex::encode_upper(hmac_sha512(bytes, BODY.as_bytes()));
        let request = Request::new(BODY).header("X-ANET-Signature", format!("sha512={tag}"));
        assert_eq!(request.from("authorize-net", &["other", key]), valid(1));
    }
}

#[test]
fn flutterwave_is_known_in_both_versions() {
    let tag = base64(&hmac_sha256(b"secret", BODY.as_bytes()));
    let new = Request::new(BODY).header("flutterwave-signature", tag);
    assert_eq!(new.from("flutterwave", &["secret"]), valid(0));
    let old = Request::new(BODY).header("verif-hash", "secret");
    assert_eq!(old.from("flutterwave", &["secret"]), valid(0));
    let wrong = Request::new(BODY).header("verif-hash", "secre");
    assert_eq!(
        wrong.from("flutterwave", &["secret"]),
        Err(InvalidReason::Mismatch(header("verif-hash")).into())
    );
    assert_eq!(
        Request::new(BODY).from("flutterwave", &["secret"]),
        Err(SignatureError::Missing(header("flutterwave-signature")))
    );
}

#[test]
fn gitlab_is_known_by_its_token_and_by_its_signing_token() {
    let token = Request::new(BODY).header("X-Gitlab-Token", "a token!");
    assert_eq!(token.from("gitlab", &["a token!"]), valid(0));
    assert!(token.from("gitlab", &["another!"]).is_err());
    let message = format!("id-1.1700000000.{BODY}");
    let signature = base64(&hmac_sha256(b"signing", message.as_bytes()));
    let signed = Request::new(BODY)
        .header("webhook-id", "id-1")
        .header("webhook-timestamp", "1700000000")
        .header("webhook-signature", format!("v1,{signature}"));
    let signing = format!("whsec_{}", base64(b"signing"));
    assert_eq!(signed.from("gitlab", &["a token!", &signing]), valid(1));
    // A signing method that nobody has set up does not count: GitLab sends what it is configured
    // to.
    let both = signed.clone().header("X-Gitlab-Token", "a token!");
    assert_eq!(both.from("gitlab", &["a token!"]), valid(0));
    // One that is set up, and wrong, is not rescued.
    let other = format!("whsec_{}", base64(b"another"));
    let mismatch = Err(InvalidReason::Mismatch(header("webhook-signature")).into());
    assert_eq!(both.from("gitlab", &["a token!", &other]), mismatch);
}

#[test]
fn a_password_is_read_from_basic_auth() {
    let table = "scheme = \"token\"\nheader = \"Authorization\"\nprefix = \"Basic \"\n\
                 encoding = \"base64\"";
    let settings = toml::from_str::<crate::provider::signature::SignatureTable>(table).unwrap();
    let settings = settings.settings().unwrap();
    let secrets = [Secret::new("user:password".to_owned())];
    let verifier = Verifier::new(&settings, &secrets, None, &super::CERTIFICATES).unwrap();
    let request =
        |text: &[u8]| Request::new(BODY).header("Authorization", format!("Basic {}", base64(text)));
    assert_eq!(request(b"user:password").verify(&verifier), valid(0));
    assert!(request(b"user:passwort").verify(&verifier).is_err());
    let bearer = Request::new(BODY).header("Authorization", "Bearer x");
    let expected = InvalidReason::Prefix(header("authorization"), "Basic ".to_owned());
    assert_eq!(bearer.verify(&verifier), Err(expected.into()));
}

#[test]
fn the_url_is_the_one_that_the_sender_knows() {
    let url = "https://hooks.example.test/in/square";
    let tag = base64(&hmac_sha256(b"secret", format!("{url}{BODY}").as_bytes()));
    let mut request = Request::new(BODY).header("x-square-hmacsha256-signature", tag);
    for (url, is_valid) in [
        (url, true),
        ("https://hooks.example.test/in/square/", false),
        ("http://hooks.example.test/in/square", false),
        ("https://hooks.example.test/square", false),
        ("https://hooks.example.test/in/square?", false),
        ("/in/square", false),
    ] {
        url.clone_into(&mut request.url);
        assert_eq!(request.from("square", &["secret"]).is_ok(), is_valid, "{url}");
    }
}

#[test]
fn path_and_method_can_be_signed() {
    let table = "scheme = \"hmac\"\nheader = \"X-Sig\"\nencoding = \"base64url\"\n\
                 signed = [\"method\", \"text: \", \"path\", \"text:\\n\", \"header:X-Id\", \"body\"]";
    let settings = toml::from_str::<crate::provider::signature::SignatureTable>(table).unwrap();
    let settings = settings.settings().unwrap();
    let secrets = [Secret::new("secret".to_owned())];
    let verifier = Verifier::new(&settings, &secrets, None, &super::CERTIFICATES).unwrap();
    let tag = hmac_sha256(b"secret", b"POST /in/hook?a=1\n7{}");
    let tag = base64(&tag).replace('+', "-").replace('/', "_");
    for tag in [tag.as_str(), tag.trim_end_matches('=')] {
        let mut request = Request::new("{}").header("X-Sig", tag).header("X-Id", "7");
        assert_eq!(request.verify(&verifier), valid(0));
        "/in/hook?a=1".clone_into(&mut request.url);
        assert_eq!(request.verify(&verifier), valid(0));
        "/in/hook?a=2".clone_into(&mut request.url);
        assert!(request.verify(&verifier).is_err());
    }
}

#[test]
fn hubspot_signs_a_url_with_some_escapes_decoded() {
    let message = format!("POSThttps://a.test/h?x=a:b%20c{BODY}1700000000000");
    let tag = base64(&hmac_sha256(b"secret", message.as_bytes()));
    let mut request = Request::new(BODY)
        .header("X-HubSpot-Signature-v3", tag)
        .header("X-HubSpot-Request-Timestamp", "1700000000000");
    "https://a.test/h?x=a%3Ab%20c".clone_into(&mut request.url);
    assert_eq!(request.from("hubspot", &["secret"]), valid(0));
    "https://a.test/h?x=a%3Ab c".clone_into(&mut request.url);
    assert!(request.from("hubspot", &["secret"]).is_err());
}

#[test]
fn discord_signs_with_a_key_that_nobody_else_has() {
    let pair = Ed25519KeyPair::from_seed_unchecked(&[9; 32]).unwrap();
    let public = hex::encode(pair.public_key());
    let signature = hex::encode(pair.sign(format!("1700000000{BODY}").as_bytes()));
    let request = Request::new(BODY)
        .header("X-Signature-Timestamp", "1700000000")
        .header("X-Signature-Ed25519", &signature);
    let other = Ed25519KeyPair::from_seed_unchecked(&[8; 32]).unwrap();
    let other = hex::encode(other.public_key());
    assert_eq!(request.from("discord", &[&other, &public]), valid(1));
    assert!(request.from("discord", &[&other]).is_err());
}

#[test]
fn twilios_body_is_covered_or_refused() {
    let request = |body: &str| Request::new(body).header("X-Twilio-Signature", "AAAA");
    assert_eq!(
        request("{}").header("Content-Type", "application/json").from("twilio", &["secret"]),
        Err(InvalidReason::Body("a form, and its digest is not in the URL").into())
    );
    let mut wrong = request("{}");
    wrong.url = format!("https://a.test/?bodySHA256={}", "00".repeat(32));
    let location = Location::Parameter("bodySHA256".to_owned());
    assert_eq!(wrong.from("twilio", &["secret"]), Err(InvalidReason::Digest(location).into()));
    // Receivers disagree about which of two types counts.
    let form = "application/x-www-form-urlencoded";
    let both = request("{}").header("Content-Type", form).header("Content-Type", "text/json");
    let repeated = InvalidReason::Repeated(header("content-type"));
    assert_eq!(both.from("twilio", &["secret"]), Err(repeated.into()));
    // Fields beyond those that are read would not be covered.
    let many = request(&"a&".repeat(5000)).header("Content-Type", form);
    let too_many = InvalidReason::Body("a form with at most 4096 fields");
    assert_eq!(many.from("twilio", &["secret"]), Err(too_many.into()));
}

#[test]
fn twilios_fields_are_sorted_and_each_pair_counts_once() {
    let key = ring::hmac::Key::new(ring::hmac::HMAC_SHA1_FOR_LEGACY_USE_ONLY, b"secret");
    let url = "https://hooks.example.test/in/hook?x=1&y=a%20b+c";
    let tag = ring::hmac::sign(&key, format!("{url}Aa1Aa2B+ b").as_bytes());
    for (body, is_valid) in [
        ("B=%2B+b&Aa=2&Aa=1", true),
        ("Aa=1&Aa=2&B=%2b%20b&Aa=1&", true),
        ("Aa=1&B=%2B+b", false),
        ("Aa=1&Aa=2&B=%2B+b&C=", false),
    ] {
        let mut request = Request::new(body)
            .header("X-Twilio-Signature", base64(tag.as_ref()))
            .header("Content-Type", "application/x-www-form-urlencoded; charset=UTF-8");
        url.clone_into(&mut request.url);
        assert_eq!(request.from("twilio", &["secret"]).is_ok(), is_valid, "{body}");
    }
}

#[test]
fn braintree_signs_for_several_pairs_of_keys() {
    use sha1::Digest;
    let tag = |payload: &str| {
        let key = sha1::Sha1::digest(b"private");
        let key = ring::hmac::Key::new(ring::hmac::HMAC_SHA1_FOR_LEGACY_USE_ONLY, &key);
        hex::encode(ring::hmac::sign(&key, payload.as_bytes()))
    };
    let result = |signature: &str| {
        let form = format!("bt_payload=cGF5%0AbG9hZA%3D%3D&bt_signature={signature}");
        Request::new(form).from("braintree", &["private"])
    };
    let right = tag("cGF5\nbG9hZA==");
    assert_eq!(result(&format!("a%7C00%26b%7C{right}")), valid(0));
    // The line end at the end of the payload was lost on the way.
    assert_eq!(result(&format!("a|{}", tag("cGF5\nbG9hZA==\n"))), valid(0));
    let field = Location::Field("bt_signature".to_owned());
    let mismatch = InvalidReason::Mismatch(field.clone());
    assert_eq!(result(&format!("a|{}", tag("else"))), Err(mismatch.into()));
    let undecodable = InvalidReason::Undecodable(field.clone(), Encoding::Hex);
    assert_eq!(result(&right), Err(undecodable.into()));
    assert_eq!(result(""), Err(SignatureError::Empty(field)));
}

fn adyen_item(secret: &[u8], reference: &str) -> String {
    let tag = base64(&hmac_sha256(secret, format!("{reference}::A::5:EUR:AUTH:true").as_bytes()));
    format!(
        r#"{{"NotificationRequestItem":{{"pspReference":"{reference}","merchantAccountCode":"A",
        "amount":{{"value":5,"currency":"EUR"}},"eventCode":"AUTH","success":"true",
        "eventDate":"x","additionalData":{{"hmacSignature":"{tag}"}}}}}}"#
    )
}

fn adyen(items: &[String]) -> Request {
    Request::new(format!("{{\"live\":\"false\",\"notificationItems\":[{}]}}", items.join(",")))
}

/// The signature covers an item, and one captured item must not make a second request.
#[test]
fn a_notification_of_adyen_has_exactly_one_item() {
    let good = adyen_item(&[0xab], "1");
    assert_eq!(adyen(std::slice::from_ref(&good)).from("adyen", &["AB"]), valid(0));
    let body = Err(InvalidReason::Body("a notification with exactly one item").into());
    for items in [[good.clone(), good.clone()], [good.clone(), adyen_item(&[0xab], "2")]] {
        assert_eq!(adyen(&items).from("adyen", &["AB"]), body);
    }
    let and_nothing = adyen(&[good.clone(), "null".to_owned()]);
    assert_eq!(and_nothing.from("adyen", &["AB"]), body);
    let location = || {
        let data = "NotificationRequestItem/additionalData/hmacSignature";
        Location::Member(format!("/notificationItems/0/{data}"))
    };
    let bare = adyen(&[good.replace("hmacSignature", "somethingElse")]);
    // A receiver may go through the members of an object as through the items of an array.
    let object = format!(r#"{{"notificationItems":{{"0":{good},"x":{good}}}}}"#);
    for request in [adyen(&[]), bare, Request::new(object)] {
        assert_eq!(request.from("adyen", &["AB"]), Err(SignatureError::Missing(location())));
    }
    let other = adyen(&[adyen_item(&[0xac], "1")]).from("adyen", &["AB"]);
    assert_eq!(other, Err(InvalidReason::Mismatch(location()).into()));
}

/// The signed text is the same, the key would be another one.
#[test]
fn an_item_of_adyen_can_be_written_in_one_way_only() {
    let good = adyen_item(&[0xab], "1");
    for (from, to) in [
        (r#""success":"true""#, r#""success":true"#),
        (r#""pspReference":"1""#, r#""pspReference":1"#),
        (r#""merchantAccountCode":"A""#, r#""merchantAccountCode":"A:x""#),
        (r#""eventCode":"AUTH""#, r#""eventCode":["AUTH"]"#),
    ] {
        let changed = good.replace(from, to);
        assert_ne!(changed, good);
        let result = adyen(&[changed]).from("adyen", &["AB"]);
        assert!(matches!(result, Err(SignatureError::Invalid(_))), "{to} {result:?}");
    }
    // `A:b:c` after the empty reference may be account `A` and reference `b:c`, or `A:b` and `c`.
    let text = "1::A:b:c:5:EUR:AUTH:true";
    let tag = base64(&hmac_sha256(&[0xab], text.as_bytes()));
    let item = |account: &str, reference: &str| {
        format!(
            r#"{{"NotificationRequestItem":{{"pspReference":"1","merchantAccountCode":"{account}",
            "merchantReference":"{reference}","amount":{{"value":5,"currency":"EUR"}},
            "eventCode":"AUTH","success":"true","additionalData":{{"hmacSignature":"{tag}"}}}}}}"#
        )
    };
    assert_eq!(adyen(&[item("A", "b:c")]).from("adyen", &["AB"]), valid(0));
    let location = "/notificationItems/0/NotificationRequestItem/merchantAccountCode";
    let ambiguous = InvalidReason::Ambiguous(Location::Member(location.to_owned()), ':');
    assert_eq!(adyen(&[item("A:b", "c")]).from("adyen", &["AB"]), Err(ambiguous.into()));
}

#[test]
fn a_signed_member_that_occurs_twice_is_refused() {
    let good = adyen_item(&[0xab], "1");
    let twice = good.replace("\"eventCode\"", "\"pspReference\":\"2\",\"eventCode\"");
    assert_ne!(good, twice);
    let result = adyen(&[twice]).from("adyen", &["AB"]);
    assert!(
        matches!(result, Err(SignatureError::Invalid(InvalidReason::Repeated(_)))),
        "{result:?}"
    );
}
