//! The paths of routes: every server reads each of them alike, and no two of one host are the same.

use http::Request;
use insta::assert_snapshot;
use onceward::proxy;

use super::Written;

fn route(name: &str, path: &str, more: &str) -> String {
    format!("[routes.{name}]\npath = '{path}'\nupstream = \"http://127.0.0.1:1\"\n{more}\n")
}

fn two(one: &str, other: &str, more: &str) -> Written {
    Written::file(&[route("one", one, ""), route("other", other, more)].concat())
}

#[test]
fn a_path_with_another_reading_is_a_problem_that_says_what_to_write() {
    let written = Written::file(&route("a", "/w/..%2f/*", ""));
    assert_snapshot!(written.problems(), @"
    the configuration has 1 problem
      onceward.toml:2: `routes.a.path`: expected a path that every receiver reads alike, found `/w/..%2f/*`
        hint: write `/*`, which is how some receivers read it
    ");
    for (path, meant) in [
        ("/a/%2e%2e/b", "/b"),
        ("/a//b", "/a/b"),
        ("/a/./b", "/a/b"),
        ("/a%2Fb", "/a/b"),
        ("/a/b;x", "/a/b"),
        ("/a\\b", "/a/b"),
        ("/%61/*", "/a/*"),
        ("/caf%c3%a9", "/caf%C3%A9"),
    ] {
        let problems = Written::file(&route("a", path, "")).problems();
        assert!(problems.contains("`routes.a.path`"), "{path}: {problems}");
        let hint = format!("hint: write `{meant}`, which is how some receivers read it");
        assert!(problems.contains(&hint), "{path}: {problems}");
        Written::file(&route("a", meant, "")).config().unwrap();
    }
}

/// The value may be a secret that somebody put into the wrong variable.
#[test]
fn the_reading_of_a_path_in_a_variable_is_not_shown() {
    let written = Written::beside_a_route("")
        .variable("ONCEWARD_ROUTES__ORDERS__PATH", "/hunter2canary;x//y");
    let problems = written.problems();
    assert!(problems.contains("a path that every receiver reads alike"), "{problems}");
    assert!(!problems.contains("canary"), "{problems}");
}

/// A path whose escapes are needed has one reading, also beside a route for everything else.
#[test]
fn a_path_with_an_escape_may_stand_beside_one_that_takes_all() {
    for path in ["/a%20b", "/caf%C3%A9", "/100%25"] {
        let all = route("all", "/*", "mode = \"pass\"");
        Written::file(&[route("one", path, ""), all].concat()).config().unwrap();
    }
}

#[test]
fn two_routes_that_differ_only_in_how_a_path_is_read_are_a_problem() {
    for (one, other) in
        [("/a/b", "/a/b/"), ("/a/b", "/A/b"), ("/a%20b", "/A%20b/"), ("/a/*", "/A/*")]
    {
        let problems = two(one, other, "").problems();
        assert!(problems.contains("`routes.other.path`"), "{one} {other}: {problems}");
        assert!(problems.contains("as some receivers read it"), "{one} {other}: {problems}");
    }
    // The second route would never get a request.
    let swallowed = two("/a/*", "/A", "mode = \"pass\"").problems();
    assert!(swallowed.contains("a path that nobody can read as that of a route"), "{swallowed}");
    for (one, other) in [("/a/*", "/a"), ("/*", "/a/b"), ("/a/b", "/a/c"), ("/a/*", "/a/b/*")] {
        assert!(two(one, other, "mode = \"pass\"").config().is_ok(), "{one} {other}");
    }
}

/// A server that decodes the path once or twice, or ignores case, reads the path of the first
/// route.
#[test]
fn a_request_that_some_receiver_reads_as_another_routes_is_refused() {
    let taken = |host: &str, target: &str| -> String {
        let shop = route("shop", "/caf%C3%A9/a,b", "host = 'h.example'");
        let written = Written::file(&[shop, route("all", "/*", "mode = \"pass\"")].concat());
        let routes = written.config().unwrap().routes;
        let request = Request::post(target).header("host", host).body(()).unwrap();
        let chosen = proxy::choose(&routes, &request.into_parts().0);
        chosen.map_or_else(|refusal| refusal.code.to_owned(), |route| route.name.to_string())
    };
    for host in ["h.example", "H.example.", "h.example:8080"] {
        assert_eq!(taken(host, "/caf%C3%A9/a,b"), "shop");
        for other in [
            "/caf%c3%a9/a,b",
            "/caf\u{e9}/a,b",
            "/caf%25C3%25A9/a,b",
            "/caf%C3%A9/a%2Cb",
            "/caf%C3%A9/A%2cB/",
            "/caf%C3%A9/a,b;x",
            "/caf%C3%A9%2Fa,b",
            "/x/..%5Ccaf%C3%A9//a,b",
        ] {
            assert_eq!(taken(host, other), "malformed", "{host} {other}");
        }
        assert_eq!(taken(host, "/caf%C3%A9/a,b,c"), "all");
    }
    assert_eq!(taken("other.example", "/caf%c3%a9/a,b"), "all");
}

#[test]
fn the_longest_of_many_prefixes_takes_a_path_and_only_at_a_slash() {
    let prefixes = ["/*", "/a/*", "/a/b/*", "/a/bb/*", "/a/b/c/d/*"];
    let names = ["all", "a", "a-b", "a-bb", "a-b-c-d"];
    let text: String =
        names.iter().zip(prefixes).map(|(name, path)| route(name, path, "")).collect();
    let routes =
        Written::file(&format!("{text}{}", route("exact", "/a/b/x", ""))).config().unwrap();
    for (path, name) in [
        ("/", "all"),
        ("/aa", "all"),
        ("/a", "a"),
        ("/a/", "a"),
        ("/a/bbb", "a"),
        ("/a/b", "a-b"),
        ("/a/b/c/dd", "a-b"),
        ("/a/b/x", "exact"),
        ("/a/b/x/y", "a-b"),
        ("/a/bb/c", "a-bb"),
        ("/a/b/c/d/e", "a-b-c-d"),
    ] {
        let request = Request::post(path).header("host", "h").body(()).unwrap();
        let chosen = proxy::choose(&routes.routes, &request.into_parts().0).unwrap();
        assert_eq!(&*chosen.name, name, "{path}");
    }
}

/// One mistake is one problem.
#[test]
fn a_path_beside_its_own_with_a_slash_is_told_once() {
    let more = "provider = \"stripe\"\nverify = false";
    assert_snapshot!(two("/webhooks/stripe", "/webhooks/stripe/", more).problems(), @"
    the configuration has 1 problem
      onceward.toml:6: `routes.other.path`: expected a path that no other route of this host has, found that of route `one`, as some receivers read it
        hint: give one of them another `path` or `host`, or make them one route
    ");
}
