//! The sender's connection does not own the work.
//!
//! Before its request is complete, nothing is claimed. After that the sender may be gone: the
//! attempt is made once, recorded, and the next copy gets its answer.

use std::io;
use std::net::SocketAddr;

use bytes::Bytes;
use futures_util::{StreamExt as _, stream};
use http_body_util::{BodyExt as _, Full, StreamBody};
use hyper::body::{Body, Frame, Incoming};
use hyper::client::conn::http2::{self, SendRequest};
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpStream;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use crate::support::http2::{Http2Sender, field, post};
use crate::support::{Act, Answer, Event, Gate, Onceward, RawSender, Receiver, event};

const BUFFERED: &str = "onceward_buffered_bytes";

/// The ways in which a sender leaves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Leaves {
    /// FIN.
    InGoodOrder,
    /// RST.
    ByReset,
}

const WAYS: [Leaves; 2] = [Leaves::InGoodOrder, Leaves::ByReset];

impl Leaves {
    fn take(self, sender: RawSender) {
        match self {
            Self::InGoodOrder => sender.hangs_up(),
            Self::ByReset => sender.resets(),
        }
    }
}

/// Where the head of a request ends.
fn head_length(raw: &[u8]) -> usize {
    raw.windows(4).position(|window| window == b"\r\n\r\n").unwrap() + 4
}

/// The event is new to the proxy, and its copies get the answer of its one attempt.
async fn is_still_new(onceward: &Onceward, copy: Event, receiver: &Receiver, before: usize) {
    receiver.was_called(before);
    let first = onceward.sends(copy.clone()).await;
    first.is_executed(200);
    let operation = onceward.operation(&first.operation()).await.unwrap();
    assert_eq!(operation["attempts_total"], 1, "nothing was claimed before: {operation}");
    onceward.sends(copy).await.is_replayed(200);
    receiver.was_called(before + 1);
}

/// The event was forwarded though its sender has gone, and its copy gets the answer.
async fn was_done_once(onceward: &Onceward, copy: Event, receiver: &Receiver, before: usize) {
    receiver.has_counted(before + 1).await;
    let id = operation_of_the_last(receiver);
    onceward.comes_to_be(&id, "succeeded").await;
    onceward.sends(copy).await.is_replayed(200);
    receiver.was_called(before + 1);
}

/// Whether or not the event was forwarded when its sender had gone, it is done with its next copy.
async fn is_done_once(onceward: &Onceward, copy: Event, receiver: &Receiver, before: usize) {
    let next = onceward.sends_until(&copy, |copy| copy.disposition() != "in-flight").await;
    match next.disposition() {
        "executed" => next.is_executed(200),
        _ => next.is_replayed(200),
    };
    receiver.was_called(before + 1);
}

fn operation_of_the_last(receiver: &Receiver) -> String {
    receiver.seen().last().unwrap().header("onceward-operation").unwrap().to_owned()
}

#[tokio::test]
async fn a_sender_that_leaves_before_its_request_is_complete_has_claimed_nothing() {
    let receiver = Receiver::that_answers(200, "done\n").await;
    let onceward = Onceward::in_front_of(&receiver).start().await;
    let mut before = 0;
    for leaves in WAYS {
        for stage in
            ["no byte", "half a head", "all but the end of the head", "head", "half a body"]
        {
            let copy = event(&format!("evt {stage} {leaves:?}"));
            let raw = copy.raw();
            let head = head_length(&raw);
            let cut = match stage {
                "no byte" => 0,
                "half a head" => head / 2,
                "all but the end of the head" => head - 1,
                "head" => head,
                _ => usize::midpoint(head, raw.len()),
            };
            let mut sender = onceward.connects().await;
            sender.writes(&raw[..cut]).await;
            if cut > head {
                onceward.comes_to_count(BUFFERED, 1.0).await;
            }
            leaves.take(sender);
            is_still_new(&onceward, copy, &receiver, before).await;
            before += 1;
        }
    }
}

/// One byte is missing.
#[tokio::test]
async fn a_body_without_its_last_byte_is_not_a_request() {
    let receiver = Receiver::that_answers(200, "done\n").await;
    let onceward = Onceward::in_front_of(&receiver).start().await;
    for (before, leaves) in WAYS.into_iter().enumerate() {
        let copy = event(&format!("evt {leaves:?}"));
        let raw = copy.raw();
        let mut sender = onceward.connects().await;
        sender.writes(&raw[..raw.len() - 1]).await;
        leaves.take(sender);
        is_still_new(&onceward, copy, &receiver, before).await;
    }
}

#[tokio::test]
async fn a_sender_that_leaves_with_the_last_byte_of_its_request_is_served_all_the_same() {
    let receiver = Receiver::that_answers(200, "done\n").await;
    let onceward = Onceward::in_front_of(&receiver).start().await;
    for round in 0..20 {
        let copy = event(&format!("evt_{round}"));
        let raw = copy.raw();
        let mut sender = onceward.connects().await;
        if round % 2 == 0 {
            // The head goes ahead, and the body comes with the end.
            let (head, body) = raw.split_at(head_length(&raw) + 1);
            sender.writes(head).await;
            onceward.comes_to_count(BUFFERED, 1.0).await;
            sender.writes(body).await;
        } else {
            sender.writes(&raw).await;
        }
        sender.hangs_up();
        was_done_once(&onceward, copy, &receiver, round).await;
    }
}

/// A reset may overtake what was written before it: then the request never was complete.
#[tokio::test]
async fn a_sender_that_resets_with_the_last_byte_of_its_request_is_served_once_or_not_at_all() {
    let receiver = Receiver::that_answers(200, "done\n").await;
    let onceward = Onceward::in_front_of(&receiver).start().await;
    for round in 0..40 {
        let copy = event(&format!("evt_{round}"));
        let mut sender = onceward.connects().await;
        sender.writes(&copy.raw()).await;
        sender.resets();
        is_done_once(&onceward, copy, &receiver, round).await;
    }
}

/// It closes its half of the connection, as some clients do behind a request.
#[tokio::test]
async fn a_sender_that_only_says_that_it_sends_no_more_gets_its_answer() {
    let gate = Gate::default();
    let receiver = Receiver::behind(&gate, 200, "done\n").await;
    let onceward = Onceward::in_front_of(&receiver).start().await;
    let mut sender = onceward.connects().await;
    sender.writes(&event("evt_1").raw()).await;
    sender.0.shutdown().await.unwrap();
    receiver.has_counted(1).await;
    gate.opens();
    let answer = String::from_utf8(sender.reads_to_the_end().await).unwrap();
    assert!(
        answer.starts_with("HTTP/1.1 200 ") && answer.ends_with("\r\n\r\ndone\n"),
        "{answer:?}"
    );
    was_done_once(&onceward, event("evt_1"), &receiver, 0).await;
}

#[tokio::test]
async fn a_sender_that_leaves_while_the_receiver_works_does_not_stop_the_work() {
    let gate = Gate::default();
    let receiver = Receiver::behind(&gate, 200, "done\n").await;
    let onceward = Onceward::in_front_of(&receiver).start().await;
    for (before, leaves) in WAYS.into_iter().enumerate() {
        let copy = event(&format!("evt {leaves:?}"));
        let mut sender = onceward.connects().await;
        sender.writes(&copy.raw()).await;
        receiver.has_counted(before + 1).await;
        leaves.take(sender);
        let second = onceward.sends(copy.clone()).await;
        second.is_in_flight(409);
        assert_eq!(onceward.state(&second.operation()).await, "in_flight");
        gate.lets_one_pass();
        was_done_once(&onceward, copy, &receiver, before).await;
    }
}

/// Nobody hears of a failure; the next copy is a new attempt all the same.
#[tokio::test]
async fn a_failure_is_recorded_though_its_sender_has_gone() {
    let gate = Gate::default();
    let held = gate.clone();
    let receiver = Receiver::that(move |_, copies| {
        let status = if copies == 0 { 500 } else { 200 };
        Act::When(held.clone(), Box::new(Answer::new(status, "end\n").into()))
    })
    .await;
    let onceward = Onceward::in_front_of(&receiver).start().await;
    let mut sender = onceward.connects().await;
    sender.writes(&event("evt_1").raw()).await;
    receiver.has_counted(1).await;
    sender.resets();
    gate.opens();
    onceward.comes_to_be(&operation_of_the_last(&receiver), "failed").await;
    onceward.sends(event("evt_1")).await.is_executed(200);
    receiver.was_called(2);
}

/// An answer that is kept: it is recorded before its first byte goes out.
#[tokio::test]
async fn a_sender_that_leaves_with_half_of_the_answer_has_had_it_recorded() {
    let long: Vec<u8> = (0..200_000_u32).map(|i| i.to_le_bytes()[0]).collect();
    let answer = Answer::new(200, long.clone());
    let receiver = Receiver::that(move |_, _| answer.clone().into()).await;
    let onceward = Onceward::in_front_of(&receiver).start().await;
    for (before, leaves) in WAYS.into_iter().enumerate() {
        let copy = event(&format!("evt {leaves:?}"));
        let mut sender = onceward.connects().await;
        sender.writes(&copy.raw()).await;
        sender.reads_until(b"\r\n\r\n").await;
        assert_eq!(onceward.state(&operation_of_the_last(&receiver)).await, "succeeded");
        leaves.take(sender);
        let second = onceward.sends(copy).await;
        second.is_replayed(200);
        assert!(second.body == long, "the whole answer");
        receiver.was_called(before + 1);
    }
}

/// An answer that is too long to keep: it goes on to its end without its reader.
#[tokio::test]
async fn a_long_answer_whose_reader_has_gone_is_read_to_its_end() {
    let answer = |status| Answer::new(status, vec![b'x'; 8 * 1024 * 1024]);
    let receiver = Receiver::that(move |seen, copies| match (seen.target.as_str(), copies) {
        ("/hooks/fails", 0) => answer(500).into(),
        ("/hooks/fails", _) => Answer::new(200, "done\n").into(),
        _ => answer(200).into(),
    })
    .await;
    let onceward = Onceward::in_front_of(&receiver).start().await;
    let mut before = 0;
    for leaves in WAYS {
        let copy = event(&format!("evt {leaves:?}"));
        let mut sender = onceward.connects().await;
        sender.writes(&copy.raw()).await;
        sender.reads_until(b"\r\n\r\nxxx").await;
        assert_eq!(onceward.state(&operation_of_the_last(&receiver)).await, "succeeded");
        leaves.take(sender);
        let second = onceward.sends(copy.clone()).await;
        second.is_replayed(200);
        assert_eq!(second.header("onceward-body"), Some("omitted"), "{second:?}");
        before += 1;
        receiver.was_called(before);

        let copy = event(&format!("evt fails {leaves:?}")).to("/hooks/fails");
        let mut sender = onceward.connects().await;
        sender.writes(&copy.raw()).await;
        sender.reads_until(b"\r\n\r\nxxx").await;
        leaves.take(sender);
        onceward.comes_to_be(&operation_of_the_last(&receiver), "failed").await;
        onceward.sends(copy).await.is_executed(200);
        before += 2;
        receiver.was_called(before);
    }
}

/// A connection on HTTP/2.
struct Http2<B> {
    sender: SendRequest<B>,
    driver: JoinHandle<hyper::Result<()>>,
}

impl<B> Http2<B>
where
    B: Body<Data = Bytes> + Unpin + Send + 'static,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    async fn connect(address: SocketAddr) -> Self {
        let tcp = TokioIo::new(TcpStream::connect(address).await.unwrap());
        let (sender, connection) = http2::handshake(TokioExecutor::new(), tcp).await.unwrap();
        Self { sender, driver: tokio::spawn(connection) }
    }

    fn sends(
        &mut self,
        path: &str,
        body: B,
    ) -> impl Future<Output = hyper::Result<http::Response<Incoming>>> + use<B> {
        let request = http::Request::post(format!("http://hooks.example{path}"))
            .header("content-type", "application/json")
            .body(body)
            .unwrap();
        self.sender.send_request(request)
    }

    /// Drops the whole connection.
    async fn breaks(self) {
        self.driver.abort();
        assert!(self.driver.await.is_err(), "it was open");
    }
}

#[tokio::test]
async fn a_stream_that_is_reset_before_its_body_is_complete_has_claimed_nothing() {
    let receiver = Receiver::that_answers(200, "done\n").await;
    let onceward = Onceward::in_front_of(&receiver).start().await;
    for (before, whole_connection) in [false, true].into_iter().enumerate() {
        let copy = event(&format!("evt {whole_connection}"));
        let half = Bytes::copy_from_slice(&copy.body[..copy.body.len() / 2]);
        let (resets, reset) = oneshot::channel::<()>();
        let reset = async move { Err(io::Error::other(format!("{:?}", reset.await))) };
        let half = stream::iter([Ok(Frame::data(half))]).chain(stream::once(reset));
        let mut connection = Http2::connect(onceward.address).await;
        let answer = tokio::spawn(connection.sends("/hooks", StreamBody::new(Box::pin(half))));
        onceward.comes_to_count(BUFFERED, 1.0).await;
        if whole_connection {
            connection.breaks().await;
        } else {
            resets.send(()).unwrap();
            assert!(answer.await.unwrap().is_err(), "the stream was reset");
        }
        is_still_new(&onceward, copy, &receiver, before).await;
    }
}

#[tokio::test]
async fn a_stream_that_is_reset_while_the_receiver_works_does_not_stop_the_work() {
    let gate = Gate::default();
    let receiver = Receiver::behind(&gate, 200, "done\n").await;
    let onceward = Onceward::in_front_of(&receiver).start().await;
    for (before, whole_connection) in [false, true].into_iter().enumerate() {
        let copy = event(&format!("evt {whole_connection}"));
        let mut connection = Http2::connect(onceward.address).await;
        let body = Full::new(Bytes::from(copy.body.clone()));
        let answer = tokio::spawn(connection.sends("/hooks", body));
        receiver.has_counted(before + 1).await;
        if whole_connection {
            connection.breaks().await;
        } else {
            answer.abort();
            onceward.logs("the sender has gone before it was answered").await;
        }
        onceward.sends(copy.clone()).await.is_in_flight(409);
        gate.lets_one_pass();
        was_done_once(&onceward, copy, &receiver, before).await;
    }
}

#[tokio::test]
async fn a_stream_that_is_reset_with_half_of_the_answer_has_had_it_recorded() {
    let long = vec![b'x'; 200_000];
    let answer = Answer::new(200, long.clone());
    let receiver = Receiver::that(move |_, _| answer.clone().into()).await;
    let onceward = Onceward::in_front_of(&receiver).start().await;
    let mut connection = Http2::connect(onceward.address).await;
    let copy = event("evt_1");
    let body = Full::new(Bytes::from(copy.body.clone()));
    let mut answer = connection.sends("/hooks", body).await.unwrap();
    answer.body_mut().frame().await.unwrap().unwrap();
    assert_eq!(onceward.state(&operation_of_the_last(&receiver)).await, "succeeded");
    drop(answer);
    let second = onceward.sends(copy).await;
    second.is_replayed(200);
    assert!(second.body == long, "the whole answer");
    receiver.was_called(1);
}

/// What comes behind a request in the same piece.
async fn asks_with(onceward: &Onceward, copy: &Event, behind: &[u8]) -> Http2Sender {
    let mut sender = Http2Sender::connects(onceward.address, 1 << 16).await;
    let mut bytes = sender.request(&post("/hooks"), 100, Some(&copy.body));
    bytes.extend_from_slice(behind);
    sender.writes(&bytes).await;
    sender
}

/// On HTTP/2 the whole request comes, and with it the end of the connection.
#[tokio::test]
async fn a_connection_that_ends_with_its_request_is_served_all_the_same() {
    let receiver = Receiver::that_answers(200, "done\n").await;
    let onceward = Onceward::in_front_of(&receiver).start().await;
    for number in 0..20 {
        let copy = event(&format!("evt_{number}"));
        asks_with(&onceward, &copy, b"").await.hangs_up();
        was_done_once(&onceward, copy, &receiver, number).await;
    }
}

/// The request is complete; what is behind it is not HTTP/2.
#[tokio::test]
async fn a_request_with_garbage_behind_it_is_served_and_answered_all_the_same() {
    let receiver = Receiver::that_answers(200, "done\n").await;
    let onceward = Onceward::in_front_of(&receiver).start().await;
    for number in 0..20 {
        let copy = event(&format!("evt_{number}"));
        let mut sender = asks_with(&onceward, &copy, b"GET / HTTP/1.1\r\n\r\n").await;
        assert_eq!(sender.reads_body(1).await, "done\n");
        sender.is_closed().await;
        was_done_once(&onceward, copy, &receiver, number).await;
    }
    let malformed = "onceward_refusals_total{route=\"none\",code=\"malformed\"}";
    assert_eq!(onceward.metric(malformed).await, 20.0);
}

/// h2 finds an error that only it can find, here a window that grows by nothing (RFC 9113, section
/// 6.9), maybe before the request was handed over.
#[tokio::test]
async fn a_request_with_an_error_behind_it_is_served_once_or_not_at_all() {
    let receiver = Receiver::that_answers(200, "done\n").await;
    let onceward = Onceward::in_front_of(&receiver).start().await;
    for round in 0..40 {
        let copy = event(&format!("evt_{round}"));
        let error = b"\0\0\x04\x08\0\0\0\0\0\0\0\0\0";
        asks_with(&onceward, &copy, error).await.is_closed().await;
        is_done_once(&onceward, copy, &receiver, round).await;
    }
}

/// For hyper a reset with `NO_ERROR` is the end of a body (RFC 9113, 8.1 has it of servers). Half an
/// event is none, whether or not its head says how long it is.
#[tokio::test]
async fn a_request_that_is_reset_in_its_body_is_not_forwarded_whatever_the_code() {
    let receiver = Receiver::that_answers(200, "ok").await;
    let onceward = Onceward::in_front_of(&receiver).start().await;
    let refused = "onceward_refusals_total{route=\"hooks\",code=\"malformed\"}";
    let mut count = 0.0;
    for code in [0, 2, 8] {
        for length in [None, Some("1000")] {
            let key = format!("k-{code}-{}", length.is_some());
            let mut block = [post("/hooks"), field("x-idempotency-key", &key)].concat();
            if let Some(length) = length {
                block.extend(field("content-length", length));
            }
            let mut sender = Http2Sender::connects(onceward.address, 1 << 16).await;
            let stream = sender.asks(&block, None).await;
            sender.sends_piece(stream, b"{\"id\":\"evt").await;
            sender.resets_stream(stream, code).await;
            count += 1.0;
            onceward.comes_to_count(refused, count).await;
            let before = receiver.seen().len();
            assert!(onceward.sends(event("evt").keyed(&key)).await.status == 200, "{key}");
            receiver.was_called(before + 1);
        }
    }
    receiver.was_called(6);
}
