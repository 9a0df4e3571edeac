//! The server is away, slow or gone: nothing runs twice, nothing is lost, and no restart is needed.

use std::collections::HashMap;
use std::time::Duration;

use futures_util::future::join_all;
use tokio::join;
use tokio::time::Instant;

use super::server::Server;
use super::{on_every_server, two_patient_proxies, two_tolerant_proxies, two_unready_proxies};
use crate::support::{Gate, Onceward, Receiver, event, until};

on_every_server! {
    without_its_server_it_starts_unready_and_recovers_by_itself
    a_server_that_is_away_refuses_what_is_new_within_its_timeout
    a_server_that_is_killed_under_load_loses_nothing_and_repeats_nothing
    an_outcome_that_could_not_be_recorded_at_first_is_recorded_later
    an_upstream_that_is_slow_holds_no_connection_to_the_server
    copies_that_wait_are_not_forwarded_when_the_server_goes_away
    a_copy_of_what_is_in_flight_is_not_forwarded_without_its_server
}

const CLAIMS: &str = "onceward_store_duration_seconds_count{call=\"claim\"}";
const RENEWALS: &str = "onceward_store_duration_seconds_count{call=\"renew\"}";

/// What a sender does that tries again until it is answered with a success.
async fn sent_until_done(onceward: &Onceward, id: &str) {
    let is_done = async || {
        // a connection that breaks is a reason to come again too
        let Ok(reply) = onceward.try_sends(event(id)).await else { return false };
        assert!([200, 409, 503].contains(&reply.status), "{reply:?}");
        reply.status == 200
    };
    until(&format!("{id} is done"), is_done).await;
}

/// How often each event came.
fn counts(receiver: &Receiver) -> HashMap<Vec<u8>, usize> {
    let mut counts = HashMap::new();
    receiver.seen().into_iter().for_each(|seen| *counts.entry(seen.body).or_default() += 1);
    counts
}

async fn without_its_server_it_starts_unready_and_recovers_by_itself<S: Server>() {
    let (mut server, receiver) = (S::start().await, Receiver::that_answers(200, "done\n").await);
    server.is_killed().await;
    let (a, b) = two_unready_proxies(&server.toml(), &receiver, "").await;
    for onceward in [&a, &b] {
        assert_eq!(onceward.get_admin("/readyz").await.status, 503);
        assert_eq!(onceward.get_admin("/livez").await.status, 200);
        let refused = onceward.sends(event("evt_1")).await;
        refused.is_refused(503, "store-unavailable").comes_back();
    }
    receiver.was_called(0);
    server.starts_again().await;
    a.becomes_ready().await;
    b.becomes_ready().await;
    a.sends(event("evt_1")).await.is_executed(200);
    b.sends(event("evt_1")).await.is_replayed(200);
    receiver.was_called(1);
}

/// All are refused in time, and not one after the other.
async fn a_server_that_is_away_refuses_what_is_new_within_its_timeout<S: Server>() {
    let (server, receiver) = (S::start().await, Receiver::that_answers(200, "done\n").await);
    let (a, b) = two_tolerant_proxies(&server, &receiver, "").await;
    a.sends(event("evt_old")).await.is_executed(200);
    server.pauses();
    let began = Instant::now();
    let copies = (0..50).map(|number| a.sends(event(&format!("evt_{number}"))));
    for refused in Box::pin(join_all(copies)).await {
        refused.is_refused(503, "store-unavailable").comes_back();
    }
    assert!(began.elapsed() < Duration::from_secs(20), "{:?}", began.elapsed());
    assert_eq!(a.get_admin("/readyz").await.status, 503);
    assert!(a.metric("onceward_uncertain").await.is_nan(), "nobody knows how many are held");
    receiver.was_called(1);
    server.goes_on();
    a.becomes_ready().await;
    b.sends(event("evt_old")).await.is_replayed(200);
    for number in 0..50 {
        sent_until_done(&b, &format!("evt_{number}")).await;
    }
    receiver.was_called(51);
}

/// Claims, renewals and settles break off.
async fn a_server_that_is_killed_under_load_loses_nothing_and_repeats_nothing<S: Server>() {
    let (mut server, receiver) = (S::start().await, Receiver::that_answers(200, "done\n").await);
    let (a, b) = two_tolerant_proxies(&server, &receiver, "").await;
    let ids: Vec<String> = (0..200).map(|number| format!("evt_{number}")).collect();
    let senders = async |onceward: &Onceward, ids: &[String]| {
        for ids in ids.chunks(10) {
            Box::pin(join_all(ids.iter().map(|id| sent_until_done(onceward, id)))).await;
        }
    };
    let (half, other_half) = ids.split_at(100);
    join!(senders(&a, half), senders(&b, other_half), async {
        for _ in 0..3 {
            receiver.has_counted(receiver.count() + 20).await;
            server.is_killed().await;
            server.starts_again().await;
        }
    });
    let counts = counts(&receiver);
    assert_eq!(counts.len(), 200);
    assert!(counts.values().all(|count| *count == 1), "{counts:?}");
    for onceward in [&a, &b] {
        onceward.becomes_ready().await;
        assert_eq!(onceward.metric("onceward_uncertain").await, 0.0);
    }
    for id in &ids {
        b.sends(event(id)).await.is_replayed(200);
    }
}

/// The sender has its answer when the outcome is recorded.
async fn an_outcome_that_could_not_be_recorded_at_first_is_recorded_later<S: Server>() {
    let (mut server, gate) = (S::start().await, Gate::default());
    let receiver = Receiver::behind(&gate, 200, "done\n").await;
    let (a, b) = two_tolerant_proxies(&server, &receiver, "").await;
    let (reply, ()) = join!(a.sends(event("evt_1")), async {
        receiver.has_counted(1).await;
        server.is_killed().await;
        gate.opens();
        a.logs("an outcome is not recorded yet").await;
        server.starts_again().await;
    });
    reply.is_executed(200);
    b.sends(event("evt_1")).await.is_replayed(200);
    receiver.was_called(1);
}

/// With four connections for each process, twenty attempts and twenty waiters.
async fn an_upstream_that_is_slow_holds_no_connection_to_the_server<S: Server>() {
    let (server, gate) = (S::start().await, Gate::default());
    let receiver = Receiver::behind(&gate, 200, "done\n").await;
    let settings = "when_in_flight = \"wait\"\nlease = \"5s\"";
    let (a, b) = two_patient_proxies(&server, &receiver, settings).await;
    let all = |onceward| {
        let copies =
            (0..20).map(move |number| Onceward::sends(onceward, event(&format!("evt_{number}"))));
        Box::pin(join_all(copies))
    };
    let (executed, waited, ()) = join!(all(&a), all(&b), async {
        receiver.has_counted(20).await;
        // Longer than a lease: the renewals, three in each, come through as well. Of each event
        // either process may have come first, so that neither has a known share of them.
        let is_renewed = async || a.metric(RENEWALS).await + b.metric(RENEWALS).await >= 20.0 * 4.0;
        until("the claims are renewed", is_renewed).await;
        gate.opens();
    });
    for reply in executed.iter().chain(&waited) {
        assert_eq!(reply.status, 200, "{reply:?}");
    }
    receiver.was_called(20);
}

/// `when_store_fails = "forward"` is for requests that nobody has met: these know of an attempt.
async fn copies_that_wait_are_not_forwarded_when_the_server_goes_away<S: Server>() {
    let (mut server, gate) = (S::start().await, Gate::default());
    let receiver = Receiver::behind(&gate, 200, "done\n").await;
    let defaults = "when_store_fails = \"forward\"\nwhen_in_flight = \"wait\"\nlease = \"10s\"";
    let (a, b) = two_tolerant_proxies(&server, &receiver, defaults).await;
    let (copy, claims) = (event("evt_1"), b.metric(CLAIMS).await);
    let (first, copies, ()) = join!(
        a.sends(copy.clone()),
        async {
            receiver.has_counted(1).await;
            b.sends_copies(&copy, 20).await
        },
        async {
            receiver.has_counted(1).await;
            // each looks twice: to claim, and once it listens
            b.comes_to_count(CLAIMS, claims + 40.0).await;
            server.is_killed().await;
            gate.opens();
            a.logs("an outcome is not recorded yet").await;
            server.starts_again().await;
        }
    );
    first.is_executed(200);
    for copy in copies {
        copy.is_replayed(200);
    }
    receiver.was_called(1);
}

/// Nobody waits here: who made the attempt knows of it, and the other process was told before.
async fn a_copy_of_what_is_in_flight_is_not_forwarded_without_its_server<S: Server>() {
    let (server, gate) = (S::start().await, Gate::default());
    let receiver = Receiver::behind(&gate, 200, "done\n").await;
    let defaults = "when_store_fails = \"forward\"\nlease = \"1h\"";
    let (a, b) = two_tolerant_proxies(&server, &receiver, defaults).await;
    let (first, ()) = join!(a.sends(event("evt_1")), async {
        receiver.has_counted(1).await;
        b.sends(event("evt_1")).await.is_in_flight(409);
        server.pauses();
        for onceward in [&a, &b] {
            let copy = onceward.sends(event("evt_1")).await;
            copy.is_refused(503, "store-unavailable").comes_back();
        }
        receiver.was_called(1);
        gate.opens();
        // of this nobody knows anything
        b.sends(event("evt_2")).await.is_passed(200);
        server.goes_on();
    });
    first.is_executed(200);
    receiver.was_called(2);
}
