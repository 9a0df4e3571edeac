//! What a variable of the environment is read as.

use std::path::Path;

use http::StatusCode;
use insta::assert_snapshot;
use onceward::idempotency::IfInFlight;
use onceward::store;

use super::Written;

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
    assert_eq!(route.policy.if_in_flight, IfInFlight::Wait);
    assert_eq!(route.policy.waiters_max, 7);
    assert!(!route.upstream.preserve_host);
    assert_eq!(route.methods, ["POST", "PUT"]);
    assert_eq!(route.key.headers, ["x-a"]);
    assert_eq!(route.key.event.source, "12345");
    assert_eq!(written.route("my-hooks").uncertain_status, StatusCode::TOO_MANY_REQUESTS);
    let store::Settings::Embedded(store) = written.config().unwrap().store else { panic!() };
    assert_eq!(store.path, Path::new("12345"));
}

/// Commas work for every list of texts, whatever the texts are.
#[test]
fn a_list_in_a_variable_may_be_written_with_commas() {
    let urls = |urls: &str| {
        let written = Written::beside_a_route("").variable("ONCEWARD_STORE__REDIS__URLS", urls);
        let store::Settings::Redis(redis) = written.config().unwrap().store else { panic!() };
        redis.urls.len()
    };
    assert_eq!(urls("redis://a:6379"), 1);
    assert_eq!(urls("redis://a:6379, redis://b:6379"), 2);
    assert_eq!(urls("[\"redis://a:6379\", \"redis://b:6379\"]"), 2);
    let networks = "10.0.0.0/8,fd00::/8";
    let written =
        Written::beside_a_route("").variable("ONCEWARD_SERVER__TRUSTED_PROXIES", networks);
    assert_eq!(written.config().unwrap().server.trusted_proxies.len(), 2);
}

#[test]
fn a_list_in_a_file_is_a_list_of_toml() {
    let file = "[server]\ntrusted_proxies = \"10.0.0.0/8, fd00::/8\"\n\
                [store.redis]\nurls = \"redis://u:hunter2@a\"\n";
    assert_snapshot!(Written::beside_a_route(file).problems(), @r#"
    the configuration has 2 problems
      onceward.toml:2: `server.trusted_proxies`: expected a list of texts, found a string
        hint: left out, `trusted_proxies` is `[]`
      onceward.toml:4: `store.redis.urls`: expected a list of URLs, found a string
        hint: `{ env = "NAME" }` names a variable that holds it, `{ file = "/path" }` a file
    "#);
}

#[test]
fn the_head_of_an_answer_has_limits_that_are_bounded() {
    let limits = |lines: &str, bytes: &str| {
        Written::beside_a_route(&format!(
            "[server.limits]\nanswer_header_lines_max = {lines}\n\
             answer_header_bytes_max = \"{bytes}\"\n"
        ))
    };
    let head = limits("10000", "8KiB").config().unwrap().server.limits.answer_head;
    assert_eq!(head.lines_max, 10_000);
    assert_eq!(head.bytes_max, 8 << 10);
    assert_snapshot!(limits("10001", "7KiB").problems(), @r#"
    the configuration has 2 problems
      onceward.toml:2: `server.limits.answer_header_lines_max`: expected a number from `1` to `10000`, found the number 10001
        hint: left out, `answer_header_lines_max` is `512`
      onceward.toml:3: `server.limits.answer_header_bytes_max`: expected a size from `8KiB` to `16MiB`, found `7KiB`
        hint: left out, `answer_header_bytes_max` is `"256KiB"`
    "#);
}

#[test]
fn a_duration_in_another_form_is_told_how_it_is_written() {
    for (written, hint) in [
        ("30", "write `\"30s\"` for seconds; `m`, `h` and `d` are other units"),
        ("\"30\"", "write `30s`"),
        ("\"1.5m\"", "write `90s`"),
        ("\"0.5s\"", "write `500ms`"),
        ("\"1.25 hours\"", "write `75m`"),
    ] {
        let text = format!("[defaults]\nattempt_timeout = {written}\n");
        let problems = Written::beside_a_route(&text).problems();
        assert!(problems.contains(&format!("hint: {hint}")), "{written}: {problems}");
    }
    let size = Written::beside_a_route("[defaults]\nrequest_bytes_max = 1048576\n").problems();
    assert!(size.contains("hint: write `\"1048576B\"`"), "{size}");
    for none in ["-30", "true", "\"1.m\"", "\".5m\"", "\"1.5 fortnights\""] {
        let text = format!("[defaults]\nattempt_timeout = {none}\n");
        let problems = Written::beside_a_route(&text).problems();
        let usual = "hint: left out, `attempt_timeout` is `\"60s\"`";
        assert!(problems.contains("expected a duration") && problems.contains(usual), "{problems}");
    }
}
