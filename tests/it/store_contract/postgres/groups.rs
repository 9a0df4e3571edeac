//! What becomes of calls that are made together with others.

use std::collections::HashSet;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt as _;
use futures_util::future::join_all;
use onceward::operation::state::{ClaimReply, ClaimRequest, Grant, ReportedState, Settled};
use onceward::operation::{Outcome, Subject};
use onceward::store::postgres::Settings;
use onceward::store::{Error, Store, StoreExt as _, WhenEmptied};
use tokio::time::Instant;
use tokio_postgres::Client;
use tokio_postgres::error::SqlState;

use super::{Served, open, settings};
use crate::store_contract::support::{attempted, claim_on, copy_of, end_of, granted, order};

/// Operations that nobody has claimed yet.
fn orders(name: &str, count: usize) -> Vec<Arc<Subject>> {
    (0..count).map(|number| order(&format!("{name} {number}"))).collect()
}

/// A claim, and what became of it.
type Told = (ClaimRequest, Result<ClaimReply, Error>);

/// Claims all of them at the same time.
async fn claimed(store: &dyn Store, orders: &[Arc<Subject>]) -> Vec<Told> {
    let claims = orders.iter().map(async |order| {
        let request = claim_on(order);
        let told = store.apply(request.clone()).await;
        (request, told)
    });
    join_all(claims).await
}

fn is_granted((_, told): &Told) -> bool {
    matches!(told, Ok(ClaimReply::Granted(_)))
}

fn attempt_of(told: &Result<ClaimReply, Error>) -> u32 {
    match told {
        Ok(ClaimReply::Granted(Grant { attempt, .. })) => *attempt,
        other => panic!("{other:?}"),
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn calls_at_the_same_time_share_transactions() {
    let served = Served::start().await;
    let commits = "SELECT pg_snapshot_xmax(pg_current_snapshot())::text::bigint";
    let before: i64 = served.server.row(commits).await.get(0);
    let claims = claimed(&*served.store, &orders("new", 100)).await;
    let settles = claims.iter().map(async |(request, told)| {
        let end = end_of(request, attempt_of(told), Outcome::Succeeded);
        served.store.apply(end).await.unwrap()
    });
    let recorded = Settled::Recorded { copy_refused: false };
    assert_eq!(join_all(settles).await, vec![recorded; 100]);
    let after: i64 = served.server.row(commits).await.get(0);
    assert!(after - before < 100, "{} transactions for 200 changes", after - before);
    for (request, _) in &claims {
        assert!(matches!(
            copy_of(&*served.store, &request.subject).await,
            ClaimReply::NotGranted(ReportedState::Succeeded { attempt: 1, .. })
        ));
    }
}

/// Each store sees the same operations in another order. First they are new, and then they are free
/// because the first attempt failed.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn of_two_stores_that_claim_the_same_operations_at_once_each_gets_its_answers() {
    let served = Served::start().await;
    let another = served.another();
    for round in 0..5 {
        let forwards = orders(&format!("round {round}"), 50);
        let backwards: Vec<_> = forwards.iter().rev().map(Arc::clone).collect();
        for attempt in [1, 2] {
            let (one, other) =
                tokio::join!(claimed(&*served.store, &forwards), claimed(&*another, &backwards));
            let granted: Vec<_> =
                one.iter().chain(&other).filter(|told| is_granted(told)).collect();
            assert!(one.iter().chain(&other).all(|(_, told)| told.is_ok()));
            let ids: HashSet<_> = granted.iter().map(|(request, _)| request.subject.id).collect();
            assert_eq!((granted.len(), ids.len()), (50, 50));
            let ends = granted.iter().map(|(request, told)| {
                assert_eq!(attempt_of(told), attempt);
                served.store.apply(end_of(request, attempt, Outcome::Failed))
            });
            assert!(join_all(ends).await.iter().all(Result::is_ok));
        }
    }
}

/// The first two are made alone, and hold the places for what is under way. The last one is in a
/// group.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn operations_that_somebody_locks_hold_up_no_other_one() {
    let served = Served::start().await;
    let timeout = Duration::from_secs(4);
    let store = open(&Settings { timeout, ..settings(&served.server.url()) });
    let locked = orders("locked", 3);
    for order in &locked {
        attempted(&*store, order, Outcome::Failed).await;
    }
    let person = served.server.client().await;
    person.batch_execute("BEGIN; SELECT FROM onceward.operations FOR UPDATE").await.unwrap();
    let mut all = locked.clone();
    all.splice(2..2, orders("free", 30));
    let start = Instant::now();
    let claims = all.iter().map(async |order| {
        let told = store.apply(claim_on(order)).await;
        (told, start.elapsed())
    });
    let told = join_all(claims).await;
    for (order, (told, took)) in all.iter().zip(told) {
        if locked.contains(order) {
            let error = told.unwrap_err();
            assert!(matches!(error, Error::Unavailable(_) | Error::NoReply(_)), "{error:?}");
        } else {
            assert_eq!(attempt_of(&told), 1);
            assert!(took < timeout / 2, "{took:?}");
        }
    }
    person.batch_execute("COMMIT").await.unwrap();
    for order in &locked {
        granted(&*store, order).await;
    }
}

/// Makes the server do this before it inserts the row of an operation.
async fn before_insert(served: &Served, order: &Subject, body: &str) {
    let trigger = format!(
        "CREATE FUNCTION before_insert() RETURNS trigger LANGUAGE plpgsql
            AS $$ BEGIN {body}; RETURN NEW; END $$;
        CREATE TRIGGER before_insert BEFORE INSERT ON onceward.operations FOR EACH ROW
            WHEN (NEW.id = '{}') EXECUTE FUNCTION before_insert()",
        order.id
    );
    served.server.execute(&trigger).await;
}

/// The first two of these calls are made alone, and the others in one group.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_call_that_the_server_turns_away_fails_no_other_one_of_its_group() {
    let served = Served::start().await;
    let all = orders("order", 20);
    before_insert(&served, &all[10], "RAISE insufficient_privilege").await;
    let mut told = claimed(&*served.store, &all).await;
    let (_, of_refused) = told.remove(10);
    let error = of_refused.unwrap_err();
    assert!(!error.may_have_applied(), "{error:?}");
    assert!(told.iter().all(|(_, told)| attempt_of(told) == 1));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_a_group_whose_connection_breaks_each_call_may_have_taken_effect() {
    let served = Served::start().await;
    let all = orders("order", 20);
    before_insert(
        &served,
        &all[10],
        "PERFORM pg_terminate_backend(pg_backend_pid()); PERFORM pg_sleep(60)",
    )
    .await;
    let told = claimed(&*served.store, &all).await;
    let (alone, in_group) = told.split_at(2);
    assert!(alone.iter().all(|(_, told)| attempt_of(told) == 1));
    for (_, told) in in_group {
        let error = told.as_ref().unwrap_err();
        assert!(error.may_have_applied(), "{error:?}");
    }
    served.server.execute("DROP TRIGGER before_insert ON onceward.operations").await;
    for order in &all[2..] {
        granted(&*served.store, order).await;
    }
}

/// A database with another epoch has lost its records.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_database_that_has_lost_its_records_grants_no_claim_of_a_group_where_it_shall_stop() {
    let served = Served::start().await;
    let when_emptied = WhenEmptied::Stop;
    let store = open(&Settings { when_emptied, ..settings(&served.server.url()) });
    assert!(claimed(&*store, &orders("before", 20)).await.iter().all(is_granted));
    let emptied = "DELETE FROM onceward.operations; UPDATE onceward.epoch SET epoch = DEFAULT";
    served.server.execute(emptied).await;
    for (_, told) in claimed(&*store, &orders("after", 20)).await {
        let error = told.unwrap_err();
        assert!(matches!(error, Error::Emptied | Error::Unavailable(_)), "{error:?}");
    }
    let rows = "SELECT count(*) FROM onceward.operations";
    assert_eq!(served.server.row(rows).await.get::<_, i64>(0), 0);
}

/// One statement for each, although they come one after the other without a pause.
#[tokio::test]
async fn a_call_without_company_is_made_alone() {
    let served = Served::with(&["shared_preload_libraries=pg_stat_statements"]).await;
    served.server.execute("CREATE EXTENSION pg_stat_statements").await;
    let calls = async |function: &str| {
        let calls = format!(
            "SELECT coalesce(sum(calls), 0)::bigint FROM pg_stat_statements \
            WHERE query LIKE '%FROM \"onceward\".{function}(%'"
        );
        served.server.row(&calls).await.get::<_, i64>(0)
    };
    let before = calls("swap").await;
    for order in orders("order", 5) {
        attempted(&*served.store, &order, Outcome::Succeeded).await;
        copy_of(&*served.store, &order).await;
    }
    assert_eq!((calls("swap").await - before, calls("swap_all").await), (15, 0));
    claimed(&*served.store, &orders("more", 5)).await;
    assert_eq!((calls("swap").await - before, calls("swap_all").await), (17, 1));
}

#[tokio::test]
async fn calls_whose_callers_give_up_while_they_wait_are_not_made() {
    let served = Served::start().await;
    let all = orders("order", 10);
    let mut alone = pin!(claimed(&*served.store, &all[..2]));
    assert!(alone.as_mut().now_or_never().is_none());
    assert!(claimed(&*served.store, &all[2..]).now_or_never().is_none());
    assert!(alone.await.iter().all(|(_, told)| attempt_of(told) == 1));
    let others = claimed(&*served.store, &orders("other", 10)).await;
    assert!(others.iter().all(|(_, told)| attempt_of(told) == 1));
    for order in &all[2..] {
        assert_eq!(served.store.get(order.id).await.unwrap(), None);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_record_that_cannot_be_read_fails_no_other_call() {
    let served = Served::start().await;
    let (done, damaged) = (orders("done", 20), order("damaged"));
    for order in done.iter().chain([&damaged]) {
        attempted(&*served.store, order, Outcome::Succeeded).await;
    }
    let damage = "UPDATE onceward.operations SET record = set_byte(record, 20, 255) WHERE id = ";
    served.server.execute(&format!("{damage}'{}'", damaged.id)).await;
    let mut all = done;
    all.push(damaged);
    let mut told = claimed(&*served.another(), &all).await;
    let (_, of_damaged) = told.pop().unwrap();
    assert!(matches!(of_damaged.unwrap_err(), Error::Unreadable(..)));
    for (_, told) in told {
        let state = told.unwrap();
        assert!(matches!(state, ClaimReply::NotGranted(ReportedState::Succeeded { .. })));
    }
}

/// Copies of one operation at the same moment, while others come.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_copies_in_one_group_one_is_granted() {
    let served = Served::start().await;
    let mut all = orders("other", 10);
    all.extend(std::iter::repeat_n(order("same"), 20));
    for _ in 0..2 {
        let told = claimed(&*served.store, &all).await;
        let (others, same) = told.split_at(10);
        assert_eq!(same.iter().filter(|told| is_granted(told)).count(), 1);
        assert!(same.iter().all(|(_, told)| told.is_ok()));
        for (request, told) in others.iter().chain(same.iter().filter(|told| is_granted(told))) {
            let end = end_of(request, attempt_of(told), Outcome::Failed);
            served.store.apply(end).await.unwrap();
        }
    }
}

/// Two steps of a group.
struct Steps<'a> {
    expected: [&'a str; 2],
    new: [&'a str; 2],
    /// The time in milliseconds that is left for each.
    left: [i64; 2],
}

impl Steps<'_> {
    /// Returns for each step of which the function says something whether it was made, and what is
    /// there.
    async fn make(
        &self,
        client: &Client,
    ) -> Result<Vec<(i64, bool, Option<i64>)>, tokio_postgres::Error> {
        let [first, second] = ["1", "2"].map(|key| order(key).id);
        let Self { expected, new, left } = self;
        let statement = format!(
            "SELECT number, is_done, found_revision FROM onceward.millis(onceward.clock()) AS now,
                onceward.swap_all(
                ARRAY['{first}', '{second}'], ARRAY[{}]::bigint[], ARRAY[{}]::bigint[],
                ARRAY['\\x00', '\\x00']::bytea[], ARRAY['route', 'route'], ARRAY['POST', 'POST'],
                ARRAY['/', '/'], ARRAY['{{}}', '{{}}'], ARRAY['in_flight', 'in_flight'],
                ARRAY[1, 1], ARRAY['me', 'me'], ARRAY[now, now],
                ARRAY[now + 86400000, now + 86400000], ARRAY[0, 0]::bigint[],
                ARRAY[now + {}, now + {}], ARRAY[false, false], ARRAY[false, false], true, 1,
                1000000)
            ORDER BY number",
            expected.join(","),
            new.join(","),
            left[0],
            left[1],
        );
        let rows = client.query(&statement, &[]).await?;
        Ok(rows.iter().map(|row| (row.get(0), row.get(1), row.get(2))).collect())
    }
}

const NOTHING: [&str; 2] = ["NULL", "NULL"];
const LONG: [i64; 2] = [600_000, 600_000];

/// The function says of no step that it was made if another one was in its place, and says nothing
/// of a step that was not made because of the time.
#[tokio::test]
async fn steps_of_a_group_are_made_once_and_in_their_time() {
    let served = Served::start().await;
    let client = served.server.client().await;
    let make =
        async |expected, new, left| Steps { expected, new, left }.make(&client).await.unwrap();
    let done = |one, two| [(1, true, Some(one)), (2, true, Some(two))];
    assert_eq!(make(NOTHING, NOTHING, LONG).await, [(1, false, None), (2, false, None)]);
    // The second one is late, and the first one is made.
    assert_eq!(make(NOTHING, ["11", "12"], [600_000, -1]).await, [(1, true, Some(11))]);
    assert_eq!(make(NOTHING, ["11", "12"], LONG).await, done(11, 12));
    // The same call is sent twice, and then late.
    assert_eq!(make(NOTHING, ["11", "12"], LONG).await, done(11, 12));
    assert_eq!(make(NOTHING, ["11", "12"], [-1, -1]).await, done(11, 12));
    // The first one expects what is there no more.
    let second = [(1, false, Some(11)), (2, true, Some(22))];
    assert_eq!(make(["99", "12"], ["21", "22"], LONG).await, second);
    // The second one is late, and expects what is there.
    assert_eq!(make(["11", "22"], ["21", "32"], [600_000, -1]).await, [(1, true, Some(21))]);
    // Two first claims where there are rows.
    let found = [(1, false, Some(21)), (2, false, Some(22))];
    assert_eq!(make(NOTHING, ["31", "32"], LONG).await, found);
}

#[tokio::test]
async fn a_group_that_is_held_up_until_the_time_of_a_step_is_over_makes_none() {
    let served = Served::start().await;
    let client = served.server.client().await;
    before_insert(&served, &order("2"), "PERFORM pg_sleep(1.2)").await;
    let late = Steps { expected: NOTHING, new: ["11", "12"], left: [1_000, 600_000] };
    let error = late.make(&client).await.unwrap_err();
    assert_eq!(error.code(), Some(&SqlState::OBJECT_NOT_IN_PREREQUISITE_STATE), "{error:?}");
    let looks = Steps { expected: NOTHING, new: NOTHING, left: LONG };
    assert_eq!(looks.make(&client).await.unwrap(), [(1, false, None), (2, false, None)]);
}
