//! `onceward explain`.

use insta::assert_snapshot;
use serde_json::{Value, json};

use super::{ROUTE, SIGNED, Shell, ask, receiver};

const CAPTURED: &str = "POST /orders?a=1 HTTP/1.1\r\nHost: hooks.example.com\r\n\
    Content-Type: application/json\r\nContent-Length: 40\r\n\r\n\
    {\"id\":8202522731445525542,\"type\":\"paid\"}";

#[test]
fn explain_says_what_a_request_would_be_taken_for() {
    let shell = Shell::with("onceward.toml", ROUTE).and("captured.http", CAPTURED);
    let explain = "explain -c onceward.toml --request captured.http";
    assert_snapshot!(shell.types(explain).printed(0), @r#"
    route        orders
    signature    not-checked
    key          event: "orders" "8202522731445525542" "paid"
    operation    op_92b0ea2075b84f9d734df50ef6b6d935
    fingerprint  1785cfc3bc6ac773-e3b0c44298fc1c149afbf4c8996fb924 over nothing
    ignored      nothing
    disposition  executed, unless the store knows it
    "#);
    let json = shell.types(&format!("{explain} --json")).printed(0);
    assert_snapshot!(json, @r#"{"route":"orders","provider":null,"signature":{"verdict":"not-checked","reason":null},"key":{"from":"event","parts":["orders","8202522731445525542","paid"]},"operation":"op_92b0ea2075b84f9d734df50ef6b6d935","fingerprint":"1785cfc3bc6ac773-e3b0c44298fc1c149afbf4c8996fb924","disposition":"executed"}"#);

    let other = CAPTURED.replace("/orders", "/other");
    let shell = shell.and("other.http", &other);
    assert_snapshot!(shell.types("explain --config onceward.toml --request other.http").printed(0), @"
    route        none
    signature    not-checked
    disposition  refused: no-route, no route serves this host and path
    ");
}

#[test]
fn explain_without_a_request_or_a_configuration_exits_with_2() {
    let shell = Shell::with("onceward.toml", ROUTE)
        .and("bad.toml", "[routes.orders]\npath = \"/orders\"\n")
        .and("no.http", "{\"id\":1}");
    assert_snapshot!(
        shell.types("explain --config onceward.toml --request nowhere.http").complained(2),
        @"
    error: cannot read `nowhere.http`
      because: No such file or directory (os error 2)
    "
    );
    assert_snapshot!(shell.types("explain --config onceward.toml --request no.http").complained(2), @"
    error: `no.http` is not a captured request
      because: expected the head of an HTTP/1.1 request
      because: invalid token
      hint: it begins with a line such as `POST /webhooks/orders HTTP/1.1`; after it a line for each header, an empty line, and the body: `onceward explain --help` shows one
    ");
    assert_snapshot!(shell.types("explain --config bad.toml --request no.http").complained(2), @r#"
    error: the configuration has 1 problem
      bad.toml:1: `routes.orders.upstream`: expected a value, found none
        hint: `upstream = "http://127.0.0.1:3000"`
    "#);
}

/// Most editors add a newline at the end of a file, which the sender has not signed.
#[test]
fn explain_says_where_only_the_newline_of_an_editor_is_wrong() {
    // HMAC-SHA256 of the body under `0123456789abcdef`.
    let signature = "9d9a0b117c42c813d5859b0558ea9f0faec1abf1afdd137b5be0ee70f4d0683f";
    let captured = format!(
        "POST /orders HTTP/1.1\nHost: h\nx-acme: {signature}\n\n{{\"id\":\"evt_1\",\"type\":\"paid\"}}"
    );
    let shell = Shell::with("onceward.toml", SIGNED)
        .and("secret", "0123456789abcdef\n")
        .and("right.http", &captured)
        .and("edited.http", &format!("{captured}\n"))
        .and("windows.http", &format!("{captured}\r\n"))
        .and("wrong.http", &format!("{captured} \n"));
    let explain = |file: &str| {
        shell.types(&format!("explain -c onceward.toml --request {file}.http")).printed(0)
    };
    let right = explain("right");
    assert!(right.contains("\nsignature    valid\n") && !right.contains("hint"), "{right}");
    for file in ["edited", "windows"] {
        let edited = explain(file);
        assert!(edited.contains("\nsignature    invalid: "), "{edited}");
        assert!(
            edited.contains("\nhint         without the newline at the end of the file"),
            "{edited}"
        );
    }
    assert!(!explain("wrong").contains("hint"), "it is another body");
    let json = shell.types("explain -c onceward.toml --request edited.http --json").printed(0);
    let json: Value = serde_json::from_str(&json).unwrap();
    assert!(json["signature"]["hint"].as_str().unwrap().contains("newline"), "{json}");
}

/// `explain` and the proxy agree.
#[test]
fn explain_names_the_operation_that_the_proxy_makes() {
    let config = ROUTE.replace("127.0.0.1:3000", &receiver().to_string());
    let shell = Shell::with("onceward.toml", &config).and("captured.http", CAPTURED).anywhere();
    let explained =
        shell.types("explain --config onceward.toml --request captured.http --json").printed(0);
    let explained: Value = serde_json::from_str(&explained).unwrap();
    let serving = shell.serves("serve --config onceward.toml");
    let (status, operation) = ask(serving.listen(), CAPTURED, "onceward-operation");
    assert_eq!((status, operation.as_deref()), (200, explained["operation"].as_str()));
}

/// The explanation of a request for this path of this host.
fn explains(routes: &str, host: &str, path: &str) -> Value {
    let event = "{\"id\":\"evt_1\",\"type\":\"paid\"}";
    let request = format!("POST {path} HTTP/1.1\r\nHost: {host}\r\n\r\n{event}");
    let shell = Shell::with("onceward.toml", routes).and("captured.http", &request);
    let explain = "explain --config onceward.toml --request captured.http --json";
    serde_json::from_str(&shell.types(explain).printed(0)).unwrap()
}

fn route(name: &str, path: &str, more: &str) -> String {
    format!("[routes.{name}]\npath = \"{path}\"\nupstream = \"http://127.0.0.1:3000\"\n{more}\n")
}

#[test]
fn explain_refuses_a_path_that_can_be_read_as_that_of_another_route() {
    let routes = [route("orders", "/orders", ""), route("all", "/*", "mode = \"pass\"")].concat();
    for path in ["/%6frders", "//orders", "/x/../orders", "/orders;x", "/x%2F..%5corders"] {
        let explained = explains(&routes, "h", path);
        assert_eq!(explained["refusal"]["code"], "malformed", "{path}");
        let detail = explained["refusal"]["detail"].as_str().unwrap();
        assert!(detail.contains("another route"), "{path}: {detail}");
        assert_eq!(explained["route"], Value::Null, "{path}");
    }
    assert_eq!(explains(&routes, "h", "/orders")["route"], "orders");
    assert_eq!(explains(&routes, "h", "/others;x")["disposition"], "passed");
}

/// A path that is spelled in several ways is one path, and its event one event.
#[test]
fn explain_names_the_operation_of_a_path_s_normal_form_on_a_prefix() {
    let routes = route("st", "/st/*", "");
    let operation = |path: &str| explains(&routes, "h", path)["operation"].clone();
    let normal = operation("/st/acct");
    assert!(normal.as_str().unwrap().starts_with("op_"), "{normal}");
    for path in ["/st/%61cct", "/st//acct", "/st/./acct", "/st/x/../acct", "/st/%2e/acct"] {
        assert_eq!(operation(path), normal, "{path}");
    }
    assert_ne!(operation("/st/acct2"), normal);
}

#[test]
fn explain_tells_a_path_with_a_slash_at_its_end_from_one_without() {
    let alone = route("orders", "/orders", "");
    assert_eq!(explains(&alone, "h", "/orders/")["refusal"]["code"], "no-route");
    let routes = [alone, route("all", "/*", "mode = \"pass\"")].concat();
    assert_eq!(explains(&routes, "h", "/orders/")["refusal"]["code"], "malformed");
    let prefix = route("st", "/st/*", "");
    let [open, bare] = ["/st/", "/st"].map(|path| explains(&prefix, "h", path));
    assert_eq!((&open["route"], &bare["route"]), (&json!("st"), &json!("st")));
    assert_ne!(open["operation"], bare["operation"]);
}

#[test]
fn explain_finds_the_host_without_its_dot_its_port_and_its_case() {
    let own = route("orders", "/orders", "host = \"hooks.example.com\"");
    let routes = [own, route("all", "/*", "mode = \"pass\"")].concat();
    for host in ["hooks.example.com", "hooks.example.com.", "Hooks.Example.com.:443"] {
        let explained = explains(&routes, host, "/orders");
        assert_eq!(
            (&explained["route"], &explained["disposition"]),
            (&json!("orders"), &json!("executed"))
        );
    }
    assert_eq!(explains(&routes, "hooks.example.com.evil", "/orders")["route"], "all");
}
