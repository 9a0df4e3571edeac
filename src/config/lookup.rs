//! `[routes.NAME.lookup]`: how the upstream is asked about an uncertain operation.

use std::time::Duration;

use http::{HeaderName, HeaderValue, header};

use super::key::Key;
use super::leaf::FromText;
use super::reader::{Reader, Reported};
use super::shown::quoted;
use super::table::{Entry, Table};
use crate::idempotency::{Condition, LookupSettings, Reference, Scalar, UrlTemplate};
use crate::json::Pointer;

/// The longest look-up. A sender that waits for its answer hangs up long before.
const TIMEOUT_MAX: Duration = Duration::from_mins(1);

/// Headers that the client of look-ups sets itself.
const HEADERS_OF_THE_CLIENT: [HeaderName; 5] = [
    header::HOST,
    header::CONNECTION,
    header::CONTENT_LENGTH,
    header::TRANSFER_ENCODING,
    header::UPGRADE,
];

/// Whether a look-up has to say where it asks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LookupUse {
    /// Uncertain operations are looked up.
    Used,
    /// No uncertain operation of this table is looked up. What is written is read all the same.
    Unused,
}

/// Reads a look-up, if it says where to ask.
pub(super) fn lookup(
    table: &mut Table<'_, '_>,
    lookup_use: LookupUse,
) -> Result<Option<LookupSettings>, Reported> {
    let url = table.written::<UrlTemplate>("url");
    let limits = Duration::from_millis(1)..=TIMEOUT_MAX;
    let timeout = table.within("timeout", &limits, "a duration from `1ms` to `1m`")?;
    let done_when = table.entries("done_when", condition).unwrap_or(None).unwrap_or_default();
    let headers = table.entries("headers", header).unwrap_or(None).unwrap_or_default();
    let headers = headers.into_iter().collect();
    let reference = table.optional("reference");
    // A URL with a mistake was at least meant to be there.
    if matches!(url, Ok(None)) && lookup_use == LookupUse::Used {
        let expected = "a value, where `when_uncertain` is `lookup`";
        let hint = "`url = \"http://127.0.0.1:3000/events/{operation}\"`";
        table.missing("url", expected, Some(hint));
    }
    let settings = |url| LookupSettings { url, timeout, done_when, headers, reference };
    Ok(url.unwrap_or(None).map(settings))
}

fn condition(reader: &mut Reader<'_>, key: &Key, entry: Entry) -> Result<Condition, Reported> {
    let Entry { name, value } = entry;
    // `*` stands for several members, of which only some may have the value.
    let member = Pointer::from_text(&name).filter(|pointer| !pointer.has_wildcard());
    let member = member.ok_or_else(|| {
        let expected = "a JSON member such as `json:/status`, without `*`";
        let hint = "`done_when = { \"json:/status\" = \"processed\" }`";
        reader.report(key, expected, quoted(&name), Some(hint))
    });
    let value = reader.leaf::<Scalar>(key, &value);
    Ok(Condition { member: member?, value: value? })
}

fn header(
    reader: &mut Reader<'_>,
    key: &Key,
    entry: Entry,
) -> Result<(HeaderName, HeaderValue), Reported> {
    let name: Option<HeaderName> = entry.name.parse().ok();
    let name = name.filter(|name| !HEADERS_OF_THE_CLIENT.contains(name)).ok_or_else(|| {
        let expected = "the name of a header that the connection does not need";
        let hint = "such as `authorization` or `x-api-key`";
        reader.report(key, expected, quoted(&entry.name), Some(hint))
    });
    let text = reader.text_or_secret(key, entry.value)?;
    let mut value = HeaderValue::from_str(text.reveal()).map_err(|_| {
        let hint = "visible ASCII and spaces, without an end of line";
        reader.report(key, "the value of a header", "one with other characters", Some(hint))
    })?;
    // Debug output of the settings shows a sensitive value as `Sensitive`.
    value.set_sensitive(true);
    Ok((name?, value))
}

impl FromText for Reference {
    const EXPECTED: &'static str = "`header:NAME` or `json:/pointer` without `*`";

    fn from_text(text: &str) -> Option<Self> {
        match text.strip_prefix("header:") {
            Some(name) => name.parse().ok().map(Self::Header),
            None => Pointer::from_text(text).filter(|it| !it.has_wildcard()).map(Self::Member),
        }
    }
}
