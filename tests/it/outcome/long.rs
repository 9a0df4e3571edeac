//! Answers longer than `replay.body_bytes_max`.

use super::{HELD, SHORT, answered, is_held, standing, uncertain};
use crate::support::{Act, Answer, Bare, BareReceiver, Gate, Onceward, Receiver, event};

const LIMIT: &str = "[defaults.replay]\nbody_bytes_max = \"1KiB\"";

#[tokio::test]
async fn a_long_success_is_given_whole_and_remembered_without_its_body() {
    let body: Vec<u8> = (0..1 << 20).map(|n: u32| n.to_le_bytes()[1]).collect();
    let whole = body.clone();
    let receiver = Receiver::that(move |_, _| Answer::new(200, whole.clone()).into()).await;
    let onceward = Onceward::in_front_of(&receiver).defaults(LIMIT).start().await;
    let first = onceward.sends(event("evt_1")).await;
    first.is_executed(200);
    assert!(first.body == body, "all bytes, in order");
    assert_eq!(first.header("content-length"), Some("1048576"));
    assert_eq!(first.header("onceward-body"), None);
    assert_eq!(standing(&onceward, &first).await, answered(1, "succeeded", 200));
    let operation = onceward.operation(&first.operation()).await.unwrap();
    assert_eq!(operation["answer"]["body_omitted"], true);
    is_omitted(&onceward, 200).await;
    receiver.was_called(1);
}

/// A copy gets the status, and is told that there is no body.
async fn is_omitted(onceward: &Onceward, status: u16) {
    let copy = onceward.sends(event("evt_1")).await;
    copy.is_replayed(status);
    assert_eq!(copy.header("onceward-body"), Some("omitted"));
    assert_eq!(copy.text(), "");
    assert_eq!(copy.header("content-length"), Some("0"), "its own, of nothing");
}

/// Gives the head and the first half of an answer, then waits before the rest.
async fn begins(mut bare: Bare, status: u16, gate: Gate, breaks_off: bool) {
    bare.reads_request().await.unwrap();
    let head = format!(
        "HTTP/1.1 {status} Some Words\r\ncontent-type: text/plain\r\ncontent-encoding: gzip\r\n\
         etag: \"v1\"\r\ncontent-digest: sha-256=:AA==:\r\nx-app: 7\r\ncontent-length: 4000\r\n\r\n"
    );
    bare.writes(&[head.as_bytes(), &[b'a'; 2000]].concat()).await;
    gate.passes().await;
    if !breaks_off {
        bare.writes(&[b'z'; 2000]).await;
        bare.is_closed().await;
    }
}

async fn receiver_that_begins(status: u16, breaks_off: bool) -> (BareReceiver, Gate) {
    let gate = Gate::default();
    let waits = gate.clone();
    let receiver =
        BareReceiver::that(move |bare| begins(bare, status, waits.clone(), breaks_off)).await;
    (receiver, gate)
}

/// As soon as the limit is passed nothing can undo it.
#[tokio::test]
async fn a_long_success_is_one_before_its_end_and_stays_one_when_it_breaks_off() {
    for breaks_off in [false, true] {
        let (receiver, gate) = receiver_that_begins(201, breaks_off).await;
        let onceward = Onceward::in_front_of_url(&receiver.url()).defaults(LIMIT).start().await;
        let mut sender = onceward.connects().await;
        sender.writes(&event("evt_1").raw()).await;
        let head = sender.reads_head().await;
        head.is_executed(201);
        for name in ["content-encoding", "etag", "content-digest", "x-app"] {
            assert!(head.header(name).is_some(), "the first answer has `{name}`");
        }
        assert_eq!(head.header("content-length"), Some("4000"));
        assert_eq!(standing(&onceward, &head).await, answered(1, "succeeded", 201));

        let copy = onceward.sends(event("evt_1")).await;
        copy.is_replayed(201);
        for name in ["content-encoding", "etag", "content-digest"] {
            assert_eq!(copy.header(name), None, "it is about a body that is not there");
        }
        assert_eq!(copy.header("x-app"), Some("7"));
        assert_eq!(copy.header("content-type"), Some("text/plain"));
        is_omitted(&onceward, 201).await;

        gate.opens();
        if breaks_off {
            assert!(sender.reads_to_the_end().await.len() < 4000, "the sender sees the break");
        } else {
            let body = sender.reads_exactly(4000).await;
            assert_eq!((body[0], body[3999]), (b'a', b'z'));
        }
        assert_eq!(standing(&onceward, &head).await, answered(1, "succeeded", 201));
        is_omitted(&onceward, 201).await;
        receiver.was_called(1);
    }
}

#[tokio::test]
async fn a_long_failure_is_settled_at_its_end() {
    let (receiver, gate) = receiver_that_begins(500, false).await;
    let onceward = Onceward::in_front_of_url(&receiver.url()).defaults(LIMIT).start().await;
    let mut sender = onceward.connects().await;
    sender.writes(&event("evt_1").raw()).await;
    let head = sender.reads_head().await;
    head.is_executed(500);
    assert_eq!(onceward.state(&head.operation()).await, "in_flight");
    gate.opens();
    sender.reads_exactly(4000).await;
    assert_eq!(standing(&onceward, &head).await, answered(1, "failed", 500));
}

/// Whoever has the whole failure can send the event again, at once.
#[tokio::test]
async fn after_the_last_byte_of_a_long_failure_the_next_copy_is_a_new_attempt() {
    let receiver = Receiver::that(|_, _| Answer::new(500, vec![b'x'; 100_000]).into()).await;
    let onceward = Onceward::in_front_of(&receiver).defaults(LIMIT).start().await;
    let mut sender = onceward.connects().await;
    for attempt in 1..=50 {
        sender.writes(&event("evt_1").raw()).await;
        let reply = sender.reads_answer().await;
        reply.is_executed(500);
        assert_eq!(reply.body.len(), 100_000);
        receiver.was_called(attempt);
    }
}

#[tokio::test]
async fn a_long_failure_that_breaks_off_is_uncertain() {
    let (receiver, gate) = receiver_that_begins(500, true).await;
    let onceward =
        Onceward::in_front_of_url(&receiver.url()).defaults(LIMIT).expects_log(HELD).start().await;
    let mut sender = onceward.connects().await;
    sender.writes(&event("evt_1").raw()).await;
    let head = sender.reads_head().await;
    gate.opens();
    assert!(sender.reads_to_the_end().await.len() < 4000, "the sender sees the break");
    onceward.comes_to_be(&head.operation(), "uncertain").await;
    assert_eq!(standing(&onceward, &head).await, uncertain("answer-broke-off", Some(500)));
    is_held(&onceward, event("evt_1")).await;
    receiver.was_called(1);
}

/// The end of the attempt is that of a long answer too.
#[tokio::test]
async fn a_long_failure_that_never_ends_is_uncertain() {
    let (receiver, _closed) = receiver_that_begins(500, false).await;
    let onceward = Onceward::in_front_of_url(&receiver.url())
        .defaults(&format!("{SHORT}\n{LIMIT}"))
        .in_memory()
        .expects_log(HELD)
        .start()
        .await;
    let mut sender = onceward.connects().await;
    sender.writes(&event("evt_1").raw()).await;
    let head = sender.reads_head().await;
    assert!(sender.reads_to_the_end().await.len() < 4000, "the sender sees the break");
    onceward.comes_to_be(&head.operation(), "uncertain").await;
    assert_eq!(standing(&onceward, &head).await, uncertain("timed-out", Some(500)));
    is_held(&onceward, event("evt_1")).await;
    receiver.was_called(1);
}

#[tokio::test]
async fn the_limit_itself_is_kept_and_one_byte_more_is_not() {
    let receiver = Receiver::that(|seen, _| {
        let bytes = seen.header("x-bytes").unwrap().parse().unwrap();
        // In one piece, and in two: both are counted.
        match seen.header("x-chunks") {
            None => Answer::new(200, vec![b'x'; bytes]).into(),
            Some(_) => Act::RawThenStay(
                [
                    b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n1\r\nx\r\n".to_vec(),
                    format!("{:x}\r\n{}\r\n0\r\n\r\n", bytes - 1, "x".repeat(bytes - 1)).into(),
                ]
                .concat(),
            ),
        }
    })
    .await;
    let onceward = Onceward::in_front_of(&receiver).defaults(LIMIT).start().await;
    for chunks in [false, true] {
        for (bytes, kept) in [(1024, true), (1025, false)] {
            let mut event =
                event(&format!("evt_{bytes}_{chunks}")).header("x-bytes", &bytes.to_string());
            if chunks {
                event = event.header("x-chunks", "2");
            }
            let first = onceward.sends(event.clone()).await;
            first.is_executed(200);
            assert_eq!(first.body.len(), bytes);
            let copy = onceward.sends(event).await;
            copy.is_replayed(200);
            assert_eq!(copy.body.len(), if kept { bytes } else { 0 });
            assert_eq!(copy.header("onceward-body"), if kept { None } else { Some("omitted") });
        }
    }
    receiver.was_called(4);
}

#[tokio::test]
async fn with_no_room_at_all_only_an_empty_body_is_kept() {
    let receiver = Receiver::that(|seen, _| {
        Answer::new(200, seen.header("x-body").unwrap_or_default()).into()
    })
    .await;
    let onceward = Onceward::in_front_of(&receiver)
        .defaults("[defaults.replay]\nbody_bytes_max = \"0B\"")
        .start()
        .await;
    onceward.sends(event("empty")).await.is_executed(200);
    let copy = onceward.sends(event("empty")).await;
    copy.is_replayed(200);
    assert_eq!(copy.header("onceward-body"), None);
    let first = onceward.sends(event("evt_1").header("x-body", "x")).await;
    first.is_executed(200);
    assert_eq!(first.text(), "x");
    is_omitted(&onceward, 200).await;
}
