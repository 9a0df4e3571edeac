//! What becomes of calls when the server or a connection fails.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use onceward::operation::Outcome;
use onceward::operation::state::{ClaimReply, Renewed, ReportedState, Settled};
use onceward::store::postgres::Settings;
use onceward::store::{Error, Store, StoreExt as _};
use tokio::task::JoinSet;
use tokio::time::Instant;

use super::{Served, open, settings};
use crate::store_contract::support::{
    LEASE, attempted, claim_on, copy_of, end_of, granted, order, renews,
};
use crate::support::{PostgresServer, until};

/// A call's time in these tests.
const TIMEOUT: Duration = Duration::from_secs(1);

/// A store that gives up soon.
fn impatient(server: &PostgresServer) -> Arc<dyn Store> {
    open(&Settings { timeout: TIMEOUT, ..settings(&server.url()) })
}

/// Tries until the server is there again.
async fn granted_again(store: &dyn Store, key: &str) {
    let is_granted =
        async || matches!(store.apply(claim_on(&order(key))).await, Ok(ClaimReply::Granted(_)));
    until("a claim is granted again", is_granted).await;
}

#[tokio::test]
async fn a_server_that_is_down_refuses_claims_at_once_and_is_used_again_when_it_is_up() {
    let mut served = Served::start().await;
    let store = Arc::clone(&served.store);
    attempted(&*store, &order("done"), Outcome::Succeeded).await;
    granted(&*store, &order("in flight")).await;
    served.server.crashes();
    let start = Instant::now();
    for _ in 0..5 {
        store.apply(claim_on(&order("new"))).await.unwrap_err();
    }
    let refused = store.apply(claim_on(&order("new"))).await.unwrap_err();
    assert!(matches!(refused, Error::Unavailable("the database cannot be reached")), "{refused:?}");
    assert!(start.elapsed() < settings("").timeout, "{:?}", start.elapsed());
    served.server.starts_again();
    granted_again(&*store, "new").await;
    assert!(matches!(
        copy_of(&*store, &order("done")).await,
        ClaimReply::NotGranted(ReportedState::Succeeded { .. })
    ));
    assert!(matches!(
        copy_of(&*store, &order("in flight")).await,
        ClaimReply::NotGranted(ReportedState::InFlight { .. })
    ));
}

#[tokio::test]
async fn a_store_may_be_opened_before_its_server_is_up() {
    let mut server = PostgresServer::start();
    server.stops();
    let store = impatient(&server);
    store.apply(claim_on(&order("1"))).await.unwrap_err();
    server.starts_again();
    granted_again(&*store, "1").await;
}

#[tokio::test]
async fn a_server_that_came_back_empty_is_used_again_and_told_of() {
    let mut served = Served::start().await;
    attempted(&*served.store, &order("done"), Outcome::Succeeded).await;
    assert_eq!(served.store.concerns().await.unwrap(), []);
    served.server.crashes();
    served.server.starts_again_empty();
    granted_again(&*served.store, "done").await;
    let concerns = served.store.concerns().await.unwrap();
    assert_eq!(concerns.iter().map(|one| one.code).collect::<Vec<_>>(), ["epoch-changed"]);
}

/// A claim that nobody waits for any more takes no effect, however late it is read.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_claim_that_was_given_up_on_leaves_nothing_behind_when_the_server_goes_on() {
    let server = PostgresServer::start();
    let store = impatient(&server);
    granted_again(&*store, "first of all").await;
    server.pauses();
    for key in ["1", "2"] {
        let start = Instant::now();
        let error = store.apply(claim_on(&order(key))).await.unwrap_err();
        assert!(matches!(error, Error::NoReply(_) | Error::Unavailable(_)), "{error:?}");
        assert!(start.elapsed() < 10 * TIMEOUT, "{:?}", start.elapsed());
    }
    // Until all that was sent is too late: time itself is what is waited for.
    tokio::time::sleep(TIMEOUT).await;
    server.goes_on();
    granted_again(&*store, "3").await;
    for key in ["1", "2"] {
        assert_eq!(store.get(order(key).id).await.unwrap(), None, "{key}");
    }
}

/// A claim that waits for a standby in its commit is seen by nobody, and there all the same: it is
/// not taken for one that has left nothing.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_claim_whose_commit_is_held_up_is_withdrawn_when_it_is_over() {
    let server = PostgresServer::start();
    let store = impatient(&server);
    granted_again(&*store, "first of all").await;
    let (failed, new) = (order("failed"), order("new"));
    attempted(&*store, &failed, Outcome::Failed).await;
    let client = server.client().await;
    let standby = async |names: &str| {
        let set = format!("ALTER SYSTEM SET synchronous_standby_names = '{names}'");
        client.batch_execute(&set).await.unwrap();
        client.batch_execute("SELECT pg_reload_conf()").await.unwrap();
        let shown = "SHOW synchronous_standby_names";
        // a session takes over what was reloaded between two statements
        until("the server has taken it over", async || {
            server.row(shown).await.get::<_, String>(0) == names
        })
        .await;
    };
    standby("nobody").await;
    let claims = [claim_on(&failed), claim_on(&new)];
    for claim in &claims {
        let error = store.apply(claim.clone()).await.unwrap_err();
        assert!(error.may_have_applied(), "{error:?}");
    }
    for claim in &claims {
        store.apply(claim.withdrawal()).await.unwrap_err();
    }
    standby("").await;
    for claim in &claims {
        let is_withdrawn = async || store.apply(claim.withdrawal()).await.is_ok();
        until("it is withdrawn", is_withdrawn).await;
        let found = store.get(claim.subject.id).await.unwrap();
        let state = found.as_ref().map(|found| found.state.as_str());
        assert!(matches!(state, None | Some("failed")), "{found:?}");
    }
    assert_eq!(store.uncertain().await.unwrap(), 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn sessions_that_are_terminated_under_load_cost_no_operation_its_uniqueness() {
    let served = Served::start().await;
    let (store, client) = (Arc::clone(&served.store), served.server.client().await);
    let over = Arc::new(AtomicBool::new(false));
    let ends = Arc::clone(&over);
    let killer = tokio::spawn(async move {
        let kill = "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity \
            WHERE pid <> pg_backend_pid() AND backend_type = 'client backend'";
        let mut killed = 0;
        while !ends.load(Ordering::SeqCst) {
            killed += client.query_one(kill, &[]).await.unwrap().get::<_, i64>(0);
            // Between two of them the senders get on: time itself is what is waited for.
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        killed
    });
    let mut senders = JoinSet::new();
    for number in 0..40 {
        let store = Arc::clone(&store);
        senders.spawn(async move {
            let order = order(&format!("{number}"));
            let mut granted = 0;
            for _ in 0..20 {
                let told = store.apply(claim_on(&order)).await;
                granted += usize::from(matches!(told, Ok(ClaimReply::Granted(_))));
            }
            granted
        });
    }
    let told = senders.join_all().await;
    over.store(true, Ordering::SeqCst);
    assert!(killer.await.unwrap() > 0);
    assert!(told.iter().all(|granted| *granted <= 1), "{told:?}");
    granted_again(&*store, "after all").await;
}

/// No connection is held while the upstream works.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn two_connections_are_enough_for_twenty_attempts_at_a_time() {
    let server = PostgresServer::start();
    let store = open(&Settings { connections_max: 2, ..settings(&server.url()) });
    let mut claims = JoinSet::new();
    for number in 0..20 {
        let store = Arc::clone(&store);
        claims.spawn(async move { granted(&*store, &order(&format!("{number}"))).await });
    }
    let in_flight = claims.join_all().await;
    let sessions = "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'onceward'";
    // one of them listens
    assert!(server.row(sessions).await.get::<_, i64>(0) <= 3);
    let mut settles = JoinSet::new();
    for (request, attempt) in in_flight {
        let store = Arc::clone(&store);
        settles.spawn(async move {
            assert_eq!(
                renews(&*store, request.subject.id, request.claim_id, LEASE).await,
                Renewed::Renewed
            );
            store.apply(end_of(&request, attempt, Outcome::Succeeded)).await.unwrap()
        });
    }
    let settled = settles.join_all().await;
    assert_eq!(settled, vec![Settled::Recorded { copy_refused: false }; 20]);
}

/// Connections for renewals are kept apart from those for the rest.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_renewal_does_not_wait_behind_claims_that_have_every_other_connection() {
    let server = PostgresServer::start();
    let timeout = Duration::from_secs(4);
    let store = open(&Settings { connections_max: 4, timeout, ..settings(&server.url()) });
    let locked = order("locked");
    attempted(&*store, &locked, Outcome::Failed).await;
    let (request, _) = granted(&*store, &order("in flight")).await;
    // a person has left a transaction open
    let person = server.client().await;
    let lock =
        format!("BEGIN; SELECT FROM onceward.operations WHERE id = '{}' FOR UPDATE", locked.id);
    person.batch_execute(&lock).await.unwrap();
    let mut claims = JoinSet::new();
    for _ in 0..6 {
        let (store, locked) = (Arc::clone(&store), Arc::clone(&locked));
        claims.spawn(async move { store.apply(claim_on(&locked)).await });
    }
    let waiting = "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'";
    until("the claims wait", async || server.row(waiting).await.get::<_, i64>(0) >= 3).await;
    let start = Instant::now();
    let renewed = renews(&*store, request.subject.id, request.claim_id, LEASE).await;
    assert_eq!(renewed, Renewed::Renewed);
    assert!(start.elapsed() < timeout / 4, "{:?}", start.elapsed());
    // a claim that waits for longer than it may says so, before its time is over
    for told in claims.join_all().await {
        let error = told.unwrap_err();
        assert!(matches!(error, Error::Unavailable(_) | Error::NoReply(_)), "{error:?}");
    }
    person.batch_execute("COMMIT").await.unwrap();
    granted(&*store, &locked).await;
}

/// With all hosts in the URL the store finds the one that takes writes.
#[tokio::test]
async fn a_synchronous_standby_takes_over_with_all_that_was_acknowledged() {
    let mut served = Served::start().await;
    let standby = served.server.standby().await;
    served.server.execute("ALTER SYSTEM SET synchronous_standby_names = '*'").await;
    served.server.execute("SELECT pg_reload_conf()").await;
    let both = format!("127.0.0.1:{},127.0.0.1:{}", standby.port, served.server.port);
    let one = format!("127.0.0.1:{}", served.server.port);
    let store = open(&settings(&served.server.url().replace(&one, &both)));
    attempted(&*store, &order("done"), Outcome::Succeeded).await;
    granted(&*store, &order("in flight")).await;
    assert_eq!(store.concerns().await.unwrap(), []);
    served.server.crashes();
    store.apply(claim_on(&order("new"))).await.unwrap_err();
    standby.execute("SELECT pg_promote()").await;
    granted_again(&*store, "new").await;
    assert!(matches!(
        copy_of(&*store, &order("done")).await,
        ClaimReply::NotGranted(ReportedState::Succeeded { .. })
    ));
    assert!(matches!(
        copy_of(&*store, &order("in flight")).await,
        ClaimReply::NotGranted(ReportedState::InFlight { .. })
    ));
}
