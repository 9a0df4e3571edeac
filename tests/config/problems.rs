//! Problems: all mistakes are reported at once, each with its origin and a hint.

use std::num::NonZeroUsize;

use insta::assert_snapshot;
use onceward::config::Config;

use super::Written;

#[test]
fn a_syntax_error_has_its_line_and_column_but_not_its_text() {
    assert_snapshot!(Written::file("[admin]\ntoken = hunter2\n").problems(), @r#"
    the configuration has 1 problem
      onceward.toml:2: expected valid TOML, found a mistake at column 9: string values must be quoted, expected literal string
        hint: a setting is written `name = "text"`, `name = 5` or `name = ["one", "two"]`, a table `[name]`
    "#);
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
        hint: known here: `succeeded`, `uncertain`, `reference`
      onceward.toml:7: `store.embeded`: expected a known key, found `embeded`
        hint: did you mean `embedded`?
      onceward.toml:8: `plugins`: expected a known key, found `plugins`
        hint: known here: `server`, `admin`, `store`, `defaults`, `providers`, `routes`
    ");
}

const MISTAKES: &str = r#"[server]
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

#[test]
fn all_problems_are_reported_at_once_in_the_order_of_lines() {
    assert_snapshot!(Written::file(MISTAKES).problems(), @r#"
    the configuration has 27 problems
      onceward.toml:2: `server.listen`: expected an address and port such as `127.0.0.1:8080` or `[::1]:8080`, found the number 8080
        hint: left out, `listen` is `"127.0.0.1:8080"`
      onceward.toml:3: `server.trusted_proxies.1`: expected a network such as `10.0.0.0/8` or `fd00::/8`, found `ten`
        hint: left out, `trusted_proxies` is `[]`
      onceward.toml:3: `server.trusted_proxies.2`: expected a network such as `10.0.0.0/8` or `fd00::/8`, found `10.0.0.0/33`
        hint: left out, `trusted_proxies` is `[]`
      onceward.toml:4: `server.shutdown_timeout`: expected a duration such as `500ms`, `30s`, `5m`, `72h` or `30d`, found `3 days`
        hint: write `3d`
      onceward.toml:7: `server.limits.connections_max`: expected a whole number from 1 to 4294967295, found the number 0
        hint: left out, `connections_max` is `10000`
      onceward.toml:8: `server.limits.header_bytes_max`: expected a size from `8KiB` to `16MiB`, found `1KiB`
        hint: left out, `header_bytes_max` is `"64KiB"`
      onceward.toml:9: `server.limits.body_timeout`: expected a duration from `1ms` to `1h`, found `0s`
        hint: left out, `body_timeout` is `"30s"`
      onceward.toml:10: `server.limits.buffered_bytes_max`: expected a size such as `256KiB`, `1MiB` or `2GB`, found the number 1000
        hint: write `"1000B"`
      onceward.toml:13: `admin.listen`: expected a loopback address where there is no `admin.token`, found `0.0.0.0:8081`
        hint: `token = { env = "ONCEWARD_ADMIN_TOKEN" }` in `[admin]` opens it to others
      onceward.toml:16: `defaults.lease`: expected a duration from `300ms` to `1h`, found `100ms`
        hint: left out, `lease` is `"15s"`
      onceward.toml:17: `defaults.preserve_host`: expected `true` or `false`, found a string
        hint: left out, `preserve_host` is `true`
      onceward.toml:18: `defaults.in_flight_status`: expected 409, 425, 429 or 503, found the number 404
        hint: left out, `in_flight_status` is `409`
      onceward.toml:20: `routes.Orders`: expected a name of 1 to 64 letters a to z, digits, `_` and `-`, found `Orders`
        hint: such as `orders` or `shop-eu`
      onceward.toml:22: `routes.Orders.upstream`: expected an `http` or `https` URL such as `http://127.0.0.1:3000`, without user, query or fragment, found `ftp://127.0.0.1`
        hint: `upstream = "http://127.0.0.1:3000"`
      onceward.toml:25: `routes.payments.path`: expected a path that every receiver reads alike, found `/pay/../ments`
        hint: write `/ments`, which is how some receivers read it
      onceward.toml:26: `routes.payments.upstream`: expected an `http` or `https` URL such as `http://127.0.0.1:3000`, without user, query or fragment, found a text with an `@`
        hint: `upstream = "http://127.0.0.1:3000"`
      onceward.toml:27: `routes.payments.methods.0`: expected a method in capitals such as `POST`, found `post`
        hint: left out, `methods` is `["POST", "PUT", "PATCH", "DELETE"]`
      onceward.toml:28: `routes.payments.retention`: expected a duration such as `500ms`, `30s`, `5m`, `72h` or `30d`, found `1 year`
        hint: write `365d`
      onceward.toml:29: `routes.payments.forward_key`: expected the name of a header of its own such as `idempotency-key`, not one that says how a request is framed, where it goes or what it is, found `not a header`
        hint: `forward_key = "idempotency-key"`
      onceward.toml:31: `routes.payments.key.event.id`: expected `header:NAME`, `json:/pointer`, `form:FIELD`, `query:NAME`, `signature:NAME` or `body`, several with `|` between them, with `?` behind it where it may be absent, found `xml:/id`
        hint: left out, `id` is `"json:/id"`
      onceward.toml:32: `routes.payments.key.scope.1`: expected `header:NAME`, `json:/pointer`, `form:FIELD`, `query:NAME`, `signature:NAME` or `body`, several with `|` between them, with `?` behind it where it may be absent, found the number 7
        hint: left out, `scope` is `[]`
      onceward.toml:34: `routes.payments.fingerprint.over`: expected `auto` or `body` alone, or selectors, found one of them among others
        hint: left out, `over` is `["auto"]`
      onceward.toml:36: `routes.payments.outcome.succeeded`: expected at least one item, found none
        hint: left out, `succeeded` is `["2xx"]`
      onceward.toml:37: `routes.payments.outcome.uncertain.1`: expected a status from 200 to 599 such as `2xx` or `504`, found `6xx`
        hint: left out, `uncertain` is `["504"]`
      onceward.toml:39: `routes.refunds.path`: expected a value, found none
        hint: `path = "/webhooks/orders"`
      onceward.toml:39: `routes.refunds.upstream`: expected a value, found none
        hint: `upstream = "http://127.0.0.1:3000"`
      onceward.toml:44: `routes.shop-too.path`: expected a path that no other route of this host has, found that of route `shop`
        hint: give one of them another `path` or `host`, or make them one route
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
      ONCEWARD_ROUTES__ORDERS__LEASE: `routes.orders.lease`: expected a duration from `300ms` to `1h`, found another value
        hint: left out, `lease` is `"15s"`
      ONCEWARD_ROUTES__OTHERS__LEASE: `routes.others.path`: expected a value, found none
        hint: `path = "/webhooks/orders"`
      ONCEWARD_ROUTES__OTHERS__LEASE: `routes.others.upstream`: expected a value, found none
        hint: `upstream = "http://127.0.0.1:3000"`
      ONCEWARD_SERVER__LIMITS__CONNECTIONS_MAX: `server.limits.connections_max`: expected a whole number from 1 to 4294967295, found another value
        hint: left out, `connections_max` is `10000`
      ONCEWARD_SERVER__LISEN: `server.lisen`: expected a known key, found `lisen`
        hint: did you mean `listen`?
      ONCEWARD_SERVER__LISTEN: `server.listen`: expected an address and port such as `127.0.0.1:8080` or `[::1]:8080`, found another value
        hint: left out, `listen` is `"127.0.0.1:8080"`
      ONCEWARD_SERVER__TRUSTED_PROXIES: `server.trusted_proxies.1`: expected a network such as `10.0.0.0/8` or `fd00::/8`, found another value
        hint: left out, `trusted_proxies` is `[]`
    "#);
}

#[test]
fn so_many_threads_serve_connections_as_are_written() {
    let threads = |text: &str| Written::beside_a_route(text).config().unwrap().server.threads;
    assert_eq!(threads(""), None);
    assert_eq!(threads("[server]\nthreads = 3\n").map(NonZeroUsize::get), Some(3));
    for wrong in ["0", "1025", "-1", "\"2\""] {
        let problems =
            Written::beside_a_route(&format!("[server]\nthreads = {wrong}\n")).problems();
        let expected = "onceward.toml:2: `server.threads`: expected a whole number from 1 to ";
        assert!(problems.contains(expected), "{problems}");
        assert!(problems.contains("left out, there is one for each processor"), "{problems}");
    }
}

#[test]
fn limits_that_are_out_of_reason_are_problems() {
    let text = "[server.limits]\nheader_lines_max = 100000\nper_peer_max = 1.5\n\
                bodies_pending_max = 0\nbody_rate_min = 1024\nbuffered_bytes_max = \"1KiB\"\n";
    let written =
        Written::beside_a_route(text).variable("ONCEWARD_SERVER__LIMITS__CONNECTIONS_MAX", "0.5");
    assert_snapshot!(written.problems(), @r#"
    the configuration has 6 problems
      onceward.toml:2: `server.limits.header_lines_max`: expected a whole number from 16 to 10000, found the number 100000
        hint: left out, `header_lines_max` is `256`
      onceward.toml:3: `server.limits.per_peer_max`: expected a number above 0 and up to 1, such as 0.25, found a number
        hint: left out, `per_peer_max` is `1.0`
      onceward.toml:4: `server.limits.bodies_pending_max`: expected a whole number from 1 to 4294967295, found the number 0
        hint: left out, `bodies_pending_max` is `4096`
      onceward.toml:5: `server.limits.body_rate_min`: expected a size such as `256KiB`, `1MiB` or `2GB`, found the number 1024
        hint: write `"1024B"`
      onceward.toml:6: `server.limits.buffered_bytes_max`: expected a size of `1MiB` or more, found `1KiB`
        hint: left out, `buffered_bytes_max` is `"512MiB"`
      ONCEWARD_SERVER__LIMITS__CONNECTIONS_MAX: `server.limits.connections_max`: expected a whole number from 1 to 4294967295, found another value
        hint: left out, `connections_max` is `10000`
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
    assert_snapshot!(problems, @r#"
    the configuration has 2 problems
      --path: `routes.default.path`: expected a path such as `/webhooks/orders`, or a prefix such as `/webhooks/*`, without query or fragment, found `hooks`
        hint: `path = "/webhooks/orders"`, or `"/webhooks/*"` for all below it
      --upstream: `routes.default.upstream`: expected an `http` or `https` URL such as `http://127.0.0.1:3000`, without user, query or fragment, found `127.0.0.1:3000`
        hint: `upstream = "http://127.0.0.1:3000"`
    "#);
}

/// People put a secret into the wrong variable, whatever the variable is for.
#[test]
fn no_value_of_a_variable_is_ever_shown() {
    const CANARY: &str = "hunter2canary";
    let route = "[routes.orders]\npath = \"/orders\"\nupstream = \"http://a\"\n";
    let steps = "[routes.many]\npath = \"/many\"\n[[routes.many.steps]]\nname = \"one\"\nupstream = \"http://a\"\n";
    for variable in [
        "ADMIN__LISTEN",
        "DEFAULTS__METHODS",
        "DEFAULTS__REPLAY__DROP_HEADERS",
        "PROVIDERS__ACME",
        "PROVIDERS__ACME__FACTS__PATIENCE",
        "PROVIDERS__ACME__HANDSHAKES",
        "PROVIDERS__ACME__SIGNATURE__SCHEME",
        "STORE",
        "ROUTES",
        "ROUTES__MANY__ANSWER_FROM",
        "ROUTES__MANY__STEPS",
        "ROUTES__ORDERS",
        "ROUTES__ORDERS__FINGERPRINT__OVER",
        "ROUTES__ORDERS__HOST",
        "ROUTES__ORDERS__IN_FLIGHT_STATUS",
        "ROUTES__ORDERS__KEY__EVENT__ID",
        "ROUTES__ORDERS__KEY__SCOPE",
        "ROUTES__ORDERS__LEASE",
        "ROUTES__ORDERS__LOOKUP__DONE_WHEN",
        "ROUTES__ORDERS__LOOKUP__URL",
        "ROUTES__ORDERS__MODE",
        "ROUTES__ORDERS__OUTCOME__SUCCEEDED",
        "ROUTES__ORDERS__PATH",
        "ROUTES__ORDERS__PRESERVE_HOST",
        "ROUTES__ORDERS__PROVIDER",
        "ROUTES__ORDERS__REPLAY__REMEMBER",
        "ROUTES__ORDERS__REQUEST_BYTES_MAX",
        "ROUTES__ORDERS__RETRY_STATUS",
        "ROUTES__ORDERS__STEPS_AT_ONCE",
        "ROUTES__ORDERS__UPSTREAM",
        "SERVER",
        "SERVER__LIMITS__BUFFERED_BYTES_MAX",
        "SERVER__LIMITS__CONNECTIONS_MAX",
        "SERVER__LIMITS__NO_SUCH",
        "SERVER__LISTEN",
        "SERVER__PUBLIC_URL",
        "SERVER__TRUSTED_PROXIES",
        "STORE__EMBEDDED__DURABILITY",
        "STORE__POSTGRES__SCHEMA",
        "STORE__REDIS__MODE",
        "STORE__REDIS__PREFIX",
        "STORE__REDIS__REPLICA_ACKS",
    ] {
        for value in [
            CANARY.to_owned(),
            format!("{CANARY} "),
            format!("[\"{CANARY}\"]"),
            format!("{{ {CANARY} = 1 }}"),
            format!("{{ x = {{ {CANARY} = \"{CANARY}\" }} }}"),
            format!("[{{ {CANARY} = \"{CANARY}\" }}]"),
            format!("http://127.0.0.1/{CANARY}?x"),
        ] {
            let written = Written::file(&format!("{route}{steps}"));
            let written = written.variable(format!("ONCEWARD_{variable}"), &value);
            let said = match written.config() {
                Ok(_) => continue,
                Err(problems) => format!("{problems} {problems:?}"),
            };
            assert!(!said.contains(CANARY), "{variable} = {value}: {said}");
        }
    }
}

/// The values are of the right type, and too large or too small.
#[test]
fn no_value_of_a_variable_that_is_out_of_range_is_shown() {
    let written = Written::beside_a_route("")
        .variable("ONCEWARD_ROUTES__ORDERS__LEASE", "4271h")
        .variable("ONCEWARD_ROUTES__ORDERS__IN_FLIGHT_STATUS", "4271")
        .variable("ONCEWARD_SERVER__LIMITS__HEADER_BYTES_MAX", "4271GB")
        .variable("ONCEWARD_SERVER__LIMITS__CONNECTIONS_MAX", "-4271");
    let problems = written.problems();
    assert!(!problems.contains("4271"), "{problems}");
    assert_eq!(problems.matches("found another value").count(), 4, "{problems}");
}

/// A value in words that people use gets a hint with the form that the setting takes.
#[test]
fn what_was_meant_is_shown_as_it_is_written() {
    let text = r#"[server]
trusted_proxies = ["127.0.0.1", "::1"]
shutdown_timeout = "2 minutes"
[server.limits]
buffered_bytes_max = "256 mb"
[defaults]
retention = "3 days"
lease = "soon"
[routes.twin]
path = "/orders"
upstream = "http://127.0.0.1:8080"
"#;
    assert_snapshot!(Written::beside_a_route(text).problems(), @r#"
    the configuration has 7 problems
      onceward.toml:2: `server.trusted_proxies.0`: expected a network such as `10.0.0.0/8` or `fd00::/8`, found `127.0.0.1`
        hint: write `127.0.0.1/32`
      onceward.toml:2: `server.trusted_proxies.1`: expected a network such as `10.0.0.0/8` or `fd00::/8`, found `::1`
        hint: write `::1/128`
      onceward.toml:3: `server.shutdown_timeout`: expected a duration such as `500ms`, `30s`, `5m`, `72h` or `30d`, found `2 minutes`
        hint: write `2m`
      onceward.toml:5: `server.limits.buffered_bytes_max`: expected a size such as `256KiB`, `1MiB` or `2GB`, found `256 mb`
        hint: write `256MB`
      onceward.toml:7: `defaults.retention`: expected a duration such as `500ms`, `30s`, `5m`, `72h` or `30d`, found `3 days`
        hint: write `3d`
      onceward.toml:8: `defaults.lease`: expected a duration such as `500ms`, `30s`, `5m`, `72h` or `30d`, found `soon`
        hint: left out, `lease` is `"15s"`
      onceward.toml:10: `routes.twin.path`: expected a path that no other route of this host has, found that of route `orders`
        hint: give one of them another `path` or `host`, or make them one route
    "#);
}

/// Every request would come back until all places are taken.
#[test]
fn an_upstream_that_is_onceward_itself_is_a_problem() {
    let upstream = |listen: &str, upstream: &str| {
        let server = format!("[server]\nlisten = \"{listen}\"\n");
        let route = format!("[routes.a]\npath = \"/\"\nupstream = \"{upstream}\"\n");
        Written::file(&format!("{server}{route}"))
    };
    for (listen, itself) in [
        ("127.0.0.1:8080", "http://127.0.0.1:8080"),
        ("127.0.0.1:8080", "http://localhost:8080/x"),
        ("0.0.0.0:8080", "http://127.0.0.1:8080"),
        ("[::]:8080", "http://[::1]:8080"),
        ("127.0.0.1:80", "http://localhost"),
        ("127.0.0.1:8080", "http://127.0.0.1:8081"),
    ] {
        assert!(upstream(listen, itself).problems().contains("where Onceward itself listens"));
    }
    for other in ["http://127.0.0.1:3000", "http://10.0.0.1:8080", "http://app:8080"] {
        upstream("127.0.0.1:8080", other).config().unwrap();
    }
    let steps = "[routes.a]\npath = \"/\"\n[[routes.a.steps]]\nname = \"one\"\n\
                 upstream = \"http://127.0.0.1:8080\"\n";
    assert!(Written::file(steps).problems().contains("`routes.a.steps.0.upstream`"));
}

/// The sender chooses the key. It must not become the length or the target of the request.
#[test]
fn a_key_is_forwarded_in_a_header_of_its_own() {
    let problems = |name: &str| {
        let route = "[routes.a]\npath = \"/a\"\nupstream = \"http://127.0.0.1:1\"\n";
        Written::file(&format!("{route}forward_key = \"{name}\"\n"))
    };
    for name in [
        "content-length",
        "Transfer-Encoding",
        "connection",
        "upgrade",
        "te",
        "keep-alive",
        "expect",
        "host",
        "via",
        "x-forwarded-for",
        "content-type",
        "onceward-operation",
    ] {
        let told = problems(name).problems();
        assert!(told.contains("a header of its own"), "{name}: {told}");
    }
    for name in ["idempotency-key", "x-dedup"] {
        assert!(problems(name).config().is_ok(), "{name}");
    }
}

#[test]
fn a_host_that_can_be_none_says_why() {
    let problems = |upstream: &str| {
        Written::file(&format!("[routes.a]\npath = \"/a\"\nupstream = \"{upstream}\"\n")).problems()
    };
    for (upstream, why) in [
        ("http://[fe80::1%25lo]:9", "without a zone"),
        ("http://[::g]:9", "an IPv6 address between the brackets"),
        ("http://1.2.3:9", "an IPv4 address in four decimal parts"),
    ] {
        let told = problems(upstream);
        assert!(told.contains("`routes.a.upstream`") && told.contains(why), "{told}");
    }
}

/// A wrong value in `[server]` is one problem, and hides no other.
#[test]
fn a_mistake_in_the_server_makes_no_second_one_and_hides_none() {
    let text = r#"[server]
listen = "here"
public_url = "https://hooks.example.com"
[server.limits]
body_timeout = "0s"
buffered_bytes_max = "1MiB"
[routes.signed]
path = "/signed"
upstream = "http://a"
provider = "square"
secrets = [{ env = "SECRET" }]
[routes.big]
path = "/big"
upstream = "http://a"
request_bytes_max = "2MiB"
"#;
    let written = Written::file(text).variable("SECRET", "canary");
    let problems = written.config().unwrap_err();
    let keys: Vec<_> = problems.iter().map(|problem| problem.key.to_string()).collect();
    let expected = ["server.listen", "server.limits.body_timeout", "routes.big.request_bytes_max"];
    assert_eq!(keys, expected, "{problems}");
    // A URL that cannot be read must not be reported as missing, too.
    for url in [
        "[server]\npublic_url = \"nowhere\"\n",
        "[server]\npublic_url = \"https://h.example\"\n[routes.signed]\npublic_url = \"nowhere\"\n",
    ] {
        let head = if url.contains("[routes.signed]") { "" } else { "[routes.signed]\n" };
        let route = "path = \"/signed\"\nupstream = \"http://a\"\nprovider = \"square\"\n\
                     secrets = [{ env = \"SECRET\" }]\n";
        let written = Written::file(&format!("{url}{head}{route}")).variable("SECRET", "canary");
        let problems = written.problems();
        assert_eq!(problems.matches("public_url").count(), 1, "{problems}");
    }
}

/// Two routes, each of which can be read as the other, are one mistake.
#[test]
fn two_routes_at_one_place_are_told_once() {
    let text = "[routes.a]\npath = \"/hooks\"\nupstream = \"http://a\"\n\
                [routes.b]\npath = \"/Hooks\"\nupstream = \"http://b\"\n";
    let problems = Written::file(text).problems();
    assert!(problems.starts_with("the configuration has 1 problem\n"), "{problems}");
}

/// A secret in the open, or a variable that is not set, gets a hint with the right form.
#[test]
fn a_hint_says_how_the_setting_is_written() {
    let route = "[routes.a]\npath = \"/a\"\nupstream = \"http://a\"\n";
    let signed = format!("{route}provider = \"github\"\n");
    for (text, hint) in [
        (format!("{signed}secrets = \"hunter2\"\n"), "`{ env = \"NAME\" }` names a variable"),
        (format!("{signed}secrets = [\"hunter2\"]\n"), "`{ env = \"NAME\" }` names a variable"),
        (
            format!("{signed}secrets = [{{ env = \"UNSET\" }}]\n"),
            "`export UNSET=…` where it is started",
        ),
        (format!("{route}secrets = [{{ env = \"A\" }}]\n"), "`export A=…` where it is started"),
        (format!("{route}answer_from = \"a\"\n"), "add `[[routes.NAME.steps]]`"),
        (format!("{route}lease = \"soon\"\n"), "left out, `lease` is `\"15s\"`"),
        (format!("{route}methods = [\"post\"]\n"), "left out, `methods` is `[\"POST\""),
        (format!("{route}in_flight_status = 404\n"), "left out, `in_flight_status` is `409`"),
        (format!("{route}tolerance = true\n"), "`tolerance = \"5m\"`"),
    ] {
        let problems = Written::file(&text).problems();
        assert!(problems.contains(hint), "{text}: {problems}");
        assert!(!problems.contains("hunter2"), "{problems}");
    }
}
