//! A process that stands still loses its lease, and what it writes afterwards counts only while
//! nobody has taken over.

use std::time::Duration;

use rustix::process::Signal;

use super::server::Server;
use super::{on_every_server, two_proxies};
use crate::support::{Act, Answer, Event, Gate, Onceward, RawSender, Receiver, event};

on_every_server! {
    under_retry_another_process_takes_over_and_the_first_one_changes_nothing
    of_fifty_racers_on_an_expired_lease_one_makes_the_next_attempt
    under_hold_a_late_outcome_counts_and_is_replayed_elsewhere
}

/// Answers the first request when the gate lets it, and later ones at once.
async fn receiver_that_is_slow_at_first(gate: &Gate) -> Receiver {
    let gate = gate.clone();
    Receiver::that(move |_, copies| match copies {
        0 => Answer::new(200, "A").when(&gate),
        _ => Act::from(Answer::new(200, "B")),
    })
    .await
}

/// Sent to a process that stops right after it has forwarded it.
async fn sent_and_stopped(onceward: &Onceward, receiver: &Receiver, copy: &Event) -> RawSender {
    let mut sender = onceward.connects().await;
    sender.writes(&copy.raw()).await;
    receiver.has_counted(1).await;
    onceward.signal(Signal::STOP);
    sender
}

/// The lease runs out long before the upstream cannot be at it any more, so that it is seen held
/// meanwhile.
const RETRIES: &str = "lease = \"1s\"\nattempt_timeout = \"6s\"\nwhen_uncertain = \"retry\"";

/// The process that stood still settles when another one has made the next attempt: the record of
/// that attempt stays as it is.
async fn under_retry_another_process_takes_over_and_the_first_one_changes_nothing<S: Server>() {
    let (server, gate) = (S::start().await, Gate::default());
    let receiver = receiver_that_is_slow_at_first(&gate).await;
    let (a, b) = two_proxies(&server, &receiver, RETRIES).await;
    let copy = event("evt_1");
    let mut first_sender = sent_and_stopped(&a, &receiver, &copy).await;
    let held = b.sends_until_it_is(&copy, "uncertain").await;
    receiver.was_called(1);
    b.sends_until_it_is(&copy, "executed").await.is_executed(200);
    receiver.was_called(2);
    let taken_over = b.operation(&held.operation()).await.unwrap();

    gate.opens();
    a.signal(Signal::CONT);
    a.comes_to_count("onceward_superseded_total", 1.0).await;
    assert_eq!(a.metric("onceward_superseded_total").await, 1.0);
    // whoever asks now, on either side, gets what was recorded
    for onceward in [&a, &b] {
        let replay = onceward.sends(copy.clone()).await;
        replay.is_replayed(200);
        assert_eq!(replay.body, b"B");
    }
    let after = b.operation(&held.operation()).await.unwrap();
    for member in ["state", "answer", "settled_at", "expires_at", "attempts_total"] {
        assert_eq!(after[member], taken_over[member], "{member}");
    }
    let answer = first_sender.reads_answer().await;
    answer.is_replayed(200);
    assert_eq!(answer.body, b"B");
    receiver.was_called(2);
}

/// They come to both processes at once.
async fn of_fifty_racers_on_an_expired_lease_one_makes_the_next_attempt<S: Server>() {
    let (server, gate) = (S::start().await, Gate::default());
    let receiver = receiver_that_is_slow_at_first(&gate).await;
    let (a, b) = two_proxies(&server, &receiver, RETRIES).await;
    let (c, _) = two_proxies(&server, &receiver, &format!("{RETRIES}\nhold_for = \"1h\"")).await;
    let copy = event("evt_1");
    let _sender = sent_and_stopped(&a, &receiver, &copy).await;
    let id = b.sends_until_it_is(&copy, "uncertain").await.operation();
    b.must_have_ended(&id, Duration::from_secs(6)).await;
    let (one, other) = tokio::join!(b.sends_copies(&copy, 25), c.sends_copies(&copy, 25));
    let executed =
        one.iter().chain(&other).filter(|reply| reply.disposition() == "executed").count();
    assert_eq!(executed, 1);
    receiver.was_called(2);
    assert_eq!(b.state(&id).await, "succeeded");
    a.signal(Signal::CONT);
    a.comes_to_count("onceward_superseded_total", 1.0).await;
}

/// Nobody else has had a claim meanwhile.
async fn under_hold_a_late_outcome_counts_and_is_replayed_elsewhere<S: Server>() {
    let (server, gate) = (S::start().await, Gate::default());
    let receiver = receiver_that_is_slow_at_first(&gate).await;
    let (a, b) = two_proxies(&server, &receiver, "lease = \"1s\"").await;
    let copy = event("evt_1");
    let _sender = sent_and_stopped(&a, &receiver, &copy).await;
    let id = b.sends_until_it_is(&copy, "uncertain").await.operation();
    gate.opens();
    a.signal(Signal::CONT);
    b.comes_to_be(&id, "succeeded").await;
    let replay = b.sends(copy).await;
    replay.is_replayed(200);
    assert_eq!(replay.body, b"A");
    receiver.was_called(1);
    assert_eq!(a.metric("onceward_superseded_total").await, 0.0);
}
