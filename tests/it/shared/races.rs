//! One attempt at a time, whichever process is asked.

use std::time::Duration;

use futures_util::future::join_all;
use tokio::time::{Instant, sleep};

use super::server::Server;
use super::{on_every_server, two_patient_proxies, two_proxies};
use crate::support::{Onceward, Receiver, Reply, event};

on_every_server! {
    of_two_hundred_racers_over_two_processes_one_is_forwarded
    a_claim_whose_reply_came_too_late_leaves_nothing_held
}

async fn race(both: [&Onceward; 2], id: &str, racers: usize) -> Vec<Reply> {
    let copy = event(id);
    let halves = both.map(|onceward| onceward.sends_copies(&copy, racers / 2));
    join_all(halves).await.concat()
}

/// The losers of a race are told how the operation stands, and never that the store has failed. A
/// hundred rounds.
async fn of_two_hundred_racers_over_two_processes_one_is_forwarded<S: Server>() {
    let (server, receiver) = (S::start().await, Receiver::that_answers(200, "done\n").await);
    let (a, b) = two_patient_proxies(&server, &receiver, "").await;
    for round in 1..=100 {
        let replies = race([&a, &b], &format!("evt_{round}"), 200).await;
        receiver.was_called(round);
        let executed = replies.iter().filter(|reply| reply.disposition() == "executed");
        assert_eq!(executed.count(), 1);
        for reply in replies {
            match reply.disposition() {
                "executed" => reply.is_executed(200),
                "replayed" => reply.is_replayed(200),
                _ => reply.is_in_flight(409),
            };
        }
    }
}

/// The refusal comes within the timeout of a call, and what the store does with the claim
/// afterwards holds nothing.
async fn a_claim_whose_reply_came_too_late_leaves_nothing_held<S: Server>() {
    let (server, receiver) = (S::start().await, Receiver::that_answers(200, "done\n").await);
    let (a, b) = two_proxies(&server, &receiver, "lease = \"2s\"").await;
    a.sends(event("evt_before")).await.is_executed(200);
    server.pauses();
    let began = Instant::now();
    let refused = a.sends(event("evt_1")).await;
    refused.is_refused(503, "store-unavailable").comes_back();
    assert!(began.elapsed() < Duration::from_secs(20), "{:?}", began.elapsed());
    // The server stands still for longer than the claim's lease: time itself is what is waited for.
    sleep(Duration::from_secs(3)).await;
    receiver.was_called(1);
    server.goes_on();
    // what the first answers of the server say is nobody's claim
    let is_executed = |reply: &Reply| {
        assert_ne!(reply.disposition(), "uncertain", "{reply:?}");
        reply.status == 200
    };
    b.sends_until(&event("evt_1"), is_executed).await.is_executed(200);
    receiver.was_called(2);
    assert_eq!(a.metric("onceward_uncertain").await, 0.0);
}
