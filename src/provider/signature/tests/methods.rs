//! Senders with several signing methods: which count, and that the stronger one decides.

use sha2::Digest;

use super::{CERTIFICATES, Request, base64, hmac_sha256, valid};
use crate::provider::signature::{
    InvalidReason, Location, SignatureError, SignatureTable, Verifier,
};
use crate::secret::Secret;

fn with_table(table: &str, secrets: &[&str]) -> Verifier {
    let settings = toml::from_str::<SignatureTable>(table).unwrap().settings().unwrap();
    let secrets: Vec<_> = secrets.iter().map(|text| Secret::new((*text).to_owned())).collect();
    Verifier::new(&settings, &secrets, None, &CERTIFICATES).unwrap()
}

fn header(name: &str) -> Location {
    Location::Header(name.parse().unwrap())
}

fn hubspot_v3(request: Request, millis: &str) -> Request {
    let message = format!("POST{}{{}}{millis}", request.url);
    let tag = base64(&hmac_sha256(b"secret", message.as_bytes()));
    request.header("X-HubSpot-Signature-v3", tag).header("X-HubSpot-Request-Timestamp", millis)
}

fn hubspot_old(request: Request, version: &str, signed: &str) -> Request {
    let tag = hex::encode(sha2::Sha256::digest(format!("secret{signed}")));
    request.header("X-HubSpot-Signature-Version", version).header("X-HubSpot-Signature", tag)
}

/// Dropping the header of the third version from a stale request must not make it fresh.
#[test]
fn hubspots_older_signatures_count_only_where_it_is_said() {
    let v1 = hubspot_old(Request::new("{}"), "v1", "{}");
    let url = Request::new("").url;
    let v2 = hubspot_old(Request::new("{}"), "v2", &format!("POST{url}{{}}"));
    let missing = Err(SignatureError::Missing(header("x-hubspot-signature-v3")));
    let alone = with_table("scheme = \"hubspot\"\ntolerance = \"5m\"", &["secret"]);
    let all = "scheme = \"hubspot\"\ntolerance = \"5m\"\naccept = [\"v3\", \"v2\", \"v1\"]";
    let all = with_table(all, &["secret"]);
    for old in [&v1, &v2] {
        assert_eq!(old.verify(&alone), missing);
        assert_eq!(old.verify(&all), valid(0));
        for verifier in [&alone, &all] {
            let fresh = hubspot_v3(old.clone(), "1700000000000");
            assert_eq!(fresh.verify(verifier), valid(0));
            // Wrong or stale, and beside it an older one that is right.
            let stale = hubspot_v3(old.clone(), "1600000000000").verify(verifier);
            assert!(matches!(stale, Err(SignatureError::Stale { .. })), "{stale:?}");
            let mut wrong = hubspot_v3(old.clone(), "1700000000000");
            wrong.headers.insert("x-hubspot-signature-v3", "AAAA".parse().unwrap());
            let mismatch = InvalidReason::Mismatch(header("x-hubspot-signature-v3"));
            assert_eq!(wrong.verify(verifier), Err(mismatch.into()));
        }
    }
    let first = with_table("scheme = \"hubspot\"\naccept = [\"v1\"]", &["secret"]);
    assert_eq!(v1.verify(&first), valid(0));
    assert_eq!(v2.verify(&first), Err(SignatureError::Missing(header("x-hubspot-signature"))));
}

const TWO: &str = "scheme = \"hmac\"\nheader = \"X-New\"\nname = \"new\"\n\
    signed = [\"timestamp\", \"body\"]\ntimestamp = \"header:X-Time\"\ntolerance = \"5m\"\n\
    otherwise = { scheme = \"token\", header = \"X-Old\" }\n";

/// The same kind, for every scheme with `otherwise`.
#[test]
fn a_stronger_signature_that_is_present_is_never_rescued_by_a_weaker_one() {
    let verifier = with_table(TWO, &["secret"]);
    let old = Request::new("{}").header("X-Old", "secret");
    assert_eq!(old.verify(&verifier), valid(0));
    let signed = |time: &str| {
        let tag = hex::encode(hmac_sha256(b"secret", format!("{time}{{}}").as_bytes()));
        old.clone().header("X-New", tag).header("X-Time", time)
    };
    assert_eq!(signed("1700000000").verify(&verifier), valid(0));
    let stale = signed("1600000000").verify(&verifier);
    assert!(matches!(stale, Err(SignatureError::Stale { .. })), "{stale:?}");
    for value in ["00", "not hex", " 00"] {
        let wrong = old.clone().header("X-New", value).header("X-Time", "1700000000");
        assert!(matches!(wrong.verify(&verifier), Err(SignatureError::Invalid(_))), "{value}");
    }
    // Its timestamp is gone: it cannot be checked, so it is not right.
    let mut without = signed("1700000000");
    without.headers.remove("x-time");
    let absent = InvalidReason::Absent(header("x-time"));
    assert_eq!(without.verify(&verifier), Err(absent.into()));
}

#[test]
fn only_the_ways_that_are_accepted_count() {
    let old = Request::new("{}").header("X-Old", "secret");
    let tag = hex::encode(hmac_sha256(b"secret", b"1700000000{}"));
    let new = Request::new("{}").header("X-New", tag).header("X-Time", "1700000000");
    let accepting = |names: &str| with_table(&format!("accept = [{names}]\n{TWO}"), &["secret"]);
    let verifier = accepting("\"new\"");
    assert_eq!(new.verify(&verifier), valid(0));
    assert_eq!(old.verify(&verifier), Err(SignatureError::Missing(header("x-new"))));
    let verifier = accepting("\"token\"");
    assert_eq!(old.verify(&verifier), valid(0));
    assert_eq!(new.verify(&verifier), Err(SignatureError::Missing(header("x-old"))));
}

#[test]
fn a_name_that_no_way_has_is_a_mistake() {
    for (accept, found) in [("\"newer\"", "`newer`"), ("", "none")] {
        let table = format!("accept = [{accept}]\n{TWO}");
        let mistakes = toml::from_str::<SignatureTable>(&table).unwrap().settings().unwrap_err();
        let texts: Vec<_> = mistakes.iter().map(ToString::to_string).collect();
        let expected = format!("`accept`: expected names among `new`, `token`, found {found}");
        assert_eq!(texts, [expected]);
    }
    let inner = "scheme = \"twilio\"\notherwise = { scheme = \"twilio\", accept = [\"twilio\"] }";
    let mistakes = toml::from_str::<SignatureTable>(inner).unwrap().settings().unwrap_err();
    assert_eq!(mistakes[0].key, "otherwise.accept");
}

/// A header that is either an HMAC or the secret itself has one value, which is one of the two.
#[test]
fn two_forms_of_one_header_are_tried_and_no_other_header() {
    let verifier = with_table(
        "scheme = \"hmac\"\nheader = \"X-Sig\"\nencoding = \"base64\"\n[otherwise]\n\
         scheme = \"token\"\nheader = \"X-Sig\"\notherwise = { scheme = \"token\", header = \"X-Old\" }",
        &["secret"],
    );
    let request = |value: &str| Request::new("{}").header("X-Sig", value);
    assert_eq!(request(&base64(&hmac_sha256(b"secret", b"{}"))).verify(&verifier), valid(0));
    assert_eq!(request("secret").verify(&verifier), valid(0));
    let wrong = request("AAAA").header("X-Old", "secret");
    assert_eq!(wrong.verify(&verifier), Err(InvalidReason::Mismatch(header("x-sig")).into()));
    let old = Request::new("{}").header("X-Old", "secret");
    assert_eq!(old.verify(&verifier), valid(0));
}

#[test]
fn a_token_may_stand_in_two_places() {
    let verifier = with_table("scheme = \"token\"\nheader = [\"X-A\", \"X-B\"]", &["secret"]);
    for name in ["X-A", "X-B"] {
        assert_eq!(Request::new("{}").header(name, "secret").verify(&verifier), valid(0));
        let wrong = Request::new("{}").header(name, "secre").verify(&verifier);
        assert_eq!(wrong, Err(InvalidReason::Mismatch(header(&name.to_lowercase())).into()));
    }
    let nothing = Request::new("{}").verify(&verifier);
    assert_eq!(nothing, Err(SignatureError::Missing(header("x-a"))));
}

/// Present and empty is present and wrong: whoever stands in between emptied it, or whoever sends.
#[test]
fn an_empty_signature_is_rescued_by_no_weaker_one() {
    let token = "otherwise = { scheme = \"token\", header = \"X-Token\" }";
    let request = |body: &str| Request::new(body).header("X-Token", "secret");
    let by_header = "header = \"X-Sig\"\nseparator = \",\"";
    let tables = [by_header, "header = [\"X-Sig\", \"X-Sig-2\"]"];
    for table in tables.map(|at| format!("scheme = \"hmac\"\n{at}\n{token}")) {
        let verifier = with_table(&table, &["secret"]);
        assert_eq!(request("{}").verify(&verifier), valid(0));
        for blank in ["", "  "] {
            let empty = request("{}").header("X-Sig", blank).verify(&verifier);
            assert_eq!(empty, Err(SignatureError::Empty(header("x-sig"))), "{table}");
        }
    }
    let adyen = "{\"notificationItems\":[{\"NotificationRequestItem\":\
                 {\"additionalData\":{\"hmacSignature\":\"\"}}}]}";
    for (scheme, secret, body) in [
        ("adyen-items", "AB", adyen),
        ("braintree", "secret", "bt_signature=&bt_payload=x"),
        ("mailgun", "secret", "{\"signature\":{\"signature\":\"\"}}"),
        ("twilio", "secret", "a=1"),
        ("standard-webhooks", "c2VjcmV0", "{}"),
    ] {
        let verifier = with_table(&format!("scheme = \"{scheme}\"\n{token}"), &[secret]);
        let right = Request::new(body).header("X-Token", secret);
        let right = right.header("X-Twilio-Signature", "").header("svix-signature", " ");
        let empty = right.verify(&verifier);
        assert!(matches!(empty, Err(SignatureError::Empty(_))), "{scheme}: {empty:?}");
        let without = Request::new("{}").header("X-Token", secret);
        assert_eq!(without.verify(&verifier), valid(0), "{scheme}");
    }
}

#[test]
fn an_empty_signature_of_hubspots_third_version_is_rescued_by_no_older_one() {
    let all = "scheme = \"hubspot\"\ntolerance = \"5m\"\naccept = [\"v3\", \"v2\", \"v1\"]";
    let all = with_table(all, &["secret"]);
    let first = hubspot_old(Request::new("{}"), "v1", "{}");
    assert_eq!(first.verify(&all), valid(0));
    let empty = first.header("X-HubSpot-Signature-v3", "").verify(&all);
    assert_eq!(empty, Err(SignatureError::Empty(header("x-hubspot-signature-v3"))));
}

#[test]
fn an_empty_signature_of_a_preset_is_rescued_by_no_weaker_one() {
    let signing = format!("whsec_{}", base64(b"secret"));
    let token = Request::new("{}").header("X-Gitlab-Token", "a token!");
    let secrets = [signing.as_str(), "a token!"];
    assert_eq!(token.from("gitlab", &secrets), valid(1));
    let empty = token.header("webhook-signature", "").from("gitlab", &secrets);
    assert_eq!(empty, Err(SignatureError::Empty(header("webhook-signature"))));
    let hash = Request::new("{}").header("verif-hash", "secret");
    assert_eq!(hash.from("flutterwave", &["secret"]), valid(0));
    let empty = hash.header("flutterwave-signature", " ").from("flutterwave", &["secret"]);
    assert_eq!(empty, Err(SignatureError::Empty(header("flutterwave-signature"))));
    let tag = base64(&hmac_sha256(b"secret", b"{}"));
    let older = Request::new("{}").header("X-Shopify-Hmac-Sha256", tag);
    assert_eq!(older.from("shopify", &["secret"]), valid(0));
    let empty = older.header("Shopify-Hmac-Sha256", "").from("shopify", &["secret"]);
    assert_eq!(empty, Err(SignatureError::Empty(header("shopify-hmac-sha256"))));
}
