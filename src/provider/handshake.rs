//! Handshakes: requests by which a sender asks whether the URL is the right one.
//!
//! They are forwarded as they are, without key and record, and never answered from the store. One
//! that is signed is verified like an event. One that is not could be anybody's, so it has to be the
//! described request and nothing more: a form must not have another field, a body must not follow
//! a head that promises none. A header that nothing signs never names one alone: any event could be
//! sent under it, past the key.

use std::collections::BTreeMap;
use std::fmt;

use http::header::CONTENT_TYPE;
use http::{HeaderMap, HeaderName, Method};
use serde_json::value::RawValue;

use crate::json::{Found, Pointer, find};

/// A request as it came, as far as a handshake looks at it.
#[derive(Debug, Clone, Copy)]
pub struct Arrived<'a> {
    /// HTTP method.
    pub method: &'a Method,
    /// What follows `?`, if there is one.
    pub query: Option<&'a str>,
    /// The headers of the head.
    pub headers: &'a HeaderMap,
    /// The whole body.
    pub body: &'a [u8],
}

/// How a handshake is recognised.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Handshake {
    /// For people.
    pub name: String,
    /// Its method.
    pub method: Method,
    /// Headers it has.
    pub headers: Vec<(HeaderName, Expected)>,
    /// Parameters of the query it has.
    pub query: BTreeMap<String, Expected>,
    /// What its body is.
    pub content: Content,
    /// Whether it carries the sender's signature.
    pub signed: bool,
}

/// What the body of a handshake is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Content {
    /// Whatever it is.
    Any,
    /// Nothing.
    Empty,
    /// JSON with these members.
    Json(JsonBody),
    /// A form of these fields and no others. A name with `?` behind it may be absent.
    Form(BTreeMap<String, Expected>),
}

/// What a JSON body has to hold.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JsonBody {
    /// These members. Where `*` stands for the items of an array, each of them has it.
    pub members: Vec<(Pointer, Expected)>,
    /// Whether the body is an object with no members beside these, all at its top.
    pub whole: bool,
}

/// What a value has to be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Expected {
    /// This text.
    Text(String),
    /// This whole number, in JSON; elsewhere its digits.
    Number(i64),
    /// Written `*`: any text that is not empty.
    Some,
    /// Written `0-9`: digits.
    Digits,
    /// `true` or `false`, in JSON; elsewhere the word.
    Bool(bool),
}

impl Handshake {
    /// Whether a request is this handshake.
    pub fn is(&self, request: &Arrived<'_>) -> bool {
        *request.method == self.method
            && self.headers.iter().all(|(name, expected)| one_line(request, name, expected))
            && self.query.iter().all(|(name, expected)| one_parameter(request, name, expected))
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

    /// A JSON text is neither the number of the same digits nor the word `true`.
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
        let described = |(pointer, expected): &(Pointer, Expected)| match find(body, pointer) {
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

    /// A member that occurs twice has been found out already, so that counting them is enough.
    fn has_no_others(&self, body: &[u8]) -> bool {
        let members: Result<BTreeMap<String, &RawValue>, _> = serde_json::from_slice(body);
        members.is_ok_and(|members| members.len() == self.members.len())
    }
}

/// As it is written in a table.
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

/// Twice the same header is no handshake: readers disagree about which one counts.
fn one_line(request: &Arrived<'_>, name: &HeaderName, expected: &Expected) -> bool {
    let mut lines = request.headers.get_all(name).iter();
    let (first, second) = (lines.next(), lines.next());
    let text = first.and_then(|line| std::str::from_utf8(line.as_bytes()).ok());
    second.is_none() && text.is_some_and(|text| expected.is(text.trim_ascii()))
}

fn one_parameter(request: &Arrived<'_>, name: &str, expected: &Expected) -> bool {
    let query = request.query.unwrap_or_default().as_bytes();
    let mut values = form_urlencoded::parse(query).filter(|(n, _)| n == name).map(|(_, v)| v);
    let (first, second) = (values.next(), values.next());
    second.is_none() && first.is_some_and(|value| expected.is(&value))
}

fn is_form(request: &Arrived<'_>, fields: &BTreeMap<String, Expected>) -> bool {
    // Where two are named, receivers disagree about which one counts (RFC 9110, 8.3).
    let mut kinds = request.headers.get_all(CONTENT_TYPE).iter();
    let kind = kinds.next().and_then(|value| value.to_str().ok());
    if kinds.next().is_some() {
        return false;
    }
    let essence = kind.and_then(|kind| kind.split(';').next()).map(str::trim_ascii);
    if essence.is_none_or(|it| !it.eq_ignore_ascii_case("application/x-www-form-urlencoded")) {
        return false;
    }
    let mut left: BTreeMap<&str, (bool, &Expected)> = fields
        .iter()
        .map(|(name, expected)| match name.strip_suffix('?') {
            Some(name) => (name, (true, expected)),
            None => (name.as_str(), (false, expected)),
        })
        .collect();
    let described = form_urlencoded::parse(request.body).all(|(name, value)| {
        left.remove(name.as_ref()).is_some_and(|(_, expected)| expected.is(&value))
    });
    described && left.values().all(|(may_be_absent, _)| *may_be_absent)
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;
    use proptest::prelude::*;

    use super::*;

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
        handshake.is(&Arrived { method: &Method::POST, query, headers, body })
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
        let got = Arrived { method: &Method::GET, query: None, headers: &headers, body: b"" };
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
