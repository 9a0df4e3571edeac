//! Heads have the same limits on HTTP/1.1 and HTTP/2, and no refusal is without a reason.

use bytes::Bytes;
use http_body_util::{BodyExt as _, Full};
use hyper_util::rt::{TokioExecutor, TokioIo};
use serde_json::Value;
use tokio::net::TcpStream;

use super::{KIB, reached};
use crate::support::http2::{Http2Sender, LAST_KEPT, RST_STREAM, field, kept_field, post};
use crate::support::{Event, Gate, Onceward, Receiver, Reply, event};

fn refusals(code: &str) -> String {
    format!("onceward_refusals_total{{route=\"none\",code=\"{code}\"}}")
}

/// A request with so many lines; `host`, `content-type` and `content-length` are among them.
fn of_lines(lines: usize) -> Event {
    (3..lines).fold(event("evt"), |event, number| event.header(&format!("x-{number}"), "v"))
}

/// The same on HTTP/2, where `:authority` counts as `host`.
fn block_of_lines(lines: usize) -> Vec<u8> {
    let fields = (1..lines).flat_map(|number| field(&format!("x-{number}"), "v"));
    post("/hooks").into_iter().chain(fields).collect()
}

fn is_problem(body: &str, status: u16, code: &str) {
    let problem: Value = serde_json::from_str(body).unwrap();
    assert_eq!(problem["type"], format!("urn:onceward:problem:{code}"), "{problem}");
    assert_eq!(problem["status"], status, "{problem}");
}

async fn answered_on_http2(onceward: &Onceward, block: &[u8]) -> String {
    let mut sender = Http2Sender::connects(onceward.address, 1 << 16).await;
    let stream = sender.asks(block, Some(&event("evt").body)).await;
    sender.reads_body(stream).await
}

async fn refused_on_http1(onceward: &Onceward, bytes: &[u8]) -> Reply {
    let mut sender = onceward.connects().await;
    sender.writes(bytes).await;
    let reply = sender.reads_reply().await;
    assert_eq!(reply.header("connection"), Some("close"), "{reply:?}");
    assert_eq!(sender.reads_to_the_end().await, b"");
    reply
}

#[tokio::test]
async fn as_many_lines_as_allowed_pass_and_one_more_is_431_on_both_versions() {
    let receiver = Receiver::that_answers(200, "ok").await;
    let onceward = Onceward::in_front_of(&receiver).start().await;
    let mut sender = onceward.connects().await;
    sender.writes(&of_lines(256).raw()).await;
    sender.reads_reply().await.is_executed(200);
    let reply = refused_on_http1(&onceward, &of_lines(257).raw()).await;
    reply.is_refused(431, "head-too-large");

    assert_eq!(answered_on_http2(&onceward, &block_of_lines(256)).await, "ok");
    let body = answered_on_http2(&onceward, &block_of_lines(257)).await;
    is_problem(&body, 431, "head-too-large");

    receiver.was_called(1);
    onceward.counts(&reached("header_lines_max"), 2.0).await;
    onceward.counts(&refusals("head-too-large"), 2.0).await;
    onceward.logs("refused before it was read").await;
}

#[tokio::test]
async fn a_head_that_is_too_long_is_431_on_both_versions() {
    let receiver = Receiver::that_answers(200, "ok").await;
    let builder = Onceward::in_front_of(&receiver).limits("header_bytes_max = \"8KiB\"");
    let onceward = builder.start().await;
    let long = |bytes: usize| event("evt").header("x-long", &"v".repeat(bytes));
    let reply = refused_on_http1(&onceward, &long(9 * KIB).raw()).await;
    reply.is_refused(431, "head-too-large");
    let block = |bytes| [post("/hooks"), field("x-long", &"v".repeat(bytes))].concat();
    assert_eq!(answered_on_http2(&onceward, &block(7 * KIB)).await, "ok");
    let body = answered_on_http2(&onceward, &block(9 * KIB)).await;
    is_problem(&body, 431, "head-too-large");
    receiver.was_called(1);
    onceward.counts(&reached("header_bytes_max"), 2.0).await;
}

/// A head that is far too long is refused as on HTTP/1.1, and other streams go on.
#[tokio::test]
async fn a_head_that_is_far_too_long_gets_a_problem_on_http2_too() {
    let gate = Gate::default();
    let receiver = Receiver::behind(&gate, 200, "ok").await;
    let onceward = Onceward::in_front_of(&receiver).start().await;
    let stream = TokioIo::new(TcpStream::connect(onceward.address).await.unwrap());
    let shaken = hyper::client::conn::http2::handshake(TokioExecutor::new(), stream).await;
    let (mut sender, connection) = shaken.unwrap();
    tokio::spawn(connection);
    let mut asks = |long: &str| {
        let request = http::Request::post("http://hooks.example/hooks")
            .header("x-long", long)
            .body(Full::new(Bytes::from(event("evt").body)));
        sender.send_request(request.unwrap())
    };
    let other = tokio::spawn(asks("short"));
    receiver.has_counted(1).await;
    for kib in [65, 140, 240, 500, 1000] {
        let refused = asks(&"v".repeat(kib * KIB)).await.unwrap();
        assert_eq!(refused.status(), 431, "{kib} KiB");
        assert_eq!(refused.headers()["onceward-disposition"], "refused");
        assert_eq!(refused.headers()["content-type"], "application/problem+json");
        let problem = refused.into_body().collect().await.unwrap().to_bytes();
        is_problem(std::str::from_utf8(&problem).unwrap(), 431, "head-too-large");
    }
    gate.opens();
    assert_eq!(other.await.unwrap().unwrap().status(), 200);
    onceward.counts(&reached("header_bytes_max"), 5.0).await;
    onceward.counts(&refusals("head-too-large"), 5.0).await;
    receiver.was_called(1);
}

/// RFC 9113, section 6.10 sets no least size for the pieces of a head.
#[tokio::test]
async fn a_head_may_come_in_pieces_of_any_size() {
    let receiver = Receiver::that_answers(200, "ok").await;
    let onceward = Onceward::in_front_of(&receiver).start().await;
    let mut sender = Http2Sender::connects(onceward.address, 1 << 16).await;
    let body = event("evt").body;
    let block = |kib| [post("/hooks"), field("x-long", &"v".repeat(kib * KIB))].concat();
    for piece in [1, 100, 10_000] {
        let stream = sender.asks_in_pieces(&block(60), piece, Some(&body)).await;
        assert_eq!(sender.reads_body(stream).await, "ok", "in pieces of {piece}");
        let stream = sender.asks_in_pieces(&block(200), piece, Some(&body)).await;
        is_problem(&sender.reads_body(stream).await, 431, "head-too-large");
    }
    onceward.counts(&refusals("head-too-large"), 3.0).await;
    assert_eq!(onceward.metric(&refusals("malformed")).await, 0.0);
}

/// The block of a head that is small on its way, and has as many fields of 4,000 bytes.
fn block_of_kept_fields(fields: usize) -> Vec<u8> {
    let mut block = [post("/hooks"), kept_field("x-kept", &"v".repeat(4_000))].concat();
    block.extend(std::iter::repeat_n(LAST_KEPT, fields));
    block
}

/// h2 answers such a head by itself, without a body, and resets the stream; other streams go on.
#[tokio::test]
async fn what_http2_can_only_reset_is_logged_and_counted() {
    let receiver = Receiver::that_answers(200, "ok").await;
    let onceward = Onceward::in_front_of(&receiver).start().await;
    let mut sender = Http2Sender::connects(onceward.address, 1 << 16).await;
    let stream = sender.asks(&block_of_kept_fields(400), None).await;
    while sender.reads_frame().await.kind != RST_STREAM {}
    onceward.comes_to_count(&refusals("head-too-large"), 1.0).await;
    onceward.counts(&reached("header_bytes_max"), 1.0).await;
    // A field of a connection has no place on HTTP/2 (RFC 9113, 8.2.2).
    let malformed = [post("/hooks"), field("connection", "close")].concat();
    let stream = sender.asks(&malformed, None).await - stream;
    assert_eq!(stream, 2);
    while sender.reads_frame().await.kind != RST_STREAM {}
    onceward.comes_to_count(&refusals("malformed"), 1.0).await;
    onceward.logs("refused before it was read").await;
    let stream = sender.asks(&post("/hooks"), Some(&event("evt").body)).await;
    assert_eq!(sender.reads_body(stream).await, "ok");
    receiver.was_called(1);
}

/// What more than that comes of a head is not decoded, so nothing that follows it can be.
#[tokio::test]
async fn a_head_that_ends_its_connection_is_logged_and_counted_as_too_large() {
    let long = [post("/hooks"), field("x-long", &"v".repeat(1200 * KIB))].concat();
    for block in [long, block_of_kept_fields(2_000)] {
        let receiver = Receiver::that_answers(200, "ok").await;
        let onceward = Onceward::in_front_of(&receiver).start().await;
        let mut sender = Http2Sender::connects(onceward.address, 1 << 16).await;
        sender.asks(&block, None).await;
        sender.is_closed().await;
        onceward.comes_to_count(&refusals("head-too-large"), 1.0).await;
        onceward.logs("refused before it was read").await;
        onceward.counts(&reached("header_bytes_max"), 1.0).await;
        assert_eq!(onceward.metric(&refusals("malformed")).await, 0.0);
    }
}

/// A request that is complete is answered before its connection ends.
#[tokio::test]
async fn what_is_served_is_answered_though_a_later_head_has_no_end() {
    let gate = Gate::default();
    let receiver = Receiver::behind(&gate, 200, "ok").await;
    let onceward = Onceward::in_front_of(&receiver).start().await;
    let mut sender = Http2Sender::connects(onceward.address, 1 << 16).await;
    let stream = sender.asks(&post("/hooks"), Some(&event("evt").body)).await;
    receiver.has_counted(1).await;
    let endless = [post("/hooks"), field("x-long", &"v".repeat(1200 * KIB))].concat();
    sender.asks(&endless, None).await;
    onceward.comes_to_count(&refusals("head-too-large"), 1.0).await;
    gate.opens();
    assert_eq!(sender.reads_body(stream).await, "ok");
    sender.is_closed().await;
}

#[tokio::test]
async fn what_is_not_http_gets_a_problem_too() {
    let receiver = Receiver::that_answers(200, "ok").await;
    let onceward = Onceward::in_front_of(&receiver).start().await;
    let broken: [&[u8]; 5] = [
        b"POST /hooks HTTP/1.1\r\nhost : h\r\n\r\n",
        b"POST /hooks HTTP/3.1\r\nhost: h\r\n\r\n",
        b"P\0ST /hooks HTTP/1.1\r\nhost: h\r\n\r\n",
        b"POST /hooks HTTP/1.1\r\nhost: h\r\ncontent-length: five\r\n\r\n",
        b"POST /hooks HTTP/1.1\r\nhost: h\r\ntransfer-encoding: gzip\r\n\r\n",
    ];
    for bytes in broken {
        let reply = refused_on_http1(&onceward, bytes).await;
        reply.is_refused(400, "malformed");
    }
    onceward.counts(&refusals("malformed"), 5.0).await;
    // Behind an answer on the same connection, and pipelined behind it.
    for pause in [true, false] {
        let mut sender = onceward.connects().await;
        let first = event("evt").raw();
        if pause {
            sender.writes(&first).await;
            sender.reads_answer().await;
            sender.writes(broken[0]).await;
        } else {
            sender.writes(&[&first, broken[0]].concat()).await;
            sender.reads_answer().await;
        }
        sender.reads_answer().await.is_refused(400, "malformed");
    }
    receiver.was_called(1);
    onceward.logs_times("refused before it was read", 7).await;
    onceward.counts(&refusals("malformed"), 7.0).await;
}

/// hyper's own answers are told from those that the service has given.
#[tokio::test]
async fn an_answer_of_the_upstream_with_the_same_status_is_passed_on_as_it_is() {
    let receiver = Receiver::that_answers(431, "mine").await;
    let onceward = Onceward::in_front_of(&receiver).start().await;
    let mut sender = onceward.connects().await;
    for key in ["a", "b"] {
        sender.writes(&event("evt").keyed(key).raw()).await;
        let reply = sender.reads_answer().await;
        assert_eq!((reply.status, reply.text()), (431, "mine".to_owned()));
    }
}

#[tokio::test]
async fn a_request_for_whose_head_there_is_no_memory_is_told_to_come_back() {
    let receiver = Receiver::that_answers(200, "ok").await;
    let limits = "buffered_bytes_max = \"1MiB\"\nbody_timeout = \"120s\"";
    let onceward = Onceward::in_front_of(&receiver).limits(limits).start().await;
    let mut pending = Vec::new();
    while onceward.metric(&reached("buffered_bytes_max")).await == 0.0 {
        let mut sender = onceward.connects().await;
        let raw = event("evt").raw();
        sender.writes(&raw[..raw.len() - 1]).await;
        pending.push(sender);
        assert!(pending.len() < 100);
    }
    onceward.sends(event("evt")).await.is_refused(503, "overloaded").comes_back();
    let mut sender = Http2Sender::connects(onceward.address, 1 << 16).await;
    let stream = sender.asks(&post("/hooks"), Some(&event("evt").body)).await;
    is_problem(&sender.reads_body(stream).await, 503, "overloaded");
    receiver.was_called(0);
    drop(pending);
    onceward.comes_down_to("onceward_buffered_bytes", 0.0).await;
    onceward.sends(event("evt")).await.is_executed(200);
}

/// hyper refuses these by itself: some as a head that is too large, some as malformed.
#[tokio::test]
async fn a_length_that_no_body_can_have_is_413() {
    let receiver = Receiver::that_answers(200, "ok").await;
    let onceward = Onceward::in_front_of(&receiver).start().await;
    let lengths = [
        "18446744073709551613",
        "18446744073709551614",
        "18446744073709551615",
        "18446744073709551616",
        "99999999999999999999999",
    ];
    for (number, length) in lengths.into_iter().enumerate() {
        let line = format!("POST /hooks HTTP/1.1\r\nhost: h\r\ncontent-length: {length}\r\n\r\n");
        let mut sender = onceward.connects().await;
        if number % 2 == 0 {
            sender.writes(&event(&format!("evt_{number}")).raw()).await;
            sender.reads_answer().await.is_executed(200);
        }
        sender.writes(line.as_bytes()).await;
        let reply = sender.reads_answer().await;
        reply.is_refused(413, "body-too-large");
        assert_eq!(reply.header("connection"), Some("close"), "{reply:?}");
    }
    assert_eq!(onceward.metric(&reached("header_lines_max")).await, 0.0);
    assert_eq!(onceward.metric(&reached("header_bytes_max")).await, 0.0);
    // The line begins in what is read to know the protocol.
    let short = b"PUT / HTTP/1.1\r\nContent-Length: 18446744073709551615\r\nhost: h\r\n\r\n";
    refused_on_http1(&onceward, short).await.is_refused(413, "body-too-large");
    // What is no number is no length.
    for length in ["-18446744073709551615", "18446744073709551615x"] {
        let line = format!("POST /hooks HTTP/1.1\r\nhost: h\r\ncontent-length: {length}\r\n\r\n");
        let reply = refused_on_http1(&onceward, line.as_bytes()).await;
        reply.is_refused(400, "malformed");
    }
    receiver.was_called(3);
}

#[tokio::test]
async fn a_target_that_is_too_long_is_told_as_that_and_not_as_the_limit_of_heads() {
    let receiver = Receiver::that_answers(200, "ok").await;
    let route = "[routes.long]\npath = \"/l/*\"\nupstream = \"http://127.0.0.1:9/longer\"\n";
    let builder = Onceward::in_front_of(&receiver).limits("header_bytes_max = \"256KiB\"");
    let onceward = builder.routes(route).start().await;
    let of = |start: &str, bytes: usize| {
        let target = format!("{start}{}", "a".repeat(bytes - start.len()));
        format!("GET {target} HTTP/1.1\r\nhost: h\r\n\r\n").into_bytes()
    };
    let mut sender = onceward.connects().await;
    sender.writes(&of("/hooks?", 65_534)).await;
    sender.reads_reply().await.is_passed(200);
    let reply = refused_on_http1(&onceward, &of("/hooks?", 65_535)).await;
    reply.is_refused(431, "head-too-large");
    let detail = reply.problem()["detail"].as_str().unwrap().to_owned();
    assert!(detail.contains("target") && detail.contains("65534"), "{detail}");
    assert_eq!(onceward.metric(&reached("header_bytes_max")).await, 0.0);
    // The upstream's own path comes before what is left of it.
    let mut sender = onceward.connects().await;
    sender.writes(&of("/l/", 65_530)).await;
    let reply = sender.reads_reply().await;
    reply.is_refused(400, "malformed");
    assert!(reply.problem()["detail"].as_str().unwrap().contains("65534"), "{reply:?}");
    receiver.was_called(1);
}
