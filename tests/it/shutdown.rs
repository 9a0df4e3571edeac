//! A process that is asked to end lets what is in flight end, and tells what is new to come back.

use std::time::Duration;

use rustix::process::Signal;
use tokio::io::AsyncReadExt as _;
use tokio::join;
use tokio::time::timeout;

use crate::support::{Event, Gate, Onceward, RawSender, Receiver, Reply, event};

const DRAINING: &str = "not ready from now on; draining";

/// Waits until new requests are turned away. The path belongs to no route, so that nothing is
/// forwarded by asking.
pub(super) async fn turns_away(onceward: &Onceward) -> Reply {
    onceward.sends_until(&event("evt").to("/nowhere"), |reply| reply.status != 404).await
}

async fn is_not_ready(onceward: &Onceward) {
    let ready = onceward.get_admin("/readyz").await;
    assert_eq!(ready.status, 503);
    let text = ready.text();
    let told = text.strip_prefix("not ready: draining; attempts in flight: ").unwrap();
    assert!(told.ends_with(" s at most\n"), "{text}");
    assert_eq!(onceward.get_admin("/livez").await.status, 200);
}

/// The next answer on a kept connection, with this many bytes of body.
async fn asks(sender: &mut RawSender, event: &Event) -> String {
    sender.writes(&event.raw()).await;
    String::from_utf8(sender.reads_until(b"\r\n\r\n").await).unwrap()
}

async fn is_closed_in_good_order(sender: &mut RawSender) {
    let mut rest = Vec::new();
    let read = timeout(Duration::from_secs(20), sender.0.read_to_end(&mut rest)).await;
    read.expect("it is closed").expect("and not reset");
}

async fn what_is_in_flight_is_finished_after(signal: Signal) {
    let gate = Gate::default();
    let receiver = Receiver::behind(&gate, 200, "done\n").await;
    let mut onceward = Onceward::in_front_of(&receiver).start().await;
    assert_eq!(onceward.get_admin("/readyz").await.status, 200);
    let (first, ()) = join!(onceward.sends(event("evt_1")), async {
        receiver.has_counted(1).await;
        onceward.signal(signal);
        let turned_away = turns_away(&onceward).await;
        turned_away.is_refused(503, "draining").comes_back();
        is_not_ready(&onceward).await;
        onceward.sends(event("evt_2")).await.is_refused(503, "draining").comes_back();
        gate.opens();
    });
    first.is_executed(200);
    assert_eq!(onceward.ends().await.code(), Some(0));
    onceward.starts_again().await;
    onceward.sends(event("evt_1")).await.is_replayed(200);
    receiver.was_called(1);
    onceward.sends(event("evt_2")).await.is_executed(200);
}

#[tokio::test]
async fn after_a_sigterm_what_is_in_flight_is_answered_and_settled() {
    what_is_in_flight_is_finished_after(Signal::TERM).await;
}

#[tokio::test]
async fn after_a_sigint_what_is_in_flight_is_answered_and_settled() {
    what_is_in_flight_is_finished_after(Signal::INT).await;
}

/// Whoever routes to it learns from the readiness that it ends, and needs a moment for that.
#[tokio::test]
async fn during_the_drain_delay_it_is_not_ready_and_serves() {
    let receiver = Receiver::that_answers(200, "done\n").await;
    let builder = Onceward::in_front_of(&receiver).server("drain_delay = \"3s\"");
    let mut onceward = builder.start().await;
    onceward.signal(Signal::TERM);
    onceward.logs(DRAINING).await;
    is_not_ready(&onceward).await;
    onceward.sends(event("evt_1")).await.is_executed(200);
    onceward.sends(event("evt_1")).await.is_replayed(200);
    assert_eq!(onceward.ends().await.code(), Some(0));
    receiver.was_called(1);
}

#[tokio::test]
async fn while_attempts_are_in_flight_no_new_connection_is_reset() {
    let gate = Gate::default();
    let receiver = Receiver::behind(&gate, 200, "done\n").await;
    let mut onceward = Onceward::in_front_of(&receiver).start().await;
    let (first, ()) = join!(onceward.sends(event("evt_1")), async {
        receiver.has_counted(1).await;
        onceward.signal(Signal::TERM);
        for number in 0..100 {
            let mut sender = onceward.connects().await;
            let head = asks(&mut sender, &event(&format!("evt_{number}")).to("/nowhere")).await;
            let turned_away =
                head.starts_with("HTTP/1.1 503 ") && head.contains("\r\nretry-after: ");
            assert!(turned_away || head.starts_with("HTTP/1.1 404 "), "{head}");
        }
        turns_away(&onceward).await.is_refused(503, "draining");
        gate.opens();
    });
    first.is_executed(200);
    assert_eq!(onceward.ends().await.code(), Some(0));
}

#[tokio::test]
async fn a_kept_connection_is_told_that_its_next_answer_is_the_last_one() {
    let gate = Gate::default();
    let receiver = Receiver::behind(&gate, 200, "done\n").await;
    let mut onceward = Onceward::in_front_of(&receiver).start().await;
    let mut kept = onceward.connects().await;
    gate.lets_one_pass();
    kept.writes(&event("evt_0").raw()).await;
    let head = String::from_utf8(kept.reads_until(b"\r\n\r\ndone\n").await).unwrap();
    assert!(!head.contains("connection: close"), "{head}");
    let mut working = onceward.connects().await;
    working.writes(&event("evt_1").raw()).await;
    receiver.has_counted(2).await;

    onceward.signal(Signal::TERM);
    turns_away(&onceward).await;
    let head = asks(&mut kept, &event("evt_2")).await;
    assert!(head.starts_with("HTTP/1.1 503 "), "{head}");
    assert!(head.contains("\r\nconnection: close\r\n"), "{head}");
    is_closed_in_good_order(&mut kept).await;

    gate.opens();
    let head = String::from_utf8(working.reads_until(b"\r\n\r\ndone\n").await).unwrap();
    assert!(head.contains("\r\nconnection: close\r\n"), "{head}");
    is_closed_in_good_order(&mut working).await;
    assert_eq!(onceward.ends().await.code(), Some(0));
}

#[tokio::test]
async fn an_idle_process_ends_at_once_and_closes_what_is_kept_open() {
    let receiver = Receiver::that_answers(200, "done\n").await;
    let mut onceward = Onceward::in_front_of(&receiver).start().await;
    let mut kept = onceward.connects().await;
    kept.writes(&event("evt_1").raw()).await;
    kept.reads_until(b"\r\n\r\ndone\n").await;
    let mut silent = onceward.connects().await;
    // Both, and that on which the metrics are read: what was not accepted yet is reset by the
    // kernel.
    onceward.comes_to_count("onceward_connections", 3.0).await;
    onceward.signal(Signal::TERM);
    is_closed_in_good_order(&mut kept).await;
    is_closed_in_good_order(&mut silent).await;
    assert_eq!(onceward.ends().await.code(), Some(0));
}

/// It came before the signal, and its body comes after it.
#[tokio::test]
async fn a_request_whose_body_is_still_coming_is_served() {
    let receiver = Receiver::that_answers(200, "done\n").await;
    let mut onceward = Onceward::in_front_of(&receiver).start().await;
    let raw = event("evt_1").raw();
    let (begun, rest) = raw.split_at(raw.len() - 10);
    let mut sender = onceward.connects().await;
    sender.writes(begun).await;
    onceward.comes_to_count("onceward_buffered_bytes", 1.0).await;
    onceward.signal(Signal::TERM);
    onceward.logs(DRAINING).await;
    sender.writes(rest).await;
    let answer = sender.reads_until(b"\r\n\r\ndone\n").await;
    assert!(answer.starts_with(b"HTTP/1.1 200 "));
    is_closed_in_good_order(&mut sender).await;
    assert_eq!(onceward.ends().await.code(), Some(0));
    receiver.was_called(1);
}

/// The time does not suffice: nobody has to wait for the lease to learn that it is uncertain.
#[tokio::test]
async fn what_is_left_at_the_end_of_the_time_is_recorded_as_uncertain_before_exit() {
    let gate = Gate::default();
    let receiver = Receiver::behind(&gate, 200, "done\n").await;
    let mut onceward = Onceward::in_front_of(&receiver)
        .server("shutdown_timeout = \"500ms\"")
        .defaults("when_in_flight = \"wait\"")
        .expects_log("the time is over")
        .expects_log("nobody knows whether the operation was done")
        .start()
        .await;
    let (first, copy, ()) = join!(
        onceward.sends(event("evt_1")),
        async {
            receiver.has_counted(1).await;
            onceward.sends(event("evt_1")).await
        },
        async {
            receiver.has_counted(1).await;
            onceward.comes_to_count("onceward_connections", 3.0).await;
            onceward.signal(Signal::TERM);
        }
    );
    first.is_executed_as("upstream-broken", 502).comes_back();
    match copy.disposition() {
        "uncertain" => copy.is_uncertain(),
        "refused" => copy.is_refused(503, "draining").comes_back(),
        _ => copy.is_in_flight(409),
    };
    assert_eq!(onceward.ends().await.code(), Some(0), "it recorded what was left");

    onceward.starts_again().await;
    let operation = onceward.operation(&first.operation()).await.unwrap();
    assert_eq!(operation["state"], "uncertain", "{operation}");
    assert_eq!(operation["attempts"][0]["reason"], "shut-down", "{operation}");
    assert_eq!(operation["attempts"][0]["sent"], true, "{operation}");
    onceward.sends(event("evt_1")).await.is_uncertain();
    receiver.was_called(1);
}

/// Its body ends when attempts are cut off already: what would be written of it now would be cut
/// off as well, and nobody would know what has become of it.
#[tokio::test]
async fn a_request_that_is_whole_only_after_the_end_of_the_time_is_not_sent() {
    let gate = Gate::default();
    let receiver = Receiver::behind(&gate, 200, "done\n").await;
    let mut onceward = Onceward::in_front_of(&receiver)
        .server("shutdown_timeout = \"500ms\"")
        .expects_log("the time is over")
        .expects_log("nobody knows whether the operation was done")
        .start()
        .await;
    let raw = event("evt_late").raw();
    let (begun, rest) = raw.split_at(raw.len() - 10);
    let mut late = onceward.connects().await;
    late.writes(begun).await;
    onceward.comes_to_count("onceward_buffered_bytes", 1.0).await;
    let (first, ()) = join!(onceward.sends(event("evt_1")), async {
        receiver.has_counted(1).await;
        onceward.signal(Signal::TERM);
        onceward.logs("the time is over").await;
        late.writes(rest).await;
    });
    first.is_executed_as("upstream-broken", 502);
    let answer = String::from_utf8(late.reads_to_the_end().await).unwrap();
    assert!(answer.starts_with("HTTP/1.1 502 "), "{answer}");
    assert!(answer.contains("upstream-unreachable"), "{answer}");
    assert_eq!(onceward.ends().await.code(), Some(0));
    receiver.was_called(1);
}

/// Signals it again and again: one that comes too soon after the first is the same wish.
async fn is_signalled_until_it_ends(onceward: &mut Onceward) -> Option<i32> {
    loop {
        onceward.signal(Signal::INT);
        if let Ok(ended) = timeout(Duration::from_millis(200), onceward.ends()).await {
            return ended.code();
        }
    }
}

/// `timeout` signals its child and the process group of it.
#[tokio::test]
async fn a_signal_that_comes_twice_at_the_same_moment_is_one() {
    let gate = Gate::default();
    let receiver = Receiver::behind(&gate, 200, "done\n").await;
    let mut onceward = Onceward::in_front_of(&receiver).start().await;
    let (first, ()) = join!(onceward.sends(event("evt_1")), async {
        receiver.has_counted(1).await;
        onceward.signal(Signal::INT);
        onceward.signal(Signal::TERM);
        turns_away(&onceward).await.is_refused(503, "draining");
        gate.opens();
    });
    first.is_executed(200);
    assert_eq!(onceward.ends().await.code(), Some(0));
}

/// Nobody has to look for operations that are not there.
#[tokio::test]
async fn a_second_signal_that_leaves_nothing_uncertain_does_not_say_so() {
    let receiver = Receiver::that_answers(200, "done\n").await;
    let mut onceward = Onceward::in_front_of(&receiver)
        .server("drain_delay = \"1m\"")
        .expects_log("ended at once by a second signal; no attempt was in flight")
        .start()
        .await;
    onceward.sends(event("evt_1")).await.is_executed(200);
    onceward.signal(Signal::TERM);
    onceward.logs(DRAINING).await;
    assert_eq!(is_signalled_until_it_ends(&mut onceward).await, Some(1));
    onceward.logs("no attempt was in flight").await;
}

#[tokio::test]
async fn a_second_signal_ends_it_at_once() {
    let gate = Gate::default();
    let receiver = Receiver::behind(&gate, 200, "done\n").await;
    let mut onceward = Onceward::in_front_of(&receiver)
        .expects_log("ended at once by a second signal")
        .expects_log("an attempt ended without an outcome")
        .expects_log("operations of an earlier process are uncertain now")
        .start()
        .await;
    let mut sender = onceward.connects().await;
    sender.writes(&event("evt_1").raw()).await;
    receiver.has_counted(1).await;
    onceward.signal(Signal::TERM);
    onceward.logs(DRAINING).await;
    let draining = onceward.log().into_iter().find(|line| line["message"] == DRAINING).unwrap();
    assert_eq!((&draining["in_flight"], &draining["ends_within"]), (&1.into(), &"65s".into()));
    assert_eq!(is_signalled_until_it_ends(&mut onceward).await, Some(1));
    onceward.logs("attempts in flight: 1; their operations are uncertain").await;

    onceward.starts_again().await;
    onceward.logs("onceward operations list --state uncertain").await;
    let copy = onceward.sends(event("evt_1")).await;
    copy.is_uncertain();
    let operation = onceward.operation(&copy.operation()).await.unwrap();
    assert_eq!(operation["attempts"][0]["reason"], "holder-ended", "{operation}");
    receiver.was_called(1);
}
