//! Tests of which requests are about the same operation.

use http::HeaderValue;
use proptest::prelude::*;
use sha2::{Digest, Sha256};

use super::*;

/// Pins the whole identity, and the operation ids that stores already hold.
#[test]
fn what_a_request_is_about_is_pinned() {
    let orders = route("orders");
    let header = orders.keys(&post("hello").key("\"k1\""));
    assert_eq!(header.forward_key, "k1");
    assert_eq!(*header.subject.route, *"orders");
    assert_eq!((header.subject.method.as_str(), header.subject.path.as_str()), ("POST", "/orders"));
    assert_eq!(header.subject.key, Key { from: KeyKind::Header, parts: vec!["k1".into()] });
    assert_eq!(header.subject.id.to_string(), "op_92e94573b157cfb695e4b12a006fc55f");

    let event = orders.keys(&post(r#"{"id":8202522731445525542,"type":"paid"}"#));
    assert_eq!(event.key, "8202522731445525542");
    assert_eq!(event.forward_key, event.subject.id.to_string());
    let parts = ["orders", "8202522731445525542", "paid"].map(String::from).to_vec();
    assert_eq!(event.subject.key, Key { from: KeyKind::Event, parts });
    assert_eq!(event.subject.id.to_string(), "op_92b0ea2075b84f9d734df50ef6b6d935");

    let hashed = orders.without_key(WhenKeyMissing::HashBody).keys(&post("hello"));
    let hello = "2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824";
    assert_eq!(hashed.forward_key, hashed.subject.id.to_string());
    assert_eq!(hashed.subject.key, Key { from: KeyKind::Body, parts: vec![hello.into()] });
    assert_eq!(hashed.subject.id.to_string(), "op_53ed0fc847f6464189e2182a5b74202c");
}

#[test]
fn sibling_events_of_one_request_are_two_operations() {
    let one =
        post(r#"{"id":"evt_20","type":"a","request":{"id":"req_9","idempotency_key":"ik_1"}}"#);
    let two =
        post(r#"{"id":"evt_21","type":"b","request":{"id":"req_9","idempotency_key":"ik_1"}}"#);
    assert_eq!(route("r").ids([&one, &two]).len(), 2);
}

#[test]
fn a_batch_has_no_id_and_can_be_known_by_its_body() {
    let batch = post(r#"[{"eventId":1,"id":5},{"eventId":2,"id":5}]"#);
    let longer = post(r#"[{"eventId":1,"id":5},{"eventId":2,"id":5},{"eventId":3,"id":5}]"#);
    assert_eq!(route("r").identifies(&batch), missing(MissingReason::Absent));
    let hashing = route("r").without_key(WhenKeyMissing::HashBody);
    assert_eq!(hashing.ids([&batch, &longer, &batch]).len(), 2);
    let each = route("r").id("json:/*/eventId");
    assert_eq!(each.subject(&longer).key.parts, ["r", "1", "2", "3"]);
    assert_eq!(each.keys(&longer).forward_key, each.subject(&longer).id.to_string());
}

#[test]
fn events_without_an_id_never_share_a_key() {
    let bodies =
        [r#"{"id":"","n":1}"#, r#"{"n":2}"#, r#"{"id":null,"n":3}"#, r#"{"id":"   ","n":4}"#];
    let bodies = bodies.map(post);
    for sent in &bodies {
        let refusal = route("r").identifies(sent);
        assert!(matches!(refusal, Err(Unread::Missing(_))), "{refusal:?}");
        let forwarding = route("r").without_key(WhenKeyMissing::Forward);
        let passed = forwarding.identifies(sent);
        assert!(matches!(passed, Ok(Identity::Passed(Passing::KeyMissing(_)))), "{passed:?}");
        let optional = route("r").id("json:/id?");
        assert_eq!(optional.identifies(sent), missing(MissingReason::Absent));
    }
    let hashing = route("r").without_key(WhenKeyMissing::HashBody);
    assert_eq!(hashing.ids(&bodies).len(), 4);
    assert_eq!(hashing.identifies(&post("")), missing(MissingReason::EmptyBody));
}

#[test]
fn long_numbers_are_told_apart_to_the_last_digit() {
    let long = "9".repeat(39);
    let ids = [
        "8202522731445525542",
        "8202522731445525543",
        &format!("{long}1"),
        &format!("{long}2"),
        "1",
        "1.0",
        "1e0",
        "\"1\"",
        "true",
        "\"true\"",
    ];
    let sent = ids.map(|id| post(format!(r#"{{"id":{id},"type":"t"}}"#)));
    assert_eq!(route("r").ids(&sent).len(), ids.len());
}

#[test]
fn the_parts_of_an_event_do_not_run_into_each_other() {
    let event = |source: &str, id: &str, kind: &str| {
        let mut route = route("r");
        source.clone_into(&mut route.key.event.source);
        route.subject(&post(serde_json::json!({ "id": id, "type": kind }).to_string())).id
    };
    for separator in ["|", ":", "\n", "\0"] {
        let left = event("shop", &format!("evt{separator}x"), "y");
        let right = event(&format!("shop{separator}evt"), "x", "y");
        assert_ne!(left, right, "{separator:?}");
    }
    let body = r#"{"a":[{"i":1},{"i":2}],"b":[{"i":3}],"c":[{"i":1}],"d":[{"i":2},{"i":3}]}"#;
    let [ab, cd] = [["json:/a/*/i", "json:/b/*/i"], ["json:/c/*/i", "json:/d/*/i"]]
        .map(|[id, kind]| route("r").id(id).kind(kind).subject(&post(body)));
    assert_eq!(ab.key, cd.key);
    assert_ne!(ab.id, cd.id);
}

#[test]
fn the_type_of_an_event_is_part_of_its_identity() {
    let events = [EVENT, r#"{"id":"evt_1","type":"refunded"}"#, r#"{"id":"evt_1"}"#].map(post);
    assert_eq!(route("r").ids(&events).len(), 3);
    let needed = route("r").kind("json:/type");
    assert_eq!(needed.identifies(&events[2]), missing(MissingReason::Absent));
    assert_eq!(route("r").subject(&events[2]).key.parts, ["r", "evt_1"]);
}

#[test]
fn a_request_has_one_key_or_none() {
    let orders = route("r");
    let once = orders.subject(&post(EVENT).key("K"));
    assert_eq!(orders.subject(&post(EVENT).key("K").key("K")), once);
    assert_eq!(orders.subject(&post(EVENT).header("idempotency-key", "\"K\"")), once);
    let differ = invalid(InvalidReason::KeysDiffer);
    assert_eq!(orders.identifies(&post(EVENT).key("K").key("L")), differ);
    assert_eq!(orders.identifies(&post(EVENT).key("K").header("idempotency-key", "L")), differ);
    assert_eq!(orders.identifies(&post(EVENT).key("K, K")), invalid(InvalidReason::KeyRepeated));
}

#[test]
fn a_blank_key_header_falls_back_to_the_event() {
    let event = route("r").subject(&post(EVENT));
    for blank in ["", "    ", "\"\""] {
        assert_eq!(route("r").subject(&post(EVENT).key(blank)), event);
        assert_eq!(
            route("r").identifies(&post("hello").key(blank)),
            missing(MissingReason::NotJson)
        );
    }
}

#[test]
fn keys_are_compared_byte_for_byte() {
    let keys = ["abc", "ABC", "abc.", "ab"].map(|key| post("x").key(key));
    assert_eq!(route("r").ids(&keys).len(), 4);
    let ids = ["abc", "ABC", "é", "e\u{301}", "abc\u{a0}", "abc "];
    let events = ids.map(|id| post(format!(r#"{{"id":"{id}"}}"#)));
    assert_eq!(route("r").ids(&events).len(), ids.len());
}

/// The same text from another place is another key.
#[test]
fn a_header_an_event_and_a_digest_are_never_the_same_key() {
    let hashing = route("r").without_key(WhenKeyMissing::HashBody);
    let digest = hashing.subject(&post("hello"));
    let text = digest.key.parts[0].clone();
    let header = post("hello").key(&text);
    let event = post(format!(r#"{{"id":"{text}"}}"#));
    assert_eq!(hashing.ids([&post("hello"), &header, &event]).len(), 3);
}

#[test]
fn one_key_on_two_routes_methods_or_paths_is_two_operations() {
    let all = [
        post("x").key("k1"),
        post("x").key("k1").to(Method::POST, "/orders/9/cancel"),
        post("x").key("k1").to(Method::PUT, "/orders"),
        post("x").key("k1").to(Method::POST, "/orders/"),
        post("x").key("k1").to(Method::POST, "/%6frders"),
    ];
    // The last key is the first key, written in another way.
    assert_eq!(route("r").prefix().ids(&all).len(), 4);
    assert_eq!(route("r").ids(&all).len(), 2);
    assert_ne!(route("r").subject(&all[0]).id, route("s").subject(&all[0]).id);
    assert_ne!(route("r").subject(&post(EVENT)).id, route("s").subject(&post(EVENT)).id);
}

#[test]
fn a_scope_parts_tenants_and_is_never_silently_empty() {
    let tenants = route("r").scope(&["header:x-tenant"]);
    let from = |tenant: &str| post("x").key("k1").header("x-tenant", tenant);
    assert_eq!(tenants.ids([&from("a"), &from("b"), &from("a")]).len(), 2);
    assert_eq!(tenants.identifies(&post("x").key("k1")), missing(MissingReason::Absent));
    assert_eq!(tenants.identifies(&from(" ")), missing(MissingReason::Blank));
    let two = route("r").scope(&["header:a?", "header:b?"]);
    let [a, b] = ["a", "b"].map(|name| post("x").key("k1").header(name, "t"));
    assert_eq!(two.ids([&a, &b, &post("x").key("k1")]).len(), 3);
}

/// One event has one id, however its path is written on a prefix route.
#[test]
fn every_spelling_of_a_path_is_one_operation() {
    let to = |path: &str| post(EVENT).to(Method::POST, path);
    let spelled = ["/st/acct", "/st/%61cct", "/st//acct", "/st/./acct", "/st/x/../acct"].map(to);
    assert_eq!(route("r").prefix().ids(&spelled).len(), 1);
    let others = ["/st/acct", "/st/Acct", "/st/acct/", "/st/a%2Fcct", "/st/acct;v=1"].map(to);
    assert_eq!(route("r").prefix().ids(&others).len(), 5);
    assert_eq!(route("r").subject(&spelled[1]).path, "/st/%61cct");
}

#[test]
fn under_hash_body_a_digest_takes_the_place_of_each_absent_part() {
    let tenants = ["header:x-tenant"];
    let hashing = || route("r").scope(&tenants).without_key(WhenKeyMissing::HashBody);
    let [one, two] = [EVENT, r#"{"id":"evt_1","type":"paid","n":2}"#].map(post);
    assert_eq!(hashing().ids([&one, &two, &one]).len(), 2);
    let of_tenant = |sent: Sent| sent.header("x-tenant", "t1");
    let [one, two] = [EVENT, r#"{"id":"evt_1","type":"paid","n":2}"#].map(post).map(of_tenant);
    assert_eq!(hashing().ids([&one, &two]).len(), 1, "nothing is absent");
    let no_kind = || hashing().kind("json:/type");
    let [one, two, other] =
        [r#"{"id":"evt_1"}"#, r#"{"id":"evt_1","n":2}"#, r#"{"id":"evt_2"}"#].map(post);
    assert_eq!(no_kind().ids([one, two, other].map(of_tenant).iter()).len(), 3);
    let keyed = post("x").key("k1");
    let keyed_again = post("y").key("k1");
    assert_eq!(hashing().ids([&keyed, &keyed_again]).len(), 2);
    assert_eq!(hashing().identifies(&post("").key("k1")), missing(MissingReason::EmptyBody));
    // A tenant's name that equals a digest does not count as one.
    let digest = hex::encode(Sha256::digest(EVENT));
    let named = post(EVENT).header("x-tenant", &digest);
    assert_ne!(hashing().subject(&post(EVENT)).id, hashing().subject(&named).id);
}

#[test]
fn a_refusal_names_the_selector() {
    let told = |route: Route, sent: Sent| route.tells(&sent).unwrap_err().to_string();
    let scoped = || route("r").scope(&["header:x-tenant"]);
    for (told, expected) in [
        (told(route("r"), post("{}")), "no idempotency key: `json:/id` is absent"),
        (
            told(route("r").id("form:a|query:a"), post("{}")),
            "no idempotency key: `form:a|query:a` is absent: the body is not \
             `application/x-www-form-urlencoded`",
        ),
        (told(scoped(), post(EVENT)), "no idempotency key: `header:x-tenant` is absent"),
        (
            told(route("r"), post(r#"{"id":[]}"#)),
            "unusable idempotency key: `json:/id` is an object or an array",
        ),
        (
            told(route("r"), post("x").key("a b")),
            "unusable idempotency key: `header:x-idempotency-key|header:idempotency-key` is not \
             visible ASCII",
        ),
    ] {
        assert_eq!(told, expected);
    }
}

/// ARNs, topics and links are longer than keys that people choose.
#[test]
fn long_parts_and_large_batches_are_keys() {
    let long = |id: usize| post(format!(r#"{{"id":"{}"}}"#, "a".repeat(id)));
    assert_eq!(route("r").ids([&long(255), &long(256), &long(4096)]).len(), 3);
    assert_eq!(route("r").identifies(&long(4097)), invalid(InvalidReason::TooLong));
    let identified = route("r").keys(&long(256));
    assert_eq!(identified.forward_key, identified.subject.id.to_string());
    let names: Vec<String> = (0..17).map(|n| format!("json:/p{n}")).collect();
    let scoped = route("r").scope(&names.iter().map(String::as_str).collect::<Vec<_>>());
    let parts = |bytes: usize| {
        let part = |n| format!(r#""p{n}":"{}""#, "b".repeat(bytes));
        post(format!(r#"{{"id":"1",{}}}"#, (0..17).map(part).collect::<Vec<_>>().join(",")))
    };
    assert!(scoped.identifies(&parts(3800)).is_ok());
    assert_eq!(scoped.identifies(&parts(4096)), invalid(InvalidReason::AllTooLong));

    let batch = |items: usize| {
        let item = |n| format!(r#"{{"id":"{n:048}"}}"#);
        post(format!("[{}]", (0..items).map(item).collect::<Vec<_>>().join(",")))
    };
    let each = route("r").id("json:/*/id");
    assert_eq!(each.ids([&batch(1100), &batch(8192), &batch(1100)]).len(), 2);
    assert_eq!(each.identifies(&batch(8193)), invalid(InvalidReason::TooManyParts));
    let kept: usize = each.subject(&batch(8192)).key.parts.iter().map(String::len).sum();
    assert!(kept < 2048, "{kept}");
}

#[test]
fn what_cannot_be_used_is_refused_under_every_policy() {
    let policies = [WhenKeyMissing::Refuse, WhenKeyMissing::Forward, WhenKeyMissing::HashBody];
    for policy in policies {
        let route = route("r").without_key(policy);
        let twice = route.identifies(&post(r#"{"id":"a","id":"b"}"#));
        assert_eq!(twice, invalid(InvalidReason::MemberTwice));
        let quote = route.identifies(&post(EVENT).key("\"a"));
        assert_eq!(quote, invalid(InvalidReason::KeyQuoting));
        let object = route.identifies(&post(r#"{"id":{"$oid":"a"}}"#));
        assert_eq!(object, invalid(InvalidReason::NotAValue));
    }
}

#[test]
fn methods_that_ask_for_nothing_pass_unless_they_are_named() {
    for method in [Method::GET, Method::HEAD, Method::OPTIONS] {
        let sent = post(EVENT).key("k1").to(method.clone(), "/orders");
        assert_eq!(route("r").identifies(&sent), Ok(Identity::Passed(Passing::Method)));
        let mut named = route("r");
        named.methods.push(method);
        assert!(matches!(named.identifies(&sent), Ok(Identity::Keyed(_))));
    }
    let other = post(EVENT).to(Method::TRACE, "/orders");
    assert!(matches!(route("r").identifies(&other), Ok(Identity::Keyed(_))));
}

/// Case `key-hop-by-hop`: the key is read before any header is removed from the head.
#[test]
fn a_key_that_connection_names_is_a_key() {
    let plain = route("r").subject(&post("x").key("k1"));
    let named = post("x").key("k1").header("connection", "X-Idempotency-Key");
    assert_eq!(route("r").subject(&named), plain);
}

/// Only configured headers count.
#[test]
fn other_headers_and_the_content_type_do_not_count() {
    let plain = route("r").subject(&post("x").key("k1"));
    let more = post("x").key("k1").header("content-type", "text/plain").header("x-hit", "1");
    assert_eq!(route("r").subject(&more), plain);
}

/// An upstream that deduplicates by the forwarded key drops the second of two requests with the
/// same key.
#[test]
fn what_is_forwarded_tells_operations_apart() {
    let by_key = |route: &Route, sent: Sent| route.keys(&sent).forward_key;
    let apart = |all: [String; 2]| all[0] != all[1];
    let key = || post("x").key("k1");
    assert_eq!(by_key(&route("r"), key()), "k1");
    let event = |kind: &str| post(format!(r#"{{"id":"1","type":"{kind}"}}"#));
    assert!(apart(["created", "paid"].map(|kind| by_key(&route("r"), event(kind)))));
    let scoped = route("r").scope(&["header:x-tenant?"]);
    let tenants = ["a", "b"].map(|tenant| key().header("x-tenant", tenant));
    assert!(apart(tenants.map(|sent| by_key(&scoped, sent))));
    let prefix = route("r").prefix();
    let paths = ["/orders", "/orders/a"].map(|path| key().to(Method::POST, path));
    assert!(apart(paths.map(|sent| by_key(&prefix, sent))));
    assert_eq!(by_key(&prefix, key()), "k1");
    let methods = [Method::POST, Method::PUT].map(|method| key().to(method, "/orders"));
    assert!(apart(methods.map(|sent| by_key(&route("r"), sent))));
}

/// No part of an event may become a header for the upstream.
#[test]
fn what_an_event_wrote_is_forwarded_as_the_operation_id() {
    for id in [r"a\r\nb: c", "a b", "é", r"\u0000"] {
        let identified = route("r").keys(&post(format!(r#"{{"id":"{id}"}}"#)));
        assert_eq!(identified.forward_key, identified.subject.id.to_string(), "{id}");
    }
}

proptest! {
    #[test]
    fn no_request_panics(
        body in any::<Vec<u8>>(), header in any::<Vec<u8>>(), text in r#"[\[\]{}",:\\idtype0-9.]{0,24}"#,
    ) {
        let lax = route("r").scope(&["header:a?", "form:a?"]).ignore(&["/id", "/*/id"]);
        for body in [body.as_slice(), text.as_bytes()] {
            let mut sent = post(body);
            if let Ok(value) = HeaderValue::from_bytes(&header) {
                sent.headers.append("x-idempotency-key", value.clone());
                sent.headers.append("a", value);
            }
            let _ = lax.identifies(&sent);
            sent.headers.clear();
            let _ = lax.identifies(&sent);
        }
    }

    /// Events are one operation if and only if source, id and type are the same.
    #[test]
    fn events_are_the_same_only_if_all_parts_are(
        (id_a, id_b) in ("[ab|]{1,2}", "[ab|]{1,2}"), (kind_a, kind_b) in ("[ab|]{1,2}", "[ab|]{1,2}"),
    ) {
        let event = |id: &str, kind: &str| post(format!(r#"{{"id":"{id}","type":"{kind}"}}"#));
        let ids = route("r").ids([&event(&id_a, &kind_a), &event(&id_b, &kind_b)]);
        prop_assert_eq!(ids.len() == 1, (id_a, kind_a) == (id_b, kind_b));
    }
}
