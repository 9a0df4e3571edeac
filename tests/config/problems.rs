//! What is said of mistakes: all of them, each with its place and what may help.

use insta::assert_snapshot;
use onceward::config::Config;

use super::Written;

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
        hint: known here: `succeeded`, `uncertain`, `reference`
      onceward.toml:7: `store.embeded`: expected a known key, found `embeded`
        hint: did you mean `embedded`?
      onceward.toml:8: `plugins`: expected a known key, found `plugins`
        hint: known here: `server`, `admin`, `store`, `defaults`, `providers`, `routes`
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
      onceward.toml:31: `routes.payments.key.event.id`: expected `header:NAME`, `json:/pointer`, `form:FIELD`, `query:NAME` or `body`, with `?` behind it where it may be absent, found `xml:/id`
      onceward.toml:32: `routes.payments.key.scope.1`: expected `header:NAME`, `json:/pointer`, `form:FIELD`, `query:NAME` or `body`, with `?` behind it where it may be absent, found the number 7
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
fn limits_that_are_out_of_reason_are_problems() {
    let text = "[server.limits]\nheader_lines_max = 100000\nper_peer_max = 1.5\n\
                bodies_pending_max = 0\nbody_rate_min = 1024\nbuffered_bytes_max = \"1KiB\"\n";
    let written =
        Written::beside_a_route(text).variable("ONCEWARD_SERVER__LIMITS__CONNECTIONS_MAX", "0.5");
    assert_snapshot!(written.problems(), @r#"
    the configuration has 6 problems
      onceward.toml:2: `server.limits.header_lines_max`: expected a whole number from 16 to 10000, found the number 100000
      onceward.toml:3: `server.limits.per_peer_max`: expected a number above 0 and up to 1, such as 0.25, found a number
      onceward.toml:4: `server.limits.bodies_pending_max`: expected a whole number from 1 to 4294967295, found the number 0
      onceward.toml:5: `server.limits.body_rate_min`: expected a size such as `256KiB`, `1MiB` or `2GB`, found the number 1024
      onceward.toml:6: `server.limits.buffered_bytes_max`: expected a size of `1MiB` or more, found `1KiB`
      ONCEWARD_SERVER__LIMITS__CONNECTIONS_MAX: `server.limits.connections_max`: expected a whole number from 1 to 4294967295, found `0.5`
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
