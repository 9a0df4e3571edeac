//! What the server sees of the calls: who wins, what is written, how often it is asked.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use onceward::operation::state::{ClaimReply, ClaimRequest, IfInFlight, Renewal, ReportedState};
use onceward::operation::{Outcome, StateName, Subject};
use onceward::store::{ListQuery, Store, StoreExt as _};
use tokio::task::JoinSet;
use tokio::time::{Instant, timeout};

use super::{Served, is_listening};
use crate::store_contract::support::{
    LEASE, answer, attempted, claim_on, copy_of, end_of, forgets, granted, order,
};
use crate::support::until;

const PATIENCE: Duration = Duration::from_secs(20);

/// The losers of a race are told how the operation stands. A unique key that is violated is no
/// error.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn of_fifty_racers_on_two_stores_one_is_granted_and_none_fails() {
    let served = Served::start().await;
    let stores = [Arc::clone(&served.store), served.another()];
    for round in 0..10 {
        let order = order(&format!("{round}"));
        let mut racers = JoinSet::new();
        for racer in 0..50 {
            let (store, request) = (Arc::clone(&stores[racer % 2]), claim_on(&order));
            racers.spawn(async move { store.apply(request.clone()).await.unwrap() });
        }
        let told = racers.join_all().await;
        let granted = told.iter().filter(|told| matches!(told, ClaimReply::Granted(_))).count();
        let met = told
            .iter()
            .filter(|told| matches!(told, ClaimReply::NotGranted(ReportedState::InFlight { .. })))
            .count();
        assert_eq!((granted, met), (1, 49));
    }
}

#[tokio::test]
async fn a_replay_and_a_refused_copy_write_nothing() {
    let served = Served::start().await;
    let (done, in_flight) = (order("done"), order("in flight"));
    attempted(&*served.store, &done, Outcome::Succeeded).await;
    granted(&*served.store, &in_flight).await;
    copy_of(&*served.store, &in_flight).await;
    let another = served.another();
    assert_eq!(another.get(done.id).await.unwrap().unwrap().subject, done);
    let next_transaction = "SELECT pg_snapshot_xmax(pg_current_snapshot())::text";
    let before: String = served.server.row(next_transaction).await.get(0);
    for store in [&served.store, &another] {
        let replay =
            ClaimReply::NotGranted(ReportedState::Succeeded { attempt: 1, answer: answer() });
        assert_eq!(copy_of(&**store, &done).await, replay);
        assert!(matches!(
            copy_of(&**store, &in_flight).await,
            ClaimReply::NotGranted(ReportedState::InFlight { .. })
        ));
    }
    assert_eq!(served.server.row(next_transaction).await.get::<_, String>(0), before);
}

/// How often the server was asked for something in the store's schema.
async fn asked(served: &Served) -> i64 {
    let statements = "SELECT coalesce(sum(calls), 0)::bigint FROM pg_stat_statements \
        WHERE query LIKE '%\"onceward\".%'";
    served.server.row(statements).await.get(0)
}

#[tokio::test]
async fn a_new_event_takes_two_round_trips_and_a_replay_one() {
    let preload = "shared_preload_libraries=pg_stat_statements";
    let served = Served::with(&[preload]).await;
    served.server.execute("CREATE EXTENSION pg_stat_statements").await;
    let another = served.another();
    another.get(order("nothing").id).await.unwrap();

    let before = asked(&served).await;
    attempted(&*served.store, &order("1"), Outcome::Succeeded).await;
    assert_eq!(asked(&served).await - before, 2);

    for store in [&served.store, &another] {
        let before = asked(&served).await;
        assert!(matches!(
            copy_of(&**store, &order("1")).await,
            ClaimReply::NotGranted(ReportedState::Succeeded { .. })
        ));
        assert_eq!(asked(&served).await - before, 1);
    }
}

/// A claim, a settle and a decision are on disk when they are answered, whatever the default is.
#[tokio::test]
async fn what_must_be_durable_is_flushed_although_the_server_would_not_wait() {
    let served = Served::with(&["synchronous_commit=off", "wal_writer_delay=10s"]).await;
    let is_flushed = "SELECT pg_current_wal_flush_lsn() >= pg_current_wal_insert_lsn()";
    // Whoever reads a page of the catalogs may clear it of what the migrations left there. That is
    // written to the log as well, and nobody waits for it.
    served.server.execute("VACUUM").await;
    let store = &*served.store;
    for number in 0..5 {
        let order = order(&format!("{number}"));
        let (request, attempt) = granted(store, &order).await;
        assert!(served.server.row(is_flushed).await.get::<_, bool>(0), "the claim");
        store.apply(end_of(&request, attempt, Outcome::Succeeded)).await.unwrap();
        assert!(served.server.row(is_flushed).await.get::<_, bool>(0), "the settle");
        forgets(store, order.id).await;
        assert!(served.server.row(is_flushed).await.get::<_, bool>(0), "the decision");
    }
    assert_eq!(served.server.row("SHOW synchronous_commit").await.get::<_, String>(0), "off");
}

/// Many operations of before, most of them done. The server has counted them.
async fn has_a_past(served: &Served) {
    has_an_uncounted_past(served, 20_000).await;
    served.server.execute("ANALYZE onceward.operations").await;
}

async fn has_an_uncounted_past(served: &Served, count: usize) {
    let past = format!(
        "INSERT INTO onceward.operations (id, revision, record, route, method, path, key, state, \
            attempt, created_at, changes_at) \
        SELECT 'op_' || md5(n::text), n, '\\x01', 'route ' || n % 50, 'POST', '/', '{{}}', \
            CASE WHEN n % 1000 = 0 THEN 'uncertain' WHEN n % 100 = 0 THEN 'in_flight' \
                WHEN n % 10 = 0 THEN 'failed' ELSE 'succeeded' END, \
            1, onceward.clock() - n * interval '1 s', onceward.clock() + n * interval '1 h' \
        FROM generate_series(1, {count}) n"
    );
    served.server.execute(&past).await;
}

/// Every statement of the store finds its rows by an index.
#[tokio::test]
async fn lists_counts_and_expiry_use_indexes() {
    let explains = [
        "session_preload_libraries=auto_explain",
        "auto_explain.log_min_duration=0",
        "auto_explain.log_nested_statements=on",
    ];
    let served = Served::with(&explains).await;
    has_a_past(&served).await;
    let another = served.another();
    let all = ListQuery { route: None, state: None, key: None, after: None, limit: 50 };
    let after = another.list(&all).await.unwrap().next;
    assert!(after.is_some());
    another.list(&ListQuery { after, ..all.clone() }).await.unwrap();
    another.list(&ListQuery { route: Some("route 7".into()), ..all.clone() }).await.unwrap();
    another.list(&ListQuery { key: Some("7".into()), ..all.clone() }).await.unwrap();
    for state in StateName::ALL {
        another.list(&ListQuery { state: Some(state), ..all.clone() }).await.unwrap();
    }
    another.uncertain().await.unwrap();
    another.sweep(100).await.unwrap();
    copy_of(&*another, &order("new")).await;
    // the last ones are made in a group
    for _ in 0..2 {
        let keys = ["a", "b", "c", "d"].map(order);
        join_all(keys.iter().map(|key| copy_of(&*another, key))).await;
    }
    // what is logged later shows that all of it is read
    served.server.execute("SELECT 'the end' FROM onceward.epoch").await;
    until("the log is read", async || served.server.logged("the end") > 0).await;
    assert_eq!(served.server.logged("Seq Scan on operations"), 0);
    for index in ["by_creation", "by_key", "by_rare_state", "open", "settled", "pkey"] {
        assert!(served.server.logged(&format!("operations_{index}")) > 0, "{index}");
    }
}

/// A session keeps its plans, and was busy while the table had one row.
#[tokio::test]
async fn a_call_reads_its_own_rows_only_however_the_table_has_grown() {
    let served = Served::start().await;
    let sessions = "SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend'";
    let others: i64 = served.server.row(sessions).await.get(0);
    let busy = served.another();
    served.server.execute("VACUUM ANALYZE onceward.operations").await;
    let orders: Vec<_> = (0..200).map(|number| order(&format!("{number}"))).collect();
    let claims = async |orders: &[Arc<Subject>]| {
        for orders in orders.chunks(20) {
            for copies in [1, 2] {
                let claims = orders.iter().map(|order| copy_of(&*busy, order));
                let told = join_all(claims).await;
                let granted = told.iter().filter(|told| matches!(told, ClaimReply::Granted(_)));
                assert_eq!(granted.count(), if copies == 1 { 20 } else { 0 });
            }
        }
    };
    let (before, after) = orders.split_at(60);
    claims(before).await;
    // so many that the plans of a large table are used
    has_an_uncounted_past(&served, 70_000).await;
    claims(after).await;
    // What a session has read is counted when it ends.
    drop(busy);
    until("the sessions end", async || {
        served.server.row(sessions).await.get::<_, i64>(0) <= others
    })
    .await;
    let reads = "SELECT (SELECT sum(idx_tup_read) FROM pg_stat_user_indexes)::bigint + \
        (SELECT sum(seq_tup_read) FROM pg_stat_user_tables WHERE relname = 'operations')::bigint";
    let read: i64 = served.server.row(reads).await.get(0);
    assert!((200..10_000).contains(&read), "{read} rows were read for 400 calls");
}

/// A page reads a limited number of operations, and the pages join all the same.
#[tokio::test]
async fn an_operation_of_a_rare_route_is_found_behind_many_of_others() {
    let served = Served::start().await;
    let old = order("old");
    attempted(&*served.store, &old, Outcome::Failed).await;
    has_a_past(&served).await;
    let aged = "UPDATE onceward.operations SET created_at = created_at - interval '1 day' \
        WHERE id = ";
    served.server.execute(&format!("{aged}'{}'", old.id)).await;
    let route = Some("orders".into());
    let mut query = ListQuery { route, state: None, key: None, after: None, limit: 50 };
    let mut pages = Vec::new();
    loop {
        let page = served.store.list(&query).await.unwrap();
        pages.push(page.operations.iter().map(|found| found.subject.id).collect::<Vec<_>>());
        query.after = page.next;
        if page.next.is_none() {
            break;
        }
    }
    assert_eq!(pages, [vec![order("first of all").id], vec![], vec![old.id]]);
}

/// Who waits for it on one store, and hears of its end from another one.
async fn waits(store: &dyn Store, subject: &Arc<Subject>) {
    let waits = ClaimRequest { if_in_flight: IfInFlight::Wait, ..claim_on(subject) };
    let told = store.apply(waits.clone()).await.unwrap();
    assert!(matches!(told, ClaimReply::NotGranted(ReportedState::InFlight { .. })), "{told:?}");
}

/// On an idle machine it takes well under 50 ms.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_waiter_on_another_store_learns_of_the_end_at_once() {
    let served = Served::start().await;
    let another = served.another();
    is_listening(&served.server, &*another).await;
    let mut took = Vec::new();
    for number in 0..21 {
        let order = order(&format!("{number}"));
        let (request, attempt) = granted(&*served.store, &order).await;
        let mut watch = another.watch(order.id).await.unwrap();
        waits(&*another, &order).await;
        // a renewal forgets nobody
        served
            .store
            .apply(Renewal { operation: order.id, claim_id: request.claim_id, lease: LEASE })
            .await
            .unwrap();
        served.store.apply(end_of(&request, attempt, Outcome::Succeeded)).await.unwrap();
        let settled = Instant::now();
        timeout(PATIENCE, watch.ended()).await.unwrap();
        took.push(settled.elapsed());
        assert!(matches!(
            copy_of(&*another, &order).await,
            ClaimReply::NotGranted(ReportedState::Succeeded { .. })
        ));
    }
    took.sort();
    assert!(took[10] < Duration::from_millis(50), "{took:?}");
}

/// Notifications make commits queue.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_server_is_told_of_an_end_only_where_somebody_waits() {
    let served = Served::start().await;
    let another = served.another();
    is_listening(&served.server, &*another).await;
    let mut watches = Vec::new();
    for number in 0..10 {
        let order = order(&format!("{number}"));
        watches.push(another.watch(order.id).await.unwrap());
        attempted(&*served.store, &order, Outcome::Succeeded).await;
    }
    let last = order("last");
    let (request, attempt) = granted(&*served.store, &last).await;
    let mut watch = another.watch(last.id).await.unwrap();
    waits(&*another, &last).await;
    served.store.apply(end_of(&request, attempt, Outcome::Failed)).await.unwrap();
    timeout(PATIENCE, watch.ended()).await.unwrap();
    // notifications come in order: there were none before
    for mut watch in watches {
        assert_eq!(futures_util::FutureExt::now_or_never(watch.ended()), None);
    }
}

/// A statement may reach the server twice, late, or on the other side of a lease's end.
#[tokio::test]
async fn a_step_is_made_once_in_its_time_and_on_its_side_of_a_lease() {
    let served = Served::start().await;
    let (client, id) = (served.server.client().await, order("1").id.to_string());
    let now: i64 =
        client.query_one("SELECT onceward.millis(onceward.clock())", &[]).await.unwrap().get(0);
    let put = async |expected: &str,
                     revision: i64,
                     ends_in: i64,
                     time: &str|
           -> (bool, Option<i64>) {
        let swap = format!(
            "SELECT is_done, found_revision FROM onceward.swap('{id}', {expected}, 'put', {revision}, \
             '\\x00', 'route', 'POST', '/', '{{}}', 'in_flight', 1, 'me', {now}, {}, {time}, \
             true, false, false, false, 1000)",
            now + ends_in,
        );
        let row = client.query_one(&swap, &[]).await.unwrap();
        (row.get(0), row.get(1))
    };
    let (past, soon) = (format!("0, {}", now - 1), format!("{}, {}", now - 1, now + 600_000));
    let future = format!("{}, {}", now + 500_000, now + 600_000);
    let (day, nothing) = (86_400_000, "NULL, NULL");
    assert_eq!(put(nothing, 1, day, &past).await, (false, None));
    assert_eq!(put(nothing, 1, day, &future).await, (false, None));
    assert_eq!(put(nothing, 1, day, &soon).await, (true, None));
    // twice, and then another one
    assert!(put(nothing, 1, day, &soon).await.0);
    assert_eq!(put(nothing, 2, day, &soon).await, (false, Some(1)));
    assert_eq!(put("1, true", 2, day, &soon).await, (false, Some(1)));
    assert_eq!(put("3, false", 2, day, &soon).await, (false, Some(1)));
    assert_eq!(put("1, false", 2, day, &past).await, (false, Some(1)));
    assert_eq!(put("1, false", 2, 0, &soon).await, (true, None));
    // by now its lease has ended
    assert_eq!(put("2, false", 3, day, &soon).await, (false, Some(2)));
    assert_eq!(put("2, true", 3, day, &soon).await, (true, None));
    let rows = "SELECT count(*) FROM onceward.operations WHERE id = $1";
    assert_eq!(client.query_one(rows, &[&id]).await.unwrap().get::<_, i64>(0), 1);
}
