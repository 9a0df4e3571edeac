//! Signature tables: what can be written, and what is said of what cannot.

use std::time::Duration;

use super::{CERTIFICATES, SENDERS};
use crate::provider::signature::{SecretError, Settings, SignatureTable, Verifier, keys_of};
use crate::secret::Secret;

/// The mistakes in a table.
fn mistakes(table: &str) -> Vec<String> {
    let written: SignatureTable = toml::from_str(table).unwrap();
    written.settings().unwrap_err().iter().map(ToString::to_string).collect()
}

#[test]
fn every_sender_that_signs_has_a_table() {
    assert_eq!(SENDERS.len(), 47);
    let with = |is: fn(&Settings) -> bool| {
        SENDERS.iter().filter(|(_, s)| is(s)).map(|(n, _)| n.as_str()).collect::<Vec<_>>()
    };
    assert_eq!(with(Settings::needs_public_url), ["hubspot", "hubspot-old", "square", "twilio"]);
    assert_eq!(with(Settings::needs_certificates), ["paypal", "plaid", "sns"]);
    let partly =
        ["adyen", "braintree", "dropbox-sign", "flutterwave", "gitlab", "mailgun", "mercadopago"];
    assert_eq!(with(|s| !s.covers_body()), partly);
    assert_eq!(SENDERS["paddle"].tolerance(), Some(Duration::from_secs(5)));
    assert_eq!(SENDERS["twitch"].tolerance(), Some(Duration::from_mins(10)));
    assert_eq!(SENDERS["github"].tolerance(), None);
    assert!(SENDERS["zoom"].has_timestamp() && !SENDERS["github"].has_timestamp());
}

#[test]
fn all_mistakes_of_a_table_are_reported() {
    let found = mistakes(
        r#"
        scheme = "hmac"
        header = "two words"
        separator = "; ,=x"
        document = "json:/a"
        prefix = "v1*"
        encoding = "base32"
        hash = "md5"
        signed = ["body", "boddy", "text:"]
        timestamp = "X-Timestamp"
        timestamp_format = "minutes"
        tolerance = "5 minutes"
        secret = "hunter2"
        otherwise = { scheme = "twilio", header = "X" }
        "#,
    );
    let parts = "`body`, `timestamp`, `url`, `path`, `method`, `header:NAME`, `query:NAME`, \
                 `form:FIELD`, `json:/pointer` or `text:LITERAL`";
    let stamp = "`header:NAME`, `entry:PREFIX`, `query:NAME`, `form:FIELD` or `json:/pointer`";
    let expected = [
        "`hash`: expected `sha256`, `sha1` or `sha512`, found `md5`",
        "`header`: expected the name of a header, found `two words`",
        "`prefix`: expected a text with at most one `*`, found `v1*`",
        "`separator`: expected one character such as `,`, or a few, found `; ,=x`",
        "`encoding`: expected `hex`, `base64`, `base64url` or `hex-or-base64`, found `base32`",
        &format!("`signed`: expected {parts}, found `boddy`"),
        &format!("`signed`: expected {parts}, found `text:`"),
        "`document`: expected `body` or `form:FIELD`, found `json:/a`",
        &format!("`timestamp`: expected {stamp}, found `X-Timestamp`"),
        "`timestamp_format`: expected `seconds`, `milliseconds`, `seconds-or-milliseconds` or \
         `rfc3339`, found `minutes`",
        "`tolerance`: expected a duration such as `30s`, `5m` or `2d`, found `5 minutes`",
        "`secret`: expected `text`, `hex`, `base64` or `text-or-hex`, found another text",
        "`otherwise.header`: expected nothing: this scheme has no such setting, found one",
    ];
    assert_eq!(found, expected);
}

#[test]
fn a_table_that_contradicts_itself_is_refused() {
    for (rest, expected) in [
        (
            r#"signed = ["timestamp", "body"]"#,
            "`timestamp`: expected `header:NAME`, `entry:PREFIX`, `query:NAME`, `form:FIELD` or \
             `json:/pointer`, found nothing",
        ),
        (
            r#"signed = ["url"]"#,
            "`signed`: expected a list with `body`, or `covers_body = false` beside it, found one \
             without",
        ),
        ("covers_body = false", "`covers_body`: expected a list without `body`, found one with it"),
        ("at = \"json:/sig\"", "`at`: expected nothing beside `header`, found both"),
        ("tolerance = \"5m\"", "`tolerance`: expected a `timestamp` beside it, found none"),
        (
            "timestamp = \"header:T\"",
            "`signed`: expected a list with `timestamp`: one that is not signed says nothing, \
             found one without",
        ),
        (
            "timestamp = \"entry:t=\"\nsigned = [\"timestamp\", \"body\"]",
            "`separator`: expected a character between the entries, found nothing",
        ),
    ] {
        let found = mistakes(&format!("scheme = \"hmac\"\nheader = \"X\"\n{rest}"));
        assert_eq!(found, [expected], "{rest}");
    }
}

#[test]
fn a_scheme_is_named_and_has_what_it_needs() {
    let schemes = "`hmac`, `ed25519`, `ecdsa-p256`, `rsa`, `token`, `standard-webhooks`, \
                   `twilio`, `hubspot`, `adyen-items`, `braintree`, `mailgun`, `paypal`, `plaid` or \
                   `sns`";
    let expected = |found: &str| [format!("`scheme`: expected {schemes}, found {found}")];
    assert_eq!(mistakes("scheme = \"sha256\"\nheader = \"X\""), expected("`sha256`"));
    assert_eq!(mistakes(""), expected("nothing"));
    let header = "`header`: expected the name of a header, found nothing";
    assert_eq!(mistakes("scheme = \"token\""), [header]);
}

#[test]
fn alternatives_have_an_end() {
    let nested = |depth: usize| {
        let inner = (1..depth).fold("{ scheme = \"twilio\" }".to_owned(), |inner, _| {
            format!("{{ scheme = \"twilio\", otherwise = {inner} }}")
        });
        format!("scheme = \"twilio\"\notherwise = {inner}")
    };
    assert!(toml::from_str::<SignatureTable>(&nested(3)).unwrap().settings().is_ok());
    let key = "otherwise.otherwise.otherwise.otherwise";
    let expected = format!("`{key}`: expected fewer alternatives, found one more");
    assert_eq!(mistakes(&nested(4)), [expected]);
}

#[test]
fn an_unknown_setting_is_refused() {
    let error =
        toml::from_str::<SignatureTable>("scheme = \"twilio\"\ntollerance = \"5m\"").unwrap_err();
    assert!(error.message().starts_with("unknown field `tollerance`"), "{error}");
}

fn secret_error(sender: &str, secrets: &[&str]) -> Option<String> {
    let secrets: Vec<_> = secrets.iter().map(|text| Secret::new((*text).to_owned())).collect();
    let made = Verifier::new(&SENDERS[sender], &secrets, None, &CERTIFICATES);
    made.err().map(|error: SecretError| error.to_string())
}

#[test]
fn a_secret_that_cannot_be_the_senders_is_refused_and_not_shown() {
    for (sender, secret, expected) in [
        ("adyen", "not-hex", "secret 2 is not hexadecimal"),
        ("adyen-platform", "", "secret 2 is not hexadecimal"),
        ("standard-webhooks", "whsec_%%", "secret 2 is not base64, with or without `whsec_`"),
        ("standard-webhooks", "whsec_", "secret 2 is not base64, with or without `whsec_`"),
        ("standard-webhooks", "whpk_AAAA", "secret 2 is not an Ed25519 key after `whpk_`"),
        ("discord", "abcd", "secret 2 is not an Ed25519 public key of 32 bytes"),
        (
            "sendgrid",
            "MFkwEwYHKoZI",
            "secret 2 is not a P-256 public key (PEM, or SubjectPublicKeyInfo in base64)",
        ),
        ("github", "", "secret 2 is not a text that is not empty"),
        ("braintree", "", "secret 2 is not a private key"),
        ("paypal", "https://x", "secret 2 is not the id of a webhook"),
        (
            "plaid",
            "client:",
            "secret 2 is not the client id and the secret of the API, `CLIENT_ID:SECRET`",
        ),
        (
            "sns",
            "my-topic",
            "secret 2 is not the ARN of a topic, `arn:aws:sns:REGION:ACCOUNT:NAME`",
        ),
    ] {
        let first = match sender {
            "discord" => "d52880e28f61caa4c2a48a82e55f4751a92289a78009ea9f6532270c16ce8abe",
            "sendgrid" => {
                "MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAE83T4O/n84iotIvIW4mdBgQ/7dAfSmpqIM8kF9mN1flpVKS3GRqe62gw+2fNNRaINXvVpiglSI8eNEc6wEA3F+g=="
            }
            "sns" => "arn:aws:sns:us-east-2:123456789012:MyTopic",
            "plaid" => "client:secret",
            _ => "00ff",
        };
        assert_eq!(secret_error(sender, &[first, secret]).as_deref(), Some(expected), "{sender}");
        assert_eq!(secret_error(sender, &[first]), None, "{sender}");
    }
}

#[test]
fn a_secret_for_one_of_two_ways_is_enough() {
    assert_eq!(secret_error("gitlab", &["no base64!", "whsec_c2VjcmV0"]), None);
    assert_eq!(
        secret_error("gitlab", &["token", ""]).as_deref(),
        Some("secret 2 is not base64, with or without `whsec_`")
    );
}

/// The keys that messages list are the keys that a scheme takes.
#[test]
fn the_keys_that_a_scheme_is_said_to_take_are_those_that_it_takes() {
    let values = [
        ("header", "\"X\""),
        ("at", "\"json:/s\""),
        ("prefix", "\"v1=\""),
        ("separator", "\",\""),
        ("repeated", "true"),
        ("encoding", "\"hex\""),
        ("hash", "\"sha256\""),
        ("signed", "[\"body\"]"),
        ("covers_body", "true"),
        ("body", "\"json\""),
        ("document", "\"body\""),
        ("timestamp", "\"header:T\""),
        ("timestamp_format", "\"seconds\""),
        ("tolerance", "\"5m\""),
        ("url", "\"https://example.com\""),
        ("secret", "\"text\""),
    ];
    let schemes = [
        "hmac",
        "ed25519",
        "ecdsa-p256",
        "rsa",
        "token",
        "standard-webhooks",
        "twilio",
        "hubspot",
        "adyen-items",
        "braintree",
        "mailgun",
        "paypal",
        "plaid",
        "sns",
    ];
    for scheme in schemes {
        let taken = keys_of(scheme).unwrap();
        for (key, value) in values {
            let table = format!("scheme = \"{scheme}\"\n{key} = {value}\n");
            let written: SignatureTable = toml::from_str(&table).unwrap();
            let found = written.settings().err().unwrap_or_default();
            let refused = found.iter().any(|it| it.key == key && it.expected.contains("no such"));
            assert_eq!(refused, !taken.contains(&key), "{scheme} {key}");
        }
    }
    assert_eq!(keys_of("hmca"), None);
}
