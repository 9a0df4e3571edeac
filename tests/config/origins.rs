//! Where a mistake is said to stand, how often, and what is shown of it.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;

use insta::assert_snapshot;
use onceward::config::Origin;

use super::{TYPED, Written};

/// Bytes that are not UTF-8.
fn bytes(bytes: &[u8]) -> &OsStr {
    OsStr::from_bytes(bytes)
}

#[test]
fn a_setting_in_a_variable_that_is_not_text_is_a_problem() {
    let written = Written::beside_a_route("")
        .variable("ONCEWARD_SERVER__LISTEN", bytes(b"canary\xff"))
        .variable("ONCEWARD_ROUTES__ORDERS__PATH", bytes(b"/canary\xc3"))
        .variable(bytes(b"ONCEWARD_SERVER__DRAIN_DELAY\xff"), "canary")
        .variable("ONCEWARD_ADMIN__LISTEN", "here");
    assert_snapshot!(written.problems(), @r#"
    the configuration has 3 problems
      ONCEWARD_ROUTES__ORDERS__PATH: `routes.orders.path`: expected a value in UTF-8, found one with other bytes
        hint: set it anew where Onceward is started, or take it out there
      ONCEWARD_SERVER__DRAIN_DELAY�: `server."drain_delay�"`: expected a name in UTF-8, found one with other bytes
        hint: set it anew where Onceward is started, or take it out there
      ONCEWARD_SERVER__LISTEN: `server.listen`: expected a value in UTF-8, found one with other bytes
        hint: set it anew where Onceward is started, or take it out there
    "#);
}

#[test]
fn a_variable_that_is_not_text_and_no_setting_is_left_alone_or_named() {
    let written = Written::beside_a_route("")
        .variable("PATH", bytes(b"\xff"))
        .variable("ONCEWARD_IMAGE_TAG", bytes(b"\xff"))
        .variable(bytes(b"ONCEWARD_\xff"), "canary")
        .variable("ONCEWARD_SERVER_LISTEN", bytes(b"canary\xff"));
    written.config().unwrap();
    let ignored = written.sources().unwrap().ignored_variables();
    let names: Vec<String> = ignored.iter().map(|one| one.key.to_string()).collect();
    assert_eq!(names, ["environment.ONCEWARD_SERVER_LISTEN"]);
    assert!(!format!("{ignored:?}").contains("canary"));
}

#[test]
fn a_secret_that_is_not_text_is_not_one_that_is_not_set() {
    let written = Written::beside_a_route("[admin]\ntoken = { env = \"TOKEN\" }")
        .variable("TOKEN", bytes(b"canary\xff"));
    let problems = written.problems();
    assert!(problems.contains("found `TOKEN`, which is not UTF-8"), "{problems}");
}

/// Three routes and two steps take what `[defaults]` say.
#[test]
fn a_mistake_in_the_defaults_is_told_once_and_there() {
    let text = r#"[defaults.retention]
days = 3
[defaults.lookup.headers.authorization]
[[defaults.methods]]
[defaults.replay]
remember = { "in-flight" = true }
[defaults.key.event.tpye]
[defaults.mode]
[providers.acme.attempt_timeout]
[routes.a]
path = "/a"
upstream = "http://a"
[routes.b]
path = "/b"
upstream = "http://a"
provider = "acme"
[routes.c]
path = "/c"
[[routes.c.steps]]
name = "one"
upstream = "http://a"
[[routes.c.steps]]
name = "two"
upstream = "http://a"
"#;
    assert_snapshot!(Written::file(text).problems(), @r#"
    the configuration has 7 problems
      onceward.toml:1: `defaults.retention`: expected a duration such as `500ms`, `30s`, `5m`, `72h` or `30d`, found a table
        hint: left out, `retention` is `"24h"`
      onceward.toml:3: `defaults.lookup.headers.authorization`: expected `env` or `file`, found neither
        hint: `{ env = "NAME" }` names a variable that holds it, `{ file = "/path" }` a file
      onceward.toml:4: `defaults.methods.0`: expected a method in capitals such as `POST`, found a table
        hint: left out, `methods` is `["POST", "PUT", "PATCH", "DELETE"]`
      onceward.toml:6: `defaults.replay.remember`: expected `retention` or `in-flight`, found a table
        hint: left out, `remember` is `"retention"`
      onceward.toml:7: `defaults.key.event.tpye`: expected a known key, found `tpye`
        hint: known here: `source`, `id`, `type`
      onceward.toml:8: `defaults.mode`: expected `enforce`, `observe` or `pass`, found a table
        hint: left out, `mode` is `"enforce"`
      onceward.toml:9: `providers.acme.attempt_timeout`: expected a duration such as `500ms`, `30s`, `5m`, `72h` or `30d`, found a table
        hint: `onceward providers NAME` shows what a built-in one knows of its sender
    "#);
}

/// What a variable says in one text replaces what the file says in many lines.
#[test]
fn a_mistake_below_a_variable_names_the_variable() {
    let file = format!(
        r#"[routes.orders]
path = "/orders"
lookup = {{ timeout = "5s", headers = {{ a = {{ env = "A" }} }} }}
{TYPED}
[[routes.orders.steps]]
name = "one"
upstream = "http://a"
lookup = {{ timeout = "5s" }}
"#
    );
    for (variable, value) in [
        ("ROUTES__ORDERS__STEPS", "[{ name = \"one\" }]"),
        ("ROUTES__ORDERS__STEPS__0__NAME", "one"),
        ("ROUTES__ORDERS__STEPS", "[{ name = \"one\", upstream = {} }]"),
        ("ROUTES__ORDERS__STEPS", "[{ name = \"one\", upstream = \"http://a\", lookup = [] }]"),
        ("ROUTES__ORDERS", "{ steps = [{ name = \"one\" }] }"),
        ("ROUTES__ORDERS", "{ lookup = { timeout = {} } }"),
        ("ROUTES__ORDERS__LOOKUP", "{ headers = { b = {} } }"),
        ("ROUTES__ORDERS__LOOKUP__TIMEOUT__X", "1"),
        ("ROUTES__ORDERS__PATH__X", "1"),
        ("ROUTES__ORDERS__KEY__EVENT__TYPE__X", "1"),
        ("DEFAULTS__RETENTION__X", "1"),
        ("DEFAULTS__RETENTION", "{ x = 1 }"),
        ("SERVER__TRUSTED_PROXIES", "[[]]"),
    ] {
        let name = format!("ONCEWARD_{variable}");
        let written = Written::file(&file).variable("A", "canary").variable(&name, value);
        let problems = written.config().unwrap_err();
        for problem in problems.iter() {
            assert_eq!(problem.origin, Origin::Variable(name.clone()), "{value}: {problem}");
        }
    }
}

/// The name of the setting is no part of the value of the variable.
#[test]
fn what_a_step_in_a_variable_lacks_is_named() {
    let written = Written::beside_a_route("[routes.many]\npath = \"/many\"\n")
        .variable("ONCEWARD_ROUTES__MANY__STEPS", "[{ name = \"one\" }]");
    let problems = written.problems();
    let lacks = "ONCEWARD_ROUTES__MANY__STEPS: `routes.many.steps.0.upstream`: expected a value";
    assert!(problems.contains(lacks), "{problems}");
}

#[test]
fn a_path_in_a_variable_that_some_read_as_anothers_is_not_shown() {
    let routes = "[routes.a]\nupstream = \"http://a\"\nmode = \"pass\"\n\
                  [routes.b]\npath = \"/A\"\nupstream = \"http://b\"\n";
    let written = Written::file(routes).variable("ONCEWARD_ROUTES__A__PATH", "/a/*");
    let problems = written.problems();
    assert!(problems.contains("ONCEWARD_ROUTES__A__PATH: `routes.a.path`"), "{problems}");
    assert!(problems.contains("mode, found another value"), "{problems}");
}

#[test]
fn of_two_variables_the_one_that_says_more_is_named() {
    let written = Written::beside_a_route("")
        .variable("ONCEWARD_ROUTES__ORDERS__LEASE", "5s")
        .variable("ONCEWARD_ROUTES__ORDERS__LEASE__SECONDS", "5");
    let problems = written.problems();
    assert!(problems.contains("  ONCEWARD_ROUTES__ORDERS__LEASE__SECONDS: "), "{problems}");
}

#[test]
fn of_very_many_mistakes_the_rest_is_counted() {
    let lines: Vec<String> = (0..123).map(|number| format!("key{number:03} = 1\n")).collect();
    let problems = Written::beside_a_route(&lines.concat()).problems();
    assert!(problems.starts_with("the configuration has 123 problems\n"), "{problems}");
    assert_eq!(problems.matches("a known key").count(), 100);
    assert!(problems.contains("`key000`") && !problems.contains("`key100`"), "{problems}");
    let last = "\n  23 more: `onceward check --config FILE --json` has all";
    assert!(problems.ends_with(last), "{problems}");
}

/// People paste a secret where a name belongs.
#[test]
fn a_name_that_looks_like_a_secret_is_a_problem_and_is_not_shown() {
    const CANARY: &str = "whsec_canary";
    for text in [
        "[routes.whsec_canary]\npath = 1\nretries = 3\n",
        "[routes.whsec_canary]\npath = \"/orders\"\nupstream = \"http://a\"\n",
        "[routes.whsec_CANARY_whsec_canary]\n",
        "[routes.b]\nprovider = \"whsec_canary\"\n",
        "[routes.b]\nprovider = \"whsec_canarx\"\n[providers.whsec_canary]\n",
        "[providers.whsec_canary]\ntitle = 5\n",
        "[providers.whsec_canary.signature]\nscheme = \"hmac\"\n",
        "[whsec_canary]\n",
        "[store.whsec_canary]\n[store.memory]\n",
        "[server]\nwhsec_canary = 1\n",
        "[defaults]\nlease = \"whsec_canary\"\n",
        "[defaults]\nmode = \"whsec_canary\"\n",
        "[routes.b]\npath = \"/b\"\nanswer_from = \"whsec_canary\"\n[[routes.b.steps]]\nname = \"whsec_canary\"\nupstream = \"http://a\"\n",
        "[routes.b]\nlookup.headers.whsec_canary = \"x\"\n",
    ] {
        let problems = Written::beside_a_route(text).config().unwrap_err();
        let said = format!("{problems} {problems:?}");
        assert!(!said.contains(CANARY), "{text}: {said}");
    }
    let name = "[routes.sk_live_0123456789abcdef]\npath = \"/\"\nupstream = \"http://a\"\n";
    assert_snapshot!(Written::file(name).problems(), @"
    the configuration has 1 problem
      onceward.toml:1: `routes.***`: expected a name of 1 to 64 letters a to z, digits, `_` and `-`, found a text that looks like a secret
        hint: such as `orders` or `shop-eu`
    ");
}
