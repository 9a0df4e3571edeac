//! The store: which one is chosen, and its settings.

use insta::assert_snapshot;
use onceward::store::{self, WhenEmptied};

use super::Written;

#[test]
fn two_stores_in_one_layer_are_a_problem() {
    assert_snapshot!(Written::beside_a_route("[store.embedded]\n[store.memory]\n").problems(), @"
    the configuration has 1 problem
      onceward.toml:2: `store.memory`: expected one store, found `[store.embedded]` beside it
        hint: keep one of them
    ");
}

#[test]
fn the_highest_layer_that_names_a_store_wins() {
    let embedded = "[store.embedded]\npath = \"here\"";
    let path = |written: Written| match written.config().unwrap().store {
        store::Settings::Embedded(settings) => Some(settings.path.display().to_string()),
        store::Settings::Memory | store::Settings::Redis(_) | store::Settings::Postgres(_) => None,
    };
    assert_eq!(path(Written::beside_a_route("")).as_deref(), Some("onceward-data"));
    assert_eq!(path(Written::beside_a_route(embedded)).as_deref(), Some("here"));
    assert_eq!(path(Written::beside_a_route("[store.memory]")), None);
    let moved =
        Written::beside_a_route(embedded).variable("ONCEWARD_STORE__EMBEDDED__PATH", "there");
    assert_eq!(path(moved).as_deref(), Some("there"));
    let memory = Written::beside_a_route(embedded).variable("ONCEWARD_STORE__MEMORY", "{}");
    assert_eq!(path(memory), None);
    let back = Written::beside_a_route("[store.memory]")
        .variable("ONCEWARD_STORE__EMBEDDED__DURABILITY", "os");
    assert_eq!(path(back).as_deref(), Some("onceward-data"));
}

#[test]
fn a_shared_store_is_read_with_its_secrets() {
    let text = r#"[store.redis]
urls = ["redis://a:26379", { env = "OTHER" }]
mode = "sentinel"
master = "mymaster"
password = { env = "PASSWORD" }
"#;
    let written = Written::beside_a_route(text);
    let written = written.variable("OTHER", "redis://b:26379").variable("PASSWORD", "hunter2");
    let store::Settings::Redis(redis) = written.config().unwrap().store else { panic!() };
    assert_eq!(redis.mode, store::redis::Mode::Sentinel { master: "mymaster".to_owned() });
    assert_eq!((redis.urls.len(), redis.replica_acks), (2, 0));
    assert!(redis.password.unwrap().is(b"hunter2"));
    let effective = written.effective();
    assert!(effective.contains("store.redis.urls = ***"), "{effective}");
    assert!(!effective.contains("hunter2"), "{effective}");
}

#[test]
fn what_is_wrong_with_a_shared_store_is_said_at_once() {
    let text = r#"[store.redis]
urls = []
mode = "sentinel"
prefix = "a{b}"
replica_acks = -1
certificate = "client.pem"
password = { env = "NOT_SET" }
"#;
    assert_snapshot!(Written::beside_a_route(text).problems(), @r#"
    the configuration has 6 problems
      onceward.toml:1: `store.redis.key`: expected a path beside `certificate`, found nothing
        hint: a client certificate and its key are given together
      onceward.toml:1: `store.redis.master`: expected the name that the sentinels monitor, such as `mymaster`, found nothing
        hint: `master = "mymaster"`
      onceward.toml:2: `store.redis.urls`: expected at least one URL, found none
        hint: `{ env = "NAME" }` names a variable that holds it, `{ file = "/path" }` a file
      onceward.toml:4: `store.redis.prefix`: expected letters, digits, `-`, `_`, `.` and `:`, 64 at most, found `a{b}`
        hint: left out, `prefix` is `"onceward"`
      onceward.toml:5: `store.redis.replica_acks`: expected a whole number from 0 to 255, found the number -1
        hint: left out, `replica_acks` is `0`
      onceward.toml:7: `store.redis.password.env`: expected the name of a variable that holds the secret, found `NOT_SET`, which is not set
        hint: `export NOT_SET=…` where it is started, or `{ file = "path" }` in its place
    "#);
    let text = r#"[store.postgres]
url = { env = "NOT_SET" }
schema = "a-b"
connections_max = 1
timeout = "0s"
"#;
    assert_snapshot!(Written::beside_a_route(text).problems(), @r#"
    the configuration has 4 problems
      onceward.toml:2: `store.postgres.url.env`: expected the name of a variable that holds the secret, found `NOT_SET`, which is not set
        hint: `export NOT_SET=…` where it is started, or `{ file = "path" }` in its place
      onceward.toml:3: `store.postgres.schema`: expected a name of letters, digits and `_`, 48 at most, found `a-b`
        hint: left out, `schema` is `"onceward"`
      onceward.toml:4: `store.postgres.connections_max`: expected a whole number from 2 to 10000, found the number 1
        hint: left out, `connections_max` is `16`
      onceward.toml:5: `store.postgres.timeout`: expected a duration from `1ms` to `1m`, found `0s`
        hint: left out, `timeout` is `"2s"`
    "#);
}

#[test]
fn a_shared_store_that_was_emptied_goes_on_or_stops_as_it_is_written() {
    let redis = |word: &str| {
        let text = format!("[store.redis]\nwhen_store_emptied = \"{word}\"");
        Written::beside_a_route(&text)
    };
    let postgres = |word: &str| {
        let text = "url = \"postgres://localhost/db\"";
        let text = format!("[store.postgres]\n{text}\nwhen_store_emptied = \"{word}\"");
        Written::beside_a_route(&text)
    };
    for when in [WhenEmptied::Continue, WhenEmptied::Stop] {
        for written in [redis(when.as_str()), postgres(when.as_str())] {
            let found = match written.config().unwrap().store {
                store::Settings::Redis(redis) => Some(redis.when_emptied),
                store::Settings::Postgres(postgres) => Some(postgres.when_emptied),
                store::Settings::Embedded(_) | store::Settings::Memory => None,
            };
            assert_eq!(found, Some(when));
        }
    }
    assert_snapshot!(redis("wait").problems(), @r#"
    the configuration has 1 problem
      onceward.toml:2: `store.redis.when_store_emptied`: expected `continue` or `stop`, found `wait`
        hint: left out, `when_store_emptied` is `"continue"`
    "#);
}
