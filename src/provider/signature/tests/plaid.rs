//! The JWT of Plaid, with a key that is made here and given by hand.

#[path = "../../../../tests/it/support/es256.rs"]
#[expect(unreachable_pub, reason = "the tests of the whole program use it too")]
mod es256;

use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use self::es256::Es256;
use super::Request;
use crate::clock::Clock;
use crate::provider::signature::{
    Certificates, Settings, SignatureError, SignatureTable, Verifier,
};
use crate::secret::Secret;

const URL: &str = "https://keys.example.test/webhook_verification_key/get";
const BODY: &str = r#"{"webhook_code":"SYNC_UPDATES_AVAILABLE"}"#;
/// When requests of these tests come.
const NOW: u64 = 1_700_000_000;

/// A check that takes the key of this signer for that of the id `k1`.
fn verifier_of(signer: &Es256, expired_at: &Value) -> Verifier {
    let answer = signer.answer("k1", expired_at).to_string().into_bytes();
    let trusted = [(URL.to_owned(), answer)];
    let certificates = Certificates::with_trusted(Clock::system(), trusted).unwrap();
    let secrets = [Secret::new("client:secret".to_owned())];
    Verifier::new(&settings(), &secrets, None, &certificates).unwrap()
}

fn settings() -> Settings {
    let table = format!("scheme = \"plaid\"\nurl = \"{URL}\"\ntolerance = \"5m\"\n");
    toml::from_str::<SignatureTable>(&table).unwrap().settings().unwrap()
}

fn header() -> Value {
    json!({ "alg": "ES256", "kid": "k1", "typ": "JWT" })
}

fn claims() -> Value {
    json!({ "iat": NOW, "request_body_sha256": hex::encode(Sha256::digest(BODY)) })
}

fn with(mut object: Value, name: &str, value: impl Into<Value>) -> String {
    object[name] = value.into();
    object.to_string()
}

fn sent(token: &str) -> Request {
    Request::new(BODY).header("Plaid-Verification", token)
}

fn refusal(request: &Request, verifier: &Verifier) -> String {
    let refused = request.verify(verifier).unwrap_err();
    format!("{}: {refused}", refused.name())
}

#[test]
fn a_token_is_right_for_its_body_and_its_five_minutes() {
    let signer = Es256::new();
    let verifier = verifier_of(&signer, &Value::Null);
    for iat in [NOW, NOW - 300, NOW + 300] {
        let token = signer.token(&header().to_string(), &with(claims(), "iat", iat));
        assert_eq!(sent(&token).verify(&verifier), Ok(0), "{iat}");
    }
    for iat in [NOW - 301, NOW + 301] {
        let token = signer.token(&header().to_string(), &with(claims(), "iat", iat));
        let refused = sent(&token).verify(&verifier).unwrap_err();
        assert!(matches!(refused, SignatureError::Stale { .. }), "{refused}");
    }
    let token = signer.token(&header().to_string(), &claims().to_string());
    let other = Request::new("{}").header("Plaid-Verification", &token);
    let digest = "entry `request_body_sha256` of header `plaid-verification`";
    let expected = format!("invalid: the body does not have the digest in {digest}");
    assert_eq!(refusal(&other, &verifier), expected);
    let none = Request::new(BODY);
    assert_eq!(refusal(&none, &verifier), "missing: header `plaid-verification` is missing");
}

#[test]
fn no_other_algorithm_key_or_signature_will_do() {
    let signer = Es256::new();
    let verifier = verifier_of(&signer, &Value::Null);
    let claims = claims().to_string();
    for algorithm in ["none", "HS256", "RS256", "ES384", "es256", ""] {
        let token = signer.token(&with(header(), "alg", algorithm), &claims);
        let expected = "invalid: entry `alg` of header `plaid-verification` is none of `ES256`";
        assert_eq!(refusal(&sent(&token), &verifier), expected, "{algorithm}");
    }
    let unknown = signer.token(&with(header(), "kid", "k2"), &claims);
    let expected = "invalid: the sender has no key of the id in the signature";
    assert_eq!(refusal(&sent(&unknown), &verifier), expected);
    let mismatch = "invalid: it was made with none of the secrets";
    let forged = Es256::new().token(&header().to_string(), &claims);
    assert!(refusal(&sent(&forged), &verifier).starts_with(mismatch));
    let token = signer.token(&header().to_string(), &claims);
    let unsigned = &token[..=token.rfind('.').unwrap()];
    let flipped = if token.ends_with("AA") { "BA" } else { "AA" };
    for broken in [
        unsigned.to_owned(),
        format!("{unsigned}AAAA"),
        format!("{}{flipped}", &token[..token.len() - 2]),
    ] {
        let refused = refusal(&sent(&broken), &verifier);
        assert!(refused.starts_with("invalid: "), "{refused}");
    }
    let expired = verifier_of(&signer, &json!(NOW - 1));
    let gone = refusal(&sent(&token), &expired);
    assert_eq!(gone, "invalid: the sender's key has expired");
}

#[test]
fn a_token_is_read_strictly() {
    let signer = Es256::new();
    let verifier = verifier_of(&signer, &Value::Null);
    let right = header().to_string();
    let claimed = claims().to_string();
    let twice = r#"{"alg":"ES256","kid":"k1","kid":"k2"}"#;
    for token in [
        signer.token(&with(header(), "crit", json!([])), &claimed),
        signer.token(&with(header(), "crit", Value::Null), &claimed),
        signer.token(&with(header(), "kid", ""), &claimed),
        signer.token(&with(header(), "kid", 1), &claimed),
        signer.token(&with(header(), "kid", "a b"), &claimed),
        signer.token(&with(header(), "kid", "k".repeat(129)), &claimed),
        signer.token(&with(header(), "typ", "J".repeat(4096)), &claimed),
        signer.token(twice, &claimed),
        signer.token("[]", &claimed),
        signer.token("", &claimed),
        signer.token(&right, "{}"),
        signer.token(&right, "null"),
        signer.token(&right, &with(claims(), "iat", "1700000000")),
        signer.token(&right, &with(claims(), "iat", 1_700_000_000.5)),
        signer.token(&right, &with(claims(), "iat", -1)),
        signer.token(&right, &with(claims(), "request_body_sha256", "")),
        signer.token(&right, &with(claims(), "request_body_sha256", Value::Null)),
        format!("{}.", signer.token(&right, &claimed)),
        format!("{}=", signer.token(&right, &claimed)),
        "a.b".to_owned(),
        "..".to_owned(),
    ] {
        let refused = sent(&token).verify(&verifier).unwrap_err();
        assert!(matches!(refused, SignatureError::Invalid(_)), "{token}: {refused}");
    }
    let token = signer.token(&right, &claimed);
    let two = sent(&token).header("Plaid-Verification", "a.b.c");
    assert!(refusal(&two, &verifier).contains("occurs more than once"));
}

#[test]
fn the_question_for_a_key_goes_over_tls_only() {
    let table = |url: &str| {
        let table = format!("scheme = \"plaid\"\nurl = \"{url}\"\n");
        toml::from_str::<SignatureTable>(&table).unwrap().settings()
    };
    assert!(table("https://sandbox.plaid.com/webhook_verification_key/get").is_ok());
    for url in ["http://sandbox.plaid.com/x", "https://u:p@plaid.com/x", "plaid.com", "/x", ""] {
        let mistakes = table(url).unwrap_err();
        let expected = "`url`: expected a URL that begins with `https://`";
        assert!(mistakes[0].to_string().starts_with(expected), "{url}");
    }
    let other =
        toml::from_str::<SignatureTable>("scheme = \"sns\"\nurl = \"https://a.test/\"\n").unwrap();
    assert!(other.settings().is_err());
}
