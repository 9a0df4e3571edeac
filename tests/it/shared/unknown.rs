//! Nobody knows, and several receivers: over two processes.

use std::time::Duration;

use tokio::time::timeout;

use super::server::Server;
use super::{expecting_trouble, on_every_server, two_patient_proxies};
use crate::support::{Act, Answer, Builder, Gate, Onceward, Receiver, RedisServer, Reply, event};

on_every_server! {
    a_timeout_is_held_and_a_look_up_that_finds_it_does_not_send_again
    a_refusal_before_acceptance_is_free_at_once_for_either_process
    of_fifty_copies_over_two_processes_one_asks
    the_steps_that_have_succeeded_are_not_run_again_by_another_process
}

const HELD: &str = "nobody knows whether the operation was done";

/// What asks the receiver itself about its events.
fn asking(receiver: &Receiver) -> String {
    let url = receiver.url();
    format!(
        "when_uncertain = \"lookup\"\nattempt_timeout = \"1s\"\n\
         [defaults.lookup]\nurl = \"{url}/events/{{key}}\"\ntimeout = \"20s\""
    )
}

fn asked(receiver: &Receiver) -> usize {
    receiver.seen().iter().filter(|seen| seen.method == "GET").count()
}

/// The attempt is made by one process, the look-up by the other.
async fn a_timeout_is_held_and_a_look_up_that_finds_it_does_not_send_again<S: Server>() {
    let receiver = Receiver::that(|seen, _| match &*seen.method {
        "GET" => Answer::new(200, "").into(),
        _ => Act::Hang,
    })
    .await;
    let server = S::start().await;
    let (a, b) = two_patient_proxies(&server, &receiver, &asking(&receiver)).await;
    let first = a.sends(event("evt_1")).await;
    first.is_executed_as("upstream-timeout", 504);
    assert_eq!(b.state(&first.operation()).await, "uncertain");
    b.sends(event("evt_1")).await.is_replayed(200);
    a.sends(event("evt_1")).await.is_replayed(200);
    assert_eq!((receiver.count(), asked(&receiver)), (2, 1));
}

async fn a_refusal_before_acceptance_is_free_at_once_for_either_process<S: Server>() {
    let receiver = Receiver::that(|_, copies| {
        if copies == 0 { Answer::new(503, "busy").into() } else { Answer::new(200, "ok").into() }
    })
    .await;
    let server = S::start().await;
    let (a, b) = two_patient_proxies(&server, &receiver, &asking(&receiver)).await;
    a.sends(event("evt_1")).await.is_executed(503);
    b.sends(event("evt_1")).await.is_executed(200);
    a.sends(event("evt_1")).await.is_replayed(200);
    assert_eq!((receiver.count(), asked(&receiver)), (2, 0));
}

async fn of_fifty_copies_over_two_processes_one_asks<S: Server>() {
    let gate = Gate::default();
    let waits = gate.clone();
    let receiver = Receiver::that(move |seen, _| match &*seen.method {
        "GET" => Answer::new(200, "").when(&waits),
        _ => Act::Hang,
    })
    .await;
    let server = S::start().await;
    let (a, b) = two_patient_proxies(&server, &receiver, &asking(&receiver)).await;
    a.sends(event("evt_1")).await.is_executed_as("upstream-timeout", 504);
    let copy = event("evt_1");
    let others = async {
        receiver.has_counted(2).await;
        let (of_a, of_b) = tokio::join!(a.sends_copies(&copy, 25), b.sends_copies(&copy, 24));
        for reply in of_a.iter().chain(&of_b) {
            reply.is_in_flight(409);
        }
        gate.opens();
    };
    let (reply, ()) = tokio::join!(b.sends(event("evt_1")), others);
    reply.is_replayed(200);
    assert_eq!((receiver.count(), asked(&receiver)), (2, 1));
}

/// The server takes no writes when the receiver has answered. Nobody waits for the look-up's lease.
#[tokio::test]
async fn a_look_up_whose_finding_could_not_be_recorded_does_not_keep_others_from_asking() {
    let gate = Gate::default();
    let waits = gate.clone();
    let receiver = Receiver::that(move |seen, _| match &*seen.method {
        "GET" => Answer::new(200, "").when(&waits),
        _ => Act::Hang,
    })
    .await;
    let server = RedisServer::start().await;
    let lasting = asking(&receiver).replace("\"20s\"", "\"1m\"");
    let builder = Onceward::in_front_of(&receiver).store(&server.toml()).defaults(&lasting);
    let builder = expecting_trouble(builder);
    let lost = "what a look-up has found could not be recorded";
    let onceward = builder.expects_log(lost).start().await;
    onceward.sends(event("evt_1")).await.is_executed_as("upstream-timeout", 504);
    let fills_up = async {
        receiver.has_counted(2).await;
        server.does("CONFIG SET maxmemory 1").await;
        gate.opens();
    };
    let (reply, ()) = tokio::join!(onceward.sends(event("evt_1")), fills_up);
    reply.is_uncertain();
    onceward.logs(lost).await;
    server.does("CONFIG SET maxmemory 0").await;
    let is_done = |reply: &Reply| {
        if reply.status != 200 {
            reply.is_in_flight(409);
        }
        reply.status == 200
    };
    let copy = event("evt_1");
    let waits = timeout(Duration::from_secs(40), onceward.sends_until(&copy, is_done));
    waits.await.expect("before the look-up's lease ends").is_replayed(200);
    assert_eq!((receiver.count(), asked(&receiver)), (3, 2));
}

/// The process that ran the first steps is killed; the other goes on.
async fn the_steps_that_have_succeeded_are_not_run_again_by_another_process<S: Server>() {
    let charge = Receiver::that_answers(200, "charge").await;
    let mail =
        Receiver::that(
            |_, copies| {
                if copies == 0 { Act::Hang } else { Answer::new(200, "mail").into() }
            },
        )
        .await;
    let server = S::start().await;
    let retried = "when_uncertain = \"retry\"\nattempt_timeout = \"1s\"";
    let builder: Builder =
        Onceward::in_front_of_steps(&[("charge", &charge, retried), ("mail", &mail, retried)])
            .store(&server.toml())
            .defaults("lease = \"2s\"")
            .expects_log("the store is not safe")
            .expects_log(HELD);
    let (mut a, b) = (builder.clone().start().await, builder.start().await);
    for onceward in [&a, &b] {
        onceward.becomes_ready().await;
    }
    let (cut_off, ()) = tokio::join!(a.try_sends(event("evt_1")), async {
        mail.has_counted(1).await;
        a.signal(rustix::process::Signal::KILL);
    });
    assert!(cut_off.is_err(), "{cut_off:?}");
    a.ends().await;
    let reply = b.sends_until_it_is(&event("evt_1"), "executed").await;
    assert_eq!(reply.is_executed(200).text(), "mail");
    assert_eq!((charge.count(), mail.count()), (1, 2));
}
