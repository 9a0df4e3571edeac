//! How an attempt ends: for each way what the sender gets, what the receiver has counted, how the
//! operation stands right after, and what the next copy gets.

mod answered;
mod broken;
mod late;
mod long;
mod never_sent;
mod reused;
mod tls;

use serde_json::{Value, json};

use crate::support::{Event, Onceward, Reply};

/// The text of the warning that an uncertain outcome leaves in the log.
const HELD: &str = "nobody knows whether the operation was done";

/// For attempts that end with their time. It is long beside what a busy machine needs to send one.
const SHORT: &str = "attempt_timeout = \"1s\"";

/// How the operation of an answer stands: its state, and how its latest attempt ended.
async fn standing(onceward: &Onceward, reply: &Reply) -> Value {
    let operation = onceward.operation(&reply.operation()).await.expect("it is remembered");
    let attempts = operation["attempts"].as_array().unwrap();
    assert_eq!(operation["attempts_total"], attempts.len(), "{operation:#}");
    let latest = attempts.last().expect("an attempt");
    assert!(latest["ended_at"].is_string(), "{operation:#}");
    json!({
        "state": operation["state"],
        "attempt": latest["number"],
        "sent": latest["sent"],
        "outcome": latest["outcome"],
        "reason": latest["reason"],
        "status": latest["status"],
    })
}

/// A complete answer came in this attempt, and this is what it meant.
fn answered(attempt: u32, outcome: &str, status: u16) -> Value {
    json!({
        "state": outcome,
        "attempt": attempt,
        "sent": true,
        "outcome": outcome,
        "reason": "answered",
        "status": status,
    })
}

/// Nothing was sent in this attempt.
fn never_sent(attempt: u32, reason: &str) -> Value {
    json!({
        "state": "failed",
        "attempt": attempt,
        "sent": false,
        "outcome": "failed",
        "reason": reason,
        "status": null,
    })
}

/// Nobody knows what came of the first attempt.
fn uncertain(reason: &str, status: Option<u16>) -> Value {
    json!({
        "state": "uncertain",
        "attempt": 1,
        "sent": true,
        "outcome": "uncertain",
        "reason": reason,
        "status": status,
    })
}

/// A copy is refused, and changes nothing.
async fn is_held(onceward: &Onceward, event: Event) {
    let before = onceward.sends(event.clone()).await;
    before.is_uncertain();
    let stands = standing(onceward, &before).await;
    onceward.sends(event).await.is_uncertain();
    assert_eq!(standing(onceward, &before).await, stands);
    assert_eq!(stands["state"], "uncertain");
}
