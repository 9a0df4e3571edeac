//! Who may decide: whoever has the token, and nobody's web page.

use std::net::IpAddr;

use serde_json::{Value, json};

use super::{
    HELD, Typed, before_forgetful, calls_with, command, ends, forgetful, held, is_problem, told,
};
use crate::support::{Onceward, Receiver, Reply, event};

const JSON: (&str, &str) = ("content-type", "application/json");
const TOKEN: &str = "canary-token";

async fn with_token(receiver: &Receiver) -> Onceward {
    Onceward::in_front_of(receiver)
        .admin("token = { env = \"TOKEN_OF_TEST\" }")
        .variable("TOKEN_OF_TEST", TOKEN)
        .expects_log(HELD)
        .start()
        .await
}

fn body() -> Value {
    json!({ "outcome": "failed", "reason": "why" })
}

/// All calls that change something.
fn changes(id: &str) -> [(&'static str, String, Value); 3] {
    let many = json!({
        "route": "hooks", "state": "uncertain", "before": "2999-01-01T00:00:00Z",
        "outcome": "failed", "reason": "why", "dry_run": false,
    });
    [
        ("POST", format!("/api/operations/{id}/resolve"), body()),
        ("DELETE", format!("/api/operations/{id}"), json!({ "reason": "why" })),
        ("POST", "/api/operations/resolve".to_owned(), many),
    ]
}

/// Asks with the right token from this address.
async fn asks_from(onceward: &Onceward, address: &str, token: &str) -> Reply {
    let address: IpAddr = address.parse().unwrap();
    let client = reqwest::Client::builder().no_proxy().local_address(address).build().unwrap();
    let url = format!("http://{}/api/operations", onceward.admin);
    let request = client.get(url).header("authorization", format!("Bearer {token}"));
    Reply::of(request.send().await.unwrap()).await
}

async fn shown(onceward: &Onceward, id: &str) -> Value {
    let headers = [("authorization", "Bearer canary-token")];
    told(&onceward.get_admin_with(&format!("/api/operations/{id}"), &headers).await)
}

#[tokio::test]
async fn a_wrong_or_missing_token_is_401_and_changes_nothing() {
    let receiver = forgetful().await;
    let onceward = with_token(&receiver).await;
    let id = held(&onceward, "e").await;
    let before = shown(&onceward, &id).await;
    for (method, path, body) in changes(&id) {
        for given in [None, Some("Bearer canary-toke"), Some("canary-token")] {
            let mut headers = vec![JSON];
            headers.extend(given.map(|given| ("authorization", given)));
            let reply = calls_with(&onceward, method, &path, &headers, body.to_string()).await;
            is_problem(&reply, 401, "unauthorized");
            assert_eq!(reply.header("connection"), Some("close"), "its body was not read");
        }
    }
    assert_eq!(shown(&onceward, &id).await, before);
    onceward.sends(event("e")).await.is_uncertain();

    let right = [JSON, ("authorization", "Bearer canary-token")];
    let [(method, path, body), ..] = changes(&id);
    told(&calls_with(&onceward, method, &path, &right, body.to_string()).await);
    onceward.sends(event("e")).await.is_executed(200);
    let log = format!("{:?}", onceward.log());
    assert!(!log.contains("canary"), "{log}");
}

#[tokio::test]
async fn a_command_has_its_token_from_the_environment_or_a_file() {
    let receiver = forgetful().await;
    let onceward = with_token(&receiver).await;
    let id = held(&onceward, "e").await;
    let file = onceward.directory().join("token");
    let file = file.to_str().unwrap();
    let types = async |variable: Option<&str>, content: Option<&str>| -> Typed {
        let mut command = command(&onceward, &["list"]);
        if let Some(content) = content {
            std::fs::write(file, content).unwrap();
            command.args(["--token-file", file]);
        }
        command.envs(variable.map(|token| ("ONCEWARD_ADMIN_TOKEN", token)));
        ends(command).await
    };
    for (variable, content) in [
        (Some(TOKEN), None),
        (None, Some("canary-token")),
        (None, Some("canary-token\n")),
        (Some("wrong"), Some("canary-token\r\n")),
    ] {
        assert!(types(variable, content).await.printed().contains(&id));
    }
    for (variable, content) in [(None, None), (Some("wrong"), None), (Some(""), None)] {
        assert_eq!(
            types(variable, content).await.complained(1),
            "error: the token is missing or wrong\n  hint: `ONCEWARD_ADMIN_TOKEN` or `--token-file` \
             must give the `admin.token` of the proxy\n"
        );
    }
    for content in ["", "\n", "two\nlines", "\u{e9}"] {
        assert_eq!(
            types(None, Some(content)).await.complained(2),
            "error: the token is empty, or not visible ASCII in one line\n"
        );
    }
}

/// Guesses until it is told to wait: how many were wrong before.
async fn guesses_too_often(onceward: &Onceward) -> usize {
    let mut wrong = 0;
    loop {
        let reply = asks_from(onceward, "127.0.0.1", "wrong").await;
        if reply.status == 429 {
            is_problem(&reply, 429, "too-many-failures");
            assert!((1..=6).contains(&reply.retry_after()), "{reply:?}");
            return wrong;
        }
        is_problem(&reply, 401, "unauthorized");
        wrong += 1;
    }
}

/// An operator may come from the same address as whoever guesses, such as behind one gateway.
#[tokio::test]
async fn who_guesses_too_often_has_to_wait_and_the_right_token_is_never_refused() {
    let receiver = Receiver::that_answers(200, "ok").await;
    let onceward = with_token(&receiver).await;
    assert!(guesses_too_often(&onceward).await >= 10);
    for _ in 0..5 {
        guesses_too_often(&onceward).await;
        assert_eq!(asks_from(&onceward, "127.0.0.1", TOKEN).await.status, 200);
        let mut command = command(&onceward, &["list"]);
        command.env("ONCEWARD_ADMIN_TOKEN", TOKEN);
        assert_eq!(ends(command).await.stderr, "");
    }
    assert_eq!(asks_from(&onceward, "127.0.0.2", TOKEN).await.status, 200);
    assert_eq!(onceward.get_admin("/livez").await.status, 200, "health asks for none");
}

/// Time alone makes good for guesses, so on a slow machine a later one may be heard again.
#[tokio::test]
async fn a_command_with_a_wrong_token_says_when_there_were_too_many() {
    let receiver = Receiver::that_answers(200, "ok").await;
    let onceward = with_token(&receiver).await;
    let mut said = String::new();
    for _ in 0..20 {
        guesses_too_often(&onceward).await;
        let mut command = command(&onceward, &["list"]);
        command.env("ONCEWARD_ADMIN_TOKEN", "wrong");
        said = ends(command).await.stderr;
        if said.starts_with("error: too many tokens were wrong\n  hint: try again in ") {
            return;
        }
    }
    panic!("{said}");
}

/// A page that the operator's browser shows, and forms that it can send.
#[tokio::test]
async fn no_page_of_another_site_changes_anything() {
    let (_receiver, onceward) = before_forgetful().await;
    let id = held(&onceward, "e").await;
    let before = onceward.operation(&id).await.unwrap();
    let evil = format!("localhost.evil.example:{}", onceward.admin.port());
    for (method, path, body) in changes(&id) {
        let body = body.to_string();
        for theirs in [
            ("origin", "http://evil.example"),
            ("origin", "null"),
            ("sec-fetch-site", "cross-site"),
            ("sec-fetch-site", "same-site"),
        ] {
            let reply = calls_with(&onceward, method, &path, &[JSON, theirs], body.clone()).await;
            is_problem(&reply, 403, "cross-site");
        }
        let rebound = [JSON, ("host", &evil)];
        let reply = calls_with(&onceward, method, &path, &rebound, body.clone()).await;
        is_problem(&reply, 403, "unknown-host");
        for kind in ["text/plain", "application/x-www-form-urlencoded", "application/jsonp"] {
            let headers = [("content-type", kind)];
            let reply = calls_with(&onceward, method, &path, &headers, body.clone()).await;
            is_problem(&reply, 415, "not-json");
        }
    }
    for path in [format!("/api/operations/{id}/resolve"), "/api/operations/resolve?x=1".into()] {
        let reply = calls_with(&onceward, "GET", &path, &[], "").await;
        assert!(matches!(reply.status, 400 | 405), "{reply:?}");
    }
    let read = calls_with(&onceward, "GET", "/api/operations", &[("host", &evil)], "").await;
    is_problem(&read, 403, "unknown-host");
    assert_eq!(onceward.operation(&id).await.unwrap(), before);

    let origin = format!("http://{}", onceward.admin);
    let ours = [JSON, ("origin", &origin), ("sec-fetch-site", "same-origin")];
    let [(method, path, body), ..] = changes(&id);
    told(&calls_with(&onceward, method, &path, &ours, body.to_string()).await);
}

/// With a token, whoever knows it may call the listener what they want.
#[tokio::test]
async fn with_a_token_the_host_does_not_count() {
    let receiver = Receiver::that_answers(200, "ok").await;
    let onceward = with_token(&receiver).await;
    let headers = [("host", "onceward.internal"), ("authorization", "Bearer canary-token")];
    told(&calls_with(&onceward, "GET", "/api/operations", &headers, "").await);
}
