//! `[providers.NAME.signature]`: how the signature of a sender is checked.

use figment::value::Value;

use super::key::Key;
use super::leaf::{FromText, Leaf};
use super::reader::{Reader, Reported};
use super::shown::Found;
use super::table::{Entry, Table};
use crate::provider::signature::{Mistake, OneOrMany, Settings, SignatureTable, keys_of};

/// What has to stand where a signature is described.
pub(super) const EXPECTED: &str = "a table such as `{ scheme = \"hmac\", header = \"..\" }`";

/// Reads how a signature is checked.
pub(super) fn signature(table: &mut Table<'_, '_>) -> Result<Settings, Reported> {
    let reports = table.reader.reports();
    let written = written(table)?;
    // A value that could not be read would be missed as one that was left out.
    table.reader.none_since(reports)?;
    written.settings().map_err(|mistakes| {
        let report = |Mistake { key, expected, found }| {
            let key = key.split('.').fold(table.key.clone(), |key, part| key.join(part));
            table.reader.wrong(&key, expected, Found::Quoted(found))
        };
        mistakes.into_iter().map(report).fold(Reader::left_out(), |_, reported| reported)
    })
}

fn written(table: &mut Table<'_, '_>) -> Result<SignatureTable, Reported> {
    let scheme = text(table, "scheme");
    // Each scheme takes a few of the settings of all schemes. Only those are proposed.
    let known = scheme.as_deref().and_then(keys_of);
    let written = SignatureTable {
        scheme,
        name: text(table, "name"),
        accept: table
            .list("accept")
            .map(|it: Vec<AnyText>| it.into_iter().map(|it| it.0).collect()),
        header: table.optional("header"),
        at: text(table, "at"),
        prefix: text(table, "prefix"),
        separator: text(table, "separator"),
        repeated: table.optional("repeated"),
        encoding: text(table, "encoding"),
        hash: text(table, "hash"),
        signed: table.list("signed"),
        covers_body: table.optional("covers_body"),
        body: text(table, "body"),
        document: text(table, "document"),
        timestamp: text(table, "timestamp"),
        timestamp_format: text(table, "timestamp_format"),
        tolerance: text(table, "tolerance"),
        url: text(table, "url"),
        secret: text(table, "secret"),
        carries: table.entries("carries", carried)?.map(|it| it.into_iter().collect()),
        otherwise: table.table("otherwise", EXPECTED, written)?.map(Box::new),
    };
    if let Some(known) = known {
        table.propose(known);
    }
    Ok(written)
}

fn text(table: &mut Table<'_, '_>, name: &'static str) -> Option<String> {
    table.optional::<AnyText>(name).map(|text| text.0)
}

fn carried(
    reader: &mut Reader<'_>,
    key: &Key,
    entry: Entry,
) -> Result<(String, OneOrMany), Reported> {
    Ok((entry.name, reader.leaf(key, &entry.value)?))
}

/// A text whose meaning the scheme of the signature decides.
struct AnyText(String);

impl FromText for AnyText {
    const EXPECTED: &'static str = "a string";

    fn from_text(text: &str) -> Option<Self> {
        Some(Self(text.to_owned()))
    }
}

/// A text, or a list of texts.
impl Leaf for OneOrMany {
    const EXPECTED: &'static str = "another value";

    fn from_value(value: &Value) -> Option<Self> {
        let text = |value: &Value| value.as_str().map(str::to_owned);
        match value.as_array() {
            Some(items) => items.iter().map(text).collect::<Option<_>>().map(Self::Many),
            None => text(value).map(Self::One),
        }
    }
}
