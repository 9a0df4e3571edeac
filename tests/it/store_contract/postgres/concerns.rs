//! What the store says of a server that is not as it should be.

use onceward::operation::Outcome;
use onceward::operation::state::{ClaimReply, ClaimRequest, IfInFlight, ReportedState};
use onceward::secret::Secret;
use onceward::store::postgres::Settings;
use onceward::store::{Concern, Error, Store, StoreExt as _};

use super::{Served, open, settings};
use crate::store_contract::support::{attempted, claim_on, copy_of, granted, order};
use crate::support::{PASSWORD, PostgresServer};

fn codes(concerns: &[Concern]) -> Vec<&'static str> {
    concerns.iter().map(|concern| concern.code).collect()
}

#[tokio::test]
async fn a_server_as_it_comes_is_no_concern() {
    let served = Served::with(&["default_transaction_isolation=serializable"]).await;
    assert_eq!(served.store.concerns().await.unwrap(), []);
    assert_eq!(served.store.concerns().await.unwrap(), []);
}

#[tokio::test]
async fn a_server_that_may_lose_what_it_acknowledged_is_named() {
    let served = Served::with(&["fsync=off", "full_page_writes=off"]).await;
    served.server.execute("ALTER TABLE onceward.operations SET UNLOGGED").await;
    let concerns = served.store.concerns().await.unwrap();
    assert_eq!(codes(&concerns), ["fsync-off", "full-page-writes-off", "unlogged"]);
}

#[tokio::test]
async fn tables_that_are_others_than_before_stay_a_concern_with_how_often_it_happened() {
    let served = Served::start().await;
    assert_eq!(served.store.concerns().await.unwrap(), []);
    for times in ["once", "2 times"] {
        served.server.execute("DROP SCHEMA onceward CASCADE").await;
        // whoever asks, however often
        for _ in 0..2 {
            let concerns = served.store.concerns().await.unwrap();
            assert_eq!(codes(&concerns), ["epoch-changed"]);
            assert!(concerns[0].text.contains(times), "{}", concerns[0].text);
        }
    }
}

#[tokio::test]
async fn a_standby_is_no_place_for_a_store_and_may_lag_behind_one() {
    let served = Served::start().await;
    let standby = served.server.standby().await;
    let on_standby = open(&settings(&standby.url()));
    assert_eq!(codes(&on_standby.concerns().await.unwrap()), ["replica"]);
    let refused = on_standby.apply(claim_on(&order("1"))).await.unwrap_err();
    assert!(matches!(refused, Error::Unavailable("the database is read-only")), "{refused:?}");
    assert_eq!(codes(&served.store.concerns().await.unwrap()), ["asynchronous-standby"]);
}

/// What is done may still be replayed.
#[tokio::test]
async fn a_read_only_database_replays_and_grants_nothing() {
    let served = Served::start().await;
    attempted(&*served.store, &order("done"), Outcome::Succeeded).await;
    let read_only = "ALTER DATABASE postgres SET default_transaction_read_only = ";
    served.server.execute(&format!("{read_only}on")).await;
    let another = served.another();
    let told = copy_of(&*another, &order("done")).await;
    assert!(matches!(told, ClaimReply::NotGranted(ReportedState::Succeeded { .. })));
    let waits = IfInFlight::Wait;
    let waits = ClaimRequest { if_in_flight: waits, ..claim_on(&order("first of all")) };
    assert!(matches!(
        another.apply(waits.clone()).await.unwrap(),
        ClaimReply::NotGranted(ReportedState::InFlight { .. })
    ));
    let refused = another.apply(claim_on(&order("new"))).await.unwrap_err();
    assert!(matches!(refused, Error::Unavailable("the database is read-only")), "{refused:?}");
    assert_eq!(codes(&another.concerns().await.unwrap()), ["read-only"]);
    let client = served.server.client().await;
    client.batch_execute("SET default_transaction_read_only = off").await.unwrap();
    client.batch_execute(&format!("{read_only}off")).await.unwrap();
    granted(&*served.another(), &order("new")).await;
}

/// Every hint is what is missing: whoever follows them all has a store.
#[tokio::test]
async fn missing_privileges_are_named_with_the_grants_that_give_them() {
    let empty = PostgresServer::start();
    let user = format!("CREATE ROLE \"other user\" LOGIN PASSWORD '{PASSWORD}'");
    empty.execute(&user).await;
    let url = empty.url().replace("onceward:", "other%20user:");
    let store = open(&settings(&url));
    let refused = store.apply(claim_on(&order("1"))).await.unwrap_err();
    assert!(matches!(refused, Error::Unavailable(_)), "{refused:?}");
    let followed = follow_hints(&empty, &*store).await;
    assert_eq!(followed, ["GRANT CREATE ON DATABASE postgres TO \"other user\""]);
    granted(&*store, &order("1")).await;

    let served = Served::start().await;
    served.server.execute(&user).await;
    let url = served.server.url().replace("onceward:", "other%20user:");
    let store = open(&settings(&url));
    let followed = follow_hints(&served.server, &*store).await;
    assert_eq!(followed.len(), 7, "{followed:?}");
    granted(&*store, &order("1")).await;
}

async fn follow_hints(server: &PostgresServer, store: &dyn Store) -> Vec<String> {
    let mut followed = Vec::new();
    loop {
        let concerns = store.concerns().await.unwrap();
        if concerns.is_empty() || followed.len() > 20 {
            return followed;
        }
        for Concern { code, hint, .. } in concerns {
            assert_eq!(code, "privilege-missing");
            let grant = hint.split('`').nth(1).unwrap();
            server.execute(grant).await;
            followed.push(grant.to_owned());
        }
    }
}

/// All that can be seen of an error.
fn shown(error: &dyn std::error::Error) -> String {
    let mut shown = format!("{error:?}");
    let mut cause = Some(error);
    while let Some(error) = cause {
        shown.push_str(&error.to_string());
        cause = error.source();
    }
    shown
}

#[tokio::test]
async fn no_error_shows_the_password() {
    let server = PostgresServer::start();
    let right = server.url();
    assert!(right.contains(PASSWORD));
    let port = server.port.to_string();
    let wrong = [
        right.replace("onceward:", "nobody:"),
        right.replace("/postgres", "/nothing"),
        right.replace(&port, "1"),
        right.replace("127.0.0.1", "nowhere.invalid"),
        format!("{right}?sslmode=require"),
    ];
    for url in wrong {
        let store = open(&settings(&url));
        let error = store.apply(claim_on(&order("1"))).await.unwrap_err();
        assert!(matches!(error, Error::Unavailable(_)), "{error:?}");
        assert!(!shown(&error).contains(PASSWORD), "{error:?}");
        assert!(!format!("{store:?}").contains(PASSWORD));
    }
    let none = [
        format!("{right}?sslmode=perhaps"),
        format!("{right}?connect_timeout={PASSWORD}"),
        right.replace(&port, "port"),
        right.replace('@', ""),
        format!("nothing://{PASSWORD}"),
        format!("postgres://user:{PASSWORD}@%ff/postgres"),
    ];
    for url in none {
        let settings = settings(&url);
        let error = settings.check().expect_err(&url);
        assert!(!shown(&error).contains(PASSWORD), "{error:?}");
        assert!(!format!("{settings:?}").contains(PASSWORD));
    }
    let other = Settings { url: Secret::new("postgres://".to_owned()), ..settings(&right) };
    other.check().unwrap_err();
}
