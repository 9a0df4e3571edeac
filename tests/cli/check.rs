//! `onceward check`.

use insta::assert_snapshot;
use serde_json::{Value, json};

use super::{ROUTE, SIGNED, Shell};

#[test]
fn check_finds_nothing_in_a_good_configuration() {
    let shell = Shell::with("onceward.toml", SIGNED).and("secret", "0123456789abcdef\n");
    for line in ["check --config onceward.toml", "check --config onceward.toml --strict"] {
        let printed = shell.types(line).printed(0);
        assert!(printed.starts_with("onceward.toml: no problems, no risks"), "{printed}");
    }
    let printed = shell.types("check --config onceward.toml --json").printed(0);
    let report: Value = serde_json::from_str(&printed).unwrap();
    assert_eq!((&report["problems"], &report["risks"]), (&json!([]), &json!([])));
}

#[test]
fn check_reports_all_problems_at_once() {
    let text = r#"
[server]
listen = "8080"
lisen = "127.0.0.1:80"

[admin]
listen = "0.0.0.0:8081"

[defaults]
retention = "1 year"

[routes.orders]
path = "orders"

[routes.orders.key]
event.id = "/id"
"#;
    let shell = Shell::with("bad.toml", text).variable("ONCEWARD_SERVER__DRAIN_DELAY", "soon");
    assert_snapshot!(shell.types("check --config bad.toml").printed(2), @r#"
    the configuration has 8 problems
      bad.toml:3: `server.listen`: expected an address and port such as `127.0.0.1:8080` or `[::1]:8080`, found `8080`
        hint: left out, `listen` is `"127.0.0.1:8080"`
      bad.toml:4: `server.lisen`: expected a known key, found `lisen`
        hint: did you mean `listen`?
      bad.toml:7: `admin.listen`: expected a loopback address where there is no `admin.token`, found `0.0.0.0:8081`
        hint: `token = { env = "ONCEWARD_ADMIN_TOKEN" }` in `[admin]` opens it to others
      bad.toml:10: `defaults.retention`: expected a duration such as `500ms`, `30s`, `5m`, `72h` or `30d`, found `1 year`
        hint: write `365d`
      bad.toml:12: `routes.orders.upstream`: expected a value, found none
        hint: `upstream = "http://127.0.0.1:3000"`
      bad.toml:13: `routes.orders.path`: expected a path such as `/webhooks/orders`, or a prefix such as `/webhooks/*`, without query or fragment, found `orders`
        hint: `path = "/webhooks/orders"`, or `"/webhooks/*"` for all below it
      bad.toml:16: `routes.orders.key.event.id`: expected `header:NAME`, `json:/pointer`, `form:FIELD`, `query:NAME`, `signature:NAME` or `body`, several with `|` between them, with `?` behind it where it may be absent, found `/id`
        hint: left out, `id` is `"json:/id"`
      ONCEWARD_SERVER__DRAIN_DELAY: `server.drain_delay`: expected a duration such as `500ms`, `30s`, `5m`, `72h` or `30d`, found another value
        hint: left out, `drain_delay` is `"0s"`
    "#);
    let json = shell.types("check --config bad.toml --json").printed(2);
    let json: Value = serde_json::from_str(&json).unwrap();
    let problems = json["problems"].as_array().unwrap();
    assert_eq!(problems.len(), 8, "{json}");
    let place = json!({ "file": "bad.toml", "line": 3 });
    let listen = problems.iter().find(|problem| problem["place"] == place).unwrap();
    assert_eq!(listen["key"], "server.listen");
}

#[test]
fn check_of_a_file_that_is_not_there_or_is_no_toml_names_it() {
    let shell = Shell::with("broken.toml", "[server]\nlisten = \"127.0.0.1:80\n");
    assert_snapshot!(shell.types("check --config nowhere.toml").printed(2), @"
    the configuration has 1 problem
      nowhere.toml: expected a configuration that can be read, found an error: No such file or directory (os error 2)
        hint: `onceward init --output FILE` writes one to start with
    ");
    assert_snapshot!(shell.types("check --config broken.toml").printed(2), @r#"
    the configuration has 1 problem
      broken.toml:2: expected valid TOML, found a mistake at column 23: invalid basic string, expected `"`
        hint: a setting is written `name = "text"`, `name = 5` or `name = ["one", "two"]`, a table `[name]`
    "#);
}

#[test]
fn check_fails_on_risks_only_if_it_is_strict() {
    let risky = format!("[store.memory]\n[defaults]\nwhen_in_flight = \"wait\"\n{ROUTE}");
    let shell = Shell::with("risky.toml", &risky);
    assert_snapshot!(shell.types("check --config risky.toml").printed(0), @r#"
    risky.toml: no problems, 4 risks
      risky.toml:1: `store.memory`: every operation is forgotten at exit, so that a later copy runs again
        hint: `[store.embedded]` remembers
      risky.toml:3: `defaults.when_in_flight`: without `answer_within` a copy waits up to 1m, and most senders hang up sooner
        hint: `answer_within = "8s"`, or what is below the patience of the sender
      risky.toml:4: `routes.orders.key.event`: of two events with one id and no type, the second one is refused with 422
        hint: `key.event.type`, without `?`, names where their type is; a provider knows it
      risky.toml:4: `routes.orders.provider`: who knows the URL can send what looks like an event of the sender
        hint: name the sender with `provider`, or describe its signature in `[providers.NAME]`; `verify = false` says that it has none
    "#);
    let strict = shell.types("check --config risky.toml --strict");
    assert_eq!(strict.printed(1), shell.types("check --config risky.toml").stdout);
    let json = shell.types("check --config risky.toml --json --strict").printed(1);
    let json: Value = serde_json::from_str(&json).unwrap();
    assert_eq!(json["problems"], json!([]));
    let codes: Vec<_> =
        json["risks"].as_array().unwrap().iter().map(|risk| &risk["code"]).collect();
    let expected =
        ["store-in-memory", "wait-without-limit", "event-without-type", "signature-unchecked"];
    assert_eq!(codes, expected);
}

/// Anybody who can reach the admin listener without a token could forget operations.
#[test]
fn an_admin_listener_for_others_needs_a_token() {
    let open = format!("[admin]\nlisten = \"[::]:8081\"\n{ROUTE}");
    let shell = Shell::with("open.toml", &open).variable("ADMIN_TOKEN", "canary");
    assert_snapshot!(shell.types("check --config open.toml").printed(2), @r#"
    the configuration has 1 problem
      open.toml:2: `admin.listen`: expected a loopback address where there is no `admin.token`, found `[::]:8081`
        hint: `token = { env = "ONCEWARD_ADMIN_TOKEN" }` in `[admin]` opens it to others
    "#);
    let serve = shell.types("serve --config open.toml").complained(2);
    assert!(serve.contains("open.toml:2: `admin.listen`"), "{serve}");

    let token = open.replace("8081\"\n", "8081\"\ntoken = { env = \"ADMIN_TOKEN\" }\n");
    let shell = shell.and("open.toml", &token);
    for line in ["", " --effective", " --effective --json"] {
        let printed = shell.types(&format!("check --config open.toml{line}")).printed(0);
        assert!(!printed.contains("canary"), "{printed}");
    }
}

#[test]
fn check_shows_every_value_and_where_it_comes_from() {
    let text = format!("[defaults]\nlease = \"20s\"\n{ROUTE}retention = \"72h\"\n");
    let shell = Shell::with("onceward.toml", &text)
        .variable("ONCEWARD_SERVER__LISTEN", "127.0.0.1:9999")
        .variable("ONCEWARD_ROUTES__ORDERS__ATTEMPT_TIMEOUT", "25s");
    let printed = shell.types("check --config onceward.toml --effective").printed(0);
    for line in [
        "server.listen = \"127.0.0.1:9999\"  # ONCEWARD_SERVER__LISTEN",
        "server.limits.header_timeout = \"10s\"  # built-in",
        "routes.orders.lease = \"20s\"  # onceward.toml:2",
        "routes.orders.retention = \"72h\"  # onceward.toml:6",
        "routes.orders.attempt_timeout = \"25s\"  # ONCEWARD_ROUTES__ORDERS__ATTEMPT_TIMEOUT",
        "onceward.toml: no problems, 2 risks",
    ] {
        assert!(printed.lines().any(|found| found == line), "no `{line}` in\n{printed}");
    }
    let json = shell.types("check --config onceward.toml --effective --json").printed(0);
    let json: Value = serde_json::from_str(&json).unwrap();
    let lease = json!({
        "key": "routes.orders.lease", "value": "\"20s\"",
        "place": { "file": "onceward.toml", "line": 2 },
    });
    assert!(json["effective"].as_array().unwrap().contains(&lease), "{json:#}");
}

/// With one underscore in place of two, a variable sets nothing, and nobody would notice.
#[test]
fn a_variable_that_is_nearly_a_setting_is_named() {
    let shell = Shell::with("onceward.toml", SIGNED)
        .and("secret", "0123456789abcdef\n")
        .variable("ONCEWARD_SERVER_LISTEN", "canary")
        .variable("ONCEWARD_ROUTES_ORDERS_ANSWER_WITHIN", "canary")
        .variable("ONCEWARD_SERVER_LIMITS_BODY_TIMEOUT", "canary")
        .variable("ONCEWARD_IMAGE_TAG", "canary")
        .variable("ONCEWARD_ROUTES_OTHERS_LEASE", "canary")
        .variable("ONCEWARD_LOG_FORMAT", "text")
        .variable("ONCEWARD_ADMIN_TOKEN", "canary");
    let printed = shell.types("check --config onceward.toml --json").printed(0);
    assert!(!printed.contains("canary"), "{printed}");
    let report: Value = serde_json::from_str(&printed).unwrap();
    let hints = report["risks"].as_array().unwrap().iter().map(|risk| {
        assert_eq!(risk["code"], "variable-ignored");
        risk["hint"].as_str().unwrap()
    });
    assert_eq!(
        hints.collect::<Vec<_>>(),
        [
            "`ONCEWARD_ROUTES__ORDERS__ANSWER_WITHIN` is read",
            "`ONCEWARD_SERVER__LIMITS__BODY_TIMEOUT` is read",
            "`ONCEWARD_SERVER__LISTEN` is read",
        ]
    );
}
