//! The store on a Redis server, under test.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use onceward::clock::Clock;
use onceward::operation::state::{
    ClaimReply, ClaimRequest, IfInFlight, Renewed, ReportedState, Settled,
};
use onceward::operation::{OperationId, Outcome, Timestamp};
use onceward::store::redis::{Settings, open};
use onceward::store::{Store, StoreExt as _};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::{Instant, timeout};

use super::Harness;
use super::listing::ALL;
use super::support::{
    LEASE, answer, attempted, claim_on, copy_of, end_of, granted, granted_as, order, renews,
};
use crate::support::{RedisServer, ServerClock, settings};

pub(super) struct OnRedis {
    server: RedisServer,
    store: Arc<dyn Store>,
    clock: Clock,
}

/// A store wakes all who wait once it hears of the ends of attempts.
pub(super) async fn listens(store: &dyn Store) {
    let id = OperationId::from_bytes([0; 16]);
    let mut watch = store.watch(id).await.unwrap();
    store.get(id).await.unwrap();
    watch.ended().await;
}

impl Harness for OnRedis {
    async fn start() -> Self {
        let server = RedisServer::start_on(ServerClock::start()).await;
        let clock = Clock::manual(Timestamp(server.clock().millis()));
        let store = open(&server.settings(), clock.clone()).unwrap();
        listens(&*store).await;
        Self { server, store, clock }
    }

    fn store(&self) -> Arc<dyn Store> {
        Arc::clone(&self.store)
    }

    async fn another(&self) -> Arc<dyn Store> {
        let another = open(&self.server.settings(), self.clock.clone()).unwrap();
        listens(&*another).await;
        another
    }

    async fn pass(&self, time: Duration) {
        self.server.clock().advance(time);
        self.clock.advance(time);
    }
}

fn store_on(server: &RedisServer) -> Arc<dyn Store> {
    open(&server.settings(), Clock::system()).unwrap()
}

pub(super) fn that_waits(request: ClaimRequest) -> ClaimRequest {
    ClaimRequest { if_in_flight: IfInFlight::Wait, ..request }
}

#[tokio::test]
async fn processes_on_one_server_see_each_others_operations() {
    let server = RedisServer::start().await;
    let (one, other, order) = (store_on(&server), store_on(&server), order("1"));
    let (request, attempt) = granted(&*one, &order).await;
    let met = copy_of(&*other, &order).await;
    assert!(
        matches!(met, ClaimReply::NotGranted(ReportedState::InFlight { attempt: 1, .. })),
        "{met:?}"
    );
    let end = end_of(&request, attempt, Outcome::Failed);
    assert_eq!(one.apply(end.clone()).await.unwrap(), Settled::Recorded { copy_refused: true });
    let (request, attempt) = granted(&*other, &order).await;
    assert_eq!(attempt, 2);
    // what the first one knew is not what is so
    assert!(matches!(
        copy_of(&*one, &order).await,
        ClaimReply::NotGranted(ReportedState::InFlight { attempt: 2, .. })
    ));
    other.apply(end_of(&request, attempt, Outcome::Succeeded)).await.unwrap();
    let replay = ClaimReply::NotGranted(ReportedState::Succeeded { attempt: 2, answer: answer() });
    assert_eq!(copy_of(&*one, &order).await, replay);
}

#[tokio::test]
async fn prefixes_keep_stores_on_one_server_apart() {
    let server = RedisServer::start().await;
    let shop = Settings { prefix: "shop".to_owned(), ..server.settings() };
    let (one, other) = (store_on(&server), open(&shop, Clock::system()).unwrap());
    granted(&*one, &order("1")).await;
    granted(&*other, &order("1")).await;
    assert_eq!(one.list(&ALL).await.unwrap().operations.len(), 1);
}

/// The time counts from the moment at which the outcome is recorded.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_waits_in_another_process_is_told_within_50_ms() {
    let server = RedisServer::start().await;
    let (one, other) = (store_on(&server), store_on(&server));
    listens(&*other).await;
    let mut took = Vec::new();
    for n in 0..21 {
        let order = order(&n.to_string());
        let (request, attempt) = granted(&*one, &order).await;
        let mut watch = other.watch(order.id).await.unwrap();
        let met = other.apply(that_waits(claim_on(&order))).await.unwrap();
        assert!(matches!(met, ClaimReply::NotGranted(ReportedState::InFlight { .. })), "{met:?}");
        let waiter = tokio::spawn(async move {
            watch.ended().await;
            Instant::now()
        });
        one.apply(end_of(&request, attempt, Outcome::Succeeded)).await.unwrap();
        let recorded = Instant::now();
        took.push(waiter.await.unwrap().saturating_duration_since(recorded));
        assert!(matches!(
            copy_of(&*other, &order).await,
            ClaimReply::NotGranted(ReportedState::Succeeded { .. })
        ));
    }
    took.sort_unstable();
    assert!(took[10] < Duration::from_millis(50), "{took:?}");
    assert_eq!(server.calls("publish").await, 21);
}

/// A renewal meanwhile takes nothing from who waits.
#[tokio::test]
async fn an_end_is_published_where_somebody_waits_and_only_there() {
    let server = RedisServer::start().await;
    let store = store_on(&server);
    attempted(&*store, &order("nobody waits"), Outcome::Succeeded).await;
    let (request, attempt) = granted(&*store, &order("refused")).await;
    copy_of(&*store, &order("refused")).await;
    store.apply(end_of(&request, attempt, Outcome::Succeeded)).await.unwrap();
    assert_eq!(server.calls("publish").await, 0);
    let order = order("waited for");
    let (request, attempt) = granted(&*store, &order).await;
    store.apply(that_waits(claim_on(&order))).await.unwrap();
    renews(&*store, order.id, request.claim_id, LEASE).await;
    assert_eq!(server.calls("publish").await, 0);
    store.apply(end_of(&request, attempt, Outcome::Failed)).await.unwrap();
    assert_eq!(server.calls("publish").await, 1);
    attempted(&*store, &order, Outcome::Failed).await;
    assert_eq!(server.calls("publish").await, 1);
}

/// A subscription that was lost is made again, and what was missed meanwhile is asked for.
#[tokio::test]
async fn a_waiter_whose_subscription_was_cut_is_told_all_the_same() {
    let server = RedisServer::start().await;
    let (one, other, order) = (store_on(&server), store_on(&server), order("1"));
    listens(&*other).await;
    let (request, attempt) = granted(&*one, &order).await;
    let mut watch = other.watch(order.id).await.unwrap();
    other.apply(that_waits(claim_on(&order))).await.unwrap();
    server.does("CLIENT KILL TYPE pubsub").await;
    one.apply(end_of(&request, attempt, Outcome::Succeeded)).await.unwrap();
    let told = timeout(Duration::from_secs(10), watch.ended()).await;
    told.expect("the end was not told");
}

/// Round trips, counted at the server.
#[tokio::test]
async fn a_new_event_takes_two_round_trips_and_a_replay_one() {
    let server = RedisServer::start().await;
    let store = store_on(&server);
    // who was never there does not know the time, and loads the script
    attempted(&*store, &order("first"), Outcome::Succeeded).await;
    let all = async || {
        let stats = server.tells("INFO commandstats").await;
        let names = stats.lines().filter_map(|line| line.strip_prefix("cmdstat_")?.split_once(':'));
        let mut names: Vec<_> = names.map(|(name, _)| name.to_owned()).collect();
        names.retain(|name| !["info", "ping"].contains(&name.as_str()));
        (server.calls("evalsha").await, names)
    };
    let (before, commands) = all().await;
    attempted(&*store, &order("new"), Outcome::Succeeded).await;
    let (after_new, _) = all().await;
    copy_of(&*store, &order("new")).await;
    let (after_replay, commands_after) = all().await;
    assert_eq!((after_new - before, after_replay - after_new), (2, 1));
    assert_eq!(commands, commands_after);
    let (request, attempt) = granted(&*store, &order("renewed")).await;
    renews(&*store, request.subject.id, request.claim_id, LEASE).await;
    store.apply(end_of(&request, attempt, Outcome::Failed)).await.unwrap();
    assert_eq!(all().await.0 - after_replay, 3);
}

/// Between a store and its server: loses replies.
struct Wire {
    port: u16,
    loses: Arc<AtomicBool>,
}

impl Wire {
    async fn to(server: &RedisServer) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let (port, behind) = (listener.local_addr().unwrap().port(), server.port);
        let loses = Arc::new(AtomicBool::new(false));
        let losing = Arc::clone(&loses);
        tokio::spawn(async move {
            while let Ok((near, _)) = listener.accept().await {
                let far = TcpStream::connect(("127.0.0.1", behind)).await.unwrap();
                tokio::spawn(carry(near, far, Arc::clone(&losing)));
            }
        });
        Self { port, loses }
    }

    /// The server does what it is asked next, and its reply is lost with the connection.
    fn loses_the_next_reply(&self) {
        self.loses.store(true, Ordering::SeqCst);
    }
}

async fn carry(near: TcpStream, far: TcpStream, losing: Arc<AtomicBool>) {
    let ((mut from, mut to), (mut back, mut out)) = (near.into_split(), far.into_split());
    // a subscription's replies are not those that shall be lost
    let asked = Arc::new(AtomicBool::new(false));
    let asks = Arc::clone(&asked);
    let there = tokio::spawn(async move {
        let mut request = vec![0; 65_536];
        while let Ok(length) = from.read(&mut request).await
            && length > 0
        {
            let bytes = &request[..length];
            if bytes.windows(7).any(|word| word == b"EVALSHA") {
                asks.store(true, Ordering::SeqCst);
            }
            out.write_all(bytes).await.unwrap();
        }
    });
    let mut reply = vec![0; 65_536];
    while let Ok(length) = back.read(&mut reply).await
        && length > 0
        && !(asked.load(Ordering::SeqCst) && losing.swap(false, Ordering::SeqCst))
        && to.write_all(&reply[..length]).await.is_ok()
    {}
    there.abort();
}

/// The connection ends after the server has done it: the same call is made again.
#[tokio::test]
async fn a_call_whose_reply_is_lost_is_made_again_and_done_once() {
    let server = RedisServer::start().await;
    let wire = Wire::to(&server).await;
    let url = format!("redis://127.0.0.1:{}", wire.port);
    let store = open(&settings(&[&url]), Clock::system()).unwrap();
    attempted(&*store, &order("first"), Outcome::Succeeded).await;
    let (request, order) = (claim_on(&order("1")), order("1"));
    let before = server.calls("evalsha").await;
    wire.loses_the_next_reply();
    assert_eq!(store.apply(request.clone()).await.unwrap(), granted_as(1));
    wire.loses_the_next_reply();
    let renewed = renews(&*store, order.id, request.claim_id, LEASE).await;
    assert_eq!(renewed, Renewed::Renewed);
    wire.loses_the_next_reply();
    let settled = store.apply(end_of(&request, 1, Outcome::Failed)).await.unwrap();
    assert_eq!(settled, Settled::Recorded { copy_refused: false });
    assert_eq!(server.calls("evalsha").await - before, 6);
    let found = store.get(order.id).await.unwrap().unwrap();
    assert_eq!(found.attempts.latest_number(), 1);
}
