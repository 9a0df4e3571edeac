//! What copies and failures take of a process's memory, where the store is a server.

use futures_util::future::join_all;
use futures_util::{StreamExt as _, stream};

use super::server::Server;
use super::{on_every_server, patient};
use crate::support::http2::{Http2Sender, field, post};
use crate::support::{Answer, Event, Onceward, Receiver, event, until};

on_every_server! {
    replays_that_nobody_reads_stay_within_the_memory
    what_is_known_of_failures_stays_within_the_memory
}

const MIB: u64 = 1 << 20;
/// What the process may take beside its budget.
const BESIDE: u64 = 100 * MIB;

/// The window of each stream is closed, so no byte of an answer can be sent.
async fn replays_that_nobody_reads_stay_within_the_memory<S: Server>() {
    const BUDGET: u64 = 64 * MIB;
    const ANSWER: usize = 250_000;
    let server = S::start().await;
    let receiver = Receiver::that(|_, _| Answer::new(200, vec![b'x'; ANSWER]).into()).await;
    let onceward = Onceward::in_front_of(&receiver)
        .store(&patient(&server))
        .limits("buffered_bytes_max = \"64MiB\"")
        .start()
        .await;
    for number in 0..20 {
        onceward.sends(event("evt").keyed(&format!("k{number}"))).await.is_executed(200);
    }
    let address = onceward.address;
    let asks = |number: usize| async move {
        let mut sender = Http2Sender::connects(address, 0).await;
        for stream in 0..100 {
            let key = format!("k{}", (number + stream) % 20);
            let block = [post("/hooks"), field("x-idempotency-key", &key)].concat();
            sender.asks(&block, Some(&event("evt").body)).await;
        }
        sender
    };
    let senders = join_all((0..20).map(asks)).await;
    onceward
        .comes_to_count("onceward_limits_reached_total{limit=\"buffered_bytes_max\"}", 1.0)
        .await;
    let asked = "onceward_requests_total{route=\"hooks\",disposition=\"replayed\"}";
    let refused = "onceward_requests_total{route=\"hooks\",disposition=\"refused\"}";
    until("all are answered", async || {
        onceward.metric(asked).await + onceward.metric(refused).await >= 2_000.0
    })
    .await;
    let peak = onceward.peak_bytes();
    assert!(peak < BUDGET + BESIDE, "{} MiB", peak / MIB);
    drop(senders);
    onceward.comes_down_to("onceward_buffered_bytes", 0.0).await;
    onceward.sends(event("evt").keyed("k0")).await.is_replayed(200);
    receiver.was_called(20);
}

/// Each has a path of 50 kB, which belongs to its record.
async fn what_is_known_of_failures_stays_within_the_memory<S: Server>() {
    const BUDGET: u64 = 16 * MIB;
    const FAILURES: usize = 3_000;
    let server = S::start().await;
    let receiver = Receiver::that_answers(500, "no").await;
    let onceward = Onceward::in_front_of(&receiver)
        .store(&patient(&server))
        .limits("buffered_bytes_max = \"16MiB\"")
        .defaults("lease = \"5m\"\nattempt_timeout = \"5m\"")
        .start()
        .await;
    let long = "x".repeat(50_000);
    let fails = |number: usize| {
        let event: Event = event("evt").to(&format!("/hooks/{long}/{number}"));
        onceward.sends(event)
    };
    let mut replies = stream::iter((0..FAILURES).map(fails)).buffer_unordered(8);
    while let Some(reply) = replies.next().await {
        assert_eq!(reply.status, 500);
    }
    drop(replies);
    let peak = onceward.peak_bytes();
    assert!(peak < BUDGET + BESIDE, "{} MiB", peak / MIB);
}
