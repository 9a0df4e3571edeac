//! How the receiver is asked about an uncertain operation: raw -> `LookupSettings`.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use http::{HeaderMap, HeaderName, HeaderValue, header};
use serde::de::{Deserialize, Deserializer, Error, Visitor};

use super::check::{Check, text};
use super::leaf::{Text, Written};
use super::problem::{Key, quoted};
use super::secrets::TextOrSecret;
use crate::idempotency::{Condition, LookupSettings, Reference, Scalar, UrlTemplate};
use crate::json::Pointer;

/// No sender waits for longer.
const TIMEOUT_MAX: Duration = Duration::from_mins(1);

/// What a look-up's request has from its own client.
const HEADERS_OF_THE_CLIENT: [HeaderName; 5] = [
    header::HOST,
    header::CONNECTION,
    header::CONTENT_LENGTH,
    header::TRANSFER_ENCODING,
    header::UPGRADE,
];

#[derive(Debug, serde::Deserialize)]
#[serde(deny_unknown_fields, expecting = "a table")]
pub(super) struct RawLookup {
    pub(super) url: Option<Text<UrlTemplate>>,
    pub(super) timeout: Option<Text<Duration>>,
    pub(super) done_when: Option<BTreeMap<String, Option<Value>>>,
    pub(super) headers: Option<BTreeMap<String, Option<TextOrSecret>>>,
    pub(super) reference: Option<Text<Reference>>,
}

/// A value that can be compared with a member of JSON.
#[derive(Debug)]
pub(super) struct Value(Scalar);

/// Something is wrong with it, which has been reported.
pub(super) struct Reported;

/// The look-up of a route, if it has one. `wanted`: it must.
pub(super) fn lookup(
    check: &mut Check<'_>,
    at: &Key,
    raw: Option<RawLookup>,
    wanted: bool,
) -> Result<Option<LookupSettings>, Reported> {
    let at = at.join("lookup");
    let RawLookup { url, timeout, done_when, headers, reference } = raw.ok_or(Reported)?;
    let limits = Duration::from_millis(1)..=TIMEOUT_MAX;
    let timeout =
        check.within(&at.join("timeout"), text(timeout), &limits, "a duration from `1ms` to `1m`");
    let done_when = conditions(check, &at.join("done_when"), done_when.unwrap_or_default());
    let headers = header_map(check, &at.join("headers"), headers.unwrap_or_default());
    let Some(url) = text(url) else {
        return without_url(check, &at.join("url"), wanted);
    };
    let (timeout, done_when) = (timeout.ok_or(Reported)?, done_when.ok_or(Reported)?);
    let (headers, reference) = (headers.ok_or(Reported)?, text(reference));
    Ok(Some(LookupSettings { url, timeout, done_when, headers, reference }))
}

fn without_url(
    check: &mut Check<'_>,
    key: &Key,
    wanted: bool,
) -> Result<Option<LookupSettings>, Reported> {
    // What stands there and is no URL has been reported.
    let reported = check.sources.value(key).is_some();
    if wanted && !reported {
        let hint = "`url = \"http://127.0.0.1:3000/events/{operation}\"`";
        let expected = "a value, where `when_uncertain` is `lookup`";
        check.report(key, expected, "none".to_owned(), Some(hint));
    }
    if wanted || reported { Err(Reported) } else { Ok(None) }
}

fn conditions(
    check: &mut Check<'_>,
    at: &Key,
    raw: BTreeMap<String, Option<Value>>,
) -> Option<Vec<Condition>> {
    let read = raw.into_iter().map(|(name, value)| {
        let member = Pointer::read(&name).filter(|pointer| !pointer.is_of_each());
        if member.is_none() {
            let expected = "a JSON member such as `json:/status`, without `*`";
            let hint = "`done_when = { \"json:/status\" = \"processed\" }`";
            check.report(&at.join(name.as_str()), expected, quoted(&name), Some(hint));
        }
        Some(Condition { member: member?, value: value?.0 })
    });
    read.collect::<Vec<_>>().into_iter().collect()
}

fn header_map(
    check: &mut Check<'_>,
    at: &Key,
    raw: BTreeMap<String, Option<TextOrSecret>>,
) -> Option<HeaderMap> {
    let read = raw.into_iter().map(|(name, value)| {
        let key = at.join(name.as_str());
        let parsed: Option<HeaderName> = name.parse().ok();
        let header = parsed.filter(|name| !HEADERS_OF_THE_CLIENT.contains(name));
        if header.is_none() {
            let expected = "the name of a header that the connection does not need";
            let hint = "such as `authorization` or `x-api-key`";
            check.report(&key, expected, quoted(&name), Some(hint));
        }
        let value = value?.read(check, &key)?;
        let Ok(mut value) = HeaderValue::from_str(value.reveal()) else {
            let hint = "visible ASCII and spaces, without an end of line";
            let found = "one with other characters".to_owned();
            check.report(&key, "the value of a header", found, Some(hint));
            return None;
        };
        value.set_sensitive(true);
        Some((header?, value))
    });
    read.collect::<Vec<_>>().into_iter().collect()
}

impl Written for UrlTemplate {
    const EXPECTED: &'static str = "an `http` or `https` URL such as \
                                    `http://127.0.0.1:3000/events/{operation}`, without user and \
                                    fragment, with `{key}`, `{operation}` and `{event_id}` in path \
                                    and query alone";

    fn read(text: &str) -> Option<Self> {
        text.parse().ok()
    }
}

impl Written for Reference {
    const EXPECTED: &'static str = "`header:NAME` or `json:/pointer` without `*`";

    fn read(text: &str) -> Option<Self> {
        match text.strip_prefix("header:") {
            Some(name) => name.parse().ok().map(Self::Header),
            None => Pointer::read(text).filter(|pointer| !pointer.is_of_each()).map(Self::Member),
        }
    }
}

impl<'de> Deserialize<'de> for Value {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(ValueVisitor).map(Self)
    }
}

struct ValueVisitor;

impl Visitor<'_> for ValueVisitor {
    type Value = Scalar;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a text, a whole number, `true` or `false`")
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Scalar, E> {
        Ok(Scalar::Text(text.to_owned()))
    }

    fn visit_bool<E: Error>(self, boolean: bool) -> Result<Scalar, E> {
        Ok(Scalar::Literal(boolean.to_string()))
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<Scalar, E> {
        Ok(Scalar::Literal(number.to_string()))
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<Scalar, E> {
        Ok(Scalar::Literal(number.to_string()))
    }
}
