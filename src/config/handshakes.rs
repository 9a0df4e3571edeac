//! `[[providers.NAME.handshakes]]`: how the handshakes of a sender are recognised.

use http::{HeaderName, Method};

use super::key::Key;
use super::reader::{Reader, Reported};
use super::shown::quoted;
use super::table::{Entry, Table};
use crate::json::Pointer;
use crate::provider::{Content, Expected, Handshake, JsonBody};

/// Reads how a handshake is recognised.
pub(super) fn handshake(table: &mut Table<'_, '_>) -> Result<Handshake, Reported> {
    let name = table.optional("name");
    let method = table.optional("method");
    let headers = table.entries("header", header);
    let query = table.entries("query", part);
    let content = content(table);
    let signed = table.optional("signed").unwrap_or(true);
    let headers = headers?.unwrap_or_default();
    let query = query?.unwrap_or_default();
    let content = content?;
    let is_described = matches!(content, Content::Json(_) | Content::Form(_));
    if !is_described && headers.is_empty() && query.is_empty() {
        // Every request would be a handshake, and none an event.
        let expected = "at least one of `header`, `query`, `json` and `form`";
        let hint = "say what such a request has that no event has: `json = { type = \"ping\" }`";
        let key = table.key.clone();
        return Err(table.reader.report(&key, expected, "none", Some(hint)));
    }
    Ok(Handshake {
        name: name.unwrap_or_else(|| "handshake".to_owned()),
        method: method.unwrap_or(Method::POST),
        headers,
        query: query.into_iter().collect(),
        content,
        signed,
    })
}

fn content(table: &mut Table<'_, '_>) -> Result<Content, Reported> {
    let json = table.entries("json", member);
    let form = table.entries("form", part);
    let empty = table.optional("empty_body") == Some(true);
    let whole = table.optional("whole_body") == Some(true);
    // An empty table describes nothing, and is like none.
    let json = json?.filter(|members| !members.is_empty());
    let form = form?.filter(|fields| !fields.is_empty());
    // Without members, `whole_body` would describe no body at all.
    if whole && json.is_none() {
        let hint = "`json` says which members the body has and no others";
        let key = table.key("whole_body");
        return Err(table.reader.report(&key, "`json` beside it", "none", Some(hint)));
    }
    match (json, form, empty) {
        (None, None, false) => Ok(Content::Any),
        (None, None, true) => Ok(Content::Empty),
        (Some(members), None, false) => Ok(Content::Json(JsonBody { members, whole })),
        (None, Some(fields), false) => Ok(Content::Form(fields.into_iter().collect())),
        (Some(_), Some(_), _) | (Some(_), None, true) | (None, Some(_), true) => {
            let expected = "one of `json`, `form` and `empty_body`";
            let key = table.key.clone();
            Err(table.reader.report(&key, expected, "several", Some("keep one of them")))
        }
    }
}

fn part(reader: &mut Reader<'_>, key: &Key, entry: Entry) -> Result<(String, Expected), Reported> {
    Ok((entry.name, reader.leaf(key, &entry.value)?))
}

fn header(
    reader: &mut Reader<'_>,
    key: &Key,
    entry: Entry,
) -> Result<(HeaderName, Expected), Reported> {
    let Entry { name: text, value } = entry;
    let name = text.parse::<HeaderName>();
    let name = name.map_err(|_| reader.wrong(key, "the name of a header", quoted(&text)));
    let expected = reader.leaf(key, &value);
    Ok((name?, expected?))
}

/// A member of a JSON body. A name that begins with `/` is a pointer. Any other name is that of a
/// member of the outermost object, also if it has a `/` in it.
fn member(
    reader: &mut Reader<'_>,
    key: &Key,
    entry: Entry,
) -> Result<(Pointer, Expected), Reported> {
    let Entry { name, value } = entry;
    let pointer: Result<Pointer, _> = if name.starts_with('/') {
        name.parse()
    } else {
        format!("/{}", name.replace('~', "~0").replace('/', "~1")).parse()
    };
    let pointer = pointer.map_err(|_| {
        let expected = "the name of a member, or a pointer such as `/data/code` or `/*/code`";
        reader.wrong(key, expected, quoted(&name))
    });
    let expected = reader.leaf(key, &value);
    Ok((pointer?, expected?))
}
