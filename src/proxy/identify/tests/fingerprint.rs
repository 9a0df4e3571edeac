//! Tests of which requests may have the same key.

use super::*;

/// Some senders count their deliveries in the body.
#[test]
fn a_retry_of_an_event_may_have_another_body() {
    let first = post(r#"{"id":"evt_40","type":"x","attempts":[1],"pending_webhooks":2}"#);
    let second = post(r#"{"id":"evt_40","type":"x","attempts":[1,2],"pending_webhooks":1}"#);
    assert_eq!(route("r").ids([&first, &second]).len(), 1);
    assert!(route("r").compares_equal(&first, &second));
    let strict = route("r").over(FingerprintOver::Body);
    assert!(!strict.compares_equal(&first, &second));
    let lenient = strict.ignore(&["/attempts", "/pending_webhooks"]);
    assert!(lenient.compares_equal(&first, &second));
}

#[test]
fn a_header_key_is_bound_to_the_whole_body() {
    let [ten, ninety_nine] =
        [r#"{"amount":10}"#, r#"{"amount":99}"#].map(|body| post(body).key("k1"));
    assert_eq!(route("r").ids([&ten, &ninety_nine]).len(), 1);
    assert!(!route("r").compares_equal(&ten, &ninety_nine));
    assert!(route("r").compares_equal(&ten, &ten));
    let mut body = vec![b'a'; 2 << 20];
    let long = post(&body).key("k1");
    *body.last_mut().unwrap() = b'b';
    assert!(!route("r").compares_equal(&long, &post(&body).key("k1")));
}

#[test]
fn ignored_members_do_not_count_and_everything_else_does() {
    let route = route("r").ignore(&["/at", "/items/*/seq"]);
    let sent = |body: &str| post(body).key("k1");
    let first = sent(r#"{"n":8202522731445525542,"at":1,"items":[{"id":1,"seq":1}]}"#);
    for same in [
        r#"{"n":8202522731445525542,"at":2,"items":[{"id":1,"seq":2}]}"#,
        r#"{"n":8202522731445525542,"items":[{"id":1}]}"#,
        r#" { "n" : 8202522731445525542 , "items" : [ { "id" : 1 } ] , "at" : {} } "#,
    ] {
        assert!(route.compares_equal(&first, &sent(same)), "{same}");
    }
    for other in [
        r#"{"n":8202522731445525543,"at":1,"items":[{"id":1,"seq":1}]}"#,
        r#"{"n":8202522731445525542,"at":1,"items":[{"id":1,"seq":1},{}]}"#,
        r#"{"items":[{"id":1}],"n":8202522731445525542}"#,
        "hello",
    ] {
        assert!(!route.compares_equal(&first, &sent(other)), "{other}");
    }
    assert!(!route.compares_equal(&sent("a b"), &sent("ab")));
}

#[test]
fn selected_parts_are_compared_and_an_absent_one_counts() {
    let route = route("r").over_parts(&["json:/amount", "json:/currency", "json:/tags/*"]);
    let sent = |body: &str| post(body).key("k1");
    let first = sent(r#"{"amount":1,"currency":"EUR","tags":["a","b"],"at":1}"#);
    let same = sent(r#"{"at":2,"tags":["a","b"],"currency":"EUR","amount":1}"#);
    assert!(route.compares_equal(&first, &same));
    for other in [
        r#"{"amount":1.0,"currency":"EUR","tags":["a","b"]}"#,
        r#"{"amount":"1","currency":"EUR","tags":["a","b"]}"#,
        r#"{"amount":1,"tags":["a","b"]}"#,
        r#"{"amount":1,"currency":"EUR","tags":["b","a"]}"#,
        "not json",
    ] {
        assert!(!route.compares_equal(&first, &sent(other)), "{other}");
    }
    let object = route.identifies(&sent(r#"{"amount":{}}"#));
    assert_eq!(object, invalid(InvalidReason::NotAValue));
}

/// A changed rule gives another fingerprint. Two settings that mean the same rule give the same
/// fingerprint.
#[test]
fn fingerprints_of_different_rules_are_not_compared() {
    let [one, other] = ["1", "2"].map(|body| post(body).key("k1"));
    let fingerprint = |route: Route, sent: &Sent| route.subject(sent).fingerprint;
    let auto = fingerprint(route("r"), &one);
    let body = fingerprint(route("r").over(FingerprintOver::Body), &other);
    assert!(!auto.matches(&body), "`auto` is the body here");
    let ignoring = |pointers: &[&str]| route("r").ignore(pointers);
    let a_and_b = fingerprint(ignoring(&["/a", "/b"]), &one);
    assert!(a_and_b.matches(&auto));
    assert!(a_and_b.matches(&fingerprint(ignoring(&["/a"]), &other)));
    assert!(!a_and_b.matches(&fingerprint(ignoring(&["/b", "/a", "/b"]), &other)));
    let nothing = fingerprint(route("r").over_parts(&[]), &one);
    assert_eq!(nothing, fingerprint(route("r"), &post(EVENT)));
    assert!(nothing.matches(&fingerprint(route("r").over_parts(&["json:/a"]), &other)));
}

/// An absent part does not shift the ones after it.
#[test]
fn selected_parts_are_compared_each_with_its_own() {
    let route = route("r").over_parts(&["json:/a", "json:/b"]);
    let [a, b] = [r#"{"a":"x"}"#, r#"{"b":"x"}"#].map(|body| post(body).key("k1"));
    assert!(!route.compares_equal(&a, &b));
    assert!(route.compares_equal(&a, &post(r#"{"a":"x","b":null}"#).key("k1")));
}

/// If nothing is known about a sender, two of its events about one thing may have the same id.
#[test]
fn an_event_without_a_type_is_compared_by_its_body_where_no_preset_knows_its_sender() {
    let [created, paid] =
        ["created", "paid"].map(|event| post(format!(r#"{{"id":"order-77","event":"{event}"}}"#)));
    assert!(route("r").compares_equal(&created, &paid));
    let own = route("r").of_nobody();
    assert!(!own.compares_equal(&created, &paid));
    assert!(own.compares_equal(&created, &created));
    assert_eq!(own.keys(&created).from, KeySource::UntypedEvent);
    let typed = route("r").of_nobody().kind("json:/event?");
    assert_eq!(typed.keys(&paid).from, KeySource::Event);
    let more = post(r#"{"id":"order-77","event":"paid","attempt":2}"#);
    assert!(typed.compares_equal(&paid, &more));
}
