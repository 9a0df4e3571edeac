//! A person decides, whichever process is asked.

use std::process::Stdio;

use reqwest::header::CONTENT_TYPE;
use serde_json::{Value, json};
use tokio::process::Command;

use super::server::Server;
use super::{on_every_server, two_patient_proxies};
use crate::support::{Act, Answer, Onceward, Receiver, a_later_millisecond, event};

on_every_server! {
    what_is_held_is_listed_and_decided_by_api_and_by_command
}

async fn listed(onceward: &Onceward) -> Vec<String> {
    let page = onceward.get_admin("/api/operations?route=hooks&state=uncertain").await;
    let page: Value = serde_json::from_slice(&page.body).unwrap();
    let operations = page["operations"].as_array().unwrap().iter();
    operations.map(|found| found["operation"].as_str().unwrap().to_owned()).collect()
}

async fn what_is_held_is_listed_and_decided_by_api_and_by_command<S: Server>() {
    let server = S::start().await;
    let receiver = Receiver::that(|_, copies| -> Act {
        if copies == 0 { Act::Close } else { Answer::new(200, "again").into() }
    });
    let receiver = receiver.await;
    let (a, b) = two_patient_proxies(&server, &receiver, "").await;
    let mut held = Vec::new();
    for id in ["evt_1", "evt_2"] {
        let reply = a.sends(event(id)).await;
        held.push(reply.is_executed_as("upstream-broken", 502).operation());
        // newest first, to the millisecond
        a_later_millisecond().await;
    }
    assert_eq!(listed(&b).await, [held[1].clone(), held[0].clone()]);

    let decision = json!({
        "outcome": "succeeded", "reason": "seen in the ledger", "status": 202, "body": "{\"ok\":1}",
    });
    let url = format!("http://{}/api/operations/{}/resolve", b.admin, held[0]);
    let client = reqwest::Client::builder().no_proxy().build().unwrap();
    let resolve = client.post(url).header(CONTENT_TYPE, "application/json");
    let resolved = resolve.body(decision.to_string()).send().await.unwrap();
    assert_eq!(resolved.status(), 200);
    assert_eq!(listed(&a).await, [held[1].clone()]);
    assert_eq!(a.sends(event("evt_1")).await.is_replayed(202).text(), "{\"ok\":1}");

    let typed = Command::new(env!("CARGO_BIN_EXE_onceward"))
        .args(["operations", "resolve", &held[1], "--outcome", "failed", "--yes"])
        .args(["--reason", "not in the ledger"])
        .env("ONCEWARD_ADMIN_URL", format!("http://{}", a.admin))
        .stdin(Stdio::null())
        .output();
    let typed = typed.await.unwrap();
    assert!(typed.status.success(), "{typed:?}");
    assert_eq!(listed(&b).await, Vec::<String>::new());
    b.sends(event("evt_2")).await.is_executed(200);
    a.sends(event("evt_2")).await.is_replayed(200);
    receiver.was_called(3);
}
