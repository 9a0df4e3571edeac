//! Handshakes: requests by which a sender asks whether a URL is the right one.
//!
//! A handshake is forwarded as it is. It has no key and no record, and is never answered from the
//! store. A signed handshake is verified like an event. One that is not signed could come from
//! anybody, so it has to be the described request and nothing more: a form must have no other
//! field, and where no body is described there must be none. An unsigned header must not be all
//! that names a handshake: an attacker could send a captured event with that header, and it would
//! run again without a key.

use std::collections::BTreeMap;
use std::fmt;

use http::header::CONTENT_TYPE;
use http::{HeaderName, Method};
use serde_json::value::RawValue;

use super::received::ReceivedRequest;
use crate::json::{Document, Found, Pointer};

/// How a handshake is recognised.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Handshake {
    /// Its name, for people.
    pub name: String,
    /// Its method.
    pub method: Method,
    /// The headers that it has.
    pub headers: Vec<(HeaderName, Expected)>,
    /// The parameters of the query that it has.
    pub query: BTreeMap<String, Expected>,
    /// The content of its body.
    pub content: Content,
    /// Whether it carries the sender's signature.
    pub signed: bool,
}

/// The content of a handshake's body.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Content {
    /// Any content.
    Any,
    /// No content.
    Empty,
    /// JSON with these members.
    Json(JsonBody),
    /// A form of these fields and no others. A name with `?` behind it may be absent.
    Form(BTreeMap<String, Expected>),
}

/// The members that a JSON body has to have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JsonBody {
    /// The members. Where `*` stands for the items of an array, each item has the member.
    pub members: Vec<(Pointer, Expected)>,
    /// Whether the body is an object that has these members at its top and no others.
    pub whole: bool,
}

/// The value that a header, parameter, member or field has to have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Expected {
    /// This text.
    Text(String),
    /// This whole number: in JSON a number, elsewhere its digits.
    Number(i64),
    /// Written `*`: any text that is not empty.
    Some,
    /// Written `0-9`: digits.
    Digits,
    /// `true` or `false`: in JSON the literal, elsewhere the word.
    Bool(bool),
}

impl Handshake {
    /// Whether a request is this handshake.
    pub fn is(&self, request: &ReceivedRequest<'_>) -> bool {
        *request.method == self.method
            && self.headers.iter().all(|(name, expected)| has_header(request, name, expected))
            && self.query.iter().all(|(name, expected)| has_parameter(request, name, expected))
            && match &self.content {
                Content::Any => true,
                Content::Empty => request.body.is_empty(),
                Content::Json(json) => json.is(request.body),
                Content::Form(fields) => is_form(request, fields),
            }
    }
}

impl Expected {
    fn is(&self, text: &str) -> bool {
        match self {
            Self::Text(expected) => text == expected,
            Self::Number(number) => text == number.to_string(),
            Self::Some => !text.trim().is_empty(),
            Self::Digits => !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()),
            Self::Bool(expected) => text == if *expected { "true" } else { "false" },
        }
    }

    /// Whether a JSON value is the expected one. The JSON text `"1"` is not the number 1, and
    /// `"true"` is not `true`.
    fn is_json(&self, value: &str) -> bool {
        let text = serde_json::from_str::<String>(value);
        match (self, text) {
            (Self::Number(_) | Self::Bool(_), Err(_)) => self.is(value),
            (Self::Text(_) | Self::Some | Self::Digits, Ok(text)) => self.is(&text),
            (Self::Number(_) | Self::Bool(_), Ok(_))
            | (Self::Text(_) | Self::Some | Self::Digits, Err(_)) => false,
        }
    }
}

impl JsonBody {
    fn is(&self, body: &[u8]) -> bool {
        // Checked once for all members.
        let document = Document::new(body);
        let described = |(pointer, expected): &(Pointer, Expected)| match document.find(pointer) {
            Found::Values(values) => {
                !values.is_empty() && values.iter().all(|value| expected.is_json(value))
            }
            Found::NotJson
            | Found::Absent
            | Found::InSomeItems
            | Found::Ambiguous
            | Found::TooMany => false,
        };
        self.members.iter().all(described) && (!self.whole || self.has_no_others(body))
    }

    /// Whether the body has as many members as are described. `find` refuses a described member
    /// that occurs twice, so counting is enough.
    fn has_no_others(&self, body: &[u8]) -> bool {
        let members: Result<BTreeMap<String, &RawValue>, _> = serde_json::from_slice(body);
        members.is_ok_and(|members| members.len() == self.members.len())
    }
}

/// The value as a table writes it.
impl fmt::Display for Expected {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Text(text) => f.write_str(text),
            Self::Number(number) => write!(f, "{number}"),
            Self::Some => f.write_str("*"),
            Self::Digits => f.write_str("0-9"),
            Self::Bool(expected) => write!(f, "{expected}"),
        }
    }
}

/// Whether a header occurs once, with the expected value. A request that has it twice is no
/// handshake: upstreams disagree about which value counts.
fn has_header(request: &ReceivedRequest<'_>, name: &HeaderName, expected: &Expected) -> bool {
    let line = only(request.headers.get_all(name).iter());
    let text = line.and_then(|line| std::str::from_utf8(line.as_bytes()).ok());
    text.is_some_and(|text| expected.is(text.trim_ascii()))
}

/// Whether a parameter of the query occurs once, with the expected value.
fn has_parameter(request: &ReceivedRequest<'_>, name: &str, expected: &Expected) -> bool {
    let pairs = form_urlencoded::parse(request.query().as_bytes());
    let values = pairs.filter(|(n, _)| n == name).map(|(_, v)| v);
    only(values).is_some_and(|value| expected.is(&value))
}

/// The only item. None if there are none or several.
fn only<T>(mut items: impl Iterator<Item = T>) -> Option<T> {
    let first = items.next()?;
    items.next().is_none().then_some(first)
}

/// A field that a form may have.
struct DescribedField<'a> {
    expected: &'a Expected,
    may_be_absent: bool,
}

fn is_form(request: &ReceivedRequest<'_>, fields: &BTreeMap<String, Expected>) -> bool {
    // Where two content types are named, upstreams disagree about which one counts (RFC 9110, 8.3).
    let content_type = only(request.headers.get_all(CONTENT_TYPE).iter());
    let media_type = content_type.and_then(|value| value.to_str().ok()?.split(';').next());
    let is_urlencoded = media_type.is_some_and(|media_type| {
        media_type.trim_ascii().eq_ignore_ascii_case("application/x-www-form-urlencoded")
    });
    if !is_urlencoded {
        return false;
    }
    let mut left: BTreeMap<&str, DescribedField<'_>> = fields
        .iter()
        .map(|(written, expected)| {
            let optional = written.strip_suffix('?');
            let field = DescribedField { expected, may_be_absent: optional.is_some() };
            (optional.unwrap_or(written), field)
        })
        .collect();
    // A described field is taken out when it is found, so that a second one of its name is refused
    // like one that is not described.
    let described = form_urlencoded::parse(request.body).all(|(name, value)| {
        left.remove(name.as_ref()).is_some_and(|field| field.expected.is(&value))
    });
    described && left.values().all(|field| field.may_be_absent)
}

#[cfg(test)]
mod tests {
    use http::{HeaderMap, HeaderValue};
    use proptest::prelude::*;

    use super::*;
    use crate::operation::Timestamp;

    fn handshake(content: Content) -> Handshake {
        Handshake {
            name: "test".to_owned(),
            method: Method::POST,
            headers: Vec::new(),
            query: BTreeMap::new(),
            content,
            signed: false,
        }
    }

    fn expected(name: &str, expected: Expected) -> BTreeMap<String, Expected> {
        BTreeMap::from([(name.to_owned(), expected)])
    }

    fn json(members: &[(&str, Expected)], whole: bool) -> Content {
        let members = members.iter();
        let members = members.map(|(at, expected)| (at.parse().unwrap(), expected.clone()));
        Content::Json(JsonBody { members: members.collect(), whole })
    }

    fn is(handshake: &Handshake, query: Option<&str>, headers: &HeaderMap, body: &[u8]) -> bool {
        let target = query.map_or_else(|| "/".to_owned(), |query| format!("/?{query}"));
        handshake.is(&view(&target, headers, body))
    }

    fn view<'a>(target: &'a str, headers: &'a HeaderMap, body: &'a [u8]) -> ReceivedRequest<'a> {
        let method = &Method::POST;
        ReceivedRequest { method, public_url: None, target, headers, body, now: Timestamp(0) }
    }

    fn form() -> HeaderMap {
        let value = "application/x-www-form-urlencoded; charset=utf-8";
        HeaderMap::from_iter([(CONTENT_TYPE, HeaderValue::from_static(value))])
    }

    #[test]
    fn a_json_member_has_its_value_and_its_type_once_at_the_top() {
        let ping = handshake(json(&[("/type", Expected::Number(0))], false));
        let is = |body: &str| is(&ping, None, &HeaderMap::new(), body.as_bytes());
        assert!(is(r#"{"version":1,"type":0,"event":{"type":1}}"#));
        assert!(is("\n {\"\\u0074ype\" : 0 }\n"));
        for other in [
            "",
            "0",
            "[]",
            r#"[{"type":0}]"#,
            "{}",
            r#"{"type":1}"#,
            r#"{"type":"0"}"#,
            r#"{"type":0.0}"#,
            r#"{"type":null}"#,
            r#"{"event":{"type":0}}"#,
            r#"{"type":0,"type":0}"#,
            r#"{"type":0,"type":1}"#,
            r#"{"type":0} x"#,
            r#"{"type":0"#,
        ] {
            assert!(!is(other), "{other}");
        }
    }

    #[test]
    fn a_json_member_may_be_true_or_false_and_no_text_of_that_word() {
        let ping = handshake(json(&[("/test", Expected::Bool(true))], false));
        let is = |body: &str| is(&ping, None, &HeaderMap::new(), body.as_bytes());
        assert!(is(r#"{"test":true,"more":1}"#));
        for other in [r#"{"test":false}"#, r#"{"test":"true"}"#, r#"{"test":1}"#, "{}"] {
            assert!(!is(other), "{other}");
        }
    }

    #[test]
    fn every_item_of_an_array_is_the_handshake_or_none_is() {
        let validation = handshake(json(&[("/*/data/code", Expected::Some)], false));
        let is = |body: &str| is(&validation, None, &HeaderMap::new(), body.as_bytes());
        assert!(is(r#"[{"id":"1","data":{"code":"c"}}]"#));
        for other in [
            "[]",
            r#"[{"data":{"code":""}}]"#,
            r#"[{"data":{"code":"c"}},{"data":{"paid":1}}]"#,
            r#"[{"data":{"code":"c"}},1]"#,
            r#"{"data":{"code":"c"}}"#,
            r#"[{"data":{"code":"c","code":"d"}}]"#,
        ] {
            assert!(!is(other), "{other}");
        }
    }

    /// An event that has the members of a handshake beside its own must not pass unsigned.
    #[test]
    fn a_whole_body_has_no_other_members() {
        let test = handshake(json(&[("/test", Expected::Bool(true))], true));
        let is = |body: &str| is(&test, None, &HeaderMap::new(), body.as_bytes());
        assert!(is(r#"{"test":true}"#));
        assert!(is(" { \"test\" : true }\n"));
        for other in [
            r#"{"test":true,"id":1}"#,
            r#"{"test":true,"test":true}"#,
            r#"{"test":true,"\ud800":1}"#,
            r#"[{"test":true}]"#,
        ] {
            assert!(!is(other), "{other}");
        }
    }

    /// An event that carries the fields of a handshake beside its own must not pass unsigned.
    #[test]
    fn a_form_has_these_fields_and_no_others() {
        let fields = BTreeMap::from([
            ("ssl_check".to_owned(), Expected::Text("1".to_owned())),
            ("token?".to_owned(), Expected::Some),
        ]);
        let check = handshake(Content::Form(fields));
        let is_form = |body: &str| is(&check, None, &form(), body.as_bytes());
        assert!(is_form("ssl_check=1"));
        assert!(is_form("token=abc&ssl_check=1"));
        for other in [
            "",
            "token=abc",
            "ssl_check=0",
            "ssl_check=1&token=",
            "ssl_check=1&payload=%7B%7D",
            "ssl_check=1&ssl_check=1",
        ] {
            assert!(!is_form(other), "{other}");
        }
        assert!(!is(&check, None, &HeaderMap::new(), b"ssl_check=1"));
        let mut two = form();
        two.append(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        assert!(!is(&check, None, &two, b"ssl_check=1"));
    }

    #[test]
    fn a_query_may_have_more_and_a_promised_empty_body_may_not() {
        let query = expected("validationToken", Expected::Some);
        let validation = Handshake { query, ..handshake(Content::Empty) };
        let is = |query, body: &[u8]| is(&validation, Some(query), &HeaderMap::new(), body);
        assert!(is("validationToken=abc%20def%2B1", b""));
        assert!(is("tenant=a&validationToken=abc", b""));
        for (query, body) in [
            ("", &b""[..]),
            ("validationToken=", b""),
            ("validationToken=%20", b""),
            ("validationtoken=a", b""),
            ("validationToken=a&validationToken=b", b""),
            ("validationToken=a", b"{}"),
        ] {
            assert!(!is(query, body), "{query}");
        }
    }

    #[test]
    fn a_header_has_its_value_once() {
        let name = HeaderName::from_static("x-event");
        let headers = vec![(name.clone(), Expected::Text("ping".to_owned()))];
        let ping = Handshake { headers, ..handshake(Content::Any) };
        let is = |lines: &[&'static str]| {
            let lines = lines.iter().map(|line| (name.clone(), HeaderValue::from_static(line)));
            is(&ping, None, &lines.collect(), b"anything")
        };
        assert!(is(&["ping"]));
        for other in [&[][..], &[""], &["PING"], &["push"], &["ping", "push"], &["ping", "ping"]] {
            assert!(!is(other), "{other:?}");
        }
        let headers = HeaderMap::from_iter([(name, HeaderValue::from_static("ping"))]);
        let got = ReceivedRequest { method: &Method::GET, ..view("/", &headers, b"") };
        assert!(!ping.is(&got));
    }

    proptest! {
        #[test]
        fn no_body_panics(body in any::<Vec<u8>>(), query in any::<String>()) {
            let members = expected("type", Expected::Digits);
            let contents = [
                json(&[("/type", Expected::Digits)], true),
                json(&[("/*/type", Expected::Bool(true))], false),
                Content::Form(members.clone()),
            ];
            for content in contents {
                let handshake = Handshake { query: members.clone(), ..handshake(content) };
                let _decided = is(&handshake, Some(&query), &form(), &body);
            }
        }
    }
}
