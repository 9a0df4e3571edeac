//! A byte was written and no complete answer came: nobody knows, and nothing is sent again.

use std::time::Duration;

use tokio::io::AsyncReadExt as _;
use tokio::net::TcpListener;
use tokio::time::Instant;

use super::{HELD, SHORT, answered, is_held, standing, uncertain};
use crate::support::{Act, Answer, BareReceiver, Gate, Onceward, Receiver, Reply, event};

/// The receiver reads the request and does this. The sender gets 502, and the operation is held.
async fn breaks(act: Act, reason: &str, status: Option<u16>) {
    let receiver = Receiver::that(move |_, _| act.clone()).await;
    let onceward = Onceward::in_front_of(&receiver).expects_log(HELD).start().await;
    let reply = onceward.sends(event("evt_1")).await;
    reply.is_executed_as("upstream-broken", 502).comes_back();
    assert_eq!(standing(&onceward, &reply).await, uncertain(reason, status));
    is_held(&onceward, event("evt_1")).await;
    receiver.was_called(1);
    onceward.sends(event("evt_2")).await.is_executed_as("upstream-broken", 502);
    receiver.was_called(2);
}

fn raw(bytes: impl Into<Vec<u8>>) -> Act {
    Act::Raw(bytes.into())
}

#[tokio::test]
async fn a_close_without_an_answer_is_uncertain() {
    breaks(Act::Close, "connection-lost", None).await;
}

/// The sender comes back when the upstream can no longer be working on it.
#[tokio::test]
async fn retry_after_is_the_time_to_the_attempts_end_or_else_half_a_minute() {
    for (act, timeout, seconds) in
        [(Act::Close, "5s", 5), (Act::Close, "60s", 30), (Act::Hang, "1s", 30)]
    {
        let act_hangs = matches!(act, Act::Hang);
        let receiver = Receiver::that(move |_, _| act.clone()).await;
        let onceward = Onceward::in_front_of(&receiver)
            .defaults(&format!("attempt_timeout = \"{timeout}\""))
            .in_memory()
            .expects_log(HELD)
            .start()
            .await;
        let is_near = |reply: &Reply| {
            let found: u64 = reply.header("retry-after").unwrap().parse().unwrap();
            found <= seconds && found + 4 >= seconds
        };
        let reply = onceward.sends(event("evt_1")).await;
        // The attempt is closed a moment before its time is over by the store's clock.
        let copy = onceward.sends_until(&event("evt_1"), |copy| !act_hangs || is_near(copy)).await;
        for (reply, code) in [(reply, "upstream"), (copy, "uncertain")] {
            assert!(reply.problem()["type"].as_str().unwrap().contains(code), "{reply:?}");
            assert!(is_near(&reply), "{timeout}: {reply:?}");
        }
    }
}

#[tokio::test]
async fn a_reset_without_an_answer_is_uncertain() {
    breaks(Act::Reset, "connection-lost", None).await;
}

#[tokio::test]
async fn a_head_that_breaks_off_is_uncertain() {
    breaks(raw("HTTP/1.1 200 OK\r\ncontent-le"), "connection-lost", None).await;
}

#[tokio::test]
async fn a_body_shorter_than_its_length_is_uncertain_and_never_a_success() {
    let short = format!("HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\n{}", "x".repeat(40));
    breaks(raw(short), "answer-broke-off", Some(200)).await;
}

#[tokio::test]
async fn a_body_without_its_last_chunk_is_uncertain_and_never_a_success() {
    let cut = "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\r\nhello\r\n";
    breaks(raw(cut), "answer-broke-off", Some(200)).await;
}

#[tokio::test]
async fn a_chunk_without_a_size_is_uncertain() {
    let bad = "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nzz\r\nhello\r\n0\r\n\r\n";
    breaks(raw(bad), "answer-body-malformed", Some(200)).await;
}

/// Even a failure is only one if it came whole.
#[tokio::test]
async fn a_failure_that_breaks_off_is_uncertain() {
    let short = "HTTP/1.1 500 Oh\r\ncontent-length: 100\r\n\r\nshort";
    breaks(raw(short), "answer-broke-off", Some(500)).await;
}

#[tokio::test]
async fn garbage_is_uncertain() {
    breaks(raw("\u{16}\u{3}\u{1}garbage\r\n\r\n"), "not-http", None).await;
}

#[tokio::test]
async fn an_answer_without_a_head_is_uncertain() {
    breaks(raw("<html>HTTP/0.9 is not spoken here</html>\r\n"), "not-http", None).await;
}

/// RFC 9112, sections 6.1 and 6.3.
#[tokio::test]
async fn a_length_that_says_two_things_or_nothing_is_uncertain() {
    for head in [
        "HTTP/1.1 200 OK\r\ncontent-length: 2\r\ncontent-length: 3",
        "HTTP/1.1 200 OK\r\ncontent-length: 2, 3",
        "HTTP/1.1 200 OK\r\ncontent-length: two",
        "HTTP/1.1 200 OK\r\ncontent-length: -1",
        "HTTP/1.0 200 OK\r\ntransfer-encoding: chunked",
    ] {
        breaks(raw(format!("{head}\r\n\r\nabc")), "answer-length-unclear", None).await;
    }
}

#[tokio::test]
async fn a_head_without_end_is_uncertain_and_bounded() {
    let line = format!("x-long: {}\r\n", "x".repeat(1000));
    let endless = format!("HTTP/1.1 200 OK\r\n{}\r\n", line.repeat(1000));
    breaks(raw(endless), "answer-head-too-large", None).await;
}

/// An answer whose head has this many lines, most of them of 1 KB. They are about the connection:
/// the sender would not take as many.
fn head_of(lines: usize) -> String {
    let line = format!("x-line: {}\r\n", "x".repeat(1_000)).repeat(lines - 2);
    format!("HTTP/1.1 200 OK\r\nconnection: x-line\r\ncontent-length: 0\r\n{line}\r\n")
}

/// 200 lines of 200 KB are less than the built-in limits.
#[tokio::test]
async fn a_long_head_counts_up_to_the_limits_and_beyond_them_is_uncertain() {
    for (limits, lines, counts) in [
        ("", 200, true),
        ("answer_header_bytes_max = \"16KiB\"", 17, true),
        ("answer_header_bytes_max = \"16KiB\"", 19, false),
        ("answer_header_lines_max = 20", 20, true),
        ("answer_header_lines_max = 20", 21, false),
    ] {
        let receiver = Receiver::that(move |_, _| Act::RawThenStay(head_of(lines).into())).await;
        let onceward =
            Onceward::in_front_of(&receiver).limits(limits).expects_log(HELD).start().await;
        let reply = onceward.sends(event("evt_1")).await;
        let stands = standing(&onceward, &reply).await;
        if counts {
            assert_eq!(stands, answered(1, "succeeded", 200), "{limits}: {lines}");
        } else {
            reply.is_executed_as("upstream-broken", 502).comes_back();
            assert_eq!(stands, uncertain("answer-head-too-large", None), "{limits}: {lines}");
        }
    }
}

#[tokio::test]
async fn another_protocol_that_nobody_asked_for_is_uncertain() {
    let switch =
        "HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: other\r\n\r\n";
    breaks(Act::RawThenHang(switch.into()), "protocol-switched", None).await;
}

/// The trap of a receiver that takes a connection and drops it: if a byte was written, it may have
/// been read.
#[tokio::test]
async fn a_reset_after_the_first_byte_is_uncertain() {
    let receiver = BareReceiver::that(|mut bare| async move {
        let _first = bare.stream.read_u8().await.unwrap();
        bare.counts();
        bare.resets();
    })
    .await;
    let onceward = Onceward::in_front_of_url(&receiver.url()).expects_log(HELD).start().await;
    let reply = onceward.sends(event("evt_1")).await;
    reply.is_executed_as("upstream-broken", 502).comes_back();
    assert_eq!(standing(&onceward, &reply).await, uncertain("connection-lost", None));
    is_held(&onceward, event("evt_1")).await;
    receiver.was_called(1);
}

/// Resets as soon as it can, again and again: whatever was won of the race, an operation that was
/// sent is never sent again, and one that was not is free.
#[tokio::test]
async fn a_reset_at_once_is_uncertain_or_never_sent_and_nothing_between() {
    let receiver = BareReceiver::that(|bare| async move { bare.resets() }).await;
    let onceward = Onceward::in_front_of_url(&receiver.url()).expects_log(HELD).start().await;
    for round in 0..30 {
        let event = event(&format!("evt_{round}"));
        let reply = onceward.sends(event.clone()).await;
        let stands = standing(&onceward, &reply).await;
        assert_eq!(reply.status, 502);
        if stands["sent"] == true {
            reply.is_executed_as("upstream-broken", 502).comes_back();
            assert_eq!(stands, uncertain("connection-lost", None));
            is_held(&onceward, event).await;
        } else {
            reply.is_executed_as("upstream-unreachable", 502);
            assert_eq!(stands["outcome"], "failed", "{stands}");
        }
    }
}

/// At `attempt_timeout` the attempt is over, whatever the receiver does later.
#[tokio::test]
async fn an_answer_after_the_attempts_end_settles_nothing() {
    let closed = Gate::default();
    let go_on = Gate::default();
    let says = closed.clone();
    let waits = go_on.clone();
    let receiver = BareReceiver::that(move |mut bare| {
        let says = says.clone();
        let waits = waits.clone();
        async move {
            bare.reads_request().await.unwrap();
            bare.is_closed().await;
            says.lets_one_pass();
            waits.passes().await;
            bare.writes(&Answer::new(200, "late").raw()).await;
            says.lets_one_pass();
        }
    })
    .await;
    let onceward = Onceward::in_front_of_url(&receiver.url())
        .defaults(SHORT)
        .in_memory()
        .expects_log(HELD)
        .start()
        .await;
    let began = Instant::now();
    let reply = onceward.sends(event("evt_1")).await;
    assert!(began.elapsed() >= Duration::from_millis(990), "{:?}", began.elapsed());
    reply.is_executed_as("upstream-timeout", 504).comes_back();
    assert_eq!(standing(&onceward, &reply).await, uncertain("timed-out", None));
    closed.passes().await;
    go_on.opens();
    closed.passes().await;
    is_held(&onceward, event("evt_1")).await;
    assert_eq!(standing(&onceward, &reply).await, uncertain("timed-out", None));
    receiver.was_called(1);
}

/// The time is that of the whole answer, not of each byte.
#[tokio::test]
async fn an_answer_that_drips_ends_with_the_attempt() {
    let head = "HTTP/1.1 200 OK\r\n";
    let body = "HTTP/1.1 200 OK\r\ncontent-length: 100000\r\n\r\n";
    for (begun, status) in [(head, None), (body, Some(200))] {
        let closed = Gate::default();
        let says = closed.clone();
        let receiver = BareReceiver::that(move |mut bare| {
            let says = says.clone();
            async move {
                bare.reads_request().await.unwrap();
                bare.writes(begun.as_bytes()).await;
                bare.drips(b"x: y\r\n", Duration::from_millis(20)).await;
                says.lets_one_pass();
            }
        })
        .await;
        let onceward = Onceward::in_front_of_url(&receiver.url())
            .defaults(SHORT)
            .in_memory()
            .expects_log(HELD)
            .start()
            .await;
        let reply = onceward.sends(event("evt_1")).await;
        reply.is_executed_as("upstream-timeout", 504).comes_back();
        assert_eq!(standing(&onceward, &reply).await, uncertain("timed-out", status));
        is_held(&onceward, event("evt_1")).await;
        closed.passes().await;
        receiver.was_called(1);
    }
}

/// Interim answers without end do not keep an attempt alive.
#[tokio::test]
async fn interim_answers_without_end_end_with_the_attempt() {
    let receiver = BareReceiver::that(|mut bare| async move {
        bare.reads_request().await.unwrap();
        let hints = b"HTTP/1.1 103 Early Hints\r\nlink: </a>\r\n\r\n";
        bare.repeats(hints, Duration::from_millis(5)).await;
    })
    .await;
    let onceward = Onceward::in_front_of_url(&receiver.url())
        .defaults(SHORT)
        .in_memory()
        .expects_log(HELD)
        .start()
        .await;
    let reply = onceward.sends(event("evt_1")).await;
    reply.is_executed_as("upstream-timeout", 504).comes_back();
    assert_eq!(standing(&onceward, &reply).await, uncertain("timed-out", None));
    is_held(&onceward, event("evt_1")).await;
    receiver.was_called(1);
}

/// An answer counts if it is complete, however much of the request was read.
#[tokio::test]
async fn an_answer_before_the_whole_request_was_read_counts() {
    for (status, outcome) in [(200, "succeeded"), (413, "failed")] {
        let socket = tokio::net::TcpSocket::new_v4().unwrap();
        socket.set_recv_buffer_size(4096).unwrap();
        socket.bind("127.0.0.1:0".parse().unwrap()).unwrap();
        let listener: TcpListener = socket.listen(64).unwrap();
        let receiver = BareReceiver::on(listener, move |mut bare| async move {
            let _head = bare.stream.read(&mut [0; 1024]).await.unwrap();
            bare.counts();
            bare.writes(&Answer::new(status, "early").raw()).await;
            bare.is_closed().await;
        });
        let onceward = Onceward::in_front_of_url(&receiver.url())
            .defaults("request_bytes_max = \"16MiB\"")
            .start()
            .await;
        let long = crate::support::Event::bytes(vec![b'x'; 12 << 20]).keyed("long");
        let reply = onceward.sends(long).await;
        reply.is_executed(status);
        assert_eq!(reply.text(), "early");
        assert_eq!(standing(&onceward, &reply).await, answered(1, outcome, status));
        // What was left of the long request is not sent: its connection is closed.
        onceward.sends(event("evt_2")).await.is_executed(status);
        receiver.was_called(2);
    }
}

/// Where an answer ends must be known: by its length, its chunks, or its connection's end.
#[tokio::test]
async fn an_answer_in_a_coding_that_nobody_knows_is_uncertain() {
    for coding in ["identity", "gzip, chunked", "chunked, gzip", "chunked\r\ntransfer-encoding: x"]
    {
        let head = format!("HTTP/1.1 200 OK\r\ntransfer-encoding: {coding}\r\n\r\n0\r\n\r\n");
        breaks(raw(head), "answer-length-unclear", None).await;
    }
}
