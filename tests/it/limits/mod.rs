//! Everything has a limit, reaching one is answered readably, and afterwards all goes on.

mod answers;
mod bodies;
mod heads;
mod memory;

use std::time::Duration;

use rustix::process::{Resource, Rlimit, getrlimit, prlimit};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use crate::support::{Answer, Event, Gate, Onceward, RawSender, Receiver, Reply, event};

const KIB: usize = 1024;

fn reached(limit: &str) -> String {
    format!("onceward_limits_reached_total{{limit=\"{limit}\"}}")
}

fn big(key: &str, bytes: usize) -> Event {
    Event::bytes(vec![b'x'; bytes]).keyed(key)
}

/// The same request with a body in chunks.
fn chunked(event: &Event) -> Vec<u8> {
    let lines = event.headers.iter().map(|(name, value)| [name, ": ", value, "\r\n"].concat());
    let lines: String = lines.collect();
    let (method, path) = (event.method, &event.path);
    let head = format!("{method} {path} HTTP/1.1\r\nhost: hooks.example\r\n{lines}");
    let mut bytes = (head + "transfer-encoding: chunked\r\n\r\n").into_bytes();
    for chunk in event.body.chunks(10_000) {
        bytes.extend(format!("{:x}\r\n", chunk.len()).into_bytes());
        bytes.extend_from_slice(chunk);
        bytes.extend_from_slice(b"\r\n");
    }
    bytes.extend_from_slice(b"0\r\n\r\n");
    bytes
}

/// Nothing is cut off in silence. A record would bind the key: the same key is then free for
/// another request.
#[tokio::test]
async fn a_body_over_the_limit_gets_a_readable_413_and_leaves_no_record() {
    let receiver = Receiver::that_answers(200, "ok").await;
    let builder = Onceward::in_front_of(&receiver).defaults("request_bytes_max = \"64KiB\"");
    let onceward = builder.start().await;
    for (key, bytes) in [("declared", 64 * KIB + 1), ("declared-800", 800 * KIB)] {
        let mut sender = onceward.connects().await;
        sender.writes(&big(key, bytes).raw()).await;
        sender.reads_reply().await.is_refused(413, "body-too-large");
    }
    for (key, bytes) in [("chunked", 64 * KIB + 1), ("chunked-800", 800 * KIB)] {
        let mut sender = onceward.connects().await;
        sender.writes(&chunked(&big(key, bytes))).await;
        let reply = sender.reads_reply().await;
        reply.is_refused(413, "body-too-large");
        assert_eq!(reply.header("connection"), Some("close"));
        assert_eq!(reply.header("onceward-operation"), None);
    }
    receiver.was_called(0);
    for key in ["declared", "declared-800", "chunked", "chunked-800"] {
        onceward.sends(big(key, 10)).await.is_executed(200);
    }
    let seen = receiver.seen();
    assert_eq!(seen.len(), 4);
    assert!(seen.iter().all(|seen| seen.header("onceward-attempt") == Some("1")));
}

#[tokio::test]
async fn a_body_of_exactly_the_limit_passes_whole() {
    let receiver = Receiver::that_answers(200, "ok").await;
    let builder = Onceward::in_front_of(&receiver).defaults("request_bytes_max = \"64KiB\"");
    let onceward = builder.start().await;
    onceward.sends(big("declared", 64 * KIB)).await.is_executed(200);
    let mut sender = onceward.connects().await;
    sender.writes(&chunked(&big("chunked", 64 * KIB))).await;
    sender.reads_reply().await.is_executed(200);
    for seen in receiver.seen() {
        assert_eq!(seen.header("content-length"), Some("65536"));
        assert_eq!(seen.body.len(), 64 * KIB);
    }
    receiver.was_called(2);
}

/// The memory for bodies is bounded, however many uploads come at the same moment.
#[tokio::test]
async fn uploads_beyond_the_memory_are_told_to_come_back_and_then_get_through() {
    const UPLOADS: usize = 50;
    let gate = Gate::default();
    let receiver = Receiver::behind(&gate, 200, "ok").await;
    let builder = Onceward::in_front_of(&receiver).limits("buffered_bytes_max = \"2MiB\"");
    let onceward = builder.start().await;
    let upload = |number: usize| {
        let onceward = &onceward;
        async move {
            let mut sender = onceward.connects().await;
            sender.writes(&big(&format!("k{number}"), 200 * KIB).raw()).await;
            sender.reads_reply().await
        }
    };
    let uploads = futures_util::future::join_all((0..UPLOADS).map(upload));
    let opened = async {
        // Nine bodies are the whole memory; until the gate opens nobody gives any of it back.
        onceward.comes_to_count(&reached("buffered_bytes_max"), 41.0).await;
        // A body that has just ended is counted twice while it is put together.
        onceward.comes_down_to("onceward_buffered_bytes", 2.0 * 1024.0 * 1024.0).await;
        gate.opens();
    };
    let (replies, ()) = tokio::join!(uploads, opened);
    let (passed, refused): (Vec<_>, Vec<_>) = replies.iter().partition(|reply| reply.status == 200);
    for reply in &refused {
        reply.is_refused(503, "overloaded").comes_back();
    }
    assert!(passed.len() <= 9, "{} bodies in a memory for nine", passed.len());
    receiver.was_called(passed.len());
    for number in 0..UPLOADS {
        assert_eq!(upload(number).await.status, 200);
    }
    receiver.was_called(UPLOADS);
    // The last of it is given back a moment after its answer was read.
    onceward.comes_down_to("onceward_buffered_bytes", 0.0).await;
}

/// The body is read before anything is claimed.
#[tokio::test]
async fn a_body_that_does_not_come_in_time_gets_408_and_leaves_no_record() {
    let receiver = Receiver::that_answers(200, "ok").await;
    let builder = Onceward::in_front_of(&receiver).limits("body_timeout = \"700ms\"");
    let onceward = builder.start().await;
    let whole = event("evt_slow").keyed("slow").raw();
    for written in [whole.len() - 1, whole.len() - 40] {
        let mut sender = onceward.connects().await;
        sender.writes(&whole[..written]).await;
        let reply = sender.reads_reply().await;
        reply.is_refused(408, "body-timeout");
        assert_eq!(reply.header("connection"), Some("close"));
    }
    receiver.was_called(0);
    onceward.sends(event("evt_slow").keyed("slow")).await.is_executed(200);
    assert_eq!(receiver.seen()[0].header("onceward-attempt"), Some("1"));
}

/// A sender that leaves before the end of its body has asked for nothing.
#[tokio::test]
async fn a_cut_upload_is_not_claimed() {
    let receiver = Receiver::that_answers(200, "ok").await;
    let onceward = Onceward::in_front_of(&receiver).start().await;
    let whole = event("evt_cut").keyed("cut").raw();
    let head = whole.windows(4).position(|bytes| bytes == b"\r\n\r\n").unwrap() + 4;
    for written in [0, 1, head / 2, head - 1, head, head + 1, whole.len() - 1] {
        let mut sender = onceward.connects().await;
        sender.writes(&whole[..written]).await;
        sender.resets();
        let mut sender = onceward.connects().await;
        sender.writes(&whole[..written]).await;
        sender.hangs_up();
    }
    onceward.sends(event("evt_cut").keyed("cut")).await.is_executed(200);
    receiver.was_called(1);
    assert_eq!(receiver.seen()[0].header("onceward-attempt"), Some("1"));
}

/// 500 connections that never finish their requests, on both listeners, and traffic in between.
#[tokio::test]
async fn slow_and_silent_connections_are_closed_and_hold_up_nobody() {
    let receiver = Receiver::that_answers(200, "ok").await;
    let limits = "header_timeout = \"2s\"\nbody_timeout = \"2s\"\nconnections_max = 1000";
    let onceward = Onceward::in_front_of(&receiver).limits(limits).start().await;
    let whole = event("evt_never").raw();
    let mut dripping = tokio::task::JoinSet::new();
    for number in 0..500 {
        let address = if number % 5 == 0 { onceward.admin } else { onceward.address };
        let (begin, drips) = match number % 4 {
            0 => (&b""[..], false),
            1 => (&b"PRI * HTTP/2.0\r\n\r\nS"[..], false),
            2 => (&b"POST /hooks HTTP/1.1\r\nhost: h\r\nx-slow: "[..], true),
            _ => (&whole[..whole.len() - 60], true),
        };
        let sender = RawSender::connect(address).await;
        dripping.spawn(drip(sender, begin.to_vec(), drips));
    }
    for number in 0..20 {
        onceward.sends(event(&format!("evt_{number}"))).await.is_executed(200);
        assert_eq!(onceward.get_admin("/livez").await.status, 200);
    }
    // All but those whose head has ended: they are told why.
    onceward.comes_to_count(&reached("header_timeout"), 375.0).await;
    // Each task ends when its connection is closed.
    dripping.join_all().await;
    receiver.was_called(20);
    assert_eq!(onceward.get_admin("/readyz").await.status, 200);
}

/// Writes a beginning, then a byte now and then, until the other side has closed.
async fn drip(mut sender: RawSender, begin: Vec<u8>, drips: bool) {
    sender.writes(&begin).await;
    let (mut reader, mut writer) = sender.0.split();
    let dripping = async {
        let mut ticks = tokio::time::interval(Duration::from_millis(200));
        while drips && writer.write_all(b"x").await.is_ok() {
            ticks.tick().await;
        }
        std::future::pending::<()>().await;
    };
    let mut answer = Vec::new();
    tokio::select! {
        () = dripping => {}
        _closed = reader.read_to_end(&mut answer) => {}
    }
}

#[tokio::test]
async fn an_idle_connection_is_closed_in_good_order() {
    let receiver = Receiver::that_answers(200, "ok").await;
    let builder = Onceward::in_front_of(&receiver).limits("idle_timeout = \"1s\"");
    let onceward = builder.start().await;
    let mut sender = onceward.connects().await;
    for id in ["evt_1", "evt_2"] {
        sender.writes(&event(id).raw()).await;
        sender.reads_reply().await.is_executed(200);
    }
    assert_eq!(sender.reads_to_the_end().await, b"");
    onceward.comes_to_count(&reached("idle_timeout"), 1.0).await;
}

/// A sender that stops reading does not keep the attempt from its end.
#[tokio::test]
async fn a_sender_that_does_not_read_a_long_answer_is_left_and_the_outcome_recorded() {
    const LONG: usize = 32 * KIB * KIB;
    let receiver = Receiver::that(|seen, _| {
        let status = if seen.target.ends_with("fails") { 500 } else { 200 };
        Answer::new(status, vec![b'x'; LONG]).into()
    })
    .await;
    let builder = Onceward::in_front_of(&receiver).limits("write_timeout = \"300ms\"");
    let onceward = builder.start().await;
    let all = [("/hooks/succeeds", "succeeded", 1.0), ("/hooks/fails", "failed", 2.0)];
    for (path, state, left) in all {
        let mut sender = onceward.connects().await;
        sender.writes(&event("evt_1").to(path).raw()).await;
        let begin = sender.reads_until(b"\r\n\r\n").await;
        let head = String::from_utf8_lossy(&begin).into_owned();
        let id = head.split("onceward-operation: ").nth(1).unwrap()[..35].to_owned();
        onceward.comes_to_count(&reached("write_timeout"), left).await;
        onceward.comes_to_be(&id, state).await;
        let operation = onceward.operation(&id).await.unwrap();
        assert_eq!(operation["attempts"][0]["reason"], "answered", "{operation}");
        let rest = sender.reads_to_the_end().await;
        assert!(begin.len() + rest.len() < LONG, "it is not whole");
    }
    onceward
        .comes_to_count("onceward_attempts_total{route=\"hooks\",outcome=\"failed\"}", 1.0)
        .await;
    onceward.sends(event("evt_1").to("/hooks/succeeds")).await.is_replayed(200);
    receiver.was_called(2);
}

#[tokio::test]
async fn requests_beyond_requests_in_flight_max_are_told_to_come_back() {
    let gate = Gate::default();
    let receiver = Receiver::behind(&gate, 200, "ok").await;
    let builder = Onceward::in_front_of(&receiver).limits("requests_in_flight_max = 2");
    let onceward = builder.start().await;
    let two = async {
        tokio::join!(onceward.sends(event("evt_1")), onceward.sends(event("evt_2").by("GET")))
    };
    let third = async {
        receiver.has_counted(2).await;
        onceward.sends(event("evt_3")).await.is_refused(503, "overloaded").comes_back();
        assert_eq!(onceward.metric(&reached("requests_in_flight_max")).await, 1.0);
        gate.opens();
    };
    let ((first, second), ()) = tokio::join!(two, third);
    first.is_executed(200);
    second.is_passed(200);
    // Their places are given back a moment after the last bytes of their answers were read.
    let third = onceward.sends_until(&event("evt_3"), |reply| reply.status != 503).await;
    third.is_executed(200);
    receiver.was_called(3);
}

#[tokio::test]
async fn attempts_beyond_a_routes_in_flight_max_are_told_to_come_back() {
    let gate = Gate::default();
    let receiver = Receiver::behind(&gate, 200, "ok").await;
    let onceward = Onceward::in_front_of(&receiver).defaults("in_flight_max = 1").start().await;
    let second = async {
        receiver.has_counted(1).await;
        onceward.sends(event("evt_2")).await.is_refused(503, "overloaded").comes_back();
        // A copy of what is in flight needs no place.
        onceward.sends(event("evt_1")).await.is_in_flight(409);
        assert_eq!(onceward.metric(&reached("in_flight_max")).await, 1.0);
        gate.opens();
    };
    let (first, ()) = tokio::join!(onceward.sends(event("evt_1")), second);
    first.is_executed(200);
    onceward.sends(event("evt_2")).await.is_executed(200);
    // And neither does a replay.
    onceward.sends(event("evt_1")).await.is_replayed(200);
    receiver.was_called(2);
}

#[tokio::test]
async fn copies_beyond_waiters_max_are_refused_and_the_others_wait() {
    let gate = Gate::default();
    let receiver = Receiver::behind(&gate, 200, "ok").await;
    let builder = Onceward::in_front_of(&receiver);
    let builder = builder.defaults("when_in_flight = \"wait\"\nwaiters_max = 2");
    let onceward = builder.start().await;
    let copy = event("evt_1");
    let copies = async {
        receiver.has_counted(1).await;
        let opens = async {
            // Whoever is refused is answered while the others wait.
            onceward.comes_to_count(&reached("waiters_max"), 3.0).await;
            gate.opens();
        };
        tokio::join!(onceward.sends_copies(&copy, 5), opens).0
    };
    let (first, copies) = tokio::join!(onceward.sends(event("evt_1")), copies);
    first.is_executed(200);
    let (waited, refused): (Vec<_>, Vec<_>) = copies.iter().partition(|copy| copy.status == 200);
    assert_eq!((waited.len(), refused.len()), (2, 3));
    for copy in waited {
        copy.is_replayed(200);
    }
    for copy in refused {
        copy.is_in_flight(409);
    }
    receiver.was_called(1);
}

#[tokio::test]
async fn a_success_is_kept_with_its_body_up_to_the_limit_and_without_it_beyond() {
    let receiver = Receiver::that(|seen, _| {
        let bytes: usize = seen.header("x-bytes").unwrap().parse().unwrap();
        Answer::new(200, vec![b'x'; bytes]).into()
    })
    .await;
    let builder = Onceward::in_front_of(&receiver).defaults("replay.body_bytes_max = \"4KiB\"");
    let onceward = builder.start().await;
    for (bytes, replayed, omitted, limit) in
        [(4 * KIB, 4 * KIB, None, 0.0), (4 * KIB + 1, 0, Some("omitted"), 1.0)]
    {
        let event = event(&format!("evt_{bytes}")).header("x-bytes", &bytes.to_string());
        let first = onceward.sends(event.clone()).await;
        first.is_executed(200);
        assert_eq!(first.body.len(), bytes);
        let replay = onceward.sends(event).await;
        replay.is_replayed(200);
        assert_eq!((replay.body.len(), replay.header("onceward-body")), (replayed, omitted));
        assert_eq!(onceward.metric(&reached("replay.body_bytes_max")).await, limit);
    }
}

#[tokio::test]
async fn connections_beyond_connections_max_wait_for_a_place() {
    let receiver = Receiver::that_answers(200, "ok").await;
    let builder = Onceward::in_front_of(&receiver).limits("connections_max = 4");
    let onceward = builder.start().await;
    let mut holding = Vec::new();
    for number in 0..4 {
        let mut sender = onceward.connects().await;
        sender.writes(&event(&format!("evt_{number}")).raw()).await;
        sender.reads_reply().await.is_executed(200);
        holding.push(sender);
    }
    let mut fifth = onceward.connects().await;
    fifth.writes(&event("evt_fifth").raw()).await;
    onceward.comes_to_count(&reached("connections_max"), 1.0).await;
    receiver.was_called(4);
    holding.pop().unwrap().hangs_up();
    fifth.reads_reply().await.is_executed(200);
    receiver.was_called(5);
}

/// A process without file descriptors says so, and goes on when it has some again.
#[tokio::test]
async fn it_recovers_from_a_lack_of_file_descriptors() {
    let receiver = Receiver::that_answers(200, "ok").await;
    let builder = Onceward::in_front_of(&receiver).expects_log("cannot accept connections");
    let onceward = builder.start().await;
    onceward.sends(event("evt_1")).await.is_executed(200);
    let descriptors = format!("/proc/{}/fd", onceward.pid().as_raw_nonzero());
    let open = std::fs::read_dir(descriptors).unwrap().count() as u64;
    let maximum = getrlimit(Resource::Nofile).maximum;
    let few = Rlimit { current: Some(open + 16), maximum };
    prlimit(Some(onceward.pid()), Resource::Nofile, few).unwrap();
    let mut crowd = Vec::new();
    for _ in 0..100 {
        crowd.push(onceward.connects().await);
    }
    onceward.logs("cannot accept connections").await;
    drop(crowd);
    // On new connections: the one of the first event may still be open.
    let mut late = onceward.connects().await;
    late.writes(&event("evt_2").raw()).await;
    late.reads_reply().await.is_executed(200);
    onceward.sends(event("evt_2")).await.is_replayed(200);
    receiver.was_called(2);
}

#[tokio::test]
async fn http1_and_http2_are_spoken_on_one_port_and_share_what_is_remembered() {
    let receiver = Receiver::that_answers(201, "done").await;
    let onceward = Onceward::in_front_of(&receiver).start().await;
    let http2 = reqwest::Client::builder().no_proxy().http2_prior_knowledge().build().unwrap();
    let sends = async || {
        let url = format!("http://{}/hooks", onceward.address);
        let request = http2.post(url).body(event("evt_1").body);
        let response = request.send().await.unwrap();
        assert_eq!(response.version(), reqwest::Version::HTTP_2);
        Reply::of(response).await
    };
    sends().await.is_executed(201);
    onceward.sends(event("evt_1")).await.is_replayed(201);
    let again = sends().await;
    again.is_replayed(201);
    assert_eq!(again.text(), "done");
    receiver.was_called(1);
    assert_eq!(receiver.seen()[0].header("host"), Some(&*onceward.address.to_string()));
}

/// On HTTP/2 the window is full long before the body has ended.
#[tokio::test]
async fn a_body_over_the_limit_gets_a_readable_413_on_http2_too() {
    let receiver = Receiver::that_answers(200, "ok").await;
    let builder = Onceward::in_front_of(&receiver).defaults("request_bytes_max = \"64KiB\"");
    let onceward = builder.start().await;
    let http2 = reqwest::Client::builder().no_proxy().http2_prior_knowledge().build().unwrap();
    let url = format!("http://{}/hooks", onceward.address);
    let request = http2.post(&url).header("x-idempotency-key", "k");
    let declared = request.try_clone().unwrap().body(vec![b'x'; 800 * KIB]);
    let pieces = (0..80).map(|_| Ok::<_, std::convert::Infallible>(vec![b'x'; 10 * KIB]));
    let pieces = futures_util::stream::iter(pieces);
    let streamed = request.try_clone().unwrap().body(reqwest::Body::wrap_stream(pieces));
    for upload in [declared, streamed] {
        let reply = Reply::of(upload.send().await.unwrap()).await;
        reply.is_refused(413, "body-too-large");
    }
    receiver.was_called(0);
    let fits = request.body("x").send().await.unwrap();
    Reply::of(fits).await.is_executed(200);
    receiver.was_called(1);
}

/// A sender that writes before it reads sees the answer all the same.
#[tokio::test]
async fn an_answer_before_the_body_was_read_is_readable_after_800_kib() {
    let receiver = Receiver::that_answers(200, "ok").await;
    let onceward = Onceward::in_front_of(&receiver).start().await;
    let upload = big("k", 800 * KIB);
    for (upload, status, code) in [
        (upload.clone().to("/nowhere"), 404, "no-route"),
        (upload.clone().by("TRACE"), 405, "method-not-allowed"),
        (upload.clone().header("content_length", "5"), 400, "malformed"),
        (upload.header("expect", "the unexpected"), 417, "malformed"),
    ] {
        for bytes in [upload.raw(), chunked(&upload)] {
            let mut sender = onceward.connects().await;
            sender.writes(&bytes).await;
            let reply = sender.reads_reply().await;
            reply.is_refused(status, code);
            assert_eq!(reply.header("connection"), Some("close"), "{reply:?}");
        }
    }
    receiver.was_called(0);
}

/// A sender that waits for `100 Continue` is told to go on, or at once that its body is too long.
#[tokio::test]
async fn an_expectation_is_met_before_the_body_comes_and_not_for_one_that_is_too_long() {
    let receiver = Receiver::that_answers(200, "ok").await;
    let builder = Onceward::in_front_of(&receiver).defaults("request_bytes_max = \"4KiB\"");
    let onceward = builder.start().await;
    let asks = async |event: Event| {
        let mut sender = onceward.connects().await;
        let raw = event.header("expect", "100-continue").raw();
        let head = raw.windows(4).position(|bytes| bytes == b"\r\n\r\n").unwrap() + 4;
        sender.writes(&raw[..head]).await;
        let reply = sender.reads_reply().await;
        (sender, raw[head..].to_vec(), reply)
    };
    let (mut sender, body, reply) = asks(big("fits", 2 * KIB)).await;
    assert_eq!(reply.status, 100, "{reply:?}");
    sender.writes(&body).await;
    sender.reads_reply().await.is_executed(200);
    assert_eq!(receiver.seen()[0].header("expect"), None);
    let (_, _, reply) = asks(big("long", 5 * KIB)).await;
    reply.is_refused(413, "body-too-large");
    receiver.was_called(1);
}

/// A streamed answer is in memory too, for as long as its reader does not take it.
#[tokio::test]
async fn the_pieces_of_an_answer_that_nobody_reads_are_counted_and_given_back() {
    const ANSWER_BYTES: usize = 32 << 20;
    let receiver = Receiver::that(|_, _| Answer::new(200, vec![b'x'; ANSWER_BYTES]).into()).await;
    let little = "replay.body_bytes_max = \"1KiB\"";
    let onceward = Onceward::in_front_of(&receiver).defaults(little).start().await;
    let mut sender = onceward.connects().await;
    sender.writes(&event("evt_1").raw()).await;
    onceward.comes_to_count("onceward_buffered_bytes", 50_000.0).await;
    sender.reads_head().await;
    sender.reads_exactly(ANSWER_BYTES).await;
    onceward.comes_down_to("onceward_buffered_bytes", 0.0).await;
}
