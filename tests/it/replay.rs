//! Once it has succeeded it is answered from memory.

use std::time::Duration;

use tokio::time::Instant;

use crate::support::{Act, Answer, Event, Onceward, Receiver, Reply, event};

#[tokio::test]
async fn a_duplicate_of_a_success_is_replayed_and_not_forwarded() {
    let receiver = Receiver::that_answers(201, "done\n").await;
    let onceward = Onceward::in_front_of(&receiver).start().await;
    let first = onceward.sends(event("evt_1")).await;
    first.is_executed(201);
    let second = onceward.sends(event("evt_1")).await;
    second.is_replayed(201);
    assert_eq!(second.body, b"done\n");
    assert_eq!(second.operation(), first.operation());
    receiver.was_called(1);
    assert_eq!(onceward.state(&first.operation()).await, "succeeded");
}

/// The outcome is recorded before the first byte of the answer.
#[tokio::test]
async fn a_duplicate_sent_the_moment_the_answer_is_there_is_a_replay() {
    let receiver = Receiver::that_answers(200, "done").await;
    let onceward = Onceward::in_front_of(&receiver).start().await;
    let mut sender = onceward.connects().await;
    for round in 0..200 {
        let event = event(&format!("evt_{round}")).raw();
        sender.writes(&event).await;
        sender.reads_head().await.is_executed(200);
        // On another connection the body need not even have been read.
        sender.reads_exactly(4).await;
        sender.writes(&event).await;
        let copy = sender.reads_answer().await;
        assert_eq!(copy.is_replayed(200).text(), "done");
        receiver.was_called(round + 1);
    }
}

/// The head alone says that it is recorded, even if the sender never reads the rest.
#[tokio::test]
async fn a_duplicate_sent_before_the_first_answer_was_read_is_a_replay() {
    let receiver = Receiver::that(|_, _| Answer::new(200, vec![b'x'; 200_000]).into()).await;
    let onceward = Onceward::in_front_of(&receiver).start().await;
    for round in 0..20 {
        let event = event(&format!("evt_{round}"));
        let mut sender = onceward.connects().await;
        sender.writes(&event.raw()).await;
        sender.reads_head().await.is_executed(200);
        let copy = onceward.sends(event).await;
        copy.is_replayed(200);
        assert_eq!(copy.body.len(), 200_000);
        sender.resets();
    }
    receiver.was_called(20);
}

#[tokio::test]
async fn a_failure_is_not_remembered_as_done() {
    let receiver = Receiver::that(|_, copies| match copies {
        0 => Answer::new(500, "no").into(),
        _ => Answer::new(200, "yes").into(),
    })
    .await;
    let onceward = Onceward::in_front_of(&receiver).start().await;
    let first = onceward.sends(event("evt_10")).await;
    assert_eq!(first.is_executed(500).text(), "no");
    let second = onceward.sends(event("evt_10")).await;
    assert_eq!(second.is_executed(200).text(), "yes");
    let third = onceward.sends(event("evt_10")).await;
    assert_eq!(third.is_replayed(200).text(), "yes");
    receiver.was_called(2);
}

fn raw(head: &[u8], body: &[u8]) -> Act {
    let length = format!("content-length: {}\r\n\r\n", body.len());
    Act::RawThenStay([head, length.as_bytes(), body].concat())
}

/// The headers of an answer but those of the connection, as names and bytes in order.
fn headers(reply: &Reply) -> Vec<(String, Vec<u8>)> {
    let ours = ["date", "onceward-disposition", "idempotent-replayed"];
    let pairs = reply.headers.iter().filter(|(name, _)| !ours.contains(&name.as_str()));
    let mut pairs: Vec<_> =
        pairs.map(|(name, value)| (name.to_string(), value.as_bytes().to_vec())).collect();
    // The order between names is not kept; the order of one name's values is.
    pairs.sort_by(|(one, _), (other, _)| one.cmp(other));
    pairs
}

#[tokio::test]
async fn a_replay_has_the_end_to_end_headers_of_the_first_answer() {
    let receiver = Receiver::that(|_, _| {
        raw(
            b"HTTP/1.1 201 Created\r\nLocation: /x/9\r\nETag: \"v1\"\r\nLink: </a>; rel=next\r\n\
              X-App: 7\r\nContent-Type: application/vnd.a+json; charset=utf-8\r\n\
              Content-Language: de\r\nCache-Control: no-store\r\n",
            &[b'b'; 300],
        )
    })
    .await;
    let onceward = Onceward::in_front_of(&receiver).start().await;
    let first = onceward.sends(event("evt_1")).await;
    first.is_executed(201);
    let copy = onceward.sends(event("evt_1")).await;
    copy.is_replayed(201);
    assert_eq!(headers(&copy), headers(&first));
    assert_eq!(copy.body, [b'b'; 300]);
    for (name, value) in [
        ("location", "/x/9"),
        ("etag", "\"v1\""),
        ("link", "</a>; rel=next"),
        ("x-app", "7"),
        ("content-type", "application/vnd.a+json; charset=utf-8"),
        ("content-language", "de"),
        ("cache-control", "no-store"),
        ("content-length", "300"),
    ] {
        assert_eq!(copy.header(name), Some(value));
    }
    receiver.was_called(1);
}

/// A cookie or a challenge is for the first sender alone, and its date is over.
#[tokio::test]
async fn a_replay_has_nothing_of_the_first_exchange() {
    let receiver = Receiver::that(|_, _| {
        raw(
            b"HTTP/1.1 200 OK\r\nSet-Cookie: sid=1\r\nSet-Cookie: csrf=2\r\n\
              WWW-Authenticate: Bearer\r\nDate: Thu, 01 Jan 2015 00:00:00 GMT\r\nAge: 90\r\n\
              X-Request-Id: r1\r\nConnection: X-Tmp, keep-alive\r\nX-Tmp: 1\r\n\
              Keep-Alive: timeout=5\r\nProxy-Authenticate: Basic\r\nProxy-Status: a\r\n\
              RateLimit-Remaining: 3\r\nRateLimit: \"a\";r=1\r\nX-RateLimit-Limit: 9\r\n\
              X-Mine: m\r\nX-Kept: k\r\nIdempotent-Replayed: true\r\n\
              Onceward-Disposition: forged\r\nOnceward-Body: omitted\r\nOnceward-Any: 1\r\n",
            b"ok",
        )
    })
    .await;
    let onceward = Onceward::in_front_of(&receiver)
        .defaults("[defaults.replay]\ndrop_headers = [\"x-request-id\", \"X-Mine\"]")
        .start()
        .await;
    let first = onceward.sends(event("evt_1")).await;
    first.is_executed(200);
    let copy = onceward.sends(event("evt_1")).await;
    copy.is_replayed(200);

    assert_eq!(first.values("set-cookie"), [b"sid=1".as_slice(), b"csrf=2"]);
    assert_eq!(first.values("date"), [b"Thu, 01 Jan 2015 00:00:00 GMT"]);
    for name in [
        "www-authenticate",
        "age",
        "x-request-id",
        "proxy-status",
        "ratelimit-remaining",
        "ratelimit",
        "x-ratelimit-limit",
        "x-mine",
    ] {
        assert!(first.header(name).is_some(), "the first answer has `{name}`");
        assert_eq!(copy.header(name), None);
    }
    assert_eq!(copy.header("set-cookie"), None);
    assert_eq!(copy.values("date").len(), 1, "one, and its own");
    assert_ne!(copy.header("date"), first.header("date"));
    for reply in [first, copy] {
        for name in [
            "connection",
            "x-tmp",
            "keep-alive",
            "proxy-authenticate",
            "onceward-body",
            "onceward-any",
        ] {
            assert_eq!(reply.header(name), None, "{name}");
        }
        assert_eq!(reply.header("x-kept"), Some("k"));
        assert_eq!(reply.values("onceward-disposition").len(), 1);
    }
}

/// The bytes are passed on as they are, and the label says what they are.
#[tokio::test]
async fn an_encoded_body_keeps_its_label_and_its_length() {
    let bytes: Vec<u8> = (0..50).map(|n| n * 5).collect();
    for encoding in ["gzip", "br", "zstd"] {
        let body = bytes.clone();
        let receiver = Receiver::that(move |_, _| {
            Answer::new(200, body.clone()).header("content-encoding", encoding).into()
        })
        .await;
        let onceward = Onceward::in_front_of(&receiver).start().await;
        let first = onceward.sends(event("evt_1").header("accept-encoding", encoding)).await;
        first.is_executed(200);
        assert_eq!(receiver.seen()[0].header("accept-encoding"), Some(encoding));
        let copy = onceward.sends(event("evt_1").header("accept-encoding", "identity")).await;
        copy.is_replayed(200);
        for reply in [first, copy] {
            assert_eq!(reply.body, bytes);
            assert_eq!(reply.header("content-encoding"), Some(encoding));
            assert_eq!(reply.header("content-length"), Some("50"));
        }
        receiver.was_called(1);
    }
}

/// The sender reads the body, so nothing is added and nothing is guessed.
#[tokio::test]
async fn a_replay_has_the_type_of_the_first_answer_or_none() {
    let xml = "<Response><Say>hi</Say></Response>";
    let receiver = Receiver::that(move |_, copies| {
        assert_eq!(copies, 0);
        Answer::new(200, xml).header("content-type", "text/xml").into()
    })
    .await;
    let onceward = Onceward::in_front_of(&receiver).start().await;
    let first = onceward.sends(event("evt_1")).await;
    first.is_executed(200);
    let copy = onceward.sends(event("evt_1")).await;
    copy.is_replayed(200);
    for reply in [first, copy] {
        assert_eq!((reply.text().as_str(), reply.header("content-type")), (xml, Some("text/xml")));
    }

    let receiver = Receiver::that_answers(200, "").await;
    let onceward = Onceward::in_front_of(&receiver).start().await;
    let first = onceward.sends(event("evt_1")).await;
    first.is_executed(200);
    let copy = onceward.sends(event("evt_1")).await;
    copy.is_replayed(200);
    for reply in [first, copy] {
        assert_eq!((reply.text().as_str(), reply.header("content-type")), ("", None));
        assert_eq!(reply.header("content-length"), Some("0"));
        assert_eq!(reply.header("onceward-body"), None, "it was kept; it is empty");
    }
}

#[tokio::test]
async fn many_values_of_one_name_and_bytes_beyond_utf_8_are_replayed_as_they_came() {
    let receiver = Receiver::that(|_, _| {
        raw(
            b"HTTP/1.1 200 OK\r\nLink: </b>\r\nX-Latin: caf\xe9\r\nLink: </a>\r\nX-Empty:\r\n\
              Link: </b>\r\nVary: b, a\r\nX-Bytes: \x80\xff\r\n",
            b"\x00\xff\r\n\r\nbytes",
        )
    })
    .await;
    let onceward = Onceward::in_front_of(&receiver).start().await;
    let first = onceward.sends(event("evt_1")).await;
    first.is_executed(200);
    let copy = onceward.sends(event("evt_1")).await;
    copy.is_replayed(200);
    for reply in [&first, &copy] {
        assert_eq!(reply.values("link"), [b"</b>", b"</a>", b"</b>"]);
        assert_eq!(reply.values("x-latin"), [b"caf\xe9"]);
        assert_eq!(reply.values("x-bytes"), [b"\x80\xff"]);
        assert_eq!(reply.values("x-empty"), [b""]);
        assert_eq!(reply.values("vary"), [b"b, a"]);
        assert_eq!(reply.body, b"\x00\xff\r\n\r\nbytes");
    }
    assert_eq!(headers(&first), headers(&copy));
}

/// What has no body by definition leaves the connection ready for the next answer.
#[tokio::test]
async fn an_answer_without_a_body_is_replayed_without_one() {
    let receiver = Receiver::that(|seen, _| {
        Act::RawThenStay(match seen.header("x-status").unwrap() {
            "204" => b"HTTP/1.1 204 No Content\r\nx-app: 7\r\n\r\n".to_vec(),
            "205" => {
                b"HTTP/1.1 205 Reset Content\r\nx-app: 7\r\ncontent-length: 0\r\n\r\n".to_vec()
            }
            _ => b"HTTP/1.1 200 OK\r\nx-app: 7\r\ncontent-length: 0\r\n\r\n".to_vec(),
        })
    })
    .await;
    let onceward = Onceward::in_front_of(&receiver).start().await;
    let mut sender = onceward.connects().await;
    for status in [204, 205, 200] {
        let event = event(&format!("evt_{status}")).header("x-status", &status.to_string()).raw();
        for copy in [false, true] {
            sender.writes(&event).await;
            let reply = sender.reads_answer().await;
            if copy {
                reply.is_replayed(status)
            } else {
                reply.is_executed(status)
            };
            assert_eq!(reply.header("x-app"), Some("7"));
            let length = if status == 204 { None } else { Some("0") };
            assert_eq!(reply.header("content-length"), length, "{status}");
            assert_eq!(reply.header("transfer-encoding"), None);
            assert_eq!(reply.body, b"");
        }
    }
    receiver.was_called(3);
}

/// A route may deduplicate HEAD as well: neither answer has a body.
#[tokio::test]
async fn a_deduplicated_head_is_replayed_without_a_body() {
    let receiver = Receiver::that(|_, _| {
        Act::RawThenStay(b"HTTP/1.1 200 OK\r\nx-app: 7\r\ncontent-length: 5\r\n\r\n".into())
    })
    .await;
    let onceward =
        Onceward::in_front_of(&receiver).defaults("methods = [\"HEAD\", \"POST\"]").start().await;
    let mut sender = onceward.connects().await;
    let head = b"HEAD /hooks HTTP/1.1\r\nhost: h\r\nx-idempotency-key: k\r\n\r\n";
    sender.writes(head).await;
    let first = sender.reads_head().await;
    first.is_executed(200);
    assert_eq!(first.header("content-length"), Some("5"));
    // A body here would be read as the head of the next answer.
    sender.writes(head).await;
    let copy = sender.reads_head().await;
    copy.is_replayed(200);
    assert_eq!(copy.header("x-app"), Some("7"));
    sender.writes(head).await;
    sender.reads_head().await.is_replayed(200);
    receiver.was_called(1);
}

/// Milliseconds since the epoch.
fn millis(time: &serde_json::Value) -> i64 {
    time.as_str().unwrap().parse::<jiff::Timestamp>().unwrap().as_millisecond()
}

/// It counts neither from the claim nor anew from every replay.
#[tokio::test]
async fn retention_counts_from_the_end_and_replays_do_not_extend_it() {
    let receiver = Receiver::that(|_, _| {
        Act::After(Duration::from_millis(1200), Box::new(Answer::new(200, "ok").into()))
    })
    .await;
    let onceward =
        Onceward::in_front_of(&receiver).defaults("retention = \"1500ms\"").start().await;
    let began = Instant::now();
    let first = onceward.sends(event("evt_1")).await;
    first.is_executed(200);
    let id = first.operation();
    let operation = onceward.operation(&id).await.unwrap();
    let settled_at = millis(&operation["settled_at"]);
    assert_eq!(millis(&operation["expires_at"]) - settled_at, 1500);
    assert!(settled_at - millis(&operation["created_at"]) >= 1200, "{operation:#}");

    let mut replays = 0;
    while let Some(now) = onceward.operation(&id).await {
        assert_eq!(now["expires_at"], operation["expires_at"], "replays do not extend it");
        if receiver.count() == 1 {
            let copy = onceward.sends(event("evt_1")).await;
            if receiver.count() == 2 {
                // The retention has passed between the look and the copy.
                assert!(began.elapsed() >= Duration::from_millis(2690), "{:?}", began.elapsed());
                return is_new(&onceward, &copy, &operation).await;
            }
            copy.is_replayed(200);
            replays += 1;
        }
    }
    assert!(replays > 0);
    assert!(began.elapsed() >= Duration::from_millis(2690), "{:?}", began.elapsed());
    let next = onceward.sends(event("evt_1")).await;
    receiver.was_called(2);
    is_new(&onceward, &next, &operation).await;
}

/// The same key is a new operation, with attempts of its own.
async fn is_new(onceward: &Onceward, reply: &Reply, before: &serde_json::Value) {
    reply.is_executed(200);
    let operation = onceward.operation(&reply.operation()).await.unwrap();
    assert_eq!(operation["attempts_total"], 1);
    assert_ne!(operation["created_at"], before["created_at"]);
}

/// Sends these again: each is the replay of what it was before.
async fn are_all_replayed(onceward: &Onceward, before: &[(Event, Reply)]) {
    for (event, first) in before {
        let copy = onceward.sends(event.clone()).await;
        copy.is_replayed(first.status);
        assert_eq!(headers(&copy), headers(first));
        assert!(copy.body == first.body, "{} bytes", copy.body.len());
    }
}

#[tokio::test]
async fn replays_survive_restarts_byte_for_byte() {
    let receiver = Receiver::that(|seen, _| match seen.header("x-kind").unwrap() {
        "empty" => Answer::new(202, "").into(),
        "long" => Answer::new(200, vec![b'y'; 200_000]).header("x-app", "7").into(),
        _ => raw(
            b"HTTP/1.1 299 Odd\r\nLink: </b>\r\nX-Latin: caf\xe9\r\nLink: </a>\r\n\
              Content-Type: application/octet-stream\r\n",
            b"\x00\xff\r\n\r\nbytes",
        ),
    })
    .await;
    let mut onceward = Onceward::in_front_of(&receiver).start().await;
    let mut all = Vec::new();
    for kind in ["empty", "long", "odd"] {
        let event = event(&format!("evt_{kind}")).header("x-kind", kind);
        let first = onceward.sends(event.clone()).await;
        assert_eq!(first.header("onceward-disposition"), Some("executed"));
        all.push((event, first));
    }
    let mut records = Vec::new();
    for (_, first) in &all {
        records.push(onceward.operation(&first.operation()).await.unwrap());
    }

    onceward.signal(rustix::process::Signal::TERM);
    assert!(onceward.ends().await.success());
    onceward.starts_again().await;
    are_all_replayed(&onceward, &all).await;
    onceward.is_killed().await;
    onceward.starts_again().await;
    are_all_replayed(&onceward, &all).await;
    for ((_, first), before) in all.iter().zip(records) {
        assert_eq!(onceward.operation(&first.operation()).await.unwrap(), before);
    }
    receiver.was_called(3);
}

/// Starts the process again with this instead of that in its configuration.
async fn is_reconfigured(onceward: &mut Onceward, from: &str, to: &str) {
    let file = onceward.config_file();
    let before = std::fs::read_to_string(&file).unwrap();
    assert!(before.contains(from));
    std::fs::write(&file, before.replace(from, to)).unwrap();
    onceward.signal(rustix::process::Signal::TERM);
    onceward.ends().await;
    onceward.starts_again().await;
}

/// A shorter retention ends nothing early.
#[tokio::test]
async fn a_changed_retention_does_not_reach_back() {
    let receiver = Receiver::that_answers(200, "ok").await;
    let mut onceward =
        Onceward::in_front_of(&receiver).defaults("retention = \"1h\"").start().await;
    let first = onceward.sends(event("evt_1")).await;
    let before = onceward.operation(&first.operation()).await.unwrap();
    is_reconfigured(&mut onceward, "retention = \"1h\"", "retention = \"1ms\"").await;
    onceward.sends(event("evt_1")).await.is_replayed(200);
    let after = onceward.operation(&first.operation()).await.unwrap();
    assert_eq!(after["expires_at"], before["expires_at"]);
    // The new one is that of new operations.
    let second = onceward.sends(event("evt_2")).await;
    second.is_executed(200);
    onceward.forgets(&second.operation()).await;
    onceward.sends(event("evt_2")).await.is_executed(200);
    receiver.was_called(3);
}

#[tokio::test]
async fn a_longer_retention_does_not_keep_what_was_to_be_forgotten() {
    let receiver = Receiver::that_answers(200, "ok").await;
    let mut onceward =
        Onceward::in_front_of(&receiver).defaults("retention = \"1ms\"").start().await;
    onceward.sends(event("evt_1")).await.is_executed(200);
    is_reconfigured(&mut onceward, "retention = \"1ms\"", "retention = \"1h\"").await;
    onceward.sends(event("evt_1")).await.is_executed(200);
    onceward.sends(event("evt_1")).await.is_replayed(200);
    receiver.was_called(2);
}

/// What was asked under one rule cannot be compared with what is asked under another.
#[tokio::test]
async fn a_changed_fingerprint_rule_does_not_reach_back() {
    let receiver = Receiver::that_answers(200, "ok").await;
    let mut onceward = Onceward::in_front_of(&receiver)
        .defaults("[defaults.fingerprint]\nover = [\"body\"]")
        .start()
        .await;
    let one = |key: &str| Event::bytes("{\"amount\":1}").keyed(key);
    let other = |key: &str| Event::bytes("{\"amount\":2}").keyed(key);
    onceward.sends(one("k1")).await.is_executed(200);
    onceward.sends(other("k1")).await.is_mismatched();
    is_reconfigured(&mut onceward, "over = [\"body\"]", "over = [\"json:/amount\"]").await;
    onceward.sends(one("k1")).await.is_replayed(200);
    onceward.sends(other("k1")).await.is_replayed(200);
    // The new rule holds for what is asked under it.
    onceward.sends(one("k2")).await.is_executed(200);
    onceward.sends(other("k2")).await.is_mismatched();
    is_reconfigured(&mut onceward, "over = [\"json:/amount\"]", "over = [\"body\"]").await;
    onceward.sends(other("k1")).await.is_mismatched();
    receiver.was_called(2);
}
