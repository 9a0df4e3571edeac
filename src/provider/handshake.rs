//! Handshakes: requests by which a sender asks whether the URL is the right one.
//!
//! They are forwarded as they are, without key and record, and never answered from the store. One
//! that is signed is verified like an event. One that is not could be anybody's, so it has to be the
//! described request and nothing more: a form must not have another field, a body must not follow
//! a head that promises none.

use std::collections::BTreeMap;
use std::fmt;

use http::header::CONTENT_TYPE;
use http::{HeaderMap, HeaderName, Method};
use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, Visitor};
use serde_json::value::RawValue;

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
    /// A JSON object with these members at its top.
    Json(BTreeMap<String, Expected>),
    /// A form of these fields and no others. A name with `?` behind it may be absent.
    Form(BTreeMap<String, Expected>),
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
                Content::Json(members) => is_object(request.body, members),
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
        }
    }

    /// A JSON text is not the number of the same digits.
    fn is_json(&self, value: &RawValue) -> bool {
        let text = serde_json::from_str::<String>(value.get());
        match (self, text) {
            (Self::Number(number), Err(_)) => value.get() == number.to_string(),
            (Self::Text(_) | Self::Some | Self::Digits, Ok(text)) => self.is(&text),
            (Self::Number(_), Ok(_)) | (Self::Text(_) | Self::Some | Self::Digits, Err(_)) => false,
        }
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
    let kind = request.headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok());
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

fn is_object(body: &[u8], expected: &BTreeMap<String, Expected>) -> bool {
    let Ok(text) = std::str::from_utf8(body) else {
        return false;
    };
    let mut reader = serde_json::Deserializer::from_str(text);
    let read = Members(expected).deserialize(&mut reader);
    read.is_ok_and(|all_there| all_there) && reader.end().is_ok()
}

/// Whether the members of an object are as expected, each of them once.
struct Members<'e>(&'e BTreeMap<String, Expected>);

impl<'de> DeserializeSeed<'de> for Members<'_> {
    type Value = bool;

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<bool, D::Error> {
        from.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for Members<'_> {
    type Value = bool;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<bool, A::Error> {
        let mut left = self.0.clone();
        let mut described = true;
        while let Some(name) = members.next_key::<String>()? {
            if self.0.contains_key(&name) {
                let value = members.next_value::<&RawValue>()?;
                described &= left.remove(&name).is_some_and(|expected| expected.is_json(value));
            } else {
                members.next_value::<IgnoredAny>()?;
            }
        }
        Ok(described && left.is_empty())
    }
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

    fn is(handshake: &Handshake, query: Option<&str>, headers: &HeaderMap, body: &[u8]) -> bool {
        handshake.is(&Arrived { method: &Method::POST, query, headers, body })
    }

    fn form() -> HeaderMap {
        let value = "application/x-www-form-urlencoded; charset=utf-8";
        HeaderMap::from_iter([(CONTENT_TYPE, HeaderValue::from_static(value))])
    }

    #[test]
    fn a_json_member_has_its_value_and_its_type_once_at_the_top() {
        let ping = handshake(Content::Json(expected("type", Expected::Number(0))));
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
            for content in [Content::Json(members.clone()), Content::Form(members.clone())] {
                let handshake = Handshake { query: members.clone(), ..handshake(content) };
                let _decided = is(&handshake, Some(&query), &form(), &body);
            }
        }
    }
}
