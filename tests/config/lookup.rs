//! Look-ups: how the upstream is asked whether an operation was done.

use std::time::Duration;

use insta::assert_snapshot;

use super::{TYPED, Written};

fn with_lookup(of_route: &str, of_lookup: &str) -> Written {
    Written::file(&format!(
        "[routes.orders]\npath = \"/orders\"\nupstream = \"http://a\"\n{of_route}\n\
         [routes.orders.lookup]\n{of_lookup}\n"
    ))
}

const LOOKED_UP: &str = "when_uncertain = \"lookup\"";

#[test]
fn a_look_up_is_read_whole() {
    let lookup = "url = \"http://a/events/{key}\"\ntimeout = \"2s\"\nreference = \"json:/id\"\n\
                  done_when = { \"json:/status\" = \"done\", \"json:/n\" = 1, \"json:/ok\" = true }\n\
                  headers = { authorization = { env = \"LOOKUP_TOKEN\" }, x-plain = \"yes\" }";
    let written = with_lookup(&format!("{TYPED}{LOOKED_UP}"), lookup)
        .variable("LOOKUP_TOKEN", "Bearer s3cret");
    let config = written.config().unwrap();
    let policy = &config.routes[0].policy;
    let lookup = policy.receiver.lookup.as_ref().unwrap();
    assert_eq!(lookup.url.to_string(), "http://a/events/{key}");
    assert_eq!((lookup.timeout, lookup.done_when.len()), (Duration::from_secs(2), 3));
    assert_eq!(lookup.headers["authorization"], "Bearer s3cret");
    assert!(!format!("{config:?}").contains("s3cret"));
    let shown = format!("{:?}", written.sources().unwrap().effective());
    assert!(!shown.contains("LOOKUP_TOKEN") && !shown.contains("s3cret"), "{shown}");
    assert_eq!(
        written.risks(),
        "routes.orders.provider: signature-unchecked\nroutes.orders.lookup.url: lookup-by-id-alone\n"
    );
}

#[test]
fn a_look_up_without_a_url_is_a_problem_and_one_that_nobody_makes_a_risk() {
    assert_snapshot!(with_lookup(LOOKED_UP, "").problems(), @r#"
    the configuration has 1 problem
      onceward.toml:5: `routes.orders.lookup.url`: expected a value, where `when_uncertain` is `lookup`, found none
        hint: `url = "http://127.0.0.1:3000/events/{operation}"`
    "#);
    assert_snapshot!(with_lookup(TYPED, "url = \"http://a/{operation}\"").risks(), @"
    routes.orders.provider: signature-unchecked
    routes.orders.lookup.url: lookup-unused
    ");
}

/// The events `created` and `paid` may have one id. An answer about the first says nothing about
/// the second.
#[test]
fn a_look_up_by_what_two_operations_may_share_is_a_risk() {
    let by = |url: &str| {
        let route = format!("{TYPED}verify = false\n{LOOKED_UP}");
        with_lookup(&route, &format!("url = \"http://a/{url}\"")).risks()
    };
    let risk = "routes.orders.lookup.url: lookup-by-id-alone\n";
    for url in ["{key}", "{event_id}", "?id={key}"] {
        assert_eq!(by(url), risk, "{url}");
    }
    for url in ["{operation}", "{event_id}?operation={operation}"] {
        assert_eq!(by(url), "", "{url}");
    }
    let steps = "path = \"/\"\nverify = false\nkey.event.type = \"json:/type\"\n";
    let step = "[[routes.a.steps]]\nname = \"one\"\nupstream = \"http://a\"\nwhen_uncertain = \"lookup\"\n\
                lookup = { url = \"http://a/{key}\" }\n";
    let written = Written::file(&format!("[routes.a]\n{steps}{step}"));
    assert_eq!(written.risks(), "routes.a.steps.0.lookup.url: lookup-by-id-alone\n");
}

#[test]
fn what_is_wrong_with_a_look_up_is_said() {
    let lookup = "url = \"http://{key}/\"\ntimeout = \"2m\"\nreference = \"id\"\n\
                  done_when = { status = \"done\", \"json:/*/n\" = 1, \"json:/ok\" = [] }\n\
                  headers = { host = \"h\", x-list = [], x-line = \"a\\nb\", x-none = { env = \"NONE\" } }";
    assert_snapshot!(with_lookup(LOOKED_UP, lookup).problems(), @r#"
    the configuration has 10 problems
      onceward.toml:6: `routes.orders.lookup.url`: expected an `http` or `https` URL such as `http://127.0.0.1:3000/events/{operation}`, without user and fragment, with `{key}`, `{operation}` and `{event_id}` in path and query alone, found `http://{key}/`
        hint: `url = "http://127.0.0.1:3000/events/{key}"`
      onceward.toml:7: `routes.orders.lookup.timeout`: expected a duration from `1ms` to `1m`, found `2m`
        hint: left out, `timeout` is `"5s"`
      onceward.toml:8: `routes.orders.lookup.reference`: expected `header:NAME` or `json:/pointer` without `*`, found `id`
        hint: `reference = "json:/id"`
      onceward.toml:9: `routes.orders.lookup.done_when."json:/*/n"`: expected a JSON member such as `json:/status`, without `*`, found `json:/*/n`
        hint: `done_when = { "json:/status" = "processed" }`
      onceward.toml:9: `routes.orders.lookup.done_when."json:/ok"`: expected a text, a whole number, `true` or `false`, found a list
        hint: `done_when = { "json:/status" = "processed" }`
      onceward.toml:9: `routes.orders.lookup.done_when.status`: expected a JSON member such as `json:/status`, without `*`, found `status`
        hint: `done_when = { "json:/status" = "processed" }`
      onceward.toml:10: `routes.orders.lookup.headers.host`: expected the name of a header that the connection does not need, found `host`
        hint: such as `authorization` or `x-api-key`
      onceward.toml:10: `routes.orders.lookup.headers.x-line`: expected the value of a header, found one with other characters
        hint: visible ASCII and spaces, without an end of line
      onceward.toml:10: `routes.orders.lookup.headers.x-list`: expected a text, `{ env = "NAME" }` or `{ file = "path" }`, found a list
        hint: `{ env = "NAME" }` names a variable that holds it, `{ file = "/path" }` a file
      onceward.toml:10: `routes.orders.lookup.headers.x-none.env`: expected the name of a variable that holds the secret, found `NONE`, which is not set
        hint: `export NONE=…` where it is started, or `{ file = "path" }` in its place
    "#);
}
