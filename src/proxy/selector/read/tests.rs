//! Tests of what selectors read and what they refuse.

use std::sync::LazyLock;

use http::{HeaderMap, HeaderValue, Method};
use proptest::prelude::*;

use super::*;
use crate::json::Document;

const FORM: &str = "application/x-www-form-urlencoded";

struct Sent {
    headers: HeaderMap,
    query: Option<String>,
    body: Vec<u8>,
}

impl Sent {
    fn body(body: impl AsRef<[u8]>) -> Self {
        Self { headers: HeaderMap::new(), query: None, body: body.as_ref().to_vec() }
    }

    fn form(body: &str) -> Self {
        Self::body(body).header("content-type", FORM.as_bytes())
    }

    fn query(query: &str) -> Self {
        Self { query: Some(query.to_owned()), ..Self::body("") }
    }

    fn header(mut self, name: &'static str, value: &[u8]) -> Self {
        self.headers.append(name, HeaderValue::from_bytes(value).unwrap());
        self
    }

    fn read(&self, selector: &str) -> Result<Vec<KeyPart<'_>>, Unread> {
        static CARRIED: LazyLock<Carried> = LazyLock::new(Carried::default);
        selector.parse::<Selector>().unwrap().read(&RequestView {
            method: &Method::POST,
            path: "/",
            query: self.query.as_deref(),
            headers: &self.headers,
            body: Document::new(&self.body),
            carried: &CARRIED,
        })
    }
}

#[expect(clippy::unnecessary_wraps, reason = "it is compared with a result")]
fn text(text: &str) -> Parts<'_> {
    Ok(vec![text.into()])
}

#[expect(clippy::unnecessary_wraps, reason = "it is compared with a result")]
fn literal(text: &str) -> Parts<'_> {
    Ok(vec![KeyPart::Literal(text)])
}

fn missing(reason: MissingReason) -> Parts<'static> {
    Err(reason.into())
}

fn invalid(reason: InvalidReason) -> Parts<'static> {
    Err(reason.into())
}

#[test]
fn json_values_keep_their_type_and_spelling() {
    for (value, part) in [
        (r#""evt_1""#, text("evt_1")),
        (r#""\u0065vt_1""#, text("evt_1")),
        (r#""\ud83d\ude00""#, text("😀")),
        (r#"" evt_1 ""#, text(" evt_1 ")),
        (r#""5""#, text("5")),
        ("5", literal("5")),
        ("5.0", literal("5.0")),
        ("5e0", literal("5e0")),
        (r#""true""#, text("true")),
        ("true", literal("true")),
    ] {
        let sent = Sent::body(format!(r#"{{"id":{value}}}"#));
        assert_eq!(sent.read("json:/id"), part, "{value}");
    }
}

#[test]
fn a_body_is_its_digest_and_an_empty_one_is_missing() {
    let abc = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
    assert_eq!(Sent::body("abc").read("body"), text(abc));
    assert_eq!(Sent::body("").read("body"), missing(MissingReason::EmptyBody));
    assert_eq!(Sent::body("").read("body?"), Ok(vec![]));
}

#[test]
fn what_says_nothing_is_missing() {
    let blank = MissingReason::Blank;
    for (body, reason) in [
        (r#"{"id":""}"#, blank),
        (r#"{"id":"   "}"#, blank),
        (r#"{"id":"\t\u00a0"}"#, blank),
        (r#"{"id":null}"#, blank),
        ("{}", MissingReason::Absent),
        (r#"[{"id":1}]"#, MissingReason::Absent),
        ("id=1", MissingReason::NotJson),
        ("", MissingReason::NotJson),
    ] {
        assert_eq!(Sent::body(body).read("json:/id"), missing(reason), "{body}");
        assert_eq!(Sent::body(body).read("json:/id?"), Ok(vec![]), "{body}");
    }
}

#[test]
fn what_is_there_and_unusable_is_invalid_even_where_it_may_be_absent() {
    let long = format!(r#"{{"id":"{}"}}"#, "é".repeat(PART_BYTES_MAX / 2 + 1));
    let number = format!(r#"{{"id":{}}}"#, "1".repeat(PART_BYTES_MAX + 1));
    for (body, reason) in [
        (r#"{"id":{}}"#, InvalidReason::NotAValue),
        (r#"{"id":["a"]}"#, InvalidReason::NotAValue),
        (long.as_str(), InvalidReason::TooLong),
        (number.as_str(), InvalidReason::TooLong),
        (r#"{"id":1,"id":1}"#, InvalidReason::MemberTwice),
        (r#"{"id":"\ud800"}"#, InvalidReason::NotText),
    ] {
        for selector in ["json:/id", "json:/id?"] {
            assert_eq!(Sent::body(body).read(selector), invalid(reason), "{body}");
        }
    }
    let longest = "é".repeat(PART_BYTES_MAX / 2);
    let sent = Sent::body(format!(r#"{{"id":"{longest}"}}"#));
    assert_eq!(sent.read("json:/id"), text(&longest));
}

#[test]
fn each_item_gives_a_part_or_none_does() {
    let items = |items: &str| Sent::body(format!(r#"{{"items":[{items}]}}"#));
    let sent = items(r#"{"id":1},{"id":"1"},{"id":1}"#);
    let parts = vec![KeyPart::Literal("1"), "1".into(), KeyPart::Literal("1")];
    assert_eq!(sent.read("json:/items/*/id"), Ok(parts));
    for some in [r#"{"id":1},{}"#, r#"{"id":1},{"id":null}"#, r#"{"id":""},{"id":1}"#] {
        let sent = items(some);
        let expected = missing(MissingReason::AbsentInSomeItems);
        assert_eq!(sent.read("json:/items/*/id"), expected, "{some}");
        assert_eq!(sent.read("json:/items/*/id?"), expected, "{some}");
    }
    for none in ["", "{}", "{},{}"] {
        assert_eq!(items(none).read("json:/items/*/id?"), Ok(vec![]), "{none}");
    }
    let bad = items(r#"{"id":""},{"id":[]}"#);
    assert_eq!(bad.read("json:/items/*/id"), invalid(InvalidReason::NotAValue));
}

#[test]
fn a_header_is_one_value_whatever_its_lines() {
    let lines = |lines: &[&[u8]]| {
        let sent = Sent::body("");
        lines.iter().fold(sent, |sent, line| sent.header("x-tenant", line))
    };
    assert_eq!(lines(&[b" t1\t"]).read("header:X-Tenant"), text("t1"));
    assert_eq!(lines(&[b"t1", b"t1 "]).read("header:x-tenant"), text("t1"));
    assert_eq!(lines(&["té".as_bytes()]).read("header:x-tenant"), text("té"));
    let differ = invalid(InvalidReason::PartsDiffer);
    assert_eq!(lines(&[b"t1", b"t2"]).read("header:x-tenant?"), differ);
    assert_eq!(lines(&[b"t1", b""]).read("header:x-tenant"), differ);
    let blank = missing(MissingReason::Blank);
    assert_eq!(lines(&[b" "]).read("header:x-tenant"), blank);
    assert_eq!(lines(&[]).read("header:x-tenant"), missing(MissingReason::Absent));
    assert_eq!(lines(&[]).read("header:x-tenant?"), Ok(vec![]));
    let not_text = invalid(InvalidReason::NotText);
    assert_eq!(lines(&[b"\xff"]).read("header:x-tenant"), not_text);
}

#[test]
fn the_first_place_that_has_something_counts() {
    let id = "header:x-id|json:/id";
    let body = r#"{"id":"b"}"#;
    assert_eq!(Sent::body(body).header("x-id", b"a").read(id), text("a"));
    assert_eq!(Sent::body(body).header("x-id", b" ").read(id), text("b"));
    assert_eq!(Sent::body(body).read(id), text("b"));
    assert_eq!(Sent::body("{}").read(id), missing(MissingReason::Absent));
    assert_eq!(Sent::body("{}").read(&format!("{id}?")), Ok(vec![]));
    let bad = Sent::body(body).header("x-id", b"\xff");
    assert_eq!(bad.read(id), invalid(InvalidReason::NotText));
    let sid = "form:Sid|query:Sid";
    assert_eq!(Sent::form("Sid=1").read(sid), text("1"));
    assert_eq!(Sent::query("Sid=2").read(sid), text("2"));
}

/// The examples come from the binding.
#[test]
fn an_attribute_of_a_cloud_event_is_unquoted_and_percent_decoded() {
    for (value, id) in [
        ("Euro%20%E2%82%AC%20%F0%9F%98%80", "Euro € 😀"),
        ("order 7731", "order 7731"),
        ("\"order 7731\"", "order 7731"),
        ("\"abc\"", "abc"),
        (r#""a\"b\\c""#, r#"a"b\c"#),
        ("%22", "\""),
        ("a%2525", "a%25"),
        ("100%", "100%"),
        ("\"abc", "\"abc"),
        ("é", "é"),
    ] {
        let sent = Sent::body("").header("ce-id", value.as_bytes());
        assert_eq!(sent.read("header:ce-id"), text(id), "{value}");
    }
    let not_text = Sent::body("").header("ce-id", b"%ff");
    assert_eq!(not_text.read("header:ce-id"), invalid(InvalidReason::NotText));
    let other = Sent::body("").header("x-id", b"a%20b");
    assert_eq!(other.read("header:x-id"), text("a%20b"));
}

#[test]
fn a_byte_order_mark_is_read_over() {
    let marked = |body: &str| format!("\u{feff}{body}");
    assert_eq!(Sent::body(marked(r#"{"id":"a"}"#)).read("json:/id"), text("a"));
    assert_eq!(Sent::form(&marked("id=a&x=1")).read("form:id"), text("a"));
    assert_ne!(Sent::body(marked("{}")).read("body"), Sent::body("{}").read("body"));
}

/// Neither the order of other parameters nor the encoding of the value matters.
#[test]
fn fields_and_parameters_are_decoded() {
    for (pairs, expected) in [
        ("a=1&txn=T1&b=2", text("T1")),
        ("b=2&txn=%541", text("T1")),
        ("%74xn=T1", text("T1")),
        ("txn=a+b%20c", text("a b c")),
        ("txn=T1&txn=%541", text("T1")),
        ("txn=5", text("5")),
        ("txn=T1&txn=T2", invalid(InvalidReason::PartsDiffer)),
        ("txn=&txn=T1", invalid(InvalidReason::PartsDiffer)),
        ("txn=%ff", invalid(InvalidReason::NotText)),
        ("txn=", missing(MissingReason::Blank)),
        ("txn", missing(MissingReason::Blank)),
        ("txn=+%20", missing(MissingReason::Blank)),
        ("TXN=T1", missing(MissingReason::Absent)),
        ("", missing(MissingReason::Absent)),
    ] {
        assert_eq!(Sent::form(pairs).read("form:txn"), expected, "{pairs}");
        assert_eq!(Sent::query(pairs).read("query:txn"), expected, "{pairs}");
    }
    assert_eq!(Sent::body("").read("query:txn"), missing(MissingReason::Absent));
}

#[test]
fn a_body_is_a_form_only_where_the_request_says_so() {
    let not_a_form = missing(MissingReason::NotAForm);
    let sent = |kind: &[u8]| Sent::body("txn=T1").header("content-type", kind);
    assert_eq!(Sent::body("txn=T1").read("form:txn"), not_a_form);
    assert_eq!(sent(b"text/plain").read("form:txn"), not_a_form);
    assert_eq!(sent(b"multipart/form-data; boundary=x").read("form:txn"), not_a_form);
    assert_eq!(sent(b"\xff").read("form:txn"), not_a_form);
    assert_eq!(
        sent(b"Application/X-WWW-Form-Urlencoded ; charset=utf-8").read("form:txn"),
        text("T1")
    );
}

/// Some receivers take the first of two kinds and others the last, so nobody knows whether the body
/// is read as a form.
#[test]
fn two_kinds_of_body_leave_no_form_to_read() {
    let sent = |kinds: &[&str]| {
        let sent = Sent::body("txn=T1");
        kinds.iter().fold(sent, |sent, kind| sent.header("content-type", kind.as_bytes()))
    };
    let one_line = format!("{FORM}, application/json");
    let behind = format!("application/json; charset=utf-8, {FORM}");
    for kinds in [
        &[FORM, "application/json"][..],
        &["application/json", FORM],
        &[FORM, ""],
        &[FORM, FORM, "text/plain"],
        &[&one_line],
        &[&behind],
    ] {
        for selector in ["form:txn", "form:txn?", "form:txn|query:txn?"] {
            let read = sent(kinds);
            assert_eq!(read.read(selector), invalid(InvalidReason::KindsDiffer), "{kinds:?}");
        }
    }
    assert_eq!(sent(&[FORM, FORM]).read("form:txn"), text("T1"));
    let quoted = sent(&[r#"multipart/form-data; boundary="a\",b""#]);
    assert_eq!(quoted.read("form:txn"), missing(MissingReason::NotAForm));
    assert_eq!(sent(&["text/plain", FORM]).read("query:txn?"), Ok(vec![]));
}

proptest! {
    #[test]
    fn nothing_panics_and_every_part_says_something(
        body in any::<Vec<u8>>(), pairs in "[a-c=&%+0-9f]{0,24}", header in any::<Vec<u8>>(),
    ) {
        let mut sent = Sent::query(&pairs).header("content-type", FORM.as_bytes());
        sent.body = body;
        if HeaderValue::from_bytes(&header).is_ok() {
            sent = sent.header("a", &header);
        }
        for selector in ["json:/a", "json:/*", "form:a", "query:a", "header:a", "header:a?"] {
            for part in sent.read(selector).unwrap_or_default() {
                prop_assert!(!part.as_str().trim().is_empty());
                prop_assert!(part.as_str().len() <= PART_BYTES_MAX);
            }
        }
    }

    /// A text survives JSON, forms and queries as it is.
    #[test]
    fn a_text_is_read_back_as_it_was_sent(value in "\\PC{1,40}") {
        prop_assume!(!value.trim().is_empty() && !value.contains('\u{fffd}'));
        let json = serde_json::to_string(&value).unwrap();
        let form: String = form_urlencoded::byte_serialize(value.as_bytes()).collect();
        let sent = Sent::body(format!(r#"{{"a":{json}}}"#));
        prop_assert_eq!(sent.read("json:/a"), text(&value));
        let sent = Sent::form(&format!("a={form}"));
        prop_assert_eq!(sent.read("form:a"), text(&value));
    }
}
