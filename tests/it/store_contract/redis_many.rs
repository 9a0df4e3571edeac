//! The store on several Redis servers: replicas that must acknowledge, a master that changes, a
//! cluster whose keys move.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use onceward::clock::Clock;
use onceward::operation::state::{ClaimReply, Grant, Renewed, ReportedState, Settled};
use onceward::operation::{Outcome, Subject};
use onceward::secret::Secret;
use onceward::store::redis::{Mode, Settings, open};
use onceward::store::{Error, Store, StoreExt as _};
use tempfile::TempDir;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::{Instant, timeout};

use super::listing::ALL;
use super::redis::{listens, that_waits};
use super::redis_faults::{codes, is_turned_away, replay, works_again};
use super::support::{
    LEASE, attempted, claim_on, copy_of, end_of, granted, granted_as, order, renews,
};
use crate::support::{Guarded, RedisCluster, RedisServer, Replicated, free_port, until};

fn store_with(settings: &Settings) -> Arc<dyn Store> {
    open(settings, Clock::system()).unwrap()
}

/// A failover to the replica loses nothing that was acknowledged.
#[tokio::test]
async fn with_replica_acks_a_claim_and_its_settle_are_on_the_replica_when_they_are_acknowledged() {
    let servers = Replicated::start(1).await;
    let with_acks = Settings { replica_acks: 1, ..servers.master.settings() };
    let (store, replica) = (store_with(&with_acks), store_with(&servers.replicas[0].settings()));
    let (order, again) = (order("1"), order("2"));
    let (request, attempt) = granted(&*store, &order).await;
    assert!(replica.get(order.id).await.unwrap().is_some());
    store.apply(end_of(&request, attempt, Outcome::Succeeded)).await.unwrap();
    assert_eq!(replica.get(order.id).await.unwrap().unwrap().state.as_str(), "succeeded");
    let before = servers.master.calls("wait").await;
    attempted(&*store, &again, Outcome::Succeeded).await;
    assert_eq!(servers.master.calls("wait").await - before, 2);
    // neither a renewal nor a replay waits
    assert_eq!(copy_of(&*store, &order).await, replay());
    assert!(!codes(&*store).await.contains(&"failover-may-lose"));
    assert!(codes(&*store_with(&servers.master.settings())).await.contains(&"failover-may-lose"));
}

/// Claims are refused while there are no replicas, and granted again by themselves afterwards.
#[tokio::test]
async fn with_replica_acks_and_no_replica_nothing_is_granted_and_nobody_else_waits() {
    let servers = Replicated::start(1).await;
    let limit = Duration::from_secs(2);
    let settings = Settings { timeout: limit, ..servers.master.settings() };
    let (store, without) =
        (store_with(&Settings { replica_acks: 1, ..settings.clone() }), store_with(&settings));
    let in_flight = order("in flight");
    attempted(&*store, &order("done"), Outcome::Succeeded).await;
    let (held, attempt) = granted(&*store, &in_flight).await;
    servers.replicas[0].pauses();
    let request = claim_on(&order("new"));
    let asked = Instant::now();
    let claims = std::array::from_fn::<_, 8, _>(|n| {
        let (store, key) = (Arc::clone(&store), format!("new {n}"));
        tokio::spawn(async move { store.apply(claim_on(&order(&key))).await })
    });
    // calls that need no replica, on the same store, while those wait
    assert_eq!(renews(&*store, in_flight.id, held.claim_id, LEASE).await, Renewed::Renewed);
    assert_eq!(copy_of(&*without, &order("done")).await, replay());
    store.get(in_flight.id).await.unwrap();
    assert!(asked.elapsed() < limit / 2, "{:?}", asked.elapsed());
    for claim in claims {
        let told = claim.await.unwrap().unwrap_err();
        assert!(matches!(told, Error::TooFewReplicas { wanted: 1, had: 0 }), "{told:?}");
    }
    let end = end_of(&held, attempt, Outcome::Succeeded);
    for _ in 0..2 {
        // the second finds what the first has written, which is on no replica yet
        let told = store.apply(request.clone()).await.unwrap_err();
        assert!(told.may_have_applied(), "{told:?}");
        let told = store.apply(end.clone()).await.unwrap_err();
        assert!(told.may_have_applied(), "{told:?}");
    }
    // others do not wait for replicas, by their own settings
    granted(&*without, &order("another")).await;
    servers.replicas[0].goes_on();
    works_again(&*store).await;
    // the same call again is granted once, and waits for the replica again
    assert_eq!(store.apply(request.clone()).await.unwrap(), granted_as(1));
    let settled = store.apply(end.clone()).await.unwrap();
    assert_eq!(settled, Settled::Recorded { copy_refused: false });
}

#[tokio::test]
async fn a_master_that_sentinels_replace_is_followed_and_what_replicas_have_is_kept() {
    let mut guarded = Guarded::start().await;
    let settings = Settings { replica_acks: 2, ..guarded.settings() };
    let (store, other) = (store_with(&settings), store_with(&settings));
    listens(&*other).await;
    let (done, in_flight) = (order("done"), order("in flight"));
    attempted(&*store, &done, Outcome::Succeeded).await;
    let (request, attempt) = granted(&*store, &in_flight).await;
    guarded.servers.master.dies().await;
    store.apply(claim_on(&order("meanwhile"))).await.unwrap_err();
    guarded.has_failed_over().await;
    let one_left = store_with(&Settings { replica_acks: 1, ..guarded.settings() });
    works_again(&*one_left).await;
    assert_eq!(copy_of(&*store, &done).await, replay());
    let met = copy_of(&*one_left, &in_flight).await;
    assert!(
        matches!(met, ClaimReply::NotGranted(ReportedState::InFlight { attempt: 1, .. })),
        "{met:?}"
    );
    // the subscription has followed as well
    let mut watch = other.watch(in_flight.id).await.unwrap();
    other.apply(that_waits(claim_on(&in_flight))).await.unwrap();
    one_left.apply(end_of(&request, attempt, Outcome::Succeeded)).await.unwrap();
    let told = timeout(Duration::from_secs(10), watch.ended()).await;
    told.expect("the end was not told");
    assert_eq!(copy_of(&*other, &in_flight).await, replay());
}

/// The sentinel that answers first is believed.
#[tokio::test]
async fn a_sentinel_that_does_not_answer_costs_no_call() {
    let guarded = Guarded::start().await;
    let silent = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("redis://{}", silent.local_addr().unwrap());
    let mut settings = guarded.settings();
    settings.urls.splice(..0, vec![Secret::new(url); 3]);
    granted(&*store_with(&settings), &order("1")).await;
}

/// The old master is not dead, but demoted; its connections stay open.
#[tokio::test]
async fn a_master_that_is_demoted_under_load_loses_no_claim_to_the_old_one() {
    let guarded = Guarded::start().await;
    // as many as there are: whoever is promoted has it
    let settings = Settings { replica_acks: 2, ..guarded.settings() };
    let store = store_with(&settings);
    let (done, load) = (order("done"), Arc::clone(&store));
    attempted(&*store, &done, Outcome::Succeeded).await;
    let over = Arc::new(AtomicBool::new(false));
    let ends = Arc::clone(&over);
    let load = tokio::spawn(async move {
        let mut settled = Vec::new();
        for n in 0.. {
            let order = order(&format!("load {n}"));
            let request = claim_on(&order);
            if let Ok(ClaimReply::Granted(Grant { attempt, .. })) =
                load.apply(request.clone()).await
                && load.apply(end_of(&request, attempt, Outcome::Succeeded)).await.is_ok()
            {
                settled.push(order);
            }
            if ends.load(Ordering::SeqCst) {
                break;
            }
        }
        settled
    });
    guarded.is_told_to_fail_over().await;
    guarded.has_failed_over().await;
    works_again(&*store).await;
    over.store(true, Ordering::SeqCst);
    let settled = load.await.unwrap();
    assert!(settled.len() > 10, "{} were settled", settled.len());
    for order in settled {
        assert_eq!(copy_of(&*store, &order).await, replay());
    }
}

/// Whose records are in the same slot as those of this one.
fn beside(subject: &Subject, word: &str) -> Arc<Subject> {
    let shard = |subject: &Subject| subject.id.as_bytes()[0] % 64;
    let mut keys = (0..).map(|n| order(&format!("{word} {n}")));
    keys.find(|other| shard(other) == shard(subject)).unwrap()
}

#[tokio::test]
async fn a_cluster_serves_all_calls_while_a_slot_is_moved_and_a_master_dies() {
    let mut cluster = RedisCluster::start().await;
    let (store, done) = (store_with(&cluster.settings()), order("done"));
    store.probe().await.unwrap();
    for n in 0..100 {
        attempted(&*store, &order(&format!("many {n}")), Outcome::Failed).await;
    }
    attempted(&*store, &done, Outcome::Succeeded).await;
    let held = beside(&done, "held");
    let (request, attempt) = granted(&*store, &held).await;
    assert_eq!(store.list(&ALL).await.unwrap().operations.len(), 100);
    assert_eq!(store.uncertain().await.unwrap(), 0);

    let tag = format!("{{onceward:{}}}", done.id.as_bytes()[0] % 64);
    let slot = cluster.nodes[0].does(&format!("CLUSTER KEYSLOT {tag}")).await;
    let slot: u16 = redis::from_redis_value(slot).unwrap();
    let (from, to) = cluster.holder_of(slot).await;
    let (from_id, to_id) = (from.tells("CLUSTER MYID").await, to.tells("CLUSTER MYID").await);
    to.does(&format!("CLUSTER SETSLOT {slot} IMPORTING {from_id}")).await;
    from.does(&format!("CLUSTER SETSLOT {slot} MIGRATING {to_id}")).await;
    // what is known is still told; what would be new must wait until the keys are together
    let fresh = store_with(&cluster.settings());
    for store in [&store, &fresh] {
        assert_eq!(copy_of(&**store, &done).await, replay());
        let why = is_turned_away_beside(&**store, &done, "new").await;
        assert_eq!(why, "the cluster is moving the keys to another node");
    }
    let keys = from.does(&format!("CLUSTER GETKEYSINSLOT {slot} 1000")).await;
    let keys: Vec<String> = redis::from_redis_value(keys).unwrap();
    for (moved, key) in keys.iter().enumerate() {
        from.does(&format!("MIGRATE 127.0.0.1 {} {key} 0 5000", to.port)).await;
        if moved == keys.len() / 2 {
            assert_eq!(copy_of(&*store, &done).await, replay());
        }
    }
    assert_eq!(copy_of(&*store, &done).await, replay());
    for node in [to, from] {
        node.does(&format!("CLUSTER SETSLOT {slot} NODE {to_id}")).await;
    }
    cluster.all_know(&to_id, slot).await;
    attempted(&*store, &beside(&done, "moved"), Outcome::Succeeded).await;
    assert_eq!(copy_of(&*fresh, &done).await, replay());
    store.apply(end_of(&request, attempt, Outcome::Succeeded)).await.unwrap();
    assert_eq!(store.sweep(1000).await.unwrap().removed, 0);

    // replication is asynchronous: this is about who answers, not about what was lost
    until("its replica has all that it has", async || {
        let info = to.tells("INFO replication").await;
        let reached = info.lines().find_map(|line| line.strip_prefix("master_repl_offset:"));
        info.contains(&format!("offset={},", reached.unwrap()))
    })
    .await;
    let port = to.port;
    let gone = cluster.nodes.iter_mut().find(|node| node.port == port).unwrap();
    gone.dies().await;
    until("a replica takes its place", async || {
        let told = store.apply(claim_on(&done)).await;
        told.is_ok_and(|told| told == replay())
    })
    .await;
    attempted(&*store, &beside(&done, "after"), Outcome::Succeeded).await;
    until("the list is whole", async || store.list(&ALL).await.is_ok()).await;
}

async fn is_turned_away_beside(store: &dyn Store, subject: &Subject, word: &str) -> &'static str {
    let beside = beside(subject, word);
    is_turned_away(store, &beside.key.parts[0]).await
}

#[tokio::test]
async fn a_master_of_a_cluster_that_came_back_empty_is_a_concern() {
    let cluster = RedisCluster::start().await;
    let store = store_with(&cluster.settings());
    assert!(!codes(&*store).await.contains(&"epoch-changed"));
    for node in &cluster.nodes {
        let is_replica = node.tells("INFO replication").await.contains("role:slave");
        if is_replica {
            continue;
        }
        let other = store_with(&cluster.settings());
        assert!(!codes(&*other).await.contains(&"epoch-changed"));
        node.does("FLUSHALL").await;
        for store in [&store, &other] {
            assert!(codes(&**store).await.contains(&"epoch-changed"), "{}", node.port);
        }
    }
}

#[tokio::test]
async fn in_a_cluster_a_claim_waits_for_the_replica_of_its_own_node() {
    let cluster = RedisCluster::start().await;
    let store = store_with(&Settings { replica_acks: 1, ..cluster.settings() });
    for n in 0..20 {
        attempted(&*store, &order(&n.to_string()), Outcome::Succeeded).await;
    }
    let mut waited = 0;
    for node in &cluster.nodes {
        waited += node.calls("wait").await;
    }
    assert!(waited >= 40, "{waited} waits");
}

/// A way to a server on which nothing comes through any more once this word was said.
async fn falls_silent_at(word: &'static [u8], server: &RedisServer) -> u16 {
    let door = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let (port, behind) = (door.local_addr().unwrap().port(), server.port);
    tokio::spawn(async move {
        while let Ok((near, _)) = door.accept().await {
            let far = TcpStream::connect(("127.0.0.1", behind)).await.unwrap();
            let ((mut asks, mut told), (mut replies, mut asked)) =
                (near.into_split(), far.into_split());
            tokio::spawn(async move { tokio::io::copy(&mut replies, &mut told).await });
            tokio::spawn(async move {
                let mut request = vec![0; 65_536];
                while let Ok(length @ 1..) = asks.read(&mut request).await {
                    let said = &request[..length];
                    let is_silent = said.windows(word.len()).any(|found| found == word);
                    if !is_silent && asked.write_all(said).await.is_err() {
                        break;
                    }
                }
            });
        }
    });
    port
}

/// Who waits in this process is woken all the same, and asks: it does not wait with the
/// subscription.
#[tokio::test]
async fn a_master_that_does_not_say_what_it_is_keeps_no_subscription_waiting() {
    let (master, files) = (RedisServer::start().await, TempDir::new().unwrap());
    let (door, port) = (falls_silent_at(b"ROLE", &master).await, free_port());
    let file = files.path().join("sentinel.conf");
    let written = format!("port {port}\nsentinel monitor orders 127.0.0.1 {door} 1\n");
    std::fs::write(&file, written).unwrap();
    let file = file.to_str().unwrap();
    let sentinel = RedisServer::launch("redis-sentinel", port, &[file], None).await;
    let mode = Mode::Sentinel { master: "orders".to_owned() };
    let limit = Duration::from_millis(500);
    let store = store_with(&Settings { mode, timeout: limit, ..sentinel.settings() });
    let mut watch = store.watch(order("1").id).await.unwrap();
    store.get(order("1").id).await.unwrap_err();
    timeout(Duration::from_secs(20), watch.ended()).await.expect("who waits is woken");
}
