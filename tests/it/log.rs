//! What is written down of each request.

use std::net::SocketAddr;

use serde_json::{Value, json};

use crate::support::{Event, Onceward, Receiver, event};

/// Whatever happens to a request, it has one line that says so.
#[tokio::test]
async fn every_request_has_one_line_in_the_log() {
    let receiver = Receiver::that_answers(201, "done\n").await;
    let onceward = Onceward::in_front_of(&receiver).start().await;
    let id = onceward.sends(event("evt_1")).await.operation();
    onceward.sends(event("evt_1")).await.is_replayed(201);
    onceward.sends(Event::bytes("no key").to("/hooks/%0a")).await.is_refused(400, "key-missing");
    onceward.sends(event("evt_1").to("/elsewhere")).await.is_refused(404, "no-route");
    onceward.logs("/elsewhere").await;

    let lines: Vec<Value> = onceward
        .log()
        .into_iter()
        .filter(|line| line["message"] == "answered")
        .map(|mut line| {
            let fields = line.as_object_mut().unwrap();
            assert!(fields.remove("duration_ms").unwrap().is_u64());
            for name in ["timestamp", "level", "target", "message"] {
                fields.remove(name).unwrap();
            }
            line
        })
        .collect();
    let done = |disposition: &str| {
        json!({
            "method": "POST", "path": "/hooks", "route.name": "hooks", "status": 201,
            "disposition": disposition, "operation.id": id, "operation.key": "evt_1",
            "attempt.number": 1,
        })
    };
    let expected = [
        done("executed"),
        done("replayed"),
        json!({
            "method": "POST", "path": "/hooks/%0a", "route.name": "hooks", "status": 400,
            "disposition": "refused", "code": "key-missing",
            "detail": "no idempotency key: `json:/id` is absent: the body is not JSON in UTF-8",
        }),
        json!({
            "method": "POST", "path": "/elsewhere", "status": 404,
            "disposition": "refused", "code": "no-route",
            "detail": "no route serves this host and path",
        }),
    ];
    assert_eq!(lines, expected);
}

/// Who operates the proxy has to see what a sender did wrong, and nothing that it wrote.
#[tokio::test]
async fn the_line_of_a_refusal_says_why_and_nothing_that_was_sent() {
    let receiver = Receiver::that_answers(200, "done\n").await;
    let onceward = Onceward::in_front_of(&receiver)
        .routes("provider = \"github\"\nsecrets = [{ env = \"WEBHOOK_SECRET\" }]")
        .variable("WEBHOOK_SECRET", "0123456789abcdef")
        .start()
        .await;
    onceward.sends(event("canary-1")).await.is_refused(401, "signature-missing");
    let forged = format!("sha256={}", "ab".repeat(32));
    let forged = event("canary-2").header("x-hub-signature-256", &forged);
    onceward.sends(forged).await.is_refused(401, "signature-invalid");
    onceward.logs("signature-invalid").await;

    let details: Vec<Value> = onceward
        .log()
        .iter_mut()
        .filter_map(|line| line.as_object_mut()?.remove("detail"))
        .collect();
    let forged = "it was made with none of the secrets, or the signed bytes were changed on the way \
                  (checked: header `x-hub-signature-256`)";
    assert_eq!(details, ["header `x-hub-signature-256` is missing", forged]);
    let all = format!("{:?}", onceward.log());
    assert!(!all.contains("canary") && !all.contains("abab"), "{all}");
}

/// Whoever reads the log looks for an address, not for Rust's way to write that there is one.
#[tokio::test]
async fn a_peer_in_the_log_is_a_plain_address() {
    let receiver = Receiver::that_answers(200, "done\n").await;
    let onceward = Onceward::in_front_of(&receiver)
        .admin("token = { env = \"ADMIN_TOKEN\" }")
        .variable("ADMIN_TOKEN", "the-token-of-this-test")
        .limits("header_lines_max = 16")
        .variable("ONCEWARD_LOG", "debug")
        .start()
        .await;
    let wrong = onceward.get_admin_with("/api/stats", &[("authorization", "Bearer wrong")]).await;
    assert_eq!(wrong.status, 401);
    onceward.logs("its token is wrong").await;
    let many =
        (0..17).fold(event("evt_1"), |event, number| event.header(&format!("x-{number}"), ""));
    assert_eq!(onceward.sends(many).await.status, 431);
    onceward.logs("refused before it was read").await;

    let peers: Vec<Value> =
        onceward.log().iter_mut().filter_map(|line| line.as_object_mut()?.remove("peer")).collect();
    assert!(peers.len() >= 2, "{peers:?}");
    for peer in peers {
        let text = peer.as_str().unwrap();
        assert!(text.parse::<SocketAddr>().is_ok(), "{text}");
    }
}
