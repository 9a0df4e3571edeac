//! Which requests are copies of each other, seen from outside.

use serde_json::json;

use crate::support::{Answer, Event, Gate, Onceward, Receiver, event};

async fn ok() -> Receiver {
    Receiver::that_answers(200, "ok").await
}

fn json(text: &str) -> Event {
    Event::bytes(text).header("content-type", "application/json")
}

fn form(text: &str) -> Event {
    Event::bytes(text).header("content-type", "application/x-www-form-urlencoded")
}

/// Sends each event, and then each again: all are different, and each is its own copy.
async fn are_all_different(onceward: &Onceward, events: &[Event]) {
    for event in events {
        onceward.sends(event.clone()).await.is_executed(200);
    }
    for event in events {
        onceward.sends(event.clone()).await.is_replayed(200);
    }
}

/// Bodies in which no id can be found: absent, empty, blank, null.
const WITHOUT_ID: [&str; 6] = [
    r#"{"id":"","n":1}"#,
    r#"{"n":2}"#,
    r#"{"id":null,"n":3}"#,
    r#"{"id":"   ","n":4}"#,
    r#"{"id":"","n":5}"#,
    "no JSON",
];

/// All events without an id would else share one key, and be lost but for the first.
#[tokio::test]
async fn a_blank_id_is_key_missing() {
    let receiver = ok().await;
    let onceward = Onceward::in_front_of(&receiver).start().await;
    for body in WITHOUT_ID {
        onceward.sends(json(body)).await.is_refused(400, "key-missing");
    }
    receiver.was_called(0);
    let refused =
        onceward.metric("onceward_refusals_total{route=\"hooks\",code=\"key-missing\"}").await;
    assert_eq!(refused, 6.0);
}

#[tokio::test]
async fn without_a_key_it_can_be_forwarded_and_never_swallowed() {
    let receiver = ok().await;
    let builder = Onceward::in_front_of(&receiver).defaults("when_key_missing = \"forward\"");
    let onceward = builder.start().await;
    for body in WITHOUT_ID.iter().chain(&WITHOUT_ID) {
        onceward.sends(json(body)).await.is_passed(200);
    }
    receiver.was_called(12);
    // What is there and cannot be used is no missing key.
    onceward.sends(json(r#"{"id":"a","id":"b"}"#)).await.is_refused(400, "key-invalid");
    receiver.was_called(12);
}

#[tokio::test]
async fn without_a_key_the_bodys_hash_can_be_it() {
    let receiver = ok().await;
    let builder = Onceward::in_front_of(&receiver).defaults("when_key_missing = \"hash-body\"");
    let onceward = builder.start().await;
    let batch = r#"[{"eventId":1,"id":5},{"eventId":2,"id":5}]"#;
    let longer = r#"[{"eventId":1,"id":5},{"eventId":2,"id":5},{"eventId":3,"id":5}]"#;
    let events: Vec<_> = WITHOUT_ID.iter().chain(&[batch, longer]).map(|text| json(text)).collect();
    are_all_different(&onceward, &events).await;
    receiver.was_called(8);
    // All empty bodies have one hash.
    onceward.sends(json("")).await.is_refused(400, "key-missing");
    // And an id, where there is one, is the key.
    onceward.sends(json(r#"{"id":"evt_1","type":"t","n":1}"#)).await.is_executed(200);
    onceward.sends(json(r#"{"id":"evt_1","type":"t","n":2}"#)).await.is_replayed(200);
    receiver.was_called(9);
}

/// Numbers beyond 2^53 are rounded by many readers of JSON.
#[tokio::test]
async fn long_ids_are_told_apart_to_the_last_digit() {
    let receiver = ok().await;
    let onceward = Onceward::in_front_of(&receiver).start().await;
    let long = "9".repeat(39);
    let ids = [
        "8202522731445525542".to_owned(),
        "8202522731445525543".to_owned(),
        format!("{long}1"),
        format!("{long}2"),
        "1".to_owned(),
        "1.0".to_owned(),
        "\"1\"".to_owned(),
    ];
    let bodies = ids.map(|id| format!(r#"{{"id":{id},"type":"t"}}"#));
    let events: Vec<_> = bodies.iter().map(|body| json(body)).collect();
    are_all_different(&onceward, &events).await;
    let seen: Vec<_> = receiver.seen().into_iter().map(|seen| seen.body).collect();
    assert_eq!(seen, bodies.map(String::into_bytes));
}

/// Without lengths between them, `ab` and `c` would be the same as `a` and `bc`.
#[tokio::test]
async fn the_parts_of_a_key_do_not_run_into_each_other() {
    let receiver = ok().await;
    let onceward = Onceward::in_front_of(&receiver).start().await;
    let mut events = Vec::new();
    for separator in ["|", ":", "\n", "\0"] {
        let (id, kind) = (format!("evt{separator}x"), format!("x{separator}y"));
        events.push(Event::json(&json!({ "id": id, "type": "y" })));
        events.push(Event::json(&json!({ "id": "evt", "type": kind })));
    }
    events.push(Event::json(&json!({ "id": "ab", "type": "c" })));
    events.push(Event::json(&json!({ "id": "a", "type": "bc" })));
    events.push(Event::json(&json!({ "id": "abc" })));
    are_all_different(&onceward, &events).await;
    receiver.was_called(events.len());
}

/// `pending_webhooks` and its like change from delivery to delivery.
#[tokio::test]
async fn a_retry_whose_body_changed_is_a_copy_by_its_events_id_and_goes_on_as_it_is() {
    let receiver = Receiver::that(|seen, _| {
        let first = String::from_utf8_lossy(&seen.body).contains("[1],");
        Answer::new(if first { 500 } else { 200 }, "").into()
    })
    .await;
    let onceward = Onceward::in_front_of(&receiver).start().await;
    let bodies = [
        r#"{"id":"evt_40","type":"x","attempts":[1],"pending_webhooks":2}"#,
        r#"{"id":"evt_40","type":"x","attempts":[1,2],"pending_webhooks":1}"#,
        r#"{"id":"evt_40","type":"x","attempts":[1,2,3],"pending_webhooks":0}"#,
    ];
    onceward.sends(json(bodies[0])).await.is_executed(500);
    onceward.sends(json(bodies[1])).await.is_executed(200);
    onceward.sends(json(bodies[2])).await.is_replayed(200);
    receiver.was_called(2);
    assert_eq!(receiver.seen()[1].body, bodies[1].as_bytes());
}

/// A mismatch poisons nothing: the original request still gets its answer.
#[tokio::test]
async fn a_key_that_stands_for_another_request_is_refused_and_changes_nothing() {
    let gate = Gate::default();
    let receiver = Receiver::behind(&gate, 200, "ten").await;
    let onceward = Onceward::in_front_of(&receiver).start().await;
    let (ten, more) = (json(r#"{"amount":10}"#).keyed("k1"), json(r#"{"amount":99}"#).keyed("k1"));
    let others = async {
        receiver.has_counted(1).await;
        // It is another request, whether or not the first one is still in flight.
        let reply = onceward.sends(more.clone()).await;
        reply.is_mismatched();
        assert!(!reply.text().contains("amount"), "{reply:?}");
        onceward.sends(ten.clone()).await.is_in_flight(409);
        gate.opens();
    };
    let (first, ()) = tokio::join!(onceward.sends(ten.clone()), others);
    first.is_executed(200);
    onceward.sends(more.clone()).await.is_mismatched();
    let replay = onceward.sends(ten).await;
    replay.is_replayed(200);
    assert_eq!(replay.text(), "ten");
    receiver.was_called(1);
    assert_eq!(onceward.operation(&first.operation()).await.unwrap()["attempts_total"], 1);
}

/// A failed operation binds its key to no body.
#[tokio::test]
async fn after_a_failure_a_key_may_come_with_another_body() {
    let receiver = Receiver::that(|seen, _| {
        Answer::new(if seen.body == b"bad" { 422 } else { 200 }, "").into()
    })
    .await;
    let onceward = Onceward::in_front_of(&receiver).start().await;
    onceward.sends(Event::bytes("bad").keyed("k")).await.is_executed(422);
    onceward.sends(Event::bytes("good").keyed("k")).await.is_executed(200);
    onceward.sends(Event::bytes("bad").keyed("k")).await.is_mismatched();
    receiver.was_called(2);
}

#[tokio::test]
async fn equal_key_lines_are_one_key_and_different_ones_none() {
    let receiver = ok().await;
    let onceward = Onceward::in_front_of(&receiver).start().await;
    onceward.sends(event("evt_1").keyed("K").keyed("K")).await.is_executed(200);
    onceward.sends(event("evt_1").keyed("K")).await.is_replayed(200);
    for refused in [
        event("evt_1").keyed("K").keyed("L"),
        event("evt_1").keyed("K, K"),
        event("evt_1").keyed("K,K"),
    ] {
        onceward.sends(refused).await.is_refused(400, "key-invalid");
    }
    receiver.was_called(1);
}

#[tokio::test]
async fn a_blank_key_header_counts_as_absent() {
    let receiver = ok().await;
    let onceward = Onceward::in_front_of(&receiver).start().await;
    for blank in ["", "    ", "\"\""] {
        let [one, two] = ["evt_1", "evt_2"].map(|id| event(&format!("{id}{}", blank.len())));
        onceward.sends(one.clone().keyed(blank)).await.is_executed(200);
        onceward.sends(two.clone().keyed(blank)).await.is_executed(200);
        onceward.sends(one).await.is_replayed(200);
        // Without an event nothing is left.
        onceward.sends(Event::bytes("x").keyed(blank)).await.is_refused(400, "key-missing");
    }
    receiver.was_called(6);
}

/// Stores that fold case or trim blanks would take them for one.
#[tokio::test]
async fn keys_are_compared_byte_for_byte() {
    let receiver = ok().await;
    let onceward = Onceward::in_front_of(&receiver).start().await;
    let longest = "k".repeat(255);
    let mut events: Vec<_> = ["abc", "ABC", "abc.", "a/b:c", "a,b", &longest]
        .map(|key| Event::bytes("x").keyed(key))
        .into();
    events.extend(
        ["abc", "ABC", "é", "e\u{301}", "abc\u{a0}", "abc "]
            .map(|id| Event::json(&json!({ "id": id }))),
    );
    are_all_different(&onceward, &events).await;
    receiver.was_called(events.len());
    for unusable in [&*format!("{longest}k"), "a b", "\"a", "\"a\"b"] {
        let reply = onceward.sends(Event::bytes("x").keyed(unusable)).await;
        reply.is_refused(400, "key-invalid");
        assert!(!reply.text().contains(&longest), "{reply:?}");
    }
    receiver.was_called(events.len());
}

#[tokio::test]
async fn two_key_headers_agree_or_are_refused_whatever_their_spelling() {
    let receiver = ok().await;
    let onceward = Onceward::in_front_of(&receiver).start().await;
    let attempt = |name: &str, number: &str| {
        let event = event("evt_1").header("X-Gitlab-Webhook-Attempt-Number", number);
        event.header(name, "u1")
    };
    onceward.sends(attempt("idempotency-key", "1")).await.is_executed(200);
    let mut raw = onceward.connects().await;
    raw.writes(&attempt("IDEMPOTENCY-KEY", "2").raw()).await;
    raw.reads_reply().await.is_replayed(200);
    onceward.sends(attempt("X-Idempotency-Key", "3").keyed("u1")).await.is_replayed(200);
    let two = attempt("Idempotency-Key", "4").keyed("u2");
    onceward.sends(two).await.is_refused(400, "key-invalid");
    receiver.was_called(1);
}

/// RFC 9651, 3.3.3: a string of a structured field is quoted.
#[tokio::test]
async fn a_quoted_key_is_the_bare_one() {
    let receiver = ok().await;
    let builder = Onceward::in_front_of(&receiver).defaults("forward_key = \"x-event-id\"");
    let onceward = builder.start().await;
    onceward.sends(Event::bytes("x").keyed("\"k1\"")).await.is_executed(200);
    for copy in ["k1", "  k1  ", "\"k1\";v=1", "\"k1\" "] {
        onceward.sends(Event::bytes("x").keyed(copy)).await.is_replayed(200);
    }
    onceward.sends(Event::bytes("x").keyed(r#""a\"b\\c""#)).await.is_executed(200);
    let event = onceward.sends(event("evt_1")).await;
    event.is_executed(200);
    receiver.was_called(3);
    let forwarded: Vec<_> = receiver
        .seen()
        .iter()
        .map(|seen| {
            (
                seen.header("x-event-id").map(str::to_owned),
                seen.header("x-idempotency-key").map(str::to_owned),
            )
        })
        .collect();
    let of_event = event.operation();
    let expected = [("k1", Some("\"k1\"")), (r#"a"b\c"#, Some(r#""a\"b\\c""#)), (&*of_event, None)];
    // The sender's own header goes on as it came.
    assert_eq!(forwarded, expected.map(|(a, b)| (Some(a.to_owned()), b.map(str::to_owned))));
}

/// A key belongs to its route, method and path.
#[tokio::test]
async fn one_key_on_two_routes_methods_or_paths_is_two_operations() {
    let receiver = Receiver::that(|seen, _| {
        Answer::new(200, format!("{} {}", seen.method, seen.target)).into()
    })
    .await;
    let routes = format!(
        "[routes.other]\npath = \"/other\"\nupstream = \"{0}\"\n\
         [routes.third]\npath = \"/third\"\nupstream = \"{0}\"\n",
        receiver.url()
    );
    let onceward = Onceward::in_front_of(&receiver).routes(&routes).start().await;
    let keyed = Event::bytes("x").keyed("k1");
    let mut all = vec![
        keyed.clone(),
        keyed.clone().to("/hooks/9/cancel"),
        keyed.clone().by("PUT"),
        keyed.clone().to("/other"),
        keyed.clone().to("/third"),
    ];
    all.extend(["/hooks", "/other", "/third"].map(|path| event("evt_1").to(path)));
    for event in &all {
        onceward.sends(event.clone()).await.is_executed(200);
    }
    for event in &all {
        let reply = onceward.sends(event.clone()).await;
        reply.is_replayed(200);
        assert_eq!(reply.text(), format!("{} {}", event.method, event.path));
    }
    receiver.was_called(all.len());
}

/// A query is no part of the path.
#[tokio::test]
async fn the_query_counts_only_where_a_selector_names_it() {
    let receiver = ok().await;
    let builder = Onceward::in_front_of(&receiver).routes(&format!(
        "[routes.byquery]\npath = \"/q\"\nupstream = \"{}\"\nkey.event.id = \"query:id\"\n\
         key.event.type = \"query:type?\"\nkey.scope = [\"header:x-tenant\", \"query:v?\"]\n",
        receiver.url()
    ));
    let onceward = builder.start().await;
    onceward.sends(event("evt_1").to("/hooks?a=1")).await.is_executed(200);
    onceward.sends(event("evt_1").to("/hooks?a=2")).await.is_replayed(200);
    let to = |query: &str| Event::bytes("x").to(&format!("/q?{query}")).header("x-tenant", "t1");
    let all = [
        to("id=1"),
        to("id=2"),
        to("id=1&type=paid"),
        to("id=1&v=2"),
        Event::bytes("x").to("/q?id=1").header("x-tenant", "t2"),
    ];
    are_all_different(&onceward, &all).await;
    onceward.sends(to("other=7&id=%31")).await.is_replayed(200);
    onceward.sends(to("id=1&id=1")).await.is_replayed(200);
    onceward.sends(to("id=1&id=2")).await.is_refused(400, "key-invalid");
    for missing in [to("id="), to("id=%20"), to("ID=1"), Event::bytes("x").to("/q?id=1")] {
        onceward.sends(missing).await.is_refused(400, "key-missing");
    }
    receiver.was_called(all.len() + 1);
}

/// PayPal's instant payment notifications: one transaction has several states, told in forms.
#[tokio::test]
async fn a_form_is_read_by_its_fields() {
    let receiver = ok().await;
    let builder = Onceward::in_front_of(&receiver)
        .routes("key.event = { id = \"form:txn_id\", type = \"form:payment_status\" }\n");
    let onceward = builder.start().await;
    let completed = form("txn_id=T1&payment_status=Completed&memo=a+b%26c");
    onceward.sends(completed.clone()).await.is_executed(200);
    onceward.sends(form("txn_id=T1&payment_status=Pending")).await.is_executed(200);
    onceward.sends(completed).await.is_replayed(200);
    onceward.sends(form("payment_status=%43ompleted&txn_id=T1")).await.is_replayed(200);
    receiver.was_called(2);
    for missing in [form("txn_id=&payment_status=Completed"), form("txn_id=T2")] {
        onceward.sends(missing).await.is_refused(400, "key-missing");
    }
    // It does not say that it is a form.
    let unsaid = Event::bytes("txn_id=T1&payment_status=Completed");
    onceward.sends(unsaid).await.is_refused(400, "key-missing");
    receiver.was_called(2);
}

#[tokio::test]
async fn a_scope_parts_tenants_and_is_never_silently_empty() {
    let receiver = ok().await;
    let builder = Onceward::in_front_of(&receiver).routes("key.scope = [\"header:x-tenant\"]\n");
    let onceward = builder.start().await;
    let of = |tenant: &str| event("evt_1").header("x-tenant", tenant);
    are_all_different(&onceward, &[of("a"), of("b"), of("a").keyed("k"), of("b").keyed("k")]).await;
    onceward.sends(event("evt_1")).await.is_refused(400, "key-missing");
    onceward.sends(of("")).await.is_refused(400, "key-missing");
    onceward.sends(of("a").header("x-tenant", "b")).await.is_refused(400, "key-invalid");
    receiver.was_called(4);
}

#[tokio::test]
async fn a_fingerprint_is_over_what_the_route_says() {
    let receiver = ok().await;
    let route = |name: &str, fingerprint: &str| {
        format!(
            "[routes.{name}]\npath = \"/{name}\"\nupstream = \"{}\"\nfingerprint.{fingerprint}\n",
            receiver.url()
        )
    };
    let routes = [
        route("ignoring", "ignore = [\"json:/pending\", \"json:/meta/at\"]"),
        route("parts", "over = [\"json:/amount\", \"header:x-currency?\"]"),
        route("nothing", "over = []"),
        route("body", "over = [\"body\"]"),
    ];
    let onceward = Onceward::in_front_of(&receiver).routes(&routes.concat()).start().await;
    let sends = async |path: &str, body: &str| onceward.sends(json(body).keyed("k").to(path)).await;
    sends("/ignoring", r#"{"amount":1,"pending":2,"meta":{"at":1,"by":"a"}}"#)
        .await
        .is_executed(200);
    sends("/ignoring", r#"{"amount":1, "pending":1,"meta":{"by":"a"}}"#).await.is_replayed(200);
    sends("/ignoring", r#"{"amount":2,"pending":2,"meta":{"at":1,"by":"a"}}"#)
        .await
        .is_mismatched();
    sends("/ignoring", r#"{"amount":1,"pending":2,"meta":{"at":1,"by":"b"}}"#)
        .await
        .is_mismatched();

    sends("/parts", r#"{"amount":10,"note":"a"}"#).await.is_executed(200);
    sends("/parts", r#"{"note":"b","amount":10}"#).await.is_replayed(200);
    sends("/parts", r#"{"amount":10.0}"#).await.is_mismatched();
    sends("/parts", r#"{"amount":"10"}"#).await.is_mismatched();
    let in_euro = json(r#"{"amount":10}"#).keyed("k").to("/parts").header("x-currency", "EUR");
    onceward.sends(in_euro).await.is_mismatched();

    sends("/nothing", "one").await.is_executed(200);
    sends("/nothing", "two").await.is_replayed(200);

    // Where the key is the event's, too.
    onceward.sends(json(r#"{"id":"e","n":1}"#).to("/body")).await.is_executed(200);
    onceward.sends(json(r#"{"id":"e","n":1}"#).to("/body")).await.is_replayed(200);
    onceward.sends(json(r#"{"id":"e","n":2}"#).to("/body")).await.is_mismatched();
    onceward.sends(json(r#"{"id":"e", "n":1}"#).to("/body")).await.is_mismatched();
    receiver.was_called(4);
}

/// A sender that nobody knows may have one id for all events of an order.
#[tokio::test]
async fn an_event_without_a_type_is_bound_to_its_body() {
    let gate = Gate::default();
    let held = gate.clone();
    let receiver = Receiver::that(move |seen, _| {
        if String::from_utf8_lossy(&seen.body).contains("cancelled") {
            Answer::new(500, "no").when(&held)
        } else {
            Answer::new(200, "ok").into()
        }
    })
    .await;
    let builder = Onceward::in_front_of(&receiver).routes(&format!(
        "[routes.typed]\npath = \"/typed\"\nupstream = \"{}\"\nkey.event.type = \"json:/event\"\n",
        receiver.url()
    ));
    let onceward = builder.expects_log("a copy was refused").start().await;
    let of =
        |order: u32, event: &str| json(&format!(r#"{{"id":"order-{order}","event":"{event}"}}"#));
    onceward.sends(of(77, "created")).await.is_executed(200);
    let paid = onceward.sends(of(77, "paid")).await;
    paid.is_mismatched();
    assert!(paid.text().contains("`key.event.type`"), "{}", paid.text());
    onceward.sends(of(77, "created")).await.is_replayed(200);
    for event in ["created", "paid"] {
        onceward.sends(of(77, event).to("/typed")).await.is_executed(200);
    }
    // Who is refused while an attempt is in flight that then fails has lost the event.
    let refused = async {
        receiver.has_counted(4).await;
        onceward.sends(of(78, "paid")).await.is_mismatched();
        gate.opens();
    };
    let (first, ()) = tokio::join!(onceward.sends(of(78, "cancelled")), refused);
    first.is_executed(500);
    assert_eq!(onceward.metric("onceward_refused_then_failed_total").await, 1.0);
    let keyed = json("{}").keyed("k");
    onceward.sends(keyed).await.is_executed(200);
    let other = onceward.sends(json("[]").keyed("k")).await;
    other.is_mismatched();
    assert!(!other.text().contains("key.event.type"), "{}", other.text());
}

/// In a text editor on Windows every file begins with a byte order mark.
#[tokio::test]
async fn a_byte_order_mark_is_read_over_and_goes_on_with_the_body() {
    let receiver = ok().await;
    let builder = Onceward::in_front_of(&receiver).routes(&format!(
        "[routes.form]\npath = \"/form\"\nupstream = \"{}\"\nkey.event.id = \"form:id\"\n",
        receiver.url()
    ));
    let onceward = builder.start().await;
    let body = "\u{feff}{\"id\":\"evt_1\",\"type\":\"paid\"}";
    onceward.sends(json(body)).await.is_executed(200);
    onceward.sends(json(body)).await.is_replayed(200);
    assert_eq!(receiver.seen()[0].body, body.as_bytes());
    onceward.sends(form("\u{feff}id=1&n=2").to("/form")).await.is_executed(200);
    onceward.sends(form("id=1&n=2").to("/form")).await.is_mismatched();
    receiver.was_called(2);
}

/// ARNs and topics; and batches as `SendGrid` sends them.
#[tokio::test]
async fn long_parts_and_large_batches_are_keys_and_their_records_stay_short() {
    let receiver = ok().await;
    let builder = Onceward::in_front_of(&receiver).routes(&format!(
        "[routes.batch]\npath = \"/batch\"\nupstream = \"{}\"\nkey.event = {{ id = \
         \"json:/*/id\", type = \"json:/*/event\" }}\n",
        receiver.url()
    ));
    let onceward = builder.start().await;
    let long = |bytes: usize| json(&format!(r#"{{"id":"{}","type":"t"}}"#, "a".repeat(bytes)));
    are_all_different(&onceward, &[long(256), long(4096)]).await;
    onceward.sends(long(4097)).await.is_refused(400, "key-invalid");
    let batch = |items: usize| {
        let item = |n| format!(r#"{{"id":"{n:048}","event":"open"}}"#);
        json(&format!("[{}]", (0..items).map(item).collect::<Vec<_>>().join(","))).to("/batch")
    };
    are_all_different(&onceward, &[batch(1100), batch(8192)]).await;
    let refused = onceward.sends(batch(8193)).await;
    refused.is_refused(400, "key-invalid");
    assert!(refused.text().contains("`json:/*/id`"), "{}", refused.text());
    let first = onceward.sends(batch(8192)).await.operation();
    let shown = onceward.operation(&first).await.unwrap()["key"].to_string();
    assert!(shown.len() < 2048, "{}", shown.len());
    receiver.was_called(4);
}

/// The HTTP binding of `CloudEvents`, 3.1.3.2.
#[tokio::test]
async fn the_id_of_a_cloud_event_is_that_of_the_binding_in_either_mode() {
    let receiver = ok().await;
    let onceward =
        Onceward::in_front_of(&receiver).routes("provider = \"cloudevents\"\n").start().await;
    let binary = |id: &str| {
        let event = json(r#"{"id":"another","source":"/web"}"#).header("ce-id", id);
        event.header("ce-source", "/things").header("ce-type", "created")
    };
    let structured =
        |id: &str| json(&json!({ "id": id, "source": "/things", "type": "created" }).to_string());
    onceward.sends(binary("order 7731")).await.is_executed(200);
    for copy in [binary("\"order 7731\""), binary("order%207731"), structured("order 7731")] {
        onceward.sends(copy).await.is_replayed(200);
    }
    onceward.sends(binary("%E2%82%AC")).await.is_executed(200);
    onceward.sends(structured("€")).await.is_replayed(200);
    receiver.was_called(2);
}

#[tokio::test]
async fn under_hash_body_a_digest_takes_the_place_of_an_absent_scope() {
    let receiver = ok().await;
    let builder = Onceward::in_front_of(&receiver)
        .routes("key.scope = [\"header:x-tenant\"]\nwhen_key_missing = \"hash-body\"\n");
    let onceward = builder.start().await;
    let all = [
        json(r#"{"id":"1","type":"t"}"#),
        json(r#"{"id":"1","type":"t","n":2}"#),
        json(r#"{"id":"1","type":"t"}"#).header("x-tenant", "a"),
        json(r#"{"id":"1","type":"t"}"#).header("x-tenant", "b"),
        Event::bytes("x").keyed("k"),
        Event::bytes("y").keyed("k"),
    ];
    are_all_different(&onceward, &all).await;
    receiver.was_called(all.len());
    onceward.sends(Event::bytes("").keyed("k")).await.is_refused(400, "key-missing");
}

/// A fingerprint of a body that was cut off would not see it, at any length.
#[tokio::test]
async fn bodies_that_differ_in_the_last_byte_differ() {
    let receiver = ok().await;
    let onceward = Onceward::in_front_of(&receiver).start().await;
    for bytes in [1, 64 * 1024, 1024 * 1024] {
        let key = format!("k{bytes}");
        let mut body = vec![b'x'; bytes];
        onceward.sends(Event::bytes(body.clone()).keyed(&key)).await.is_executed(200);
        *body.last_mut().unwrap() = b'y';
        onceward.sends(Event::bytes(body).keyed(&key)).await.is_mismatched();
    }
    receiver.was_called(3);
}

/// What counts retries is no part of the identity, and goes on to the upstream.
#[tokio::test]
async fn a_retry_header_neither_makes_nor_swallows_an_event() {
    let receiver = ok().await;
    let onceward = Onceward::in_front_of(&receiver).start().await;
    let retry = |number: &str| event("Ev1").header("x-slack-retry-num", number);
    onceward.sends(retry("1")).await.is_executed(200);
    onceward.sends(retry("2")).await.is_replayed(200);
    receiver.was_called(1);
    assert_eq!(receiver.seen()[0].header("x-slack-retry-num"), Some("1"));
}
