//! Two processes behind the nginx configuration that is shipped: what a sender sees while they are
//! started again in turn, and while their store or one of their machines is away.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use futures_util::future::join_all;
use rustix::process::Signal;
use serde_json::Value;
use tokio::join;
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::time::timeout;

use super::expecting_trouble;
use super::server::Server as _;
use crate::support::{
    Act, Answer, Event, Gate, Onceward, Receiver, RedisServer, Reply, Seen, client, event,
    free_port, send, until,
};
use crate::upstreams::server::Server;

/// Senders that send at the same time, each one event after the other.
const SENDERS: usize = 6;
/// Long enough that a process that is asked to end has attempts in flight.
const WORK: Duration = Duration::from_millis(20);
/// More than the senders may have had under way before.
const MORE_EVENTS: usize = 5 * SENDERS;
/// What is counted of a request that came while the process drained.
const DRAINING: &str = "onceward_refusals_total{route=\"hooks\",code=\"draining\"}";
const NO_STORE: &str = "onceward_refusals_total{route=\"hooks\",code=\"store-unavailable\"}";

/// A process on a port that it gets again after a restart.
async fn proxy(redis: &RedisServer, receiver: &Receiver) -> Onceward {
    let listen = format!("127.0.0.1:{}", free_port());
    let builder = Onceward::in_front_of(receiver)
        .variable("ONCEWARD_SERVER__LISTEN", &listen)
        .store(&redis.toml());
    let onceward = expecting_trouble(builder).start().await;
    onceward.becomes_ready().await;
    onceward
}

/// The configuration that is shipped, on this port and in front of these servers.
fn shipped(port: u16, servers: [SocketAddr; 2]) -> String {
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/examples/cluster/entry.conf");
    let [first, second] = servers.map(|server| server.to_string());
    [
        ("listen 8080;", format!("listen 127.0.0.1:{port};")),
        ("onceward-1:8080", first),
        ("onceward-2:8080", second),
    ]
    .iter()
    .fold(std::fs::read_to_string(file).unwrap(), |text, (written, here)| {
        replaced(&text, written, here)
    })
}

fn replaced(text: &str, written: &str, here: &str) -> String {
    assert_eq!(text.matches(written).count(), 1, "`{written}`");
    text.replace(written, here)
}

/// nginx in front of these servers.
struct Entry {
    nginx: Server,
    client: reqwest::Client,
}

impl Entry {
    async fn to(servers: [SocketAddr; 2]) -> Self {
        Self::configured(|port| shipped(port, servers)).await
    }

    async fn configured(text: impl FnOnce(u16) -> String) -> Self {
        let port = free_port();
        Self { nginx: Server::nginx_with(port, &text(port)).await, client: client() }
    }

    async fn sends(&self, event: Event) -> Reply {
        send(&self.client, self.nginx.address, event).await.expect("an answer")
    }

    /// Sends one event after the other until it is told to stop. Gives their ids.
    async fn sends_until(&self, stop: &AtomicBool, sender: usize) -> Vec<String> {
        let mut sent = Vec::new();
        while !stop.load(Ordering::SeqCst) {
            let id = format!("evt_{sender}_{}", sent.len());
            self.sends(event(&id)).await.is_executed(200);
            sent.push(id);
        }
        sent
    }
}

/// How often the receiver has counted each event.
fn counts(receiver: &Receiver) -> HashMap<String, usize> {
    let mut counts = HashMap::new();
    for seen in receiver.seen() {
        let body: Value = serde_json::from_slice(&seen.body).unwrap();
        *counts.entry(body["id"].as_str().unwrap().to_owned()).or_default() += 1;
    }
    counts
}

/// Waits until the receiver has got an event.
async fn has_come(receiver: &Receiver, id: &str) {
    until("the receiver gets it", async || counts(receiver).contains_key(id)).await;
}

/// Ends a process and starts it again, while others send. An event that it has in flight keeps it
/// draining until it has turned requests away.
async fn restarts(onceward: &mut Onceward, receiver: &Receiver, gate: &Gate, round: usize) {
    let held = format!("held_{}_{round}", onceward.address.port());
    let (reply, ()) = join!(onceward.sends(event(&held)), async {
        has_come(receiver, &held).await;
        onceward.signal(Signal::TERM);
        onceward.comes_to_count(DRAINING, 3.0).await;
        gate.lets_one_pass();
    });
    reply.is_executed(200);
    assert_eq!(onceward.ends().await.code(), Some(0));
    receiver.has_counted(receiver.count() + MORE_EVENTS).await;
    onceward.starts_again().await;
    onceward.becomes_ready().await;
    let executed = "onceward_requests_total{route=\"hooks\",disposition=\"executed\"}";
    onceward.comes_to_count(executed, 10.0).await;
}

/// The built-in `drain_delay` of nothing: nginx does not ask for readiness.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn both_processes_are_started_again_in_turn_and_every_event_gets_a_200_and_runs_once() {
    let redis = <RedisServer as super::Server>::start().await;
    let gate = Gate::default();
    let held = gate.clone();
    let receiver = Receiver::that(move |seen: &Seen, _| {
        let answer = Answer::new(200, "done\n");
        let is_held = seen.body.windows(5).any(|part| part == b"held_");
        if is_held { answer.when(&held) } else { Act::After(WORK, Box::new(answer.into())) }
    })
    .await;
    let mut first = proxy(&redis, &receiver).await;
    let mut second = proxy(&redis, &receiver).await;
    let entry = Arc::new(Entry::to([first.address, second.address]).await);

    let stop = Arc::new(AtomicBool::new(false));
    let senders: Vec<_> = (0..SENDERS)
        .map(|sender| {
            let entry = Arc::clone(&entry);
            let stop = Arc::clone(&stop);
            tokio::spawn(async move { entry.sends_until(&stop, sender).await })
        })
        .collect();
    for round in 0..2 {
        restarts(&mut first, &receiver, &gate, round).await;
        restarts(&mut second, &receiver, &gate, round).await;
    }
    stop.store(true, Ordering::SeqCst);
    let sent = join_all(senders).await.into_iter().flat_map(Result::unwrap);

    let mut counts = counts(&receiver);
    counts.retain(|id, _| !id.starts_with("held_"));
    let once: HashMap<String, usize> = sent.map(|id| (id, 1)).collect();
    assert_eq!(counts, once);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn while_the_store_is_away_nginx_passes_the_503_on_and_leaves_no_process_out_afterwards() {
    let mut redis = <RedisServer as super::Server>::start().await;
    let receiver = Receiver::that_answers(200, "done\n").await;
    let first = proxy(&redis, &receiver).await;
    let second = proxy(&redis, &receiver).await;
    let entry = Entry::to([first.address, second.address]).await;
    entry.sends(event("evt_before")).await.is_executed(200);

    redis.is_killed().await;
    for number in 0..4 {
        let reply = entry.sends(event(&format!("evt_{number}"))).await;
        reply.is_refused(503, "store-unavailable").comes_back();
    }
    for onceward in [&first, &second] {
        assert_eq!(onceward.metric(NO_STORE).await, 4.0, "each event was asked of both");
    }

    redis.starts_again().await;
    first.becomes_ready().await;
    second.becomes_ready().await;
    for number in 0..4 {
        entry.sends(event(&format!("evt_{number}"))).await.is_executed(200);
    }
    receiver.was_called(5);
}

/// A listener whose queue is full, so that the kernel leaves new connections without an answer, as
/// a machine does that is gone.
async fn gone() -> (TcpListener, Vec<TcpStream>) {
    let socket = TcpSocket::new_v4().unwrap();
    socket.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let listener = socket.listen(1).unwrap();
    let address = listener.local_addr().unwrap();
    let mut waiting = Vec::new();
    while let Ok(connected) = timeout(Duration::from_secs(1), TcpStream::connect(address)).await {
        waiting.push(connected.unwrap());
    }
    (listener, waiting)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_machine_that_is_gone_costs_a_sender_some_time_and_no_event() {
    let redis = <RedisServer as super::Server>::start().await;
    let receiver = Receiver::that_answers(200, "done\n").await;
    let onceward = proxy(&redis, &receiver).await;
    let (gone, _waiting) = gone().await;
    let entry = Entry::to([gone.local_addr().unwrap(), onceward.address]).await;
    let ids: Vec<String> = (0..4).map(|number| format!("evt_{number}")).collect();
    for reply in join_all(ids.iter().map(|id| entry.sends(event(id)))).await {
        reply.is_executed(200);
    }
    receiver.was_called(4);
}

/// Two times of the configuration are shorter here.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nginx_asks_nobody_else_about_an_event_that_it_passed_on_and_got_no_answer_for() {
    let redis = <RedisServer as super::Server>::start().await;
    let gate = Gate::default();
    let receiver = Receiver::behind(&gate, 200, "done\n").await;
    let first = proxy(&redis, &receiver).await;
    let second = proxy(&redis, &receiver).await;
    let entry = Entry::configured(|port| {
        let text = shipped(port, [first.address, second.address]);
        let text = replaced(&text, "proxy_read_timeout 75s;", "proxy_read_timeout 3s;");
        replaced(&text, "proxy_next_upstream_timeout 10s;", "proxy_next_upstream_timeout 2s;")
    })
    .await;
    // The other process would have answered that the event is in flight.
    assert_eq!(entry.sends(event("evt_1")).await.status, 504);
    gate.opens();
    receiver.was_called(1);
}
