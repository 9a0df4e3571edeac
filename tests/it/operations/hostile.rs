//! What strangers write into ids and operators into reasons stays text.

use serde_json::json;

use super::{before_forgetful, calls_with, forgets, is_problem, resolves, told, types};
use crate::support::{Event, Onceward, Receiver};

const HOSTILE: &str =
    "a\u{1b}[31mred\u{1b}]0;title\u{7}\r\n\t\u{0}\u{9b}2J\u{202e}txt\u{2028}\u{200b}<script>";

/// Nothing that a terminal takes for a command.
#[track_caller]
fn is_harmless(text: &str) {
    let harmful = |found: char| {
        found.is_control() && found != '\n' || "\u{202e}\u{2028}\u{200b}".contains(found)
    };
    assert!(!text.contains(harmful), "{text:?}");
}

#[tokio::test]
async fn no_key_path_or_reason_is_printed_raw() {
    let (_receiver, onceward) = before_forgetful().await;
    let event =
        || Event::json(&json!({ "id": HOSTILE, "type": HOSTILE })).to("/hooks/%1b%5b31m;'\"`$(x)");
    let id = onceward.sends(event()).await.is_executed_as("upstream-broken", 502).operation();
    let body = json!({
        "outcome": "failed", "reason": HOSTILE, "by": HOSTILE, "reference": HOSTILE, "attempt": 1,
    });
    told(&resolves(&onceward, &id, body).await);
    let reason = format!("{HOSTILE}{}", "x".repeat(900));
    let forget = ["forget", &id, "--yes", "--reason", &reason.replace('\0', "")];
    types(&onceward, &forget).await.printed();
    for args in [
        &["list"][..],
        &["list", "--json"],
        &["show", &id],
        &["show", &id, "--json"],
        &["audit"],
        &["audit", "--json"],
    ] {
        let printed = types(&onceward, args).await.printed();
        is_harmless(&printed);
        assert!(printed.contains("[31mred"), "{args:?}: {printed}");
    }
    let operation = onceward.operation(&id).await.unwrap();
    assert_eq!(operation["decisions"][1]["reason"], HOSTILE, "it is kept as it is");
    assert_eq!(operation["key"]["parts"][1], HOSTILE);
    for line in onceward.log() {
        let text = line.to_string();
        assert!(!text.contains(['\u{1b}', '\u{202e}', '\u{9b}']), "{text}");
    }
}

/// Whoever answers in place of the admin listener cannot paint the operator's terminal.
#[tokio::test]
async fn no_answer_of_a_stranger_is_printed_raw() {
    let receiver = Receiver::that_answers(200, "ok").await;
    let onceward = Onceward::in_front_of(&receiver).start().await;
    let stranger = Receiver::that_answers(
        409,
        r#"{"type":"urn:onceward:problem:x","title":"\u001b[31m","status":409,"detail":"\u009b2J",
            "state":"\u001b[2J","attempt":1}"#,
    )
    .await;
    let mut command = super::command(&onceward, &["list"]);
    command.env("ONCEWARD_ADMIN_URL", stranger.url());
    let said = super::ends(command).await.complained(1);
    is_harmless(&said);
    assert!(said.contains("[2J"), "{said}");
}

#[tokio::test]
async fn long_and_odd_ids_and_bodies_are_refused() {
    let receiver = Receiver::that_answers(200, "ok").await;
    let onceward = Onceward::in_front_of(&receiver).start().await;
    let long = format!("op_{}", "0".repeat(10_240));
    let why = || json!({ "reason": "x".repeat(10_240) });
    for id in
        [&*long, "op_", "%00", "%ff", "..%2f..%2fmetrics", "op_%1b%5b31m", "@host", "a%0d%0ab"]
    {
        is_problem(&forgets(&onceward, id, why()).await, 400, "invalid-id");
    }
    let id = format!("op_{}", "0".repeat(32));
    is_problem(&forgets(&onceward, &id, why()).await, 400, "invalid-body");
    let path = format!("/api/operations/{id}");
    let kind = [("content-type", "application/json")];
    let deep = "[".repeat(100_000);
    for body in ["", "{", "\u{0}", "nope", "{\"reason\":\"a\",\"reason\":\"b\"}", &deep] {
        let reply = calls_with(&onceward, "DELETE", &path, &kind, body.to_owned()).await;
        is_problem(&reply, 400, "invalid-body");
    }
    let not_text = calls_with(&onceward, "DELETE", &path, &kind, b"{\"reason\":\"\xff\"}".to_vec());
    is_problem(&not_text.await, 400, "invalid-body");
}
