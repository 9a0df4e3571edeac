//! Reads from a request what a selector names.

use std::borrow::Cow;

use http::header::CONTENT_TYPE;
use http::{HeaderMap, HeaderName};
use percent_encoding::percent_decode_str;
use sha2::{Digest, Sha256};

use super::{Place, Selector};
use crate::json::{self, Found, Pointer};
use crate::operation::KeyPart;
use crate::provider::signature::{Carried, CarriedValue, Unusable};
use crate::proxy::identify::{InvalidReason, MissingReason, RequestView, Unread};

/// The longest part, in bytes of its decoded text: topics, links and ARNs are parts too.
const PART_BYTES_MAX: usize = 4 * 1024;

/// The headers of `CloudEvents` begin so.
const CLOUD_EVENT: &str = "ce-";

impl Selector {
    /// The parts that it names, in order: one, or one for each item of `*`. The first place that
    /// has something counts.
    ///
    /// Texts are not trimmed: only a header's value is without the whitespace around it. JSON
    /// numbers and booleans are [`KeyPart::Literal`]; everything else is text.
    ///
    /// # Errors
    ///
    /// [`Unread::Missing`] if it is absent, null, empty or blank, or the body is not what the
    /// selector reads; with `?` the answer is then no parts. Where only some of the items of `*`
    /// have it, it is missing even with `?`: the others alone could be those of another event.
    /// [`Unread::Invalid`] if it is there and cannot be used.
    pub(in crate::proxy) fn read<'a>(&self, request: &RequestView<'a>) -> Parts<'a> {
        let mut missing = None;
        for place in &self.places {
            match place.read(request) {
                Err(Unread::Missing(reason)) if reason.is_excused() => {
                    missing.get_or_insert(reason);
                }
                found => return found,
            }
        }
        match missing {
            Some(reason) if !self.optional => Err(reason.into()),
            Some(_) | None => Ok(Vec::new()),
        }
    }
}

impl Place {
    fn read<'a>(&self, request: &RequestView<'a>) -> Parts<'a> {
        match self {
            Self::Header(name) => header(request.headers, name),
            Self::Json(pointer) => member(request.body, pointer),
            Self::Form(name) if is_form(request.headers) => {
                field(json::without_mark(request.body), name)
            }
            Self::Form(_) => Err(MissingReason::NotAForm.into()),
            Self::Query(name) => field(request.query.unwrap_or_default().as_bytes(), name),
            Self::Signature(name) => carried(request.carried, name),
            Self::Body => digest(request.body),
        }
    }
}

/// All empty bodies have the same digest, whatever they are about.
fn digest<'a>(body: &[u8]) -> Parts<'a> {
    if body.is_empty() {
        return Err(MissingReason::EmptyBody.into());
    }
    Ok(vec![KeyPart::Text(hex::encode(Sha256::digest(body)).into())])
}

fn header<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Parts<'a> {
    let mut lines = headers.get_all(name).iter().map(|line| line.as_bytes().trim_ascii());
    let first = lines.next().ok_or(MissingReason::Absent)?;
    if lines.any(|line| line != first) {
        return Err(InvalidReason::PartsDiffer.into());
    }
    let text = std::str::from_utf8(first).map_err(|_| InvalidReason::NotText)?;
    let part = if name.as_str().starts_with(CLOUD_EVENT) { attribute(text)? } else { text.into() };
    Ok(vec![checked(part)?])
}

/// An attribute of an event, as it stands in a header: without double quotes, then without
/// percent-encoding ("HTTP Protocol Binding for `CloudEvents`", 3.1.3.2). Older senders quote, or
/// write spaces as they are.
fn attribute(text: &str) -> Result<KeyPart<'_>, Unread> {
    let quoted = text.strip_prefix('"').and_then(|text| text.strip_suffix('"'));
    let unquoted = quoted.map_or(Cow::Borrowed(text), unescaped);
    let decoded = percent_decode_str(&unquoted).decode_utf8();
    let decoded = decoded.map_err(|_| InvalidReason::NotText)?;
    Ok(if decoded == text { text.into() } else { KeyPart::Text(decoded.into_owned().into()) })
}

/// The inside of a quoted string, where `\` stands before a character that is meant (RFC 9110, 5.6.4).
fn unescaped(inside: &str) -> Cow<'_, str> {
    if !inside.contains('\\') {
        return Cow::Borrowed(inside);
    }
    let mut characters = inside.chars();
    let next = || match characters.next() {
        Some('\\') => characters.next(),
        character => character,
    };
    std::iter::from_fn(next).collect()
}

/// The values of one field must be equal, blank ones too: first-wins and last-wins readers
/// disagree about which one is meant.
fn field<'a>(pairs: &'a [u8], name: &str) -> Parts<'a> {
    let mut values = form_urlencoded::parse(pairs).filter(|(n, _)| n == name).map(|(_, v)| v);
    let first = values.next().ok_or(MissingReason::Absent)?;
    if values.any(|value| value != first) {
        return Err(InvalidReason::PartsDiffer.into());
    }
    // Every byte that is no UTF-8 was replaced by this: different ones would become one key.
    if first.contains(char::REPLACEMENT_CHARACTER) {
        return Err(InvalidReason::NotText.into());
    }
    Ok(vec![checked(KeyPart::Text(first))?])
}

fn carried<'a>(carried: &'a Carried, name: &str) -> Parts<'a> {
    let part = match carried.get(name).ok_or(MissingReason::Absent)? {
        Ok(CarriedValue::Text(text)) => KeyPart::Text(text.into()),
        Ok(CarriedValue::Literal(literal)) => KeyPart::Literal(literal),
        Err(Unusable::NotAValue) => return Err(InvalidReason::NotAValue.into()),
        Err(Unusable::NotText) => return Err(InvalidReason::NotText.into()),
        Err(Unusable::Differs) => return Err(InvalidReason::PartsDiffer.into()),
    };
    Ok(vec![checked(part)?])
}

fn is_form(headers: &HeaderMap) -> bool {
    let value = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok());
    let essence = value.and_then(|value| value.split(';').next()).map(str::trim_ascii);
    essence.is_some_and(|it| it.eq_ignore_ascii_case("application/x-www-form-urlencoded"))
}

fn member<'a>(body: &'a [u8], pointer: &Pointer) -> Parts<'a> {
    match json::find(body, pointer) {
        Found::Values(texts) => values(&texts),
        Found::NotJson => Err(MissingReason::NotJson.into()),
        Found::Absent => Err(MissingReason::Absent.into()),
        Found::InSomeItems => Err(MissingReason::AbsentInSomeItems.into()),
        Found::Ambiguous => Err(InvalidReason::MemberTwice.into()),
        Found::TooMany => Err(InvalidReason::TooManyParts.into()),
    }
}

/// All are there or none is: an item without its part would make the key of another event.
fn values<'a>(texts: &[&'a str]) -> Parts<'a> {
    let mut parts = Vec::with_capacity(texts.len());
    for text in texts {
        match value(text) {
            Ok(part) => parts.push(part),
            Err(Unread::Missing(_)) => {}
            Err(invalid @ Unread::Invalid(_)) => return Err(invalid),
        }
    }
    match parts.len() {
        0 => Err(MissingReason::Blank.into()),
        some if some < texts.len() => Err(MissingReason::AbsentInSomeItems.into()),
        _ => Ok(parts),
    }
}

/// The part that a JSON value is, as it is written.
fn value(text: &str) -> Result<KeyPart<'_>, Unread> {
    let part = match text.bytes().next() {
        Some(b'{' | b'[') => return Err(InvalidReason::NotAValue.into()),
        Some(b'"') => KeyPart::Text(decoded(text)?),
        Some(b'n') | None => return Err(MissingReason::Blank.into()),
        Some(_) => KeyPart::Literal(text),
    };
    checked(part)
}

fn decoded(text: &str) -> Result<Cow<'_, str>, Unread> {
    if text.contains('\\') {
        let text = serde_json::from_str(text).map_err(|_| InvalidReason::NotText)?;
        return Ok(Cow::Owned(text));
    }
    let inner = text.strip_prefix('"').and_then(|text| text.strip_suffix('"'));
    Ok(Cow::Borrowed(inner.unwrap_or(text)))
}

fn checked(part: KeyPart<'_>) -> Result<KeyPart<'_>, Unread> {
    let text = part.as_str();
    if text.trim().is_empty() {
        return Err(MissingReason::Blank.into());
    }
    if text.len() > PART_BYTES_MAX {
        return Err(InvalidReason::TooLong.into());
    }
    Ok(part)
}

/// The parts at one place.
pub(in crate::proxy) type Parts<'a> = Result<Vec<KeyPart<'a>>, Unread>;

#[cfg(test)]
mod tests {
    use std::sync::LazyLock;

    use http::{HeaderValue, Method};
    use proptest::prelude::*;

    use super::*;

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
                body: &self.body,
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

    /// C25, trap 24
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

    /// The examples are those of the binding.
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

    /// Trap 28: the order of other parameters does not matter, the value's encoding does not either.
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

        /// C29: a text survives JSON, forms and queries as it is.
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
}
