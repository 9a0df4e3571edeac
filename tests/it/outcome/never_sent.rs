//! Provably nothing was sent: the attempt has failed, and the next copy is a new one, at once.

use std::sync::{Arc, Mutex};

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpSocket};

use super::{HELD, SHORT, answered, never_sent, standing, uncertain};
use crate::support::{Answer, BareReceiver, Gate, Onceward, Receiver, event};

#[tokio::test]
async fn a_refused_connection_is_a_failure_and_frees_the_operation_at_once() {
    // A port that is bound is nobody else's, and refuses until somebody listens.
    let socket = TcpSocket::new_v4().unwrap();
    socket.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let address = socket.local_addr().unwrap();
    let onceward = Onceward::in_front_of_url(&format!("http://{address}")).start().await;

    let first = onceward.sends(event("evt_1")).await;
    first.is_executed_as("upstream-unreachable", 502);
    assert!(!first.text().contains(&address.port().to_string()), "{first:?}");
    assert_eq!(standing(&onceward, &first).await, never_sent(1, "connect-failed"));
    let second = onceward.sends(event("evt_1")).await;
    second.is_executed_as("upstream-unreachable", 502);
    assert_eq!(standing(&onceward, &first).await, never_sent(2, "connect-failed"));

    let receiver = Receiver::on(socket.listen(64).unwrap(), |_, _| Answer::new(200, "ok").into());
    onceward.sends(event("evt_1")).await.is_executed(200);
    assert_eq!(standing(&onceward, &first).await, answered(3, "succeeded", 200));
    assert_eq!(receiver.seen()[0].header("onceward-attempt"), Some("3"));
    receiver.was_called(1);
}

/// A label of a name has 63 bytes at most, so no server has to be asked.
#[tokio::test]
async fn a_name_that_does_not_resolve_is_a_failure() {
    let url = format!("http://{}.invalid", "a".repeat(64));
    let onceward = Onceward::in_front_of_url(&url).start().await;
    for attempt in [1, 2] {
        let reply = onceward.sends(event("evt_1")).await;
        reply.is_executed_as("upstream-unreachable", 502);
        assert!(!reply.text().contains("invalid"), "{reply:?}");
        assert_eq!(standing(&onceward, &reply).await, never_sent(attempt, "name-not-found"));
    }
}

/// Connects and never shakes hands: nobody accepts.
#[tokio::test]
async fn a_connection_that_takes_too_long_is_a_failure() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("https://{}", listener.local_addr().unwrap());
    let onceward =
        Onceward::in_front_of_url(&url).defaults("connect_timeout = \"200ms\"").start().await;
    for attempt in [1, 2] {
        let reply = onceward.sends(event("evt_1")).await;
        reply.is_executed_as("upstream-unreachable", 502);
        assert_eq!(standing(&onceward, &reply).await, never_sent(attempt, "connect-timed-out"));
    }
}

/// The attempt's time may be over before there is a connection: nothing was sent all the same.
#[tokio::test]
async fn an_attempt_that_ends_before_it_is_connected_is_a_failure() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("https://{}", listener.local_addr().unwrap());
    let onceward = Onceward::in_front_of_url(&url).defaults(SHORT).in_memory().start().await;
    let reply = onceward.sends(event("evt_1")).await;
    reply.is_executed_as("upstream-unreachable", 502);
    assert_eq!(standing(&onceward, &reply).await, never_sent(1, "timed-out"));
}

/// The idle connection has been closed: that is seen before a byte is written, and the
/// request goes out on a new one within the same attempt.
#[tokio::test]
async fn a_request_for_a_connection_that_has_died_goes_out_on_a_new_one() {
    let closed = Gate::default();
    let says = closed.clone();
    let receiver = BareReceiver::that(move |mut bare| {
        let says = says.clone();
        async move {
            bare.reads_request().await.unwrap();
            let connection = format!("{}", bare.connection);
            let answer = Answer::new(200, connection).header("keep-alive", "timeout=600");
            bare.writes(&answer.raw()).await;
            drop(bare);
            says.lets_one_pass();
        }
    })
    .await;
    let onceward = Onceward::in_front_of_url(&receiver.url()).start().await;
    for connection in 0..20 {
        let reply = onceward.sends(event(&format!("evt_{connection}"))).await;
        reply.is_executed(200);
        assert_eq!(reply.text(), connection.to_string());
        assert_eq!(standing(&onceward, &reply).await, answered(1, "succeeded", 200));
        closed.passes().await;
    }
    receiver.was_called(20);
}

/// The receiver accepts and says at once that it will say nothing, then reads what comes all the
/// same. Whether a byte was written by then is chance, but what is said of it must be true.
#[tokio::test]
async fn whoever_says_that_nothing_was_sent_has_sent_nothing() {
    let arrived: Arc<Mutex<Vec<u8>>> = Arc::default();
    let heap = Arc::clone(&arrived);
    let receiver = BareReceiver::that(move |mut bare| {
        let heap = Arc::clone(&heap);
        async move {
            bare.stream.shutdown().await.unwrap();
            let mut all = Vec::new();
            let _reset = bare.stream.read_to_end(&mut all).await;
            heap.lock().unwrap().extend(all);
            bare.counts();
        }
    })
    .await;
    let onceward = Onceward::in_front_of_url(&receiver.url()).expects_log(HELD).start().await;
    for round in 0..50 {
        let id = format!("<evt_{round}>");
        let reply = onceward.sends(event(&id)).await;
        receiver.has_counted(round + 1).await;
        let arrived = String::from_utf8_lossy(&arrived.lock().unwrap()).contains(&id);
        let stands = standing(&onceward, &reply).await;
        if stands["sent"] == true {
            reply.is_executed_as("upstream-broken", 502).comes_back();
            assert_eq!(stands, uncertain("connection-lost", None));
        } else {
            assert!(!arrived, "{id} was sent: {stands}");
            reply.is_executed_as("upstream-unreachable", 502);
            assert_eq!(stands, never_sent(1, "nothing-written"));
        }
    }
}
