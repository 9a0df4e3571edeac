//! Behind PgBouncer in transaction mode.

use std::sync::Arc;
use std::time::Duration;

use onceward::operation::Outcome;
use onceward::operation::state::{ClaimReply, ClaimRequest, IfInFlight, Renewed, ReportedState};
use onceward::secret::Secret;
use onceward::store::postgres::Settings;
use onceward::store::{ListQuery, Store, StoreExt as _};
use tokio::task::JoinSet;
use tokio::time::{Instant, timeout};
use tokio_postgres::NoTls;

use super::{is_listening, open, settings};
use crate::store_contract::support::{
    LEASE, attempted, claim_on, copy_of, end_of, granted, order, renews, sweep_all,
};
use crate::support::{PgBouncer, PostgresServer};

const PATIENCE: Duration = Duration::from_secs(20);

/// A waiter on `another` learns of an end on `store`: how long it takes.
async fn is_told(store: &dyn Store, another: &dyn Store, key: &str) -> Duration {
    let order = order(key);
    let (request, attempt) = granted(store, &order).await;
    let mut watch = another.watch(order.id).await.unwrap();
    let waits = ClaimRequest { if_in_flight: IfInFlight::Wait, ..claim_on(&order) };
    assert!(matches!(
        another.apply(waits.clone()).await.unwrap(),
        ClaimReply::NotGranted(ReportedState::InFlight { .. })
    ));
    store.apply(end_of(&request, attempt, Outcome::Succeeded)).await.unwrap();
    let settled = Instant::now();
    timeout(PATIENCE, watch.ended()).await.unwrap();
    settled.elapsed()
}

/// Sessions are shared with others: nothing may stay set in them, nor be expected of them.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn every_call_works_behind_a_pooler_and_leaves_its_sessions_as_they_were() {
    let server = PostgresServer::with(&["synchronous_commit=off"]);
    let pooler = PgBouncer::before(&server);
    let url = pooler.url();
    let (store, another) = (open(&settings(&url)), open(&settings(&url)));
    let mut racers = JoinSet::new();
    for racer in 0..50 {
        let store = Arc::clone([&store, &another][racer % 2]);
        racers.spawn(async move { copy_of(&*store, &order("raced")).await });
    }
    let told = racers.join_all().await;
    let granted_to = told.iter().filter(|told| matches!(told, ClaimReply::Granted(_))).count();
    assert_eq!(granted_to, 1);

    let (request, attempt) = granted(&*store, &order("1")).await;
    let renewed = renews(&*another, order("1").id, request.claim_id, LEASE).await;
    assert_eq!(renewed, Renewed::Renewed);
    another.apply(end_of(&request, attempt, Outcome::Uncertain)).await.unwrap();
    assert_eq!(store.uncertain().await.unwrap(), 1);
    let listing = ListQuery { route: None, state: None, key: None, after: None, limit: 10 };
    assert_eq!(store.list(&listing).await.unwrap().operations.len(), 2);
    assert_eq!(sweep_all(&*store, 10).await, (0, 0));
    assert_eq!(store.concerns().await.unwrap(), []);
    store.probe().await.unwrap();

    let (client, connection) = tokio_postgres::connect(&url, NoTls).await.unwrap();
    tokio::spawn(connection);
    for _ in 0..20 {
        let set = "SELECT current_setting('synchronous_commit') || current_setting('lock_timeout') \
            || current_setting('statement_timeout')";
        let rows = client.query_typed(set, &[]).await.unwrap();
        assert_eq!(rows[0].get::<_, &str>(0), "off00");
    }
    store.close().await;
}

/// Most waiters are; a single one may be late on a busy machine.
async fn is_told_at_once(store: &dyn Store, another: &dyn Store) {
    let mut took = Vec::new();
    for number in 0..11 {
        took.push(is_told(store, another, &format!("{number}")).await);
    }
    took.sort();
    assert!(took[5] < Duration::from_millis(50), "{took:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_waiter_behind_a_pooler_is_told_at_once_over_a_direct_connection() {
    let server = PostgresServer::start();
    let pooler = PgBouncer::before(&server);
    let listen_url = Some(Secret::new(server.url()));
    let behind = Settings { listen_url, ..settings(&pooler.url()) };
    let (store, another) = (open(&behind), open(&behind));
    is_listening(&server, &*another).await;
    is_told_at_once(&*store, &*another).await;
}

/// The stated bound: a second.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_waiter_behind_a_pooler_alone_is_woken_every_second() {
    let server = PostgresServer::start();
    let pooler = PgBouncer::before(&server);
    let (store, another) = (open(&settings(&pooler.url())), open(&settings(&pooler.url())));
    attempted(&*store, &order("first of all"), Outcome::Succeeded).await;
    let mut took = Vec::new();
    for number in 0..5 {
        took.push(is_told(&*store, &*another, &format!("{number}")).await);
    }
    // On a busy machine one of them may be late.
    took.sort();
    assert!(took[2] < Duration::from_millis(1500), "{took:?}");
    let listens = "SELECT count(*) FROM pg_stat_activity WHERE query LIKE 'LISTEN%'";
    assert_eq!(server.row(listens).await.get::<_, i64>(0), 0);
}

/// While nothing is heard, who waits asks again; then it is heard at once again.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lost_connection_for_notifications_is_made_again() {
    let server = PostgresServer::start();
    let (store, another) = (open(&settings(&server.url())), open(&settings(&server.url())));
    is_listening(&server, &*another).await;
    let kill = "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity \
        WHERE pid <> pg_backend_pid() AND application_name = 'onceward' \
        AND query LIKE ANY (ARRAY['LISTEN%', '%current_setting($1, true)%'])";
    assert!(server.row(kill).await.get::<_, i64>(0) > 0);
    let took = is_told(&*store, &*another, "while it is lost").await;
    assert!(took < Duration::from_secs(3), "{took:?}");
    is_listening(&server, &*another).await;
    is_told_at_once(&*store, &*another).await;
}
