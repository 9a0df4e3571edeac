//! What goes wrong with a Redis server, and what its store makes of it: an error that says whether
//! the call may have taken effect, never a free key; and all is well when the server is.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use futures_util::future::join_all;
use onceward::clock::Clock;
use onceward::operation::state::{ClaimReply, ClaimRequest, Grant, ReportedState, Settled};
use onceward::operation::{Durations, OperationId, Outcome};
use onceward::store::redis::{ACL_LINE, Settings, open};
use onceward::store::{Error, Store, StoreExt as _};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::{Instant, sleep, timeout};

use super::listing::ALL;
use super::redis::{listens, that_waits};
use super::support::{answer, attempted, claim_on, copy_of, end_of, granted, order, withdraws};
use crate::support::{PATIENCE, RedisServer, Relay, settings, until};

fn store_with(settings: &Settings) -> Arc<dyn Store> {
    open(settings, Clock::system()).unwrap()
}

fn store_on(server: &RedisServer) -> Arc<dyn Store> {
    store_with(&server.settings())
}

pub(super) fn replay() -> ClaimReply {
    ClaimReply::NotGranted(ReportedState::Succeeded { attempt: 1, answer: answer() })
}

/// Claims a new operation and is turned away; gives the reason.
pub(super) async fn is_turned_away(store: &dyn Store, key: &str) -> &'static str {
    match store.apply(claim_on(&order(key))).await {
        Err(Error::Unavailable(why)) => why,
        other => panic!("not turned away: {other:?}"),
    }
}

/// Claims and settles new operations until the store works.
pub(super) async fn works_again(store: &dyn Store) {
    let tries = AtomicUsize::new(0);
    until("the store works again by itself", async || {
        let order = order(&format!("again {}", tries.fetch_add(1, Ordering::Relaxed)));
        let request = claim_on(&order);
        let claimed = store.apply(request.clone()).await;
        let Ok(ClaimReply::Granted(Grant { attempt, .. })) = claimed else { return false };
        store.apply(end_of(&request, attempt, Outcome::Succeeded)).await.is_ok()
    })
    .await;
}

pub(super) fn record(id: OperationId) -> String {
    let first = id.as_bytes()[0] % 64;
    let digits = id.to_string().split_off(3);
    format!("{{onceward:{first}}}:op:{digits}")
}

/// A restart, a failover and `SCRIPT FLUSH` empty the cache of scripts.
#[tokio::test]
async fn a_server_that_forgets_its_scripts_between_claim_and_settle_is_told_them_again() {
    let server = RedisServer::start().await;
    let (store, order) = (store_on(&server), order("1"));
    let (request, attempt) = granted(&*store, &order).await;
    server.does("SCRIPT FLUSH").await;
    let settled = store.apply(end_of(&request, attempt, Outcome::Succeeded)).await.unwrap();
    assert_eq!(settled, Settled::Recorded { copy_refused: false });
    server.does("SCRIPT FLUSH").await;
    assert_eq!(copy_of(&*store, &order).await, replay());
}

/// Nothing listens there.
#[tokio::test]
async fn a_server_that_is_not_there_turns_claims_away_at_once() {
    let mut server = RedisServer::start().await;
    let store = store_on(&server);
    server.dies().await;
    let asked = Instant::now();
    assert_eq!(is_turned_away(&*store, "1").await, "no connection to the server can be made");
    assert!(asked.elapsed() < Duration::from_secs(1), "{:?}", asked.elapsed());
    server.comes_back().await;
    works_again(&*store).await;
}

/// It dies with connections open, and keeps its records.
#[tokio::test]
async fn a_server_that_was_killed_is_used_again_with_what_it_had() {
    let mut server =
        RedisServer::start_with(&["--appendonly", "yes", "--appendfsync", "always"]).await;
    let store = store_on(&server);
    let (done, in_flight) = (order("done"), order("in flight"));
    attempted(&*store, &done, Outcome::Succeeded).await;
    let (request, attempt) = granted(&*store, &in_flight).await;
    server.dies().await;
    store.apply(claim_on(&order("new"))).await.unwrap_err();
    store.apply(end_of(&request, attempt, Outcome::Succeeded)).await.unwrap_err();
    is_turned_away(&*store, "another").await;
    server.comes_back().await;
    works_again(&*store).await;
    assert_eq!(copy_of(&*store, &done).await, replay());
    let settled = store.apply(end_of(&request, attempt, Outcome::Succeeded)).await.unwrap();
    assert_eq!(settled, Settled::Recorded { copy_refused: false });
}

/// An idle connection that has ended is no reason to turn anybody away.
#[tokio::test]
async fn a_server_that_was_restarted_between_two_calls_costs_no_call() {
    let mut server = RedisServer::start_with(&["--appendonly", "yes"]).await;
    let (store, done) = (store_on(&server), order("done"));
    attempted(&*store, &done, Outcome::Succeeded).await;
    server.shuts_down().await;
    server.comes_back().await;
    // it may still be reading its file
    works_again(&*store_on(&server)).await;
    assert_eq!(copy_of(&*store, &done).await, replay());
    granted(&*store, &order("new")).await;
}

/// It accepts and does not answer.
#[tokio::test]
async fn a_server_that_pauses_lets_no_call_take_longer_than_its_time() {
    let server = RedisServer::start().await;
    let limit = Duration::from_millis(300);
    let store = store_with(&Settings { timeout: limit, ..server.settings() });
    attempted(&*store, &order("done"), Outcome::Succeeded).await;
    server.pauses();
    for key in ["1", "2"] {
        let asked = Instant::now();
        let told = store.apply(claim_on(&order(key))).await;
        assert!(told.is_err(), "{told:?}");
        assert!(asked.elapsed() < limit * 10, "{:?}", asked.elapsed());
    }
    server.goes_on();
    works_again(&*store).await;
    assert_eq!(copy_of(&*store, &order("done")).await, replay());
}

/// More calls than a connection takes at a time wait for a network that drops what it gets. The next
/// connection does not wait for those that were sent, and takes those that were not.
#[tokio::test]
async fn calls_that_are_lost_with_their_connection_keep_nobody_from_the_next_one() {
    let server = RedisServer::start().await;
    let address = server.url().trim_start_matches("redis://").parse().unwrap();
    let relay = Relay::to(address).await;
    let through = settings(&[&format!("redis://127.0.0.1:{}", relay.port)]);
    let store = store_with(&Settings { timeout: Duration::from_secs(16), ..through });
    attempted(&*store, &order("done"), Outcome::Succeeded).await;
    relay.goes_silent();
    let claims = (0..100).map(|number| {
        let (store, subject) = (Arc::clone(&store), order(&format!("lost {number}")));
        async move { store.apply(claim_on(&subject)).await }
    });
    let claimed = tokio::spawn(join_all(claims.collect::<Vec<_>>()));
    // They are sent first. This one gets no place before the connection is given up.
    tokio::task::yield_now().await;
    let _one_way_or_the_other = store.apply(claim_on(&order("one more"))).await;
    works_again(&*store).await;
    assert!(!claimed.is_finished(), "it has waited for the calls that were lost");
    let mut lost = 0;
    for claimed in claimed.await.unwrap() {
        match claimed {
            Err(Error::NoReply(_)) => lost += 1,
            // Its time for a place ended with the connection, or it went on to the next one.
            Err(Error::Unavailable(_)) | Ok(ClaimReply::Granted(_)) => {}
            other => panic!("{other:?}"),
        }
    }
    assert!((1..100).contains(&lost), "{lost} of 100 were sent and lost");
}

/// What the server does after its caller has given up is withdrawn: a claim without a reply is no
/// grant.
#[tokio::test]
async fn a_claim_that_is_granted_after_it_was_given_up_can_be_withdrawn() {
    let server = RedisServer::start().await;
    let limit = Duration::from_millis(300);
    let store = store_with(&Settings { timeout: limit, ..server.settings() });
    attempted(&*store, &order("warm"), Outcome::Succeeded).await;
    server.pauses();
    let request = claim_on(&order("1"));
    let told = store.apply(request.clone()).await.unwrap_err();
    assert!(matches!(told, Error::NoReply(_)), "{told:?}");
    server.goes_on();
    works_again(&*store).await;
    withdraws(&*store, request.subject.id, request.claim_id).await;
    assert!(matches!(copy_of(&*store, &order("1")).await, ClaimReply::Granted(_)));
}

/// Every write fails for want of memory; reads do not.
#[tokio::test]
async fn a_full_server_turns_new_claims_away_and_replays_all_the_same() {
    let server = RedisServer::start().await;
    let (store, done, in_flight) = (store_on(&server), order("done"), order("in flight"));
    attempted(&*store, &done, Outcome::Succeeded).await;
    let (request, attempt) = granted(&*store, &in_flight).await;
    server.does("CONFIG SET maxmemory 1").await;
    assert_eq!(is_turned_away(&*store, "new").await, "the server has no memory left");
    assert_eq!(copy_of(&*store, &done).await, replay());
    // another process knows nothing, and asks
    assert_eq!(copy_of(&*store_on(&server), &done).await, replay());
    let end = end_of(&request, attempt, Outcome::Succeeded);
    let told = store.apply(end.clone()).await.unwrap_err();
    assert!(!told.may_have_applied(), "{told:?}");
    assert_eq!(store.list(&ALL).await.unwrap().operations.len(), 2);
    server.does("CONFIG SET maxmemory 0").await;
    assert!(matches!(store.apply(end.clone()).await.unwrap(), Settled::Recorded { .. }));
    granted(&*store, &order("new")).await;
}

/// That a copy was refused is noted; it is refused all the same where that cannot be written.
#[tokio::test]
async fn a_copy_of_what_is_open_is_told_so_by_a_full_server() {
    let server = RedisServer::start().await;
    let (store, in_flight, held) = (store_on(&server), order("in flight"), order("held"));
    granted(&*store, &in_flight).await;
    attempted(&*store, &held, Outcome::Uncertain).await;
    server.does("CONFIG SET maxmemory 1").await;
    for store in [store, store_on(&server)] {
        let met = copy_of(&*store, &in_flight).await;
        assert!(
            matches!(met, ClaimReply::NotGranted(ReportedState::InFlight { attempt: 1, .. })),
            "{met:?}"
        );
        let met = copy_of(&*store, &held).await;
        assert!(
            matches!(met, ClaimReply::NotGranted(ReportedState::Uncertain { attempt: 1, .. })),
            "{met:?}"
        );
    }
}

#[tokio::test]
async fn what_was_met_before_a_server_went_away_is_said() {
    let server = RedisServer::start().await;
    let limit = Duration::from_millis(500);
    let store = store_with(&Settings { timeout: limit, ..server.settings() });
    granted(&*store, &order("in flight")).await;
    attempted(&*store, &order("free"), Outcome::Failed).await;
    server.pauses();
    let told = store.apply(claim_on(&order("in flight"))).await.unwrap_err();
    assert!(
        matches!(&told, Error::AttemptExists(why) if matches!(**why, Error::NoReply(_))),
        "{told:?}"
    );
    for unmet in ["free", "new"] {
        let told = store.apply(claim_on(&order(unmet))).await.unwrap_err();
        assert!(told.leaves_state_unknown(), "{unmet}: {told:?}");
    }
}

/// How often the server was connected to, for this look as well.
async fn connections(server: &RedisServer) -> u64 {
    let info = server.tells("INFO stats").await;
    let line = info.lines().find_map(|line| line.strip_prefix("total_connections_received:"));
    line.unwrap().parse().unwrap()
}

#[tokio::test]
async fn a_caller_who_goes_away_before_the_answer_leaves_the_connection_to_the_others() {
    let server = RedisServer::start().await;
    let store = store_on(&server);
    listens(&*store).await;
    attempted(&*store, &order("1"), Outcome::Succeeded).await;
    let before = connections(&server).await;
    server.pauses();
    let request = claim_on(&order("2"));
    let gone = timeout(Duration::from_millis(50), store.apply(request.clone())).await;
    gone.unwrap_err();
    server.goes_on();
    attempted(&*store, &order("3"), Outcome::Succeeded).await;
    // one is the test's own
    assert_eq!(connections(&server).await, before + 1);
}

/// After a failover a connection may lead to the server that was the master.
#[tokio::test]
async fn a_demoted_server_turns_claims_away_and_is_connected_to_anew() {
    let server = RedisServer::start().await;
    let (store, done) = (store_on(&server), order("done"));
    attempted(&*store, &done, Outcome::Succeeded).await;
    server.does("REPLICAOF 127.0.0.1 1").await;
    let before = connections(&server).await;
    let why = is_turned_away(&*store, "new").await;
    assert_eq!(why, "the server is a replica, which takes no writes");
    is_turned_away(&*store, "another").await;
    // one is the test's own
    assert!(connections(&server).await > before + 1, "it was not connected to anew");
    assert_eq!(copy_of(&*store, &done).await, replay());
    server.does("REPLICAOF NO ONE").await;
    works_again(&*store).await;
}

/// What stands in a record's place is no free key.
#[tokio::test]
async fn a_record_that_is_damaged_or_none_is_an_error_and_hides_no_other() {
    let server = RedisServer::start().await;
    let store = store_on(&server);
    let fine = order("fine");
    attempted(&*store, &fine, Outcome::Succeeded).await;
    for (n, damage) in [
        "SET KEY something",
        "HDEL KEY record",
        "HDEL KEY revision",
        "HDEL KEY changes_at",
        "HSET KEY state asleep",
        "HSET KEY record something",
        "HSET KEY record ",
    ]
    .into_iter()
    .enumerate()
    {
        let order = order(&format!("damaged {n}"));
        attempted(&*store, &order, Outcome::Failed).await;
        server.does(&damage.replace("KEY", &record(order.id))).await;
        // who put the record knows what it was, if its revision is still there
        let knows = damage.contains("KEY record") && !damage.starts_with("HDEL");
        let others = (!knows).then(|| Arc::clone(&store));
        for store in others.into_iter().chain([store_on(&server)]) {
            let told = store.apply(claim_on(&order)).await.unwrap_err();
            assert!(
                matches!(told, Error::Unreadable(id, _) if id == order.id),
                "{damage}: {told:?}"
            );
            let told = store.get(order.id).await.unwrap_err();
            assert!(matches!(told, Error::Unreadable(..)), "{damage}: {told:?}");
        }
    }
    let listed = store.list(&ALL).await.unwrap();
    assert!(listed.operations.iter().any(|operation| operation.subject.id == fine.id));
    store.sweep(100).await.unwrap();
}

/// A record that somebody has deleted leaves nothing in the indexes for long.
#[tokio::test]
async fn what_a_deleted_record_leaves_in_the_indexes_is_swept() {
    let server = RedisServer::start().await;
    let (store, held) = (store_on(&server), order("held"));
    let durations = Durations {
        hold_for: Duration::ZERO,
        attempt_timeout: Duration::from_millis(1),
        ..claim_on(&held).durations
    };
    let request = ClaimRequest { durations, ..claim_on(&held) };
    let ClaimReply::Granted(Grant { attempt, .. }) = store.apply(request.clone()).await.unwrap()
    else {
        panic!()
    };
    store.apply(end_of(&request, attempt, Outcome::Uncertain)).await.unwrap();
    server.does(&format!("DEL {}", record(held.id))).await;
    let swept = async {
        while store.uncertain().await.unwrap() > 0 {
            store.sweep(10).await.unwrap();
        }
    };
    timeout(PATIENCE, swept).await.expect("it is swept");
    assert_eq!(store.list(&ALL).await.unwrap().operations, []);
    assert_eq!(server.tells("EVAL return(#redis.call('KEYS','*')) 0").await, "0");
}

/// A server on which a user may do what a line of its ACL grants.
async fn with_user(line: &str) -> (RedisServer, Settings) {
    let server = RedisServer::start().await;
    let user = line.strip_prefix("user ").unwrap().replace(">PASSWORD", ">secret");
    server.does(&format!("ACL SETUSER {user}")).await;
    let url = format!("redis://onceward:secret@127.0.0.1:{}", server.port);
    let settings = settings(&[&url]);
    (server, settings)
}

pub(super) async fn codes(store: &dyn Store) -> Vec<&'static str> {
    store.concerns().await.unwrap().iter().map(|concern| concern.code).collect()
}

/// The permissions are those that the documentation and the messages name.
#[tokio::test]
async fn a_user_with_the_documented_permissions_may_do_all_that_is_needed() {
    let (server, settings) = with_user(ACL_LINE).await;
    let (store, other) = (store_with(&settings), store_with(&settings));
    listens(&*other).await;
    store.probe().await.unwrap();
    let order = order("1");
    let (request, attempt) = granted(&*store, &order).await;
    let mut watch = other.watch(order.id).await.unwrap();
    let waits = that_waits(claim_on(&order));
    assert!(matches!(
        other.apply(waits.clone()).await.unwrap(),
        ClaimReply::NotGranted(ReportedState::InFlight { .. })
    ));
    store.apply(end_of(&request, attempt, Outcome::Uncertain)).await.unwrap();
    timeout(PATIENCE, watch.ended()).await.expect("ends are told");
    assert_eq!(server.calls("publish").await, 1);
    assert_eq!(store.uncertain().await.unwrap(), 1);
    assert_eq!(store.list(&ALL).await.unwrap().operations.len(), 1);
    store.sweep(10).await.unwrap();
    assert_eq!(codes(&*store).await, ["no-persistence"]);
    assert_eq!(server.calls("publish").await, 2, "concerns try it");
    let denied = server.does("ACL LOG").await;
    assert_eq!(denied, redis::Value::Array(Vec::new()));
}

#[tokio::test]
async fn a_user_without_scripting_is_turned_away_and_the_line_that_helps_is_named() {
    let line = "user onceward on >PASSWORD ~* &* +@all -@scripting";
    let (_server, settings) = with_user(line).await;
    let store = store_with(&settings);
    let why = is_turned_away(&*store, "1").await;
    assert_eq!(why, "the server does not permit its user what is needed");
    store.probe().await.unwrap_err();
    let concerns = store.concerns().await.unwrap();
    let concern = concerns.iter().find(|concern| concern.code == "not-permitted").unwrap();
    assert!(concern.text.contains("EVALSHA"), "{}", concern.text);
    assert!(concern.hint.contains(ACL_LINE), "{}", concern.hint);
}

#[tokio::test]
async fn a_user_of_other_keys_is_turned_away() {
    let line = ACL_LINE.replace("{onceward:", "other:");
    let (_server, settings) = with_user(&line).await;
    let store = store_with(&settings);
    is_turned_away(&*store, "1").await;
    assert!(codes(&*store).await.contains(&"not-permitted"));
}

/// `INFO` and `CONFIG` are optional, and so is the channel.
#[tokio::test]
async fn a_user_that_may_not_ask_for_settings_is_told_what_could_not_be_checked() {
    let line = ACL_LINE.replace(" +info +config|get", "");
    let (_server, settings) = with_user(&line).await;
    let store = store_with(&settings);
    attempted(&*store, &order("1"), Outcome::Succeeded).await;
    assert_eq!(codes(&*store).await, ["not-checked"]);
}

#[tokio::test]
async fn a_wrong_password_is_said_and_not_shown() {
    let (server, _) = with_user(ACL_LINE).await;
    let url = format!("redis://onceward:hunter2@127.0.0.1:{}", server.port);
    let store = store_with(&settings(&[&url]));
    assert_eq!(is_turned_away(&*store, "1").await, "the server refuses the user or the password");
    let bad = settings(&["redis://onceward:hunter2@[bad"]);
    let error = open(&bad, Clock::system()).map(drop).unwrap_err();
    let shown = format!("{error:?} {error} {bad:?} {store:?}");
    assert!(!shown.contains("hunter2"), "{shown}");
}

/// It is told for as long as the process runs, with how often it happened.
#[tokio::test]
async fn a_server_that_came_back_empty_is_a_concern_to_whoever_knew_it_before() {
    let server = RedisServer::start_with(&["--appendonly", "yes", "--appendfsync", "always"]).await;
    let store = store_on(&server);
    assert_eq!(codes(&*store).await, Vec::<&str>::new());
    assert_eq!(codes(&*store).await, Vec::<&str>::new());
    for times in ["once", "2 times"] {
        server.does("FLUSHALL").await;
        // whoever comes first gives it a new word, and knows nothing of the old one
        assert_eq!(codes(&*store_on(&server)).await, Vec::<&str>::new());
        for _ in 0..2 {
            let concerns = store.concerns().await.unwrap();
            assert_eq!(concerns.len(), 1);
            assert_eq!(concerns[0].code, "epoch-changed");
            assert!(concerns[0].text.contains(times), "{}", concerns[0].text);
        }
    }
}

/// A door to a server through which each reply takes so long.
async fn far_away(server: &RedisServer, delay: Duration) -> String {
    let door = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let (url, port) = (format!("redis://{}", door.local_addr().unwrap()), server.port);
    tokio::spawn(async move {
        while let Ok((near, _)) = door.accept().await {
            let far = TcpStream::connect(("127.0.0.1", port)).await.unwrap();
            let ((mut asks, mut told), (mut replies, mut asked)) =
                (near.into_split(), far.into_split());
            tokio::spawn(async move { tokio::io::copy(&mut asks, &mut asked).await });
            tokio::spawn(async move {
                let mut reply = vec![0; 65_536];
                while let Ok(length @ 1..) = replies.read(&mut reply).await {
                    // A server that is far away: that is what is tested.
                    sleep(delay).await;
                    if told.write_all(&reply[..length]).await.is_err() {
                        break;
                    }
                }
            });
        }
    });
    url
}

#[tokio::test]
async fn an_unsafe_server_is_a_concern_however_slow_it_is() {
    let server = RedisServer::start().await;
    let url = far_away(&server, Duration::from_millis(150)).await;
    assert_eq!(codes(&*store_with(&settings(&[&url]))).await, ["no-persistence"]);
}

#[tokio::test]
async fn an_unsafe_server_is_a_concern_as_it_is_set_up_now() {
    let server = RedisServer::start_with(&["--appendonly", "yes"]).await;
    let store = store_on(&server);
    assert_eq!(codes(&*store).await, ["not-synced"]);
    server.does("CONFIG SET maxmemory-policy allkeys-lru").await;
    assert_eq!(codes(&*store).await, ["evicting-policy", "not-synced"]);
    server.does("CONFIG SET maxmemory-policy noeviction").await;
    server.does("CONFIG SET appendonly no").await;
    assert_eq!(codes(&*store).await, ["no-persistence"]);
    let at_times = RedisServer::start_with(&["--save", "3600 1"]).await;
    assert_eq!(codes(&*store_on(&at_times)).await, ["snapshots-only"]);
}
