//! Configuration, as an operator meets it: what is written, and what is said of it.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::path::Path;
use std::time::Duration;

use http::StatusCode;
use insta::assert_snapshot;
use onceward::config::{Config, Problems, Sources};
use onceward::idempotency::WhenInFlight;
use onceward::proxy::{FingerprintOver, PathPattern, RouteSettings, WhenKeyMissing};
use onceward::store;
use onceward::upstream::Scheme;
use proptest::prelude::*;
use tempfile::TempDir;

/// A configuration file and an environment.
struct Written {
    directory: TempDir,
    variables: Vec<(String, String)>,
}

impl Written {
    fn file(text: &str) -> Self {
        let directory = tempfile::tempdir().unwrap();
        std::fs::write(directory.path().join("onceward.toml"), text).unwrap();
        Self { directory, variables: Vec::new() }
    }

    /// The file, and a route that is right.
    fn beside_a_route(text: &str) -> Self {
        Self::file(&format!(
            "{text}\n[routes.orders]\npath = \"/orders\"\nupstream = \"http://a\"\n"
        ))
    }

    fn variable(mut self, name: &str, value: &str) -> Self {
        self.variables.push((name.to_owned(), value.to_owned()));
        self
    }

    fn sources(&self) -> Result<Sources, Problems> {
        let path = self.directory.path().join("onceward.toml");
        Sources::from_file(&path, self.variables.clone())
    }

    fn config(&self) -> Result<Config, Problems> {
        self.sources()?.check()
    }

    /// What is said, with the path of the file as an operator would have typed it.
    fn problems(&self) -> String {
        self.typed(&self.config().unwrap_err().to_string())
    }

    fn risks(&self) -> String {
        let lines = self.config().unwrap().risks().into_iter();
        lines.map(|risk| format!("{}: {}\n", risk.key, risk.text)).collect::<Vec<_>>().concat()
    }

    fn effective(&self) -> String {
        let lines = self.sources().unwrap().effective().into_iter();
        let lines = lines.map(|line| format!("{} = {}  # {}\n", line.key, line.value, line.place));
        self.typed(&lines.collect::<Vec<_>>().concat())
    }

    fn typed(&self, text: &str) -> String {
        text.replace(&format!("{}/", self.directory.path().display()), "")
    }

    fn route(&self, name: &str) -> RouteSettings {
        let routes = self.config().unwrap().routes;
        routes.into_iter().find(|route| &*route.name == name).unwrap()
    }
}

#[test]
fn a_syntax_error_has_its_line_and_column_but_not_its_text() {
    assert_snapshot!(Written::file("[admin]\ntoken = hunter2\n").problems(), @"
    the configuration has 1 problem
      onceward.toml:2: expected valid TOML, found a mistake at column 9: string values must be quoted, expected literal string
    ");
}

#[test]
fn an_unknown_key_has_a_suggestion() {
    let text = r#"[server]
lisen = "127.0.0.1:80"
[defaults.key]
headers = []
[defaults.outcome]
success = ["2xx"]
[store.embeded]
[plugins]
"#;
    assert_snapshot!(Written::beside_a_route(text).problems(), @"
    the configuration has 5 problems
      onceward.toml:2: `server.lisen`: expected a known key, found `lisen`
        hint: did you mean `listen`?
      onceward.toml:4: `defaults.key.headers`: expected a known key, found `headers`
        hint: did you mean `header`?
      onceward.toml:6: `defaults.outcome.success`: expected a known key, found `success`
        hint: known here: `succeeded`, `uncertain`
      onceward.toml:7: `store.embeded`: expected a known key, found `embeded`
        hint: did you mean `embedded`?
      onceward.toml:8: `plugins`: expected a known key, found `plugins`
        hint: known here: `server`, `admin`, `store`, `defaults`, `routes`
    ");
}

#[test]
fn all_problems_are_reported_at_once_in_the_order_of_lines() {
    let text = r#"[server]
listen = 8080
trusted_proxies = ["10.0.0.0/8", "ten", "10.0.0.0/33"]
shutdown_timeout = "3 days"

[server.limits]
connections_max = 0
header_bytes_max = "1KiB"
body_timeout = "0s"
buffered_bytes_max = 1000

[admin]
listen = "0.0.0.0:8081"

[defaults]
lease = "100ms"
preserve_host = "yes"
in_flight_status = 404

[routes.Orders]
path = "/orders"
upstream = "ftp://127.0.0.1"

[routes.payments]
path = "/pay/../ments"
upstream = "http://user:hunter2@127.0.0.1"
methods = ["post"]
retention = "1 year"
forward_key = "not a header"
[routes.payments.key]
event = { id = "xml:/id" }
scope = ["header:x-tenant", 7]
[routes.payments.fingerprint]
over = ["auto", "body"]
[routes.payments.outcome]
succeeded = []
uncertain = ["5xx", "6xx"]

[routes.refunds]
[routes.shop]
path = "/shop"
upstream = "http://a"
[routes.shop-too]
path = "/shop"
upstream = "http://b"
"#;
    assert_snapshot!(Written::file(text).problems(), @r#"
    the configuration has 27 problems
      onceward.toml:2: `server.listen`: expected an address and port such as `127.0.0.1:8080` or `[::1]:8080`, found the number 8080
      onceward.toml:3: `server.trusted_proxies.1`: expected a network such as `10.0.0.0/8` or `fd00::/8`, found `ten`
      onceward.toml:3: `server.trusted_proxies.2`: expected a network such as `10.0.0.0/8` or `fd00::/8`, found `10.0.0.0/33`
      onceward.toml:4: `server.shutdown_timeout`: expected a duration such as `500ms`, `30s`, `5m`, `72h` or `30d`, found `3 days`
      onceward.toml:7: `server.limits.connections_max`: expected a whole number from 1 to 4294967295, found the number 0
      onceward.toml:8: `server.limits.header_bytes_max`: expected a size from `8KiB` to `16MiB`, found `1KiB`
      onceward.toml:9: `server.limits.body_timeout`: expected a duration above zero, found `0s`
      onceward.toml:10: `server.limits.buffered_bytes_max`: expected a size such as `256KiB`, `1MiB` or `2GB`, found the number 1000
      onceward.toml:13: `admin.listen`: expected a loopback address where there is no `admin.token`, found `0.0.0.0:8081`
        hint: `token = { env = "ONCEWARD_ADMIN_TOKEN" }` in `[admin]` opens it to others
      onceward.toml:16: `defaults.lease`: expected a duration from `300ms` to `1h`, found `100ms`
      onceward.toml:17: `defaults.preserve_host`: expected `true` or `false`, found a string
      onceward.toml:18: `defaults.in_flight_status`: expected 409, 425, 429 or 503, found the number 404
      onceward.toml:20: `routes.Orders`: expected a name of 1 to 64 letters a to z, digits, `_` and `-`, found `Orders`
      onceward.toml:22: `routes.Orders.upstream`: expected an `http` or `https` URL such as `http://127.0.0.1:3000`, without user, query or fragment, found `ftp://127.0.0.1`
      onceward.toml:25: `routes.payments.path`: expected a path such as `/webhooks/orders`, or a prefix such as `/webhooks/*`, without query, fragment or dot segments, found `/pay/../ments`
      onceward.toml:26: `routes.payments.upstream`: expected an `http` or `https` URL such as `http://127.0.0.1:3000`, without user, query or fragment, found a text with an `@`
      onceward.toml:27: `routes.payments.methods.0`: expected a method in capitals such as `POST`, found `post`
      onceward.toml:28: `routes.payments.retention`: expected a duration such as `500ms`, `30s`, `5m`, `72h` or `30d`, found `1 year`
      onceward.toml:29: `routes.payments.forward_key`: expected the name of a header such as `x-idempotency-key`, found `not a header`
      onceward.toml:31: `routes.payments.key.event.id`: expected `header:NAME`, `json:/pointer`, `form:FIELD` or `query:NAME`, with `?` behind it where it may be absent, found `xml:/id`
      onceward.toml:32: `routes.payments.key.scope.1`: expected `header:NAME`, `json:/pointer`, `form:FIELD` or `query:NAME`, with `?` behind it where it may be absent, found the number 7
      onceward.toml:34: `routes.payments.fingerprint.over`: expected `auto` or `body` alone, or selectors, found one of them among others
      onceward.toml:36: `routes.payments.outcome.succeeded`: expected at least one item, found none
      onceward.toml:37: `routes.payments.outcome.uncertain.1`: expected a status from 200 to 599 such as `2xx` or `504`, found `6xx`
      onceward.toml:39: `routes.refunds.path`: expected a value, found none
        hint: `path = "/webhooks/orders"`
      onceward.toml:39: `routes.refunds.upstream`: expected a value, found none
        hint: `upstream = "http://127.0.0.1:3000"`
      onceward.toml:44: `routes.shop-too.path`: expected a path that no other route of this host has, found that of route `shop`
    "#);
}

#[test]
fn a_problem_of_a_variable_names_the_variable() {
    let written = Written::beside_a_route("[server]\nlisten = \"127.0.0.1:80\"\n")
        .variable("ONCEWARD_SERVER__LISTEN", "here")
        .variable("ONCEWARD_SERVER__LIMITS__CONNECTIONS_MAX", "many")
        .variable("ONCEWARD_SERVER__TRUSTED_PROXIES", "10.0.0.0/8, ten")
        .variable("ONCEWARD_SERVER__LISEN", "x")
        .variable("ONCEWARD_ROUTES__ORDERS__LEASE", "1ms")
        .variable("ONCEWARD_ROUTES__OTHERS__LEASE", "1s");
    assert_snapshot!(written.problems(), @r#"
    the configuration has 7 problems
      ONCEWARD_ROUTES__ORDERS__LEASE: `routes.orders.lease`: expected a duration from `300ms` to `1h`, found `1ms`
      ONCEWARD_ROUTES__OTHERS__LEASE: `routes.others.path`: expected a value, found none
        hint: `path = "/webhooks/orders"`
      ONCEWARD_ROUTES__OTHERS__LEASE: `routes.others.upstream`: expected a value, found none
        hint: `upstream = "http://127.0.0.1:3000"`
      ONCEWARD_SERVER__LIMITS__CONNECTIONS_MAX: `server.limits.connections_max`: expected a whole number from 1 to 4294967295, found `many`
      ONCEWARD_SERVER__LISEN: `server.lisen`: expected a known key, found `lisen`
        hint: did you mean `listen`?
      ONCEWARD_SERVER__LISTEN: `server.listen`: expected an address and port such as `127.0.0.1:8080` or `[::1]:8080`, found `here`
      ONCEWARD_SERVER__TRUSTED_PROXIES: `server.trusted_proxies.1`: expected a network such as `10.0.0.0/8` or `fd00::/8`, found `10.0.0.0/8, ten`
    "#);
}

#[test]
fn a_file_that_is_not_there_is_a_problem() {
    let written = Written::file("");
    std::fs::remove_file(written.directory.path().join("onceward.toml")).unwrap();
    assert_snapshot!(written.problems(), @"
    the configuration has 1 problem
      onceward.toml: expected a configuration that can be read, found an error: No such file or directory (os error 2)
        hint: `onceward init --output FILE` writes one to start with
    ");
}

#[test]
fn an_empty_file_lacks_a_route() {
    assert_snapshot!(Written::file("").problems(), @"
    the configuration has 1 problem
      onceward.toml: `routes`: expected at least one route, found none
        hint: `[routes.orders]` with a `path` and an `upstream`
    ");
}

#[test]
fn arguments_are_named_as_they_were_typed() {
    let problems = Config::from_upstream("127.0.0.1:3000", "hooks", []).unwrap_err();
    assert_snapshot!(problems, @"
    the configuration has 2 problems
      --path: `routes.default.path`: expected a path such as `/webhooks/orders`, or a prefix such as `/webhooks/*`, without query, fragment or dot segments, found `hooks`
      --upstream: `routes.default.upstream`: expected an `http` or `https` URL such as `http://127.0.0.1:3000`, without user, query or fragment, found `127.0.0.1:3000`
    ");
}

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
        store::Settings::Memory => None,
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

/// Design, section 6: the built-in values.
#[test]
#[expect(clippy::too_many_lines, reason = "one line for each setting")]
fn what_is_not_said_is_built_in() {
    let mut config = Config::from_upstream("http://127.0.0.1:3000", "/*", []).unwrap();
    let route = config.routes.pop().unwrap();
    assert_eq!(route.host, None);
    assert_eq!(route.path, PathPattern::Prefix(String::new()));
    assert_eq!(route.methods, ["POST", "PUT", "PATCH", "DELETE"]);
    assert_eq!(route.key.headers, ["x-idempotency-key", "idempotency-key"]);
    assert_eq!(route.key.event.source, "default");
    assert_eq!(route.key.event.id, "json:/id".parse().unwrap());
    assert_eq!(route.key.event.kind, "json:/type?".parse().unwrap());
    assert_eq!(route.key.scope, []);
    assert_eq!(route.fingerprint.over, FingerprintOver::Auto);
    assert_eq!(route.fingerprint.ignore, []);
    assert_eq!(route.in_flight_status, StatusCode::CONFLICT);
    assert_eq!(route.uncertain_status, StatusCode::SERVICE_UNAVAILABLE);
    assert_eq!(route.request_bytes_max, 1024 * 1024);
    assert_eq!(route.when_key_missing, WhenKeyMissing::Refuse);
    assert_eq!(route.forward_key, None);
    assert_snapshot!(format!("{config:#?}\n{:#?}\n{:#?}", route.upstream, route.policy), @r#"
    Config {
        server: Server {
            listen: 127.0.0.1:8080,
            public_url: None,
            trusted_proxies: [],
            drain_delay: 0ns,
            shutdown_timeout: 25s,
            listener: Limits {
                connections_max: 10000,
                header_bytes_max: 65536,
                header_timeout: 10s,
                idle_timeout: 75s,
                write_timeout: 30s,
            },
            limits: Limits {
                requests_in_flight_max: 4096,
                buffered_bytes_max: 536870912,
                body_timeout: 30s,
            },
        },
        admin: Settings {
            listen: 127.0.0.1:8081,
            token: None,
        },
        store: Embedded(
            Settings {
                path: "onceward-data",
                durability: Sync,
            },
        ),
        routes: [],
    }
    Settings {
        target: Target {
            scheme: Http,
            authority: 127.0.0.1:3000,
            path: None,
        },
        connect_timeout: 5s,
        keepalive: 1s,
        preserve_host: true,
    }
    Policy {
        terms: Terms {
            lease: 15s,
            attempt_timeout: 60s,
            retention: 86400s,
            hold_for: 2592000s,
        },
        answer_within: None,
        when_in_flight: Refuse,
        when_store_fails: Refuse,
        in_flight_max: 1024,
        outcome: OutcomeRule {
            succeeded: [
                StatusRange {
                    first: 200,
                    last: 299,
                },
            ],
            uncertain: [
                StatusRange {
                    first: 504,
                    last: 504,
                },
            ],
        },
        body_bytes_max: 262144,
        drop_headers: [],
    }
    "#);
}

#[test]
fn a_route_overrides_setting_by_setting() {
    let written = Written::file(
        r#"
[defaults]
retention = "72h"
when_in_flight = "wait"
answer_within = "8s"
[defaults.key]
scope = ["header:x-tenant"]
[routes.orders]
path = "/orders/*"
host = "Hooks.Example.com"
upstream = "https://a:8443/in"
retention = "1h"
in_flight_status = 425
when_key_missing = "hash-body"
answer_within = ""
[routes.orders.key]
header = ["x-order"]
[routes.orders.fingerprint]
over = ["json:/amount"]
"#,
    );
    let route = written.route("orders");
    assert_eq!(route.path, PathPattern::Prefix("/orders".to_owned()));
    assert_eq!(route.host.as_deref(), Some("hooks.example.com"));
    assert_eq!(route.upstream.target.scheme, Scheme::Https);
    assert_eq!(route.upstream.target.path.as_deref(), Some("/in"));
    assert_eq!(route.policy.terms.retention, Duration::from_hours(1));
    assert_eq!(route.policy.terms.lease, Duration::from_secs(15));
    assert_eq!(route.policy.when_in_flight, WhenInFlight::Wait { waiters_max: 32 });
    assert_eq!(route.policy.answer_within, None);
    assert_eq!(route.in_flight_status, StatusCode::TOO_EARLY);
    assert_eq!(route.when_key_missing, WhenKeyMissing::HashBody);
    assert_eq!(route.key.headers, ["x-order"]);
    assert_eq!(route.key.scope, ["header:x-tenant".parse().unwrap()]);
    assert_eq!(route.key.event.source, "orders");
    assert_eq!(route.key.event.id, "json:/id".parse().unwrap());
    assert_eq!(
        route.fingerprint.over,
        FingerprintOver::Parts(vec!["json:/amount".parse().unwrap()])
    );
}

#[test]
fn a_variable_is_read_as_what_its_setting_wants() {
    let written =
        Written::beside_a_route("[routes.my-hooks]\npath = \"/my\"\nupstream = \"http://a\"")
            .variable("ONCEWARD_ROUTES__ORDERS__WAITERS_MAX", "7")
            .variable("ONCEWARD_ROUTES__ORDERS__WHEN_IN_FLIGHT", "wait")
            .variable("ONCEWARD_ROUTES__ORDERS__PRESERVE_HOST", "false")
            .variable("ONCEWARD_ROUTES__ORDERS__METHODS", "POST, PUT")
            .variable("ONCEWARD_ROUTES__ORDERS__KEY__HEADER", "[\"x-a\"]")
            .variable("ONCEWARD_ROUTES__ORDERS__KEY__EVENT__SOURCE", "12345")
            .variable("ONCEWARD_ROUTES__MY_HOOKS__UNCERTAIN_STATUS", "429")
            .variable("ONCEWARD_STORE__EMBEDDED__PATH", "12345")
            .variable("ONCEWARD_ADMIN_TOKEN", "left alone")
            .variable("ONCEWARD_LOG", "left alone");
    let route = written.route("orders");
    assert_eq!(route.policy.when_in_flight, WhenInFlight::Wait { waiters_max: 7 });
    assert!(!route.upstream.preserve_host);
    assert_eq!(route.methods, ["POST", "PUT"]);
    assert_eq!(route.key.headers, ["x-a"]);
    assert_eq!(route.key.event.source, "12345");
    assert_eq!(written.route("my-hooks").uncertain_status, StatusCode::TOO_MANY_REQUESTS);
    let store::Settings::Embedded(store) = written.config().unwrap().store else { panic!() };
    assert_eq!(store.path, Path::new("12345"));
}

#[test]
#[expect(clippy::too_many_lines, reason = "one line for each setting")]
fn every_setting_says_where_it_comes_from() {
    let text =
        "[admin]\ntoken = { env = \"TOKEN\" }\n[defaults]\nlease = \"20s\"\nretention = \"48h\"";
    let written = Written::beside_a_route(text)
        .variable("TOKEN", "hunter2")
        .variable("ONCEWARD_DEFAULTS__RETENTION", "72h")
        .variable("ONCEWARD_ROUTES__ORDERS__METHODS", "POST");
    written.config().unwrap();
    assert_snapshot!(written.effective(), @r#"
    admin.listen = "127.0.0.1:8081"  # built-in
    admin.token.env = ***  # onceward.toml:2
    defaults.attempt_timeout = "60s"  # built-in
    defaults.attempts_max = 10  # built-in
    defaults.connect_timeout = "5s"  # built-in
    defaults.fingerprint.ignore = []  # built-in
    defaults.fingerprint.over = ["auto"]  # built-in
    defaults.forward_key = ""  # built-in
    defaults.hold_for = "30d"  # built-in
    defaults.in_flight_max = 1024  # built-in
    defaults.in_flight_status = 409  # built-in
    defaults.keepalive = "1s"  # built-in
    defaults.key.event.id = "json:/id"  # built-in
    defaults.key.event.type = "json:/type?"  # built-in
    defaults.key.header = ["x-idempotency-key", "idempotency-key"]  # built-in
    defaults.key.scope = []  # built-in
    defaults.lease = "20s"  # onceward.toml:4
    defaults.methods = ["POST", "PUT", "PATCH", "DELETE"]  # built-in
    defaults.outcome.succeeded = ["2xx"]  # built-in
    defaults.outcome.uncertain = ["504"]  # built-in
    defaults.preserve_host = true  # built-in
    defaults.replay.body_bytes_max = "256KiB"  # built-in
    defaults.replay.drop_headers = []  # built-in
    defaults.request_bytes_max = "1MiB"  # built-in
    defaults.retention = "72h"  # ONCEWARD_DEFAULTS__RETENTION
    defaults.uncertain_status = 503  # built-in
    defaults.waiters_max = 32  # built-in
    defaults.when_in_flight = "refuse"  # built-in
    defaults.when_key_missing = "refuse"  # built-in
    defaults.when_store_fails = "refuse"  # built-in
    defaults.when_uncertain = "hold"  # built-in
    routes.orders.attempt_timeout = "60s"  # built-in
    routes.orders.attempts_max = 10  # built-in
    routes.orders.connect_timeout = "5s"  # built-in
    routes.orders.fingerprint.ignore = []  # built-in
    routes.orders.fingerprint.over = ["auto"]  # built-in
    routes.orders.forward_key = ""  # built-in
    routes.orders.hold_for = "30d"  # built-in
    routes.orders.in_flight_max = 1024  # built-in
    routes.orders.in_flight_status = 409  # built-in
    routes.orders.keepalive = "1s"  # built-in
    routes.orders.key.event.id = "json:/id"  # built-in
    routes.orders.key.event.source = "orders"  # built-in
    routes.orders.key.event.type = "json:/type?"  # built-in
    routes.orders.key.header = ["x-idempotency-key", "idempotency-key"]  # built-in
    routes.orders.key.scope = []  # built-in
    routes.orders.lease = "20s"  # onceward.toml:4
    routes.orders.methods = ["POST"]  # ONCEWARD_ROUTES__ORDERS__METHODS
    routes.orders.outcome.succeeded = ["2xx"]  # built-in
    routes.orders.outcome.uncertain = ["504"]  # built-in
    routes.orders.path = "/orders"  # onceward.toml:7
    routes.orders.preserve_host = true  # built-in
    routes.orders.replay.body_bytes_max = "256KiB"  # built-in
    routes.orders.replay.drop_headers = []  # built-in
    routes.orders.request_bytes_max = "1MiB"  # built-in
    routes.orders.retention = "72h"  # ONCEWARD_DEFAULTS__RETENTION
    routes.orders.uncertain_status = 503  # built-in
    routes.orders.upstream = "http://a"  # onceward.toml:8
    routes.orders.waiters_max = 32  # built-in
    routes.orders.when_in_flight = "refuse"  # built-in
    routes.orders.when_key_missing = "refuse"  # built-in
    routes.orders.when_store_fails = "refuse"  # built-in
    routes.orders.when_uncertain = "hold"  # built-in
    server.drain_delay = "0s"  # built-in
    server.limits.body_timeout = "30s"  # built-in
    server.limits.buffered_bytes_max = "512MiB"  # built-in
    server.limits.connections_max = 10000  # built-in
    server.limits.header_bytes_max = "64KiB"  # built-in
    server.limits.header_timeout = "10s"  # built-in
    server.limits.idle_timeout = "75s"  # built-in
    server.limits.requests_in_flight_max = 4096  # built-in
    server.limits.write_timeout = "30s"  # built-in
    server.listen = "127.0.0.1:8080"  # built-in
    server.public_url = ""  # built-in
    server.shutdown_timeout = "25s"  # built-in
    server.trusted_proxies = []  # built-in
    store.embedded.durability = "sync"  # built-in
    store.embedded.path = "onceward-data"  # built-in
    "#);
}

#[test]
fn what_may_not_be_meant_is_a_risk() {
    let text = r#"
[server]
trusted_proxies = ["0.0.0.0/0"]
[store.memory]
[defaults]
lease = "3s"
hold_for = "30s"
when_in_flight = "wait"
when_store_fails = "forward"
when_key_missing = "forward"
"#;
    assert_snapshot!(Written::beside_a_route(text).risks(), @"
    server.trusted_proxies: every sender can claim any address in `X-Forwarded-For`
    store.memory: every operation is forgotten at exit, so that a later copy runs again
    routes.orders.answer_within: unset: a copy waits up to 60s, and most senders hang up sooner
    routes.orders.lease: one renewal that takes the store 2s leaves no room for another
    routes.orders.hold_for: an operation is given free while the upstream may still work on it
    routes.orders.when_store_fails: while the store fails, every copy is forwarded
    routes.orders.when_key_missing: without a key every copy is forwarded
    ");
    assert_eq!(
        Written::beside_a_route("[store.embedded]\ndurability = \"os\"")
            .config()
            .unwrap()
            .risks()
            .len(),
        1
    );
    assert_eq!(Written::beside_a_route("").risks(), "");
}

#[test]
fn a_secret_comes_from_a_variable_or_a_file_without_its_last_newline() {
    let token = |written: &Written| written.config().unwrap().admin.token.unwrap();
    let env = Written::beside_a_route("[admin]\nlisten = \"0.0.0.0:1\"\ntoken = { env = \"T\" }")
        .variable("T", "hunter2\n");
    assert!(token(&env).is(b"hunter2\n"));

    for (written, secret) in
        [("a\n", "a"), ("a\r\n", "a"), ("a", "a"), ("a\n\n", "a\n"), (" a ", " a ")]
    {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), written).unwrap();
        let text = format!("[admin]\ntoken = {{ file = \"{}\" }}", file.path().display());
        assert!(token(&Written::beside_a_route(&text)).is(secret.as_bytes()), "{written:?}");
    }
}

#[test]
fn a_secret_that_is_not_there_is_a_problem() {
    let token = |token: &str| {
        let written = Written::beside_a_route(&format!("[admin]\ntoken = {token}"));
        written.variable("EMPTY", "").problems()
    };
    let all = [
        token("{ env = \"UNSET\" }"),
        token("{ env = \"EMPTY\" }"),
        token("{ file = \"/does/not/exist\" }"),
        token("{ file = \"/dev/null\" }"),
        token("{ file = \"/\" }"),
        token("{ env = \"A\", file = \"b\" }"),
        token("{}"),
    ];
    assert_snapshot!(all.join("\n"), @"
    the configuration has 1 problem
      onceward.toml:2: `admin.token.env`: expected the name of a variable that holds the secret, found one that is not set
    the configuration has 1 problem
      onceward.toml:2: `admin.token.env`: expected the name of a variable that holds the secret, found one that is empty
    the configuration has 1 problem
      onceward.toml:2: `admin.token.file`: expected the path of a file that holds the secret, found one that cannot be read: entity not found
    the configuration has 1 problem
      onceward.toml:2: `admin.token.file`: expected the path of a file that holds the secret, found one that is empty
    the configuration has 1 problem
      onceward.toml:2: `admin.token.file`: expected the path of a file that holds the secret, found one that cannot be read: is a directory
    the configuration has 1 problem
      onceward.toml:2: `admin.token.file`: expected `env` or `file`, found both
    the configuration has 1 problem
      onceward.toml:2: `admin.token`: expected `env` or `file`, found neither
    ");
}

/// faults.md, item 14: figment prints the value, and toml the line.
#[test]
fn no_message_ever_shows_a_secret() {
    const CANARY: &str = "hunter2canary";
    let forms = [
        "token = \"hunter2canary\"",
        "token = hunter2canary",
        "token = \"hunter2canary",
        "token = 'hunter2canary",
        "token = [\"hunter2canary\"]",
        "token = { env = \"hunter2canary\" }",
        "token = { env = [\"hunter2canary\"] }",
        "token = { file = \"hunter2canary\" }",
        "token = { file = \"hunter2canary\\u0000\" }",
        "token = { hunter2canary = 1 }",
        "token = { env = { x = \"hunter2canary\" } }",
        "token = { env = \"A\", file = \"hunter2canary\" }",
        "token.env = hunter2canary",
        "token = { env = \"hunter2canary\"",
        "token = hunter2canary\ntoken = 1",
        "token = \"\\hunter2canary\"",
        "token = \"\"\"hunter2canary",
        "tokn = \"hunter2canary\"",
        "token = { evn = \"hunter2canary\" }",
        "token = 0xhunter2canary",
        "token = { env = \"A\" } hunter2canary",
        "= hunter2canary",
        "listen = \"0.0.0.0:1\"\ntoken = \"hunter2canary\"",
    ];
    for form in forms {
        for written in [
            Written::file(&format!("[admin]\n{form}\n")),
            Written::beside_a_route("").variable("ONCEWARD_ADMIN__TOKEN", form),
            Written::beside_a_route("").variable("ONCEWARD_ADMIN__TOKEN__ENV", form),
            Written::beside_a_route("").variable("ONCEWARD_ADMIN__TOKEN__FILE", form),
            Written::beside_a_route("")
                .variable("ONCEWARD_ADMIN__TOKEN", form.trim_start_matches("token = ")),
            Written::beside_a_route("").variable("ONCEWARD_ADMIN", form),
            Written::beside_a_route("").variable("ONCEWARD_ADMIN__TOKN", form),
        ] {
            let said = match written.sources() {
                Ok(sources) => {
                    format!("{:?}", sources.check())
                }
                Err(problems) => format!("{problems} {problems:?}"),
            };
            assert!(!said.contains(CANARY), "{form}: {said}");
        }
    }
    let right = Written::beside_a_route("[admin]\ntoken = { env = \"T\" }").variable("T", CANARY);
    let shown = format!("{:?} {}", right.config().unwrap(), right.effective());
    assert!(!shown.contains(CANARY), "{shown}");

    let url = Written::file("[routes.a]\npath = \"/\"\nupstream = \"http://u:hunter2canary@h\"");
    assert!(!url.problems().contains(CANARY));
}

#[test]
fn the_token_is_needed_where_others_can_connect() {
    for listen in ["127.0.0.1:1", "[::1]:1", "127.9.9.9:1", "[::ffff:127.0.0.1]:1"] {
        Written::beside_a_route(&format!("[admin]\nlisten = \"{listen}\"")).config().unwrap();
    }
    for listen in ["0.0.0.0:1", "[::]:1", "10.0.0.1:1", "[::ffff:10.0.0.1]:1"] {
        let written = Written::beside_a_route(&format!("[admin]\nlisten = \"{listen}\""));
        assert!(written.problems().contains("admin.token"), "{listen}");
    }
}

/// What a layer says about one setting of the one route.
#[derive(Debug, Clone, Copy)]
struct Said {
    route: Option<u16>,
    defaults: Option<u16>,
}

fn said() -> impl Strategy<Value = Said> {
    let number = || proptest::option::of(1..10_000_u16);
    (number(), number()).prop_map(|(route, defaults)| Said { route, defaults })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// A route before the defaults before what is built in; in each the environment before the file.
    #[test]
    fn the_nearest_value_counts(file in said(), variables in said()) {
        let line = |number: Option<u16>| number.map_or(String::new(), |number| format!("in_flight_max = {number}\n"));
        let mut written = Written::file(&format!(
            "[defaults]\n{}[routes.a]\npath = \"/\"\nupstream = \"http://a\"\n{}",
            line(file.defaults), line(file.route),
        ));
        for (table, number) in [("ROUTES__A", variables.route), ("DEFAULTS", variables.defaults)] {
            if let Some(number) = number {
                written = written.variable(&format!("ONCEWARD_{table}__IN_FLIGHT_MAX"), &number.to_string());
            }
        }
        let nearest = variables.route.or(file.route).or(variables.defaults).or(file.defaults);
        prop_assert_eq!(written.route("a").policy.in_flight_max, usize::from(nearest.unwrap_or(1024)));
    }

    /// Any text in any place is a configuration or a list of problems, and never a panic.
    #[test]
    fn no_value_breaks_the_reader(key in 0..6_usize, value in "\\PC{0,12}|-?[0-9]{1,40}|\\[[0-9,\"a]*\\]|\\{\\}|(a\\.){0,50}a *= *1") {
        let key = ["routes.a.lease", "routes.a", "admin.token", "server.trusted_proxies", "routes", "store"][key];
        let written = Written::file(&format!("{key} = {value}\n"));
        let _ = written.config().map_err(|problems| problems.to_string());
        let variable = key.replace('.', "__").to_uppercase();
        let written = Written::beside_a_route("").variable(&format!("ONCEWARD_{variable}"), &value);
        let _ = written.config().map_err(|problems| problems.to_string());
    }
}

/// Tables within tables are read by a function that calls itself.
#[test]
fn depth_is_no_way_to_break_the_reader() {
    let deep = format!("{}a = 1", "a.".repeat(100_000));
    let arrays = format!("a = {}{}", "[".repeat(100_000), "]".repeat(100_000));
    let tables = format!("[{}a]", "a.".repeat(100_000));
    for text in [&deep, &arrays, &tables] {
        assert!(Written::file(text).config().is_err());
        let written = Written::beside_a_route("").variable("ONCEWARD_A__B", text);
        assert!(written.config().is_err());
    }
    let written = Written::beside_a_route("");
    let written = written.variable(&format!("ONCEWARD_{}A", "A__".repeat(100_000)), "1");
    assert!(written.config().is_err());
}
