//! What the command says, as a whole.

use std::sync::Arc;
use std::time::Duration;

use http::{HeaderName, Method, StatusCode};
use insta::assert_snapshot;

use super::*;
use crate::idempotency::{IfInFlight, Policy, ReceiverPolicy, Remember, WhenStoreFails};
use crate::operation::Durations;
use crate::operation::state::IfUncertain;
use crate::proxy::{EventRule, FingerprintOver, FingerprintRule, KeyRule};
use crate::proxy::{Mode, PathPattern, RefusalBody, WhenKeyMissing};
use crate::upstream::{OutcomeRule, Scheme, Settings, Target};

fn orders() -> RouteSettings {
    let minute = Duration::from_mins(1);
    let [id, kind] = ["json:/id", "json:/type?"].map(|text| text.parse().unwrap());
    RouteSettings {
        name: Arc::from("orders"),
        host: None,
        public_url: None,
        path: PathPattern::Exact("/orders".to_owned()),
        methods: vec![Method::POST],
        upstream: Settings {
            target: Target {
                scheme: Scheme::Http,
                authority: "127.0.0.1:3000".parse().unwrap(),
                path: None,
            },
            connect_timeout: minute,
            keepalive: minute,
            keepalive_max: minute,
            preserve_host: true,
        },
        steps: None,
        mode: Mode::Enforce,
        provider: None,
        secrets: Vec::new(),
        verify: true,
        tolerance: None,
        key: KeyRule {
            headers: vec![HeaderName::from_static("x-idempotency-key")],
            event: EventRule { source: "orders".to_owned(), id, kind },
            scope: Vec::new(),
        },
        fingerprint: FingerprintRule {
            over: FingerprintOver::Auto { untyped_events: true },
            ignore: vec!["/at".parse().unwrap()],
        },
        policy: Policy {
            durations: Durations {
                lease: minute,
                attempt_timeout: minute,
                retention: minute,
                hold_for: minute,
            },
            answer_within: None,
            if_in_flight: IfInFlight::Refuse,
            waiters_max: 32,
            receiver: ReceiverPolicy {
                if_uncertain: IfUncertain::Hold,
                lookup: None,
                outcome: OutcomeRule { succeeded: Vec::new(), uncertain: Vec::new() },
                reference: None,
                forward_key: None,
            },
            remember: Remember::Retention,
            when_store_fails: WhenStoreFails::Refuse,
            in_flight_max: 1,
            body_bytes_max: 0,
            drop_headers: Vec::new(),
        },
        in_flight_status: StatusCode::CONFLICT,
        retry_status: None,
        refusal_body: RefusalBody::Problem,
        uncertain_status: StatusCode::SERVICE_UNAVAILABLE,
        request_bytes_max: 64,
        when_key_missing: WhenKeyMissing::Refuse,
    }
}

fn explained(captured: &str, json: bool) -> String {
    explained_by(&orders(), captured, json)
}

fn explained_by(route: &RouteSettings, captured: &str, json: bool) -> String {
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), captured).unwrap();
    let (config, request) = (PathBuf::new(), file.path().to_owned());
    let args = Args { config, request, at: None, certificate: Vec::new(), json };
    let choose = |parts: &Parts| {
        if parts.uri.path() == "/orders" {
            return Ok(route);
        }
        let detail = "no route serves this host and path".to_owned();
        Err(ExplainedRefusal { code: "no-route", detail })
    };
    explain(&args, choose).unwrap()
}

fn told_of(body: &str) -> String {
    explained(&format!("POST /orders HTTP/1.1\nHost: h\n\n{body}"), false)
}

#[test]
fn a_header_key_is_explained_with_the_body_it_is_bound_to() {
    let captured = "POST /orders HTTP/1.1\r\nHost: h\r\nX-Idempotency-Key: \"k1\"\r\n\r\nhello";
    assert_snapshot!(explained(captured, false), @r#"
    route        orders
    signature    not-checked
    key          header: "k1"
    operation    op_92e94573b157cfb695e4b12a006fc55f
    fingerprint  20679ccb823a328c-c6402d15196824a049ad87c371a5047a over the body
    ignored      json:/at
    disposition  executed, unless the store knows it
    "#);
    assert_snapshot!(explained(captured, true), @r#"{"route":"orders","provider":null,"signature":{"verdict":"not-checked","reason":null},"key":{"from":"header","parts":["k1"]},"operation":"op_92e94573b157cfb695e4b12a006fc55f","fingerprint":"20679ccb823a328c-c6402d15196824a049ad87c371a5047a","disposition":"executed"}"#);
}

#[test]
fn an_event_is_explained_with_its_parts() {
    assert_snapshot!(told_of(r#"{"id":8202522731445525542,"type":"paid"}"#), @r#"
    route        orders
    signature    not-checked
    key          event: "orders" "8202522731445525542" "paid"
    operation    op_92b0ea2075b84f9d734df50ef6b6d935
    fingerprint  1785cfc3bc6ac773-e3b0c44298fc1c149afbf4c8996fb924 over nothing
    ignored      nothing
    disposition  executed, unless the store knows it
    "#);
}

#[test]
fn scope_and_what_is_absent_are_explained() {
    let mut route = orders();
    route.key.scope =
        ["header:x-tenant", "json:/region?"].map(|text| text.parse().unwrap()).to_vec();
    let captured = "POST /orders HTTP/1.1\nHost: h\nX-Tenant: t\u{202e}1\n\n{\"id\":\"evt_1\"}";
    assert_snapshot!(explained_by(&route, captured, false), @r#"
    route        orders
    signature    not-checked
    key          event: "orders" "evt_1"
    scope        header:x-tenant: "t\u{202e}1"
    absent       json:/type?
    absent       json:/region?
    operation    op_c645eccae3fa1671ee5534433e928e44
    fingerprint  20679ccb823a328c-78c7adf4ee15bcfc112cd1cd0a6f4044 over the body
    ignored      json:/at
    disposition  executed, unless the store knows it
    "#);
    let json: serde_json::Value =
        serde_json::from_str(&explained_by(&route, captured, true)).unwrap();
    let scope = serde_json::json!([{ "selector": "header:x-tenant", "parts": ["t\u{202e}1"] }]);
    assert_eq!(json["key"]["scope"], scope);
    assert_eq!(json["key"]["absent"], serde_json::json!(["json:/type?", "json:/region?"]));
}

#[test]
fn a_refusal_is_explained_and_not_an_error() {
    assert_snapshot!(told_of(r#"{"id":" "}"#), @"
    route        orders
    signature    not-checked
    disposition  refused: key-missing, no idempotency key: `json:/id` is null, empty or blank
    ");
    assert_snapshot!(told_of(r#"{"id":1,"id":2}"#), @"
    route        orders
    signature    not-checked
    disposition  refused: key-invalid, unusable idempotency key: `json:/id` or a JSON member on the way to it occurs twice
    ");
    assert_snapshot!(told_of(&"x".repeat(65)), @"
    route        orders
    signature    not-checked
    disposition  refused: body-too-large, this route takes bodies of up to 64 bytes
    ");
    assert_snapshot!(explained("POST /other HTTP/1.1\n\n", false), @"
    route        none
    signature    not-checked
    disposition  refused: no-route, no route serves this host and path
    ");
    assert_snapshot!(explained("POST /other HTTP/1.1\n\n", true), @r#"{"route":null,"provider":null,"signature":{"verdict":"not-checked","reason":null},"key":null,"operation":null,"fingerprint":null,"disposition":"refused","refusal":{"code":"no-route","detail":"no route serves this host and path"}}"#);
}

#[test]
fn what_is_not_deduplicated_is_said_to_pass() {
    assert_snapshot!(explained("GET /orders HTTP/1.1\n\n", false), @"
    route        orders
    signature    not-checked
    disposition  passed: not deduplicated, as its method is not among the route's `methods`
    ");
    assert_snapshot!(explained("GET /orders HTTP/1.1\n\n", true), @r#"{"route":"orders","provider":null,"signature":{"verdict":"not-checked","reason":null},"key":null,"operation":null,"fingerprint":null,"disposition":"passed","passed_because":"its method is not among the route's `methods`"}"#);
}

/// An id may hold what moves the cursor of a terminal.
#[test]
fn what_a_sender_wrote_cannot_write_to_the_terminal() {
    let told = told_of(r#"{"id":"\u001b[31m\u202e\r\nroute  x"}"#);
    assert!(told.lines().all(|line| line.chars().all(|c| !c.is_control())), "{told:?}");
    assert!(!told.contains('\u{202e}'), "{told:?}");
    assert_eq!(told.lines().count(), 8, "{told:?}");
}

#[test]
fn a_file_that_is_no_request_is_an_error_that_names_it() {
    let args = |request: &std::path::Path| Args {
        config: PathBuf::new(),
        request: request.to_owned(),
        at: None,
        certificate: Vec::new(),
        json: false,
    };
    let file = tempfile::NamedTempFile::new().unwrap();
    let told = explain(&args(file.path()), |_| panic!("no request")).unwrap_err();
    assert_eq!(told.to_string(), format!("`{}` is not a captured request", file.path().display()));
    let nowhere = std::path::Path::new("/nowhere");
    let told = explain(&args(nowhere), |_| panic!("no request")).unwrap_err();
    assert_eq!(told.to_string(), "cannot read `/nowhere`");
}
