//! What the control plane tells, and to whom.

use serde_json::{Value, json};

use crate::support::{Act, Answer, Event, Gate, Onceward, Receiver, Reply, event};

/// What the log says of an operation that became uncertain.
const HELD: &str = "nobody knows whether the operation was done";

/// A receiver that does what the type of the event says.
async fn obedient(gate: &Gate) -> Receiver {
    let gate = gate.clone();
    Receiver::that(move |seen, _| {
        let body = String::from_utf8_lossy(&seen.body).into_owned();
        let answer = |status| Answer::new(status, "as told").header("x-kept", "v");
        match body {
            body if body.contains("please.fail") => answer(500).into(),
            body if body.contains("please.vanish") => Act::Close,
            body if body.contains("please.wait") => answer(200).when(&gate),
            _ => answer(200).into(),
        }
    })
    .await
}

fn told_to(id: &str, what: &str) -> Event {
    Event::json(&json!({ "id": id, "type": what }))
}

#[tokio::test]
async fn it_is_alive_and_ready() {
    let receiver = Receiver::that_answers(200, "ok").await;
    let onceward = Onceward::in_front_of(&receiver).start().await;
    for (path, body) in [("/livez", "live\n"), ("/readyz", "ready\n")] {
        let reply = onceward.get_admin(path).await;
        assert_eq!((reply.status, &*reply.text()), (200, body));
    }
    receiver.was_called(0);
}

/// Nothing of the control plane is on the listener that senders reach.
#[tokio::test]
async fn the_data_plane_serves_no_control_plane() {
    let receiver = Receiver::that_answers(200, "ok").await;
    let onceward = Onceward::in_front_of(&receiver).start().await;
    for path in ["/metrics", "/livez", "/readyz", "/api/operations"] {
        onceward.sends(event("evt_1").by("GET").to(path)).await.is_refused(404, "no-route");
    }
}

#[tokio::test]
async fn what_became_of_each_request_is_counted() {
    let gate = Gate::default();
    let receiver = obedient(&gate).await;
    let onceward = Onceward::in_front_of(&receiver).expects_log(HELD).start().await;
    onceward.sends(told_to("a", "ordinary")).await.is_executed(200);
    onceward.sends(told_to("a", "ordinary")).await.is_replayed(200);
    onceward.sends(told_to("b", "please.fail")).await.is_executed(500);
    onceward.sends(told_to("c", "please.vanish")).await.is_executed_as("upstream-broken", 502);
    onceward.sends(told_to("c", "please.vanish")).await.is_uncertain();
    onceward.sends(told_to("x", "ordinary").keyed("k")).await.is_executed(200);
    onceward.sends(told_to("y", "ordinary").keyed("k")).await.is_mismatched();
    onceward.sends(event("z").by("GET")).await.is_passed(200);
    onceward.sends(Event::bytes("no key")).await.is_refused(400, "key-missing");
    onceward.sends(event("z").to("/nowhere")).await.is_refused(404, "no-route");
    let copies = async {
        receiver.has_counted(6).await;
        assert_eq!(onceward.metric("onceward_in_flight").await, 1.0);
        onceward.sends(told_to("d", "please.wait")).await.is_in_flight(409);
        gate.opens();
    };
    tokio::join!(onceward.sends(told_to("d", "please.wait")), copies).0.is_executed(200);
    receiver.was_called(6);
    // An attempt counts as in flight until a moment after its sender was answered.
    onceward.comes_down_to("onceward_in_flight", 0.0).await;

    let page = onceward.get_admin("/metrics").await;
    assert_eq!(page.header("content-type"), Some("text/plain; version=0.0.4; charset=utf-8"));
    let counted = |families: &[&str]| -> String {
        let text = page.text();
        let lines = text.lines().filter(|line| families.iter().any(|name| line.starts_with(name)));
        let mut lines: Vec<_> = lines.filter(|line| !line.ends_with(" 0")).collect();
        lines.sort_unstable();
        lines.join("\n")
    };
    insta::assert_snapshot!(counted(&["onceward_requests", "onceward_attempts", "onceward_refusals"]), @r#"
    onceward_attempts_total{route="hooks",outcome="failed"} 1
    onceward_attempts_total{route="hooks",outcome="succeeded"} 3
    onceward_attempts_total{route="hooks",outcome="uncertain"} 1
    onceward_refusals_total{route="hooks",code="key-missing"} 1
    onceward_refusals_total{route="none",code="no-route"} 1
    onceward_requests_total{route="hooks",disposition="executed"} 5
    onceward_requests_total{route="hooks",disposition="in-flight"} 1
    onceward_requests_total{route="hooks",disposition="mismatched"} 1
    onceward_requests_total{route="hooks",disposition="passed"} 1
    onceward_requests_total{route="hooks",disposition="refused"} 1
    onceward_requests_total{route="hooks",disposition="replayed"} 1
    onceward_requests_total{route="hooks",disposition="uncertain"} 1
    onceward_requests_total{route="none",disposition="refused"} 1
    "#);
    insta::assert_snapshot!(counted(&["onceward_in_flight", "onceward_uncertain", "onceward_superseded", "onceward_refused_then", "onceward_build"]), @r#"
    onceward_build_info{version="0.1.0"} 1
    onceward_uncertain 1.0
    "#);
    let counts = [
        ("onceward_request_duration_seconds_count", 12.0),
        ("onceward_attempt_duration_seconds_count", 5.0),
        ("onceward_store_duration_seconds_count{call=\"settle\"}", 5.0),
    ];
    for (line, count) in counts {
        assert_eq!(onceward.metric(line).await, count, "{line}");
    }
    for call in ["claim", "renew", "settle", "get", "resolve", "forget", "sweep"] {
        let line = format!("onceward_store_duration_seconds_count{{call=\"{call}\"}} ");
        assert!(page.text().contains(&line), "{line}");
    }
}

/// Of a counter that appears with 1 an alert misses the first event.
#[tokio::test]
async fn what_has_not_happened_yet_is_counted_as_zero() {
    let receiver = Receiver::that_answers(200, "ok").await;
    let onceward = Onceward::in_front_of(&receiver)
        .routes(
            "[routes.watched]\npath = \"/watched\"\nupstream = \"http://127.0.0.1:1\"\nmode = \"observe\"\n\
             [routes.asking]\npath = \"/asking\"\nupstream = \"http://127.0.0.1:1\"\nwhen_uncertain = \"lookup\"\n\
             lookup.url = \"http://127.0.0.1:1/{key}\"",
        )
        .start()
        .await;
    let page = onceward.get_admin("/metrics").await.text();
    for line in [
        "onceward_refusals_total{route=\"hooks\",code=\"signature-stale\"}",
        "onceward_refusals_total{route=\"hooks\",code=\"key-missing\"}",
        "onceward_refusals_total{route=\"hooks\",code=\"store-unavailable\"}",
        "onceward_refusals_total{route=\"none\",code=\"no-route\"}",
        "onceward_refusals_total{route=\"none\",code=\"head-too-large\"}",
        "onceward_observed_total{route=\"watched\",disposition=\"replayed\"}",
        "onceward_lookups_total{route=\"asking\",finding=\"not-done\"}",
    ] {
        assert!(page.contains(&format!("\n{line} 0\n")), "no `{line}` in\n{page}");
    }
    for line in
        ["onceward_observed_total{route=\"hooks\"", "onceward_lookups_total{route=\"hooks\""]
    {
        assert!(!page.contains(line), "`{line}` cannot happen there");
    }
}

/// Whoever opens the address in a browser, or mistypes a call.
#[tokio::test]
async fn a_call_that_there_is_not_names_those_that_there_are() {
    let receiver = Receiver::that_answers(200, "ok").await;
    let onceward = Onceward::in_front_of(&receiver).start().await;
    for path in ["/", "/ready", "/api/operation"] {
        let answer = onceward.get_admin(path).await;
        assert_eq!(answer.status, 404);
        for call in ["`/livez`", "`/readyz`", "`/metrics`", "`/api/operations`"] {
            assert!(answer.text().contains(call), "{}", answer.text());
        }
    }
}

/// A sender that does not try again has lost the event: somebody must see it.
#[tokio::test]
async fn a_copy_that_was_refused_before_its_attempt_failed_is_counted_and_logged() {
    let gate = Gate::default();
    let receiver = Receiver::behind(&gate, 500, "").await;
    let builder = Onceward::in_front_of(&receiver).expects_log("refused");
    let onceward = builder.start().await;
    let copy = async {
        receiver.has_counted(1).await;
        onceward.sends(event("evt_7")).await.is_in_flight(409);
        gate.opens();
    };
    tokio::join!(onceward.sends(event("evt_7")), copy).0.is_executed(500);
    assert_eq!(onceward.metric("onceward_refused_then_failed_total").await, 1.0);
    onceward.sends(event("evt_8")).await.is_executed(500);
    assert_eq!(onceward.metric("onceward_refused_then_failed_total").await, 1.0);
}

#[tokio::test]
async fn metrics_come_in_the_format_that_is_asked_for() {
    let receiver = Receiver::that_answers(200, "ok").await;
    let onceward = Onceward::in_front_of(&receiver).start().await;
    onceward.sends(event("evt_1")).await.is_executed(200);
    let accept = "application/openmetrics-text;version=1.0.0;q=0.5,text/plain;version=0.0.4;q=0.2";
    let open = onceward.get_admin_with("/metrics", &[("accept", accept)]).await;
    let kind = "application/openmetrics-text; version=1.0.0; charset=utf-8";
    assert_eq!(open.header("content-type"), Some(kind));
    assert!(open.text().ends_with("# EOF\n"));
    let plain = onceward.get_admin_with("/metrics", &[("accept", "text/plain")]).await;
    assert!(!plain.text().contains("# EOF"));
    let executed = "onceward_requests_total{route=\"hooks\",disposition=\"executed\"} 1";
    for page in [open, plain] {
        assert!(page.text().lines().any(|line| line == executed), "{}", page.text());
    }
}

/// The operation, with a word for each time and for this process.
async fn shown(onceward: &Onceward, id: &str) -> Value {
    let mut operation = onceward.operation(id).await.unwrap();
    let holder = operation["attempts"][0]["holder"].clone();
    mask(&mut operation, &holder);
    operation
}

fn mask(value: &mut Value, holder: &Value) {
    if value == holder {
        *value = json!("HOLDER");
    }
    match value {
        Value::String(text) if text.ends_with('Z') && text.parse::<jiff::Timestamp>().is_ok() => {
            "TIME".clone_into(text);
        }
        Value::Array(items) => items.iter_mut().for_each(|item| mask(item, holder)),
        Value::Object(members) => members.values_mut().for_each(|member| mask(member, holder)),
        Value::String(_) | Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// What an attempt looks like that was sent and has ended.
fn attempt(number: u32, outcome: &str, reason: &str, status: Option<u16>) -> Value {
    json!({
        "number": number, "step": null, "holder": "HOLDER",
        "started_at": "TIME", "ended_at": "TIME",
        "sent": true, "outcome": outcome, "reason": reason, "status": status,
        "reference": null, "forward_key": null,
    })
}

#[tokio::test]
async fn a_succeeded_operation_is_shown_whole() {
    let receiver = obedient(&Gate::default()).await;
    let onceward = Onceward::in_front_of(&receiver).start().await;
    let id = onceward.sends(Event::bytes("hello").keyed("k1")).await.operation();
    let operation = shown(&onceward, &id).await;
    let fingerprint = operation["fingerprint"].clone();
    assert!(fingerprint.as_str().unwrap().len() > 32, "{fingerprint}");
    assert_eq!(
        operation,
        json!({
            "operation": id, "route": "hooks", "method": "POST", "path": "/hooks",
            "key": { "from": "header", "parts": ["k1"] },
            "state": "succeeded", "fingerprint": fingerprint,
            "created_at": "TIME", "settled_at": "TIME", "expires_at": "TIME",
            "lease": null,
            "answer": {
                "status": 200, "headers": [["x-kept", "v"]],
                "body_bytes": 7, "body_omitted": false,
            },
            "attempts": [attempt(1, "succeeded", "answered", Some(200))],
            "attempts_total": 1,
            "decisions": [],
            "steps": [],
        })
    );
    let raw = onceward.operation(&id).await.unwrap();
    let time = |name: &str| raw[name].as_str().unwrap().parse::<jiff::Timestamp>().unwrap();
    let kept = time("expires_at").duration_since(time("settled_at"));
    assert_eq!(kept.as_secs(), 24 * 3600, "the retention counts from the success");
    assert!(time("created_at") <= time("settled_at"));
}

#[tokio::test]
async fn a_failed_and_an_uncertain_operation_are_shown_whole() {
    let receiver = obedient(&Gate::default()).await;
    let onceward = Onceward::in_front_of(&receiver).expects_log(HELD).start().await;
    onceward.sends(told_to("f", "please.fail")).await.is_executed(500);
    let id = onceward.sends(told_to("f", "please.fail")).await.operation();
    let failed = shown(&onceward, &id).await;
    let mut expected = json!({
        "operation": id, "route": "hooks", "method": "POST", "path": "/hooks",
        "key": { "from": "event", "parts": ["hooks", "f", "please.fail"] },
        "state": "failed", "fingerprint": failed["fingerprint"],
        "created_at": "TIME", "settled_at": "TIME", "expires_at": "TIME",
        "lease": null, "answer": null,
        "attempts": [
            attempt(1, "failed", "answered", Some(500)),
            attempt(2, "failed", "answered", Some(500)),
        ],
        "attempts_total": 2,
        "decisions": [],
        "steps": [],
    });
    assert_eq!(failed, expected);

    let reply = onceward.sends(told_to("u", "please.vanish")).await;
    let id = reply.is_executed_as("upstream-broken", 502).operation();
    let uncertain = shown(&onceward, &id).await;
    expected["operation"] = json!(id);
    expected["key"]["parts"] = json!(["hooks", "u", "please.vanish"]);
    expected["state"] = json!("uncertain");
    expected["settled_at"] = Value::Null;
    expected["fingerprint"] = uncertain["fingerprint"].clone();
    let reason = uncertain["attempts"][0]["reason"].clone();
    expected["attempts"] = json!([attempt(1, "uncertain", reason.as_str().unwrap(), None)]);
    expected["attempts_total"] = json!(1);
    expected["decisions"] = json!([{
        "at": "TIME", "by": "when_uncertain", "decision": "hold", "reason": reason, "reference": null,
    }]);
    assert_eq!(uncertain, expected);
    assert_eq!(onceward.metric("onceward_uncertain").await, 1.0);
}

#[tokio::test]
async fn an_operation_in_flight_is_shown_with_its_lease() {
    let gate = Gate::default();
    let receiver = obedient(&gate).await;
    let onceward = Onceward::in_front_of(&receiver).start().await;
    let look = async {
        receiver.has_counted(1).await;
        let id = onceward.sends(told_to("i", "please.wait")).await.is_in_flight(409).operation();
        let operation = shown(&onceward, &id).await;
        assert_eq!(
            operation,
            json!({
                "operation": id, "route": "hooks", "method": "POST", "path": "/hooks",
                "key": { "from": "event", "parts": ["hooks", "i", "please.wait"] },
                "state": "in_flight", "fingerprint": operation["fingerprint"],
                "created_at": "TIME", "settled_at": null, "expires_at": "TIME",
                "lease": { "holder": "HOLDER", "expires_at": "TIME", "ends_at": "TIME" },
                "answer": null,
                "attempts": [{
                    "number": 1, "step": null, "holder": "HOLDER",
                    "started_at": "TIME", "ended_at": null,
                    "sent": null, "outcome": null, "reason": null, "status": null,
                    "reference": null, "forward_key": null,
                }],
                "attempts_total": 1,
                "decisions": [],
                "steps": [],
            })
        );
        gate.opens();
    };
    tokio::join!(onceward.sends(told_to("i", "please.wait")), look).0.is_executed(200);
}

fn problem(reply: &Reply) -> (u16, String) {
    (reply.status, reply.problem()["type"].as_str().unwrap().to_owned())
}

#[tokio::test]
async fn what_is_not_there_is_404_and_what_is_no_id_400() {
    let receiver = Receiver::that_answers(200, "ok").await;
    let onceward = Onceward::in_front_of(&receiver).start().await;
    let unknown = format!("/api/operations/op_{}", "0".repeat(32));
    for (path, status, code) in [
        (&*unknown, 404, "no-such-operation"),
        ("/api/operations/evt_1", 400, "invalid-id"),
        ("/api/operations/op_%ff", 400, "invalid-id"),
        ("/api/nothing", 404, "not-found"),
        ("/", 404, "not-found"),
    ] {
        let reply = onceward.get_admin(path).await;
        assert_eq!(problem(&reply), (status, format!("urn:onceward:problem:{code}")), "{path}");
    }
}

#[tokio::test]
async fn with_a_token_every_call_but_health_asks_for_it() {
    let receiver = Receiver::that_answers(200, "ok").await;
    let builder = Onceward::in_front_of(&receiver)
        .admin("token = { env = \"TOKEN_OF_TEST\" }")
        .variable("TOKEN_OF_TEST", "canary-token");
    let onceward = builder.start().await;
    let id = onceward.sends(event("evt_1")).await.operation();
    let operation = format!("/api/operations/{id}");
    let wrong = [
        "Bearer canary-toke",
        "Bearer canary-token2",
        "canary-token",
        "Basic canary-token",
        "Bearer ",
    ];
    let paths = ["/metrics", &operation, "/api/operations/evt_1", "/api/nothing", "/"];
    // fewer than are too many
    let given = wrong.iter().map(|wrong| Some(*wrong)).chain([None; 5]);
    for (given, path) in given.zip(paths.into_iter().cycle()) {
        let headers: Vec<_> = given.iter().map(|value| ("authorization", *value)).collect();
        let reply = onceward.get_admin_with(path, &headers).await;
        assert_eq!(reply.status, 401, "{path} {given:?}");
        assert_eq!(reply.problem()["type"], "urn:onceward:problem:unauthorized");
        assert_eq!(reply.header("www-authenticate"), Some("Bearer"));
    }
    let right = [("authorization", "Bearer canary-token")];
    for path in ["/metrics", &operation] {
        for right in [right, [("authorization", "bearer canary-token")]] {
            assert_eq!(onceward.get_admin_with(path, &right).await.status, 200, "{path}");
        }
    }
    assert_eq!(onceward.get_admin_with("/api/nothing", &right).await.status, 404);
    for path in ["/livez", "/readyz"] {
        assert_eq!(onceward.get_admin(path).await.status, 200, "{path}");
    }
    let log = format!("{:?}", onceward.log());
    assert!(!log.contains("canary"), "{log}");
}

/// Whatever happens to a request, the log tells nothing that is the sender's own, but for the key
/// in the line of the request.
#[tokio::test]
async fn no_secret_and_no_body_is_in_the_log_and_the_key_in_one_place() {
    let receiver = obedient(&Gate::default()).await;
    let builder = Onceward::in_front_of(&receiver)
        .defaults("request_bytes_max = \"2KiB\"")
        .limits("body_timeout = \"1s\"")
        .variable("ONCEWARD_LOG", "trace")
        .expects_log(HELD);
    let onceward = builder.start().await;
    let canary = |kind: &str| {
        Event::json(&json!({ "id": "canary-id", "type": kind, "data": "canary-body" }))
            .header("authorization", "Bearer canary-authorization")
            .header("cookie", "session=canary-cookie")
            .header("stripe-signature", "t=1,v1=canary-signature")
            .to("/hooks?token=canary-query")
    };
    onceward.sends(canary("ordinary")).await.is_executed(200);
    onceward.sends(canary("ordinary")).await.is_replayed(200);
    onceward.sends(canary("ordinary").keyed("canary-key")).await.is_executed(200);
    onceward.sends(canary("other").keyed("canary-key")).await.is_mismatched();
    onceward.sends(canary("other").keyed("\"canary-key")).await.is_refused(400, "key-invalid");
    onceward.sends(canary("please.fail")).await.is_executed(500);
    onceward.sends(canary("please.vanish")).await.is_executed_as("upstream-broken", 502);
    onceward.sends(canary("please.vanish")).await.is_uncertain();
    onceward.sends(canary("a").by("GET")).await.is_passed(200);
    onceward.sends(canary("a").header("content_length", "1")).await.is_refused(400, "malformed");
    onceward.sends(canary(&"long".repeat(1000))).await.is_refused(413, "body-too-large");
    let mut sender = onceward.connects().await;
    let raw = canary("ordinary").raw();
    sender.writes(&raw[..raw.len() - 1]).await;
    sender.reads_reply().await.is_refused(408, "body-timeout");
    let mut sender = onceward.connects().await;
    sender.writes(b"POST /hooks HTTP/1.1\r\nhost: h\r\ncanary header\r\n\r\ncanary").await;
    sender.reads_to_the_end().await;
    onceward.logs("refused before it was read").await;

    let log = onceward.log();
    assert!(log.iter().any(|line| line["level"] == "DEBUG" || line["level"] == "TRACE"));
    let mut keys = Vec::new();
    for mut line in log {
        keys.extend(line.as_object_mut().unwrap().remove("operation.key"));
        assert!(!line.to_string().contains("canary"), "{line}");
    }
    let names_an_event = |key: &Value| {
        let key = key.as_str().unwrap();
        key.contains("canary-id") || key == "canary-key"
    };
    assert!(keys.iter().all(names_an_event), "{keys:?}");
    assert!(keys.len() >= 7, "{keys:?}");
}
