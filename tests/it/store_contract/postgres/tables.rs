//! The tables: who makes them, and what people read in them.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use onceward::operation::state::{ClaimReply, Forgetting};
use onceward::operation::{Key, KeyKind, Outcome, Subject};
use onceward::store::postgres::Settings;
use onceward::store::{Error, ListQuery, StoreExt as _, WhenEmptied};
use tokio::task::JoinSet;
use tokio::time::Instant;

use super::{Served, open, settings};
use crate::store_contract::support::{attempted, claim_on, copy_of, granted, order};
use crate::support::{PASSWORD, PostgresServer, until};

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn several_processes_may_make_the_tables_at_once() {
    let server = PostgresServer::start();
    let mut processes = JoinSet::new();
    for number in 0..8 {
        let store = open(&settings(&server.url()));
        let order = order(&format!("{number}"));
        processes.spawn(async move { granted(&*store, &order).await });
    }
    processes.join_all().await;
    let made = server.row("SELECT count(*), max(number)::bigint FROM onceward.migrations").await;
    assert_eq!(made.get::<_, i64>(0), made.get::<_, i64>(1));
    assert_eq!(server.row("SELECT count(*) FROM onceward.operations").await.get::<_, i64>(0), 8);
}

/// An index of a large table takes minutes. What slows it down here is a trigger.
#[tokio::test]
async fn a_change_of_the_tables_may_take_longer_than_a_call() {
    let server = PostgresServer::start();
    let slow = "CREATE FUNCTION slow() RETURNS event_trigger LANGUAGE plpgsql
            AS $$ BEGIN PERFORM pg_sleep(2); END $$;
        CREATE EVENT TRIGGER slow ON ddl_command_start WHEN TAG IN ('CREATE INDEX')
            EXECUTE FUNCTION slow()";
    server.execute(slow).await;
    let limit = Duration::from_secs(1);
    let store = open(&Settings { timeout: limit, ..settings(&server.url()) });
    let asked = Instant::now();
    store.get(order("1").id).await.unwrap_err();
    assert!(asked.elapsed() < limit * 10, "{:?}", asked.elapsed());
    until("the tables are made", async || store.get(order("1").id).await.is_ok()).await;
    granted(&*store, &order("1")).await;
}

/// While the change waits for the table, all other processes wait behind it.
#[tokio::test]
async fn a_change_that_has_to_wait_for_a_reader_of_the_table_holds_up_nobody_for_long() {
    let served = Served::start().await;
    served.server.execute(CHANGED_BACK_TO_6).await;
    let reader = served.server.client().await;
    reader.batch_execute("BEGIN; SELECT count(*) FROM onceward.operations").await.unwrap();
    let newer = served.another();
    let begun = Instant::now();
    let refused = newer.get(order("1").id).await.unwrap_err();
    let text = "the store's tables cannot be brought up to date yet: another transaction uses them";
    assert!(matches!(refused, Error::Unavailable(told) if told == text), "{refused:?}");
    // the reader has ended, but the next try comes later
    reader.batch_execute("COMMIT").await.unwrap();
    let refused = newer.get(order("1").id).await.unwrap_err();
    assert!(matches!(refused, Error::Unavailable(told) if told == text), "{refused:?}");
    granted(&*served.store, &order("1")).await;
    until("the tables are changed", async || newer.get(order("1").id).await.is_ok()).await;
    assert!(begun.elapsed() > Duration::from_secs(4), "{:?}", begun.elapsed());
}

/// Somebody made the index before the upgrade.
#[tokio::test]
async fn an_index_that_is_there_already_does_not_keep_the_tables_from_being_changed() {
    let served = Served::start().await;
    served.server.execute(CHANGED_BACK_TO_6).await;
    let made = "CREATE INDEX operations_by_rare_state ON onceward.operations \
        (state, created_at, id) WHERE state IN ('uncertain', 'failed', 'forgotten')";
    served.server.execute(made).await;
    let newer = served.another();
    until("the tables are changed", async || newer.get(order("1").id).await.is_ok()).await;
    granted(&*newer, &order("1")).await;
}

/// Tables that only seem to lack a change are not gone.
#[tokio::test]
async fn only_tables_without_their_list_are_taken_for_a_part_of_those_of_before() {
    let served = Served::start().await;
    served.server.execute("DELETE FROM onceward.migrations WHERE number > 1").await;
    let refused = served.another().apply(claim_on(&order("1"))).await.unwrap_err();
    assert!(matches!(refused, Error::Failed(_)), "{refused:?}");
    served.server.execute("DROP TABLE onceward.migrations").await;
    let refused = served.another().apply(claim_on(&order("1"))).await.unwrap_err();
    let text = "a part of the store's tables is gone";
    assert!(matches!(refused, Error::Unavailable(told) if told == text), "{refused:?}");
}

#[tokio::test]
async fn tables_of_a_newer_version_are_refused() {
    let served = Served::start().await;
    served.server.execute("INSERT INTO onceward.migrations (number) VALUES (999)").await;
    let refused = served.another().get(order("1").id).await.unwrap_err();
    assert_eq!(
        refused.to_string(),
        "the store is unavailable: a newer version of this program made the store's tables"
    );
}

/// The indexes and the check of the versions before 7.
const CHANGED_BACK_TO_6: &str = "DELETE FROM onceward.migrations WHERE number > 6;
    CREATE INDEX operations_by_route ON onceward.operations (route, created_at, id);
    CREATE INDEX operations_by_state ON onceward.operations (state, created_at, id);
    DROP INDEX onceward.operations_by_rare_state;
    ALTER TABLE onceward.operations
        ADD CONSTRAINT operations_id_check CHECK (id ~ '^op_[0-9a-f]{32}$');";

/// What is there no more before version 5.
const CHANGED_BACK_TO_4: &str = "DELETE FROM onceward.migrations WHERE number > 4;
    DROP FUNCTION onceward.swap_all;
    ALTER FUNCTION onceward.searched STRICT";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tables_of_version_4_are_changed_beside_a_process_that_uses_them() {
    let changed_back = format!("{CHANGED_BACK_TO_6}{CHANGED_BACK_TO_4}");
    are_changed_beside_a_process(&changed_back, 4).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tables_of_version_5_are_changed_beside_a_process_that_uses_them() {
    let function = include_str!("../../../../src/store/postgres/0005_swap_all.sql");
    let function = function.replace("@schema@", "onceward");
    let changed_back = format!("{CHANGED_BACK_TO_6}{CHANGED_BACK_TO_4};{function}");
    let noted = "INSERT INTO onceward.migrations (number) VALUES (5)";
    are_changed_beside_a_process(&format!("{changed_back};{noted}"), 5).await;
}

/// During a rolling upgrade an older process goes on, with the functions that it knows. Here it is
/// a process whose calls come one after the other.
async fn are_changed_beside_a_process(changed_back: &str, version: i64) {
    let served = Served::start().await;
    served.server.execute(changed_back).await;
    let orders: Vec<_> = (0..30).map(|number| order(&format!("{number}"))).collect();
    let older = async |orders: &[Arc<Subject>]| {
        let mut told = Vec::new();
        for order in orders {
            told.push(copy_of(&*served.store, order).await);
        }
        told
    };
    let (done, others) = orders.split_at(10);
    older(done).await;
    let newer = served.another();
    let claims = async {
        // The change may find that the older process has the table, and is then tried again.
        let is_changed = async || newer.get(order("nothing").id).await.is_ok();
        until("the tables are changed", is_changed).await;
        join_all(orders.iter().map(|order| copy_of(&*newer, order))).await
    };
    let (newer_told, older_told) = tokio::join!(claims, older(others));
    let is_granted = |told: &ClaimReply| matches!(told, ClaimReply::Granted(_));
    let (of_done, of_others) = newer_told.split_at(10);
    assert!(!of_done.iter().any(is_granted));
    for (one, other) in of_others.iter().zip(&older_told) {
        assert!(is_granted(one) != is_granted(other), "{one:?} {other:?}");
    }
    let made = served.server.row("SELECT max(number)::bigint FROM onceward.migrations").await;
    assert!(made.get::<_, i64>(0) > version);
    let indexes = "SELECT count(*) FROM pg_indexes WHERE indexname IN \
        ('operations_by_route', 'operations_by_state', 'operations_by_rare_state')";
    assert_eq!(served.server.row(indexes).await.get::<_, i64>(0), 1);
    let listing =
        ListQuery { route: None, state: None, key: Some("7".into()), after: None, limit: 9 };
    for store in [&served.store, &newer] {
        assert_eq!(store.list(&listing).await.unwrap().operations.len(), 1);
    }
}

#[tokio::test]
async fn a_database_that_came_back_empty_is_used_again() {
    let served = Served::start().await;
    attempted(&*served.store, &order("1"), Outcome::Succeeded).await;
    served.server.execute("DROP SCHEMA onceward CASCADE").await;
    granted(&*served.store, &order("1")).await;
}

/// A user that owns nothing cannot make the tables again.
#[tokio::test]
async fn tables_that_are_gone_are_no_mere_failure_to_a_user_who_may_make_none() {
    let served = Served::start().await;
    let user = format!(
        "CREATE ROLE owns_nothing LOGIN PASSWORD '{PASSWORD}';
        GRANT USAGE ON SCHEMA onceward TO owns_nothing;
        GRANT SELECT, INSERT, UPDATE, DELETE ON onceward.operations TO owns_nothing;
        GRANT SELECT, INSERT, UPDATE ON onceward.epoch TO owns_nothing;
        GRANT SELECT ON onceward.migrations TO owns_nothing"
    );
    served.server.execute(&user).await;
    let url = served.server.url().replace("onceward:", "owns_nothing:");
    let when_emptied = WhenEmptied::Stop;
    let store = open(&Settings { when_emptied, ..settings(&url) });
    granted(&*store, &order("1")).await;
    served.server.execute("DROP SCHEMA onceward CASCADE").await;
    for key in ["1", "2"] {
        let refused = store.apply(claim_on(&order(key))).await.unwrap_err();
        assert!(matches!(refused, Error::TablesGone(_)), "{refused:?}");
        assert!(!refused.leaves_state_unknown());
    }
}

#[tokio::test]
async fn a_schema_may_have_any_name() {
    let server = PostgresServer::start();
    for name in ["with space", "qu\"ote'$$;--", "Großbuchstaben", "select"] {
        let named = Settings { schema: name.to_owned(), ..settings(&server.url()) };
        let (store, another) = (open(&named), open(&named));
        granted(&*store, &order("1")).await;
        assert!(another.get(order("1").id).await.unwrap().is_some(), "{name}");
        assert_eq!(store.concerns().await.unwrap(), [], "{name}");
    }
    for name in ["", "pg_mine", "nul\0", &"x".repeat(64)] {
        let named = Settings { schema: name.to_owned(), ..settings(&server.url()) };
        named.check().unwrap_err();
    }
}

/// It is neither a free key nor a row that hides others.
#[tokio::test]
async fn a_damaged_record_is_an_error_and_hides_no_other_one() {
    let served = Served::start().await;
    let (damaged, whole) = (order("damaged"), order("whole"));
    attempted(&*served.store, &damaged, Outcome::Succeeded).await;
    attempted(&*served.store, &whole, Outcome::Succeeded).await;
    let damage = "UPDATE onceward.operations SET record = set_byte(record, 20, 255) WHERE id = ";
    served.server.execute(&format!("{damage}'{}'", damaged.id)).await;
    let store = served.another();
    let unreadable = |error: Error| matches!(error, Error::Unreadable(id, _) if id == damaged.id);
    assert!(unreadable(store.get(damaged.id).await.unwrap_err()));
    assert!(unreadable(store.apply(claim_on(&damaged)).await.unwrap_err()));
    assert!(unreadable(
        store
            .apply(Forgetting {
                operation: damaged.id,
                by: "ops".to_owned(),
                reason: "again".to_owned()
            })
            .await
            .unwrap_err()
    ));
    let listing = ListQuery { route: None, state: None, key: None, after: None, limit: 10 };
    let listed = store.list(&listing).await.unwrap().operations;
    assert!(listed.iter().any(|listed| listed.subject == whole));
    store.sweep(10).await.unwrap();
}

/// Keys, paths and routes with everything that text may hold are told apart, and read in SQL.
#[tokio::test]
async fn any_text_is_kept() {
    let served = Served::start().await;
    let part = "a\0b'\"\\ \u{1f980} \u{2028}";
    let key = Key { from: KeyKind::Event, parts: vec![part.to_owned()] };
    let subject = Arc::new(Subject { path: part.to_owned(), key, ..(*order("any")).clone() });
    granted(&*served.store, &subject).await;
    assert_eq!(served.another().get(subject.id).await.unwrap().unwrap().subject, subject);
    let row = served.server.row(
        "SELECT path, key -> 'parts' ->> 0 FROM onceward.operations \
        WHERE key ->> 'from' = 'event'",
    );
    let row = row.await;
    let shown = part.replace('\0', "\u{2400}");
    assert_eq!((row.get(0), row.get(1)), (shown.as_str(), shown.as_str()));
}

#[tokio::test]
async fn people_read_the_documented_columns() {
    let served = Served::start().await;
    let order = order("evt_1");
    attempted(&*served.store, &order, Outcome::Failed).await;
    copy_of(&*served.store, &order).await;
    let row = format!(
        "SELECT route, method, path, key::text, state, attempt, holder, \
            onceward.millis(created_at), onceward.millis(changes_at) - onceward.millis(created_at), \
            onceward.moment(onceward.millis(changes_at)) = changes_at, waited \
         FROM onceward.operations WHERE id = '{}'",
        order.id
    );
    let row = served.server.row(&row).await;
    assert_eq!(row.get::<_, &str>(0), "orders");
    assert_eq!(row.get::<_, &str>(1), "POST");
    assert_eq!(row.get::<_, &str>(2), "/webhooks/orders");
    assert_eq!(row.get::<_, &str>(3), r#"{"from": "header", "parts": ["evt_1"]}"#);
    assert_eq!(row.get::<_, &str>(4), "in_flight");
    assert_eq!(row.get::<_, i32>(5), 2);
    assert_eq!(row.get::<_, &str>(6), "test");
    let found = served.store.get(order.id).await.unwrap().unwrap();
    assert_eq!(u64::try_from(row.get::<_, i64>(7)).unwrap(), found.created_at.0);
    let lasts = found.created_at.until(found.state.changes_at());
    assert_eq!(u128::try_from(row.get::<_, i64>(8)).unwrap(), lasts.as_millis());
    assert!(row.get::<_, bool>(9));
    assert!(!row.get::<_, bool>(10));
}

#[tokio::test]
async fn every_column_and_table_is_described_in_the_database_and_on_its_page() {
    let served = Served::start().await;
    let page = include_str!("../../../../docs/postgres.md");
    let described = "SELECT name, coalesce(told, '') FROM (
            SELECT attname, col_description(attrelid, attnum) FROM pg_attribute
            WHERE attrelid = 'onceward.operations'::regclass AND attnum > 0
            UNION ALL SELECT relname, obj_description(oid, 'pg_class') FROM pg_class
            WHERE relnamespace = 'onceward'::regnamespace AND relkind = 'r'
            UNION ALL SELECT proname, obj_description(oid, 'pg_proc') FROM pg_proc
            WHERE pronamespace = 'onceward'::regnamespace) AS all_of_it (name, told)";
    let rows = served.server.client().await.query(described, &[]).await.unwrap();
    assert!(rows.len() > 15);
    // What the page has people type can be run.
    let (_, block) = page.split_once("```sql\n").unwrap();
    let (query, _) = block.split_once("```").unwrap();
    assert_eq!(served.server.client().await.query(query, &[]).await.unwrap().len(), 0);
    for row in rows {
        let (name, told): (&str, &str) = (row.get(0), row.get(1));
        assert!(!told.is_empty(), "{name}");
        assert!(page.contains(&format!("`{name}")), "{name}");
    }
}
