//! What `onceward explain` says of who sent a captured request.

use std::process::Command;

use serde_json::Value;

use crate::support::{Event, event, signing};

const SECRET: &str = "whsec_x";
const ROUTE: &str = "provider = \"stripe\"\nsecrets = [{ env = \"THE_SECRET\" }]\n";

fn explain(route: &str, event: &Event, arguments: &[&str]) -> String {
    let directory = tempfile::tempdir().unwrap();
    let config = directory.path().join("c.toml");
    let request = directory.path().join("r.http");
    let toml =
        format!("[routes.hooks]\npath = \"/hooks\"\nupstream = \"http://127.0.0.1:1\"\n{route}\n");
    std::fs::write(&config, toml).unwrap();
    std::fs::write(&request, event.raw()).unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_onceward"));
    command.arg("explain").arg("--config").arg(config).arg("--request").arg(request);
    let output = command.args(arguments).env("THE_SECRET", SECRET).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).unwrap()
}

fn json(route: &str, event: &Event, at: Option<u64>) -> Value {
    let at = at.map(signing::rfc3339);
    let mut arguments = vec!["--json"];
    arguments.extend(at.iter().flat_map(|at| ["--at", at]));
    serde_json::from_str(&explain(route, event, &arguments)).unwrap()
}

fn signed(at: u64) -> Event {
    let event = event("evt_1");
    let signature = signing::stripe(SECRET, at, &event.body);
    event.header("stripe-signature", &signature)
}

#[test]
fn a_time_can_be_set_and_is_now_otherwise() {
    let at = 1_700_000_000;
    assert_eq!(json(ROUTE, &signed(at), Some(at + 300))["signature"]["verdict"], "valid");
    let stale = json(ROUTE, &signed(at), Some(at + 400));
    assert_eq!(stale["signature"]["verdict"], "stale");
    let reason = stale["signature"]["reason"].as_str().unwrap();
    assert!(reason.contains("100s older"), "{reason}");
    assert_eq!(json(ROUTE, &signed(at), None)["signature"]["verdict"], "stale");
    assert_eq!(json(ROUTE, &signed(signing::now()), None)["signature"]["verdict"], "valid");
}

/// Who asks here is the operator: what it would have been is told all the same.
#[test]
fn a_refused_request_is_explained_to_its_key() {
    let now = signing::now();
    let genuine = json(ROUTE, &signed(now), None);
    let forged = json(ROUTE, &signed(now).with("stripe-signature", "t=1,v1=00"), None);
    assert_eq!(forged["signature"]["verdict"], "invalid");
    assert_eq!(forged["disposition"], "refused");
    assert_eq!(forged["refusal"]["code"], "signature-invalid");
    assert_eq!(forged["operation"], genuine["operation"]);
    assert_eq!(forged["key"], genuine["key"]);
    let said = explain(ROUTE, &signed(now).without("stripe-signature"), &[]);
    assert!(said.contains("signature    missing: header `stripe-signature` is missing"), "{said}");
    assert!(said.contains("disposition  refused: signature-missing"), "{said}");
    assert!(!said.contains(SECRET));
}

#[test]
fn what_a_route_does_not_check_is_not_checked() {
    let forged = signed(1).with("stripe-signature", "t=1,v1=00");
    let unchecked = json("provider = \"stripe\"\nverify = false\n", &forged, None);
    assert_eq!(unchecked["signature"]["verdict"], "not-checked");
    assert_eq!(unchecked["disposition"], "executed");
    let passed = json(&format!("{ROUTE}mode = \"pass\"\n"), &forged, None);
    assert_eq!(passed["signature"]["verdict"], "not-checked");
    assert_eq!(passed["disposition"], "passed");
    assert_eq!(passed["operation"], Value::Null);
    let too_long = json(&format!("{ROUTE}request_bytes_max = \"10B\"\n"), &forged, None);
    assert_eq!(too_long["signature"]["verdict"], "not-checked");
    assert_eq!(too_long["refusal"]["code"], "body-too-large");
}

#[test]
fn a_route_that_observes_says_what_it_would_do() {
    let route = format!("{ROUTE}mode = \"observe\"\n");
    let forged = json(&route, &signed(1).with("stripe-signature", "t=1,v1=00"), None);
    assert_eq!(
        (&forged["disposition"], &forged["observed"]),
        (&"passed".into(), &"refused".into())
    );
    let genuine = json(&route, &signed(signing::now()), None);
    assert_eq!(genuine["disposition"], "passed");
    assert_eq!(genuine["observed"], "executed");
    let enforced = json(ROUTE, &signed(signing::now()), None);
    assert_eq!(genuine["operation"], enforced["operation"]);
    assert_eq!(enforced["observed"], Value::Null);
}

#[test]
fn a_handshake_is_told_from_an_event() {
    let route = "provider = \"slack\"\nsecrets = [{ env = \"THE_SECRET\" }]\n";
    let form = "application/x-www-form-urlencoded";
    let check = Event::bytes("ssl_check=1&token=t").header("content-type", form);
    let explained = json(route, &check, None);
    assert_eq!(explained["signature"]["verdict"], "not-checked");
    assert_eq!(explained["disposition"], "passed");
    assert_eq!(explained["key"], Value::Null);
    let more = Event::bytes("ssl_check=1&x=y").header("content-type", form);
    assert_eq!(json(route, &more, None)["refusal"]["code"], "signature-missing");
}
