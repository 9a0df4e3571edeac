//! Which source wins where several have a setting, and the built-in value where none has.

use std::time::Duration;

use http::StatusCode;
use insta::assert_snapshot;
use onceward::config::Config;
use onceward::idempotency::IfInFlight;
use onceward::proxy::{FingerprintOver, PathPattern, WhenKeyMissing};
use onceward::upstream::Scheme;
use proptest::prelude::*;

use super::Written;

/// The built-in values of every setting.
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
    assert_eq!(route.fingerprint.over, FingerprintOver::Auto { untyped_events: true });
    assert_eq!(route.fingerprint.ignore, []);
    assert_eq!(route.in_flight_status, StatusCode::CONFLICT);
    assert_eq!(route.uncertain_status, StatusCode::SERVICE_UNAVAILABLE);
    assert_eq!(route.request_bytes_max, 1024 * 1024);
    assert_eq!(route.when_key_missing, WhenKeyMissing::Refuse);
    assert_eq!(route.policy.receiver.forward_key, None);
    assert_snapshot!(format!("{config:#?}\n{:#?}\n{:#?}", route.upstream, route.policy), @r#"
    Config {
        server: Server {
            listen: 127.0.0.1:8080,
            public_url: None,
            trusted_proxies: [],
            threads: None,
            drain_delay: 0ns,
            shutdown_timeout: 65s,
            listener: Limits {
                connections_max: 10000,
                per_peer_max: Share(
                    1000000,
                ),
                trusted_proxies: [],
                header_bytes_max: 65536,
                header_lines_max: 256,
                header_timeout: 10s,
                idle_timeout: 75s,
                write_timeout: 30s,
            },
            limits: Limits {
                requests_in_flight_max: 4096,
                bodies_pending_max: 4096,
                per_peer_max: Share(
                    1000000,
                ),
                buffered_bytes_max: 536870912,
                body_timeout: 30s,
                body_rate_min: 1024,
                answer_head: AnswerHeadLimits {
                    bytes_max: 262144,
                    lines_max: 512,
                },
            },
        },
        admin: Settings {
            listen: 127.0.0.1:8081,
            token: None,
            retention: 86400s,
        },
        store: Embedded(
            Settings {
                path: "onceward-data",
                durability: Sync,
                if_damaged: Refuse,
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
        keepalive_max: 30s,
        preserve_host: true,
    }
    Policy {
        durations: Durations {
            lease: 15s,
            attempt_timeout: 60s,
            retention: 86400s,
            hold_for: 2592000s,
        },
        answer_within: None,
        if_in_flight: Refuse,
        waiters_max: 32,
        receiver: ReceiverPolicy {
            if_uncertain: Hold,
            lookup: None,
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
            reference: None,
            forward_key: None,
        },
        remember: Retention,
        when_store_fails: Refuse,
        in_flight_max: 1024,
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
    assert_eq!(route.policy.durations.retention, Duration::from_hours(1));
    assert_eq!(route.policy.durations.lease, Duration::from_secs(15));
    assert_eq!(route.policy.if_in_flight, IfInFlight::Wait);
    assert_eq!(route.policy.waiters_max, 32);
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
    defaults.keepalive_max = "30s"  # built-in
    defaults.key.event.id = "json:/id"  # built-in
    defaults.key.event.type = "json:/type?"  # built-in
    defaults.key.header = ["x-idempotency-key", "idempotency-key"]  # built-in
    defaults.key.scope = []  # built-in
    defaults.lease = "20s"  # onceward.toml:4
    defaults.lookup.timeout = "5s"  # built-in
    defaults.methods = ["POST", "PUT", "PATCH", "DELETE"]  # built-in
    defaults.mode = "enforce"  # built-in
    defaults.outcome.succeeded = ["2xx"]  # built-in
    defaults.outcome.uncertain = ["504"]  # built-in
    defaults.preserve_host = true  # built-in
    defaults.refusal_body = "problem"  # built-in
    defaults.replay.body_bytes_max = "256KiB"  # built-in
    defaults.replay.drop_headers = []  # built-in
    defaults.replay.remember = "retention"  # built-in
    defaults.request_bytes_max = "1MiB"  # built-in
    defaults.retention = "72h"  # ONCEWARD_DEFAULTS__RETENTION
    defaults.steps_at_once = false  # built-in
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
    routes.orders.keepalive_max = "30s"  # built-in
    routes.orders.key.event.id = "json:/id"  # built-in
    routes.orders.key.event.source = "orders"  # built-in
    routes.orders.key.event.type = "json:/type"  # onceward.toml:9
    routes.orders.key.header = ["x-idempotency-key", "idempotency-key"]  # built-in
    routes.orders.key.scope = []  # built-in
    routes.orders.lease = "20s"  # onceward.toml:4
    routes.orders.lookup.timeout = "5s"  # built-in
    routes.orders.methods = ["POST"]  # ONCEWARD_ROUTES__ORDERS__METHODS
    routes.orders.mode = "enforce"  # built-in
    routes.orders.outcome.succeeded = ["2xx"]  # built-in
    routes.orders.outcome.uncertain = ["504"]  # built-in
    routes.orders.path = "/orders"  # onceward.toml:7
    routes.orders.preserve_host = true  # built-in
    routes.orders.refusal_body = "problem"  # built-in
    routes.orders.replay.body_bytes_max = "256KiB"  # built-in
    routes.orders.replay.drop_headers = []  # built-in
    routes.orders.replay.remember = "retention"  # built-in
    routes.orders.request_bytes_max = "1MiB"  # built-in
    routes.orders.retention = "72h"  # ONCEWARD_DEFAULTS__RETENTION
    routes.orders.steps_at_once = false  # built-in
    routes.orders.uncertain_status = 503  # built-in
    routes.orders.upstream = "http://a"  # onceward.toml:8
    routes.orders.waiters_max = 32  # built-in
    routes.orders.when_in_flight = "refuse"  # built-in
    routes.orders.when_key_missing = "refuse"  # built-in
    routes.orders.when_store_fails = "refuse"  # built-in
    routes.orders.when_uncertain = "hold"  # built-in
    server.drain_delay = "0s"  # built-in
    server.limits.answer_header_bytes_max = "256KiB"  # built-in
    server.limits.answer_header_lines_max = 512  # built-in
    server.limits.bodies_pending_max = 4096  # built-in
    server.limits.body_rate_min = "1KiB"  # built-in
    server.limits.body_timeout = "30s"  # built-in
    server.limits.buffered_bytes_max = "512MiB"  # built-in
    server.limits.connections_max = 10000  # built-in
    server.limits.header_bytes_max = "64KiB"  # built-in
    server.limits.header_lines_max = 256  # built-in
    server.limits.header_timeout = "10s"  # built-in
    server.limits.idle_timeout = "75s"  # built-in
    server.limits.per_peer_max = 1.0  # built-in
    server.limits.requests_in_flight_max = 4096  # built-in
    server.limits.write_timeout = "30s"  # built-in
    server.listen = "127.0.0.1:8080"  # built-in
    server.public_url = ""  # built-in
    server.shutdown_timeout = "65s"  # built-in
    server.trusted_proxies = []  # built-in
    store.embedded.durability = "sync"  # built-in
    store.embedded.path = "onceward-data"  # built-in
    "#);
}

/// The values that one source has for one setting.
#[derive(Debug, Clone, Copy)]
struct LayerValues {
    route: Option<u16>,
    defaults: Option<u16>,
}

fn layer_values() -> impl Strategy<Value = LayerValues> {
    let number = || proptest::option::of(1..10_000_u16);
    (number(), number()).prop_map(|(route, defaults)| LayerValues { route, defaults })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// A route wins over `[defaults]`, and `[defaults]` over the built-in value. In each of them
    /// the environment wins over the file.
    #[test]
    fn the_nearest_value_counts(file in layer_values(), variables in layer_values()) {
        let line = |number: Option<u16>| number.map_or(String::new(), |number| format!("in_flight_max = {number}\n"));
        let mut written = Written::file(&format!(
            "[defaults]\n{}[routes.a]\npath = \"/\"\nupstream = \"http://a\"\n{}",
            line(file.defaults), line(file.route),
        ));
        for (table, number) in [("ROUTES__A", variables.route), ("DEFAULTS", variables.defaults)] {
            if let Some(number) = number {
                written = written.variable(format!("ONCEWARD_{table}__IN_FLIGHT_MAX"), number.to_string());
            }
        }
        let nearest = variables.route.or(file.route).or(variables.defaults).or(file.defaults);
        prop_assert_eq!(written.route("a").policy.in_flight_max, usize::from(nearest.unwrap_or(1024)));
    }
}
