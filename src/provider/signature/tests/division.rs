//! Signed texts of which the parts stand side by side, divided at every point.

use sha2::Digest;

use super::{CERTIFICATES, Request, base64, hmac_sha256, valid};
use crate::provider::signature::{InvalidReason, Location, Settings, SignatureTable, Verifier};
use crate::provider::{preset, presets};
use crate::secret::Secret;

const URL: &str = "https://hooks.example.test/in/hook?a=1";
const BODY: &str = r#"[{"id":1,"text":"[\"] {"},{"id":[2]}]"#;
const MILLIS: &str = "1700000000000";

fn of_preset(name: &str) -> Option<Settings> {
    #[derive(serde::Deserialize)]
    struct Known {
        signature: Option<SignatureTable>,
    }
    let known: Known = toml::from_str(preset(name).unwrap().toml).unwrap();
    known.signature.map(|written| written.settings().unwrap())
}

fn verifier(settings: &Settings) -> Verifier {
    let secrets = [Secret::new("secret".to_owned())];
    Verifier::new(settings, &secrets, None, &CERTIFICATES).unwrap()
}

/// The signed text in every division into a URL that begins as ours does and a body.
fn divided(text: &str) -> impl Iterator<Item = Request> {
    let base = URL.find("/in").unwrap() + 1;
    (base..=text.len()).filter(|at| text.is_char_boundary(*at)).map(|at| {
        let (url, body) = text.split_at(at);
        let mut request = Request::new(body);
        url.clone_into(&mut request.url);
        request
    })
}

/// How many of the divisions are valid.
fn valid_divisions(requests: impl Iterator<Item = Request>, verifier: &Verifier) -> usize {
    requests.filter(|request| request.verify(verifier).is_ok()).count()
}

fn hubspot(request: Request, signed: &str) -> Request {
    let tag = base64(&hmac_sha256(b"secret", format!("POST{signed}{MILLIS}").as_bytes()));
    request.header("X-HubSpot-Signature-v3", tag).header("X-HubSpot-Request-Timestamp", MILLIS)
}

#[test]
fn one_signature_of_hubspot_is_that_of_one_url_and_one_body() {
    let verifier = verifier(&of_preset("hubspot").unwrap());
    for body in [BODY, r#"{"object":{"name":"?x=[1] {"}}"#, "[1]\r\n", ""] {
        let text = format!("{URL}{body}");
        let mut genuine = Request::new(body);
        URL.clone_into(&mut genuine.url);
        assert_eq!(hubspot(genuine, &text).verify(&verifier), valid(0), "{body}");
        let all = divided(&text).map(|request| hubspot(request, &text));
        assert_eq!(valid_divisions(all, &verifier), 1, "{body}");
    }
}

#[test]
fn what_hubspot_does_not_send_is_not_taken() {
    let verifier = verifier(&of_preset("hubspot").unwrap());
    let refused = |target: &str, body: &str| {
        let mut request = Request::new(body);
        request.url = format!("https://hooks.example.test{target}");
        let text = format!("{}{body}", request.url);
        hubspot(request, &text).verify(&verifier).unwrap_err()
    };
    for body in ["a=1", "1", "\"[]\"", "[]1", "1{}", "\u{feff}[]", " ", "\u{b}[]"] {
        let expected = InvalidReason::Body("a JSON object or array");
        assert_eq!(refused("/hook", body), expected.into(), "{body:?}");
    }
    for (target, bracket) in [("/h[", '['), ("/h?a={", '{'), ("/h?a=]", ']'), ("/h}", '}')] {
        assert_eq!(
            refused(target, ""),
            InvalidReason::Ambiguous(Location::Url, bracket).into(),
            "{target}"
        );
    }
}

/// HubSpot signs some escapes decoded: on a route that takes many paths `%2F` and `/` would be two
/// operations. In a query the two say the same.
#[test]
fn one_signature_of_hubspot_is_that_of_one_spelling_of_a_path() {
    let verifier = verifier(&of_preset("hubspot").unwrap());
    let signed = |written: &str, signed: &str| {
        let mut request = Request::new("[]");
        request.url = format!("https://hooks.example.test{written}");
        hubspot(request, &format!("https://hooks.example.test{signed}[]")).verify(&verifier)
    };
    assert_eq!(signed("/st/a/b?c=d:e", "/st/a/b?c=d:e"), valid(0));
    assert_eq!(signed("/st/a/b?c=d%3Ae%2f", "/st/a/b?c=d:e/"), valid(0));
    // It may be that a URL is signed as it is.
    assert_eq!(signed("/st/a%2Fb?c=d%3Ae", "/st/a%2Fb?c=d%3Ae"), valid(0));
    for written in ["/st/a%2Fb", "/st/a%2fb", "/st%2Fa/b"] {
        let spelled = InvalidReason::Ambiguous(Location::Path, '%');
        assert_eq!(signed(written, "/st/a/b"), Err(spelled.into()), "{written}");
    }
    assert_eq!(
        signed("/st%3Fc=d", "/st?c=d"),
        Err(InvalidReason::Ambiguous(Location::Path, '%').into())
    );
}

/// Who knows a plain hash can make that of the same text with more behind it.
#[test]
fn the_older_versions_of_hubspot_take_no_longer_body() {
    for (version, url) in [("v1", ""), ("v2", "POSThttps://hooks.example.test/in/hook?a=1")] {
        let table = format!("scheme = \"hubspot\"\naccept = [\"{version}\"]");
        let settings = toml::from_str::<SignatureTable>(&table).unwrap().settings().unwrap();
        let verifier = verifier(&settings);
        let sent = |body: &[u8]| {
            let text = [b"secret", url.as_bytes(), body].concat();
            let tag = hex::encode(sha2::Sha256::digest(text));
            let request = Request::new(body).header("X-HubSpot-Signature-Version", version);
            request.header("X-HubSpot-Signature", tag).verify(&verifier)
        };
        assert_eq!(sent(BODY.as_bytes()), valid(0));
        let longer = [BODY.as_bytes(), b"\x80\0\0\0\0\0\0\x01\x20[]"].concat();
        assert_eq!(sent(&longer), Err(InvalidReason::Body("a JSON object or array").into()));
    }
}

#[test]
fn a_url_and_a_body_of_a_preset_are_divided_in_one_way() {
    let square = verifier(&of_preset("square").unwrap());
    let text = format!("{URL}{BODY}");
    let tag = base64(&hmac_sha256(b"secret", text.as_bytes()));
    let all = divided(&text).map(|it| it.header("x-square-hmacsha256-signature", &tag));
    assert_eq!(valid_divisions(all, &square), 1);

    let trello = verifier(&of_preset("trello").unwrap());
    // Who may write into the body may write our URL there.
    let body = format!(r#"{{"text":"{URL}","more":[1]}}"#);
    let text = format!("{body}{URL}");
    let mut mac = <hmac::Hmac<sha1::Sha1> as hmac::KeyInit>::new_from_slice(b"secret").unwrap();
    hmac::Mac::update(&mut mac, text.as_bytes());
    let tag = base64(&hmac::Mac::finalize(mac).into_bytes());
    let all = (0..text.len()).filter(|at| text[*at..].starts_with("https://hooks.")).map(|at| {
        let (body, url) = text.split_at(at);
        let mut request = Request::new(body).header("X-Trello-Webhook", &tag);
        url.clone_into(&mut request.url);
        request
    });
    let all: Vec<Request> = all.collect();
    assert_eq!(all.len(), 2);
    assert_eq!(valid_divisions(all.into_iter(), &trello), 1);
}

/// The body could grow or shrink by what the header has.
#[test]
fn a_body_and_a_header_of_a_preset_are_divided_in_one_way() {
    let klaviyo = verifier(&of_preset("klaviyo").unwrap());
    let body = r#"{"data":[{"a":"{}"}],"meta":{}}"#;
    let text = format!("{body}2026-11-05T10:00:05+00:00");
    let tag = hex::encode(hmac_sha256(b"secret", text.as_bytes()));
    let all = (0..text.len()).map(|at| {
        let (body, time) = text.split_at(at);
        Request::new(body).header("Klaviyo-Signature", &tag).header("Klaviyo-Timestamp", time)
    });
    assert_eq!(valid_divisions(all, &klaviyo), 1);
    let blank = hex::encode(hmac_sha256(b"secret", b"{}\n5"));
    let blank = Request::new("{}\n").header("Klaviyo-Signature", blank);
    assert_eq!(blank.header("Klaviyo-Timestamp", "5").verify(&klaviyo), valid(0));
}

#[test]
fn no_preset_can_be_divided_in_several_ways() {
    for preset in presets() {
        let found = of_preset(preset.name).and_then(|settings| settings.divisible());
        assert_eq!(found, None, "{}", preset.name);
    }
}
