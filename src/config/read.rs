//! Sources -> the raw shapes, past every mistake.
//!
//! serde stops at its first error. So what it stopped at is noted, taken out, and it is asked
//! again, until nothing is left to complain of.

use figment::error::Kind;
use figment::value::{Dict, Empty, Num, Tag, Value};
use serde::Deserialize;

use super::file;
use super::hint::usual;
use super::meant;
use super::problem::{Found, Key, Problem, Problems, quoted};
use super::raw::Raw;
use super::source::Sources;
use crate::provider::signature;

/// Reads all that can be read, and gives what it was read from, in which every value has its type.
/// What is missing from the result is in `problems`.
pub(super) fn read(sources: &Sources, problems: &mut Problems) -> (Raw, Value) {
    let mut tree = sources.tree().clone();
    while problems.have_room() {
        match Raw::deserialize(&tree) {
            Ok(raw) => return (raw, tree),
            Err(error) => {
                let key = Key::from_parts(error.path);
                let stepped_over = step_over(sources, &mut tree, &key, error.kind, problems);
                if stepped_over.is_none() {
                    break;
                }
            }
        }
    }
    (Raw::default(), tree)
}

/// Makes the tree readable at `key`. None if there is no such place.
fn step_over(
    sources: &Sources,
    tree: &mut Value,
    key: &Key,
    kind: Kind,
    problems: &mut Problems,
) -> Option<()> {
    let (place, written_as) = sources.origin(key);
    // A list item or table that may not be missing: what is around it goes, too.
    if let Some(Value::Empty(..)) = find(tree, key) {
        let (_, around) = key.parts().split_last()?;
        *find(tree, &Key::from_parts(around.to_vec()))? = Value::Empty(Tag::Default, Empty::None);
        return Some(());
    }
    let (expected, found) = match kind {
        Kind::UnknownField(name, known) => {
            let of_scheme = signature_keys(sources, key);
            let hint = hint(&name, of_scheme.as_deref().unwrap_or(known));
            // People paste a secret anywhere.
            let secret = key.is_secret();
            // A name that stands in the value of a variable is a part of that value.
            let told = written_as.clone().named_by(&place) == written_as;
            let found = match quoted(&name) {
                Found::Written(name) if told && !secret => Found::Said(name),
                Found::Said(_) | Found::Written(_) => "another".into(),
            };
            let table = Key::from_parts(key.parts().split_last()?.1.to_vec());
            let named = if secret { table } else { written_as.named_by(&place) };
            let found = found.at(&place);
            let expected = "a known key".to_owned();
            problems.push(Problem { place, key: named, expected, found, hint });
            return take_out(tree, key);
        }
        Kind::InvalidType(_, expected) => {
            let value = find(tree, key)?;
            if sources.is_variable(key)
                && let Some(typed) = typed(value)
            {
                *value = typed;
                return Some(());
            }
            (in_toml_words(expected), found(sources, key, false))
        }
        Kind::InvalidLength(_, expected) if find(tree, key)?.as_str().is_some() => {
            let value = find(tree, key)?;
            if sources.is_variable(key)
                && let Some(list) = list(value)
            {
                *value = list;
                return Some(());
            }
            (expected, found(sources, key, false))
        }
        Kind::InvalidValue(_, expected) => (expected, found(sources, key, true)),
        Kind::Message(_)
        | Kind::InvalidLength(..)
        | Kind::UnknownVariant(..)
        | Kind::MissingField(_)
        | Kind::DuplicateField(_)
        | Kind::ISizeOutOfRange(_)
        | Kind::USizeOutOfRange(_)
        | Kind::Unsupported(_)
        | Kind::UnsupportedKey(..) => ("another value".to_owned(), found(sources, key, false)),
    };
    let hint = match &found {
        Found::Written(_) if sources.is_variable(key) => None,
        Found::Written(_) => sources.value(key).and_then(|it| meant::meant_by(&expected, it)),
        Found::Said(_) => None,
    };
    let hint = hint.unwrap_or_else(|| usual(sources, key));
    let (found, key_shown) = (found.at(&place), written_as.named_by(&place));
    problems.push(Problem { place, key: key_shown, expected, found, hint });
    *find(tree, key)? = Value::Empty(Tag::Default, Empty::None);
    Some(())
}

/// Whether there is a setting of this name. The names of routes and providers are free, so only
/// those count that are there.
pub(super) fn is_setting(sources: &Sources, key: &Key) -> bool {
    let mut tree = Value::Empty(Tag::Default, Empty::None);
    for part in key.parts().iter().rev() {
        tree = Value::Dict(Tag::Default, Dict::from([(part.clone(), tree)]));
    }
    let named = match key.parts() {
        [table, name, _, ..] if matches!(table.as_str(), "routes" | "providers") => {
            sources.value(&Key::of(&[table, name])).is_some()
        }
        [table, ..] => !matches!(table.as_str(), "routes" | "providers"),
        [] => false,
    };
    named && Raw::deserialize(&tree).is_ok()
}

/// Reads a variable's text as the list that the setting wants. It may be written with commas.
pub(super) fn list(value: &Value) -> Option<Value> {
    let Value::String(tag, text) = value else {
        return None;
    };
    if text.trim_start().starts_with('[') {
        return typed(value);
    }
    let items = text.split(',').map(str::trim).filter(|item| !item.is_empty());
    let items = items.map(|item| Value::String(*tag, item.to_owned()));
    Some(Value::Array(*tag, items.collect()))
}

/// Reads a variable's text as the number, boolean or table that the setting wants.
fn typed(value: &Value) -> Option<Value> {
    let Value::String(tag, text) = value else {
        return None;
    };
    file::value(text.trim(), *tag).filter(|typed| typed.as_str().is_none())
}

/// What was written, as far as it may be shown.
fn found(sources: &Sources, key: &Key, right_type: bool) -> Found {
    let shown = !key.is_secret();
    match sources.value(key) {
        Some(Value::String(_, text)) if shown && (right_type || sources.is_variable(key)) => {
            quoted(text)
        }
        Some(Value::String(..) | Value::Char(..)) => "a string".into(),
        Some(Value::Bool(_, boolean)) if shown => Found::Written(format!("`{boolean}`")),
        Some(Value::Bool(..)) => "a boolean".into(),
        Some(Value::Num(_, number)) if shown => number_text(*number),
        Some(Value::Num(..)) => "a number".into(),
        Some(Value::Dict(..)) => "a table".into(),
        Some(Value::Array(..)) => "a list".into(),
        Some(Value::Empty(..)) | None => part_of_variable(sources, key),
    }
}

/// An item of a list that a variable holds is not in the tree of the sources.
fn part_of_variable(sources: &Sources, key: &Key) -> Found {
    let mut around = key.and_around().skip(1);
    match around.find_map(|around| sources.value(&around)) {
        Some(Value::String(_, text)) if !key.is_secret() => quoted(text),
        Some(_) | None => "something else".into(),
    }
}

pub(super) fn number_text(number: Num) -> Found {
    let shown = number.to_i128().map(|number| Found::Written(format!("the number {number}")));
    shown.unwrap_or_else(|| "a number".into())
}

fn in_toml_words(expected: String) -> String {
    match expected.as_str() {
        "a map" => "tables such as `[routes.orders]`".to_owned(),
        "a boolean" => "`true` or `false`".to_owned(),
        "a sequence" => "a list".to_owned(),
        _ => expected,
    }
}

fn find<'a>(tree: &'a mut Value, key: &Key) -> Option<&'a mut Value> {
    key.parts().iter().try_fold(tree, |value, part| match value {
        Value::Dict(_, dict) => dict.get_mut(part),
        Value::Array(_, items) => items.get_mut(part.parse::<usize>().ok()?),
        Value::String(..)
        | Value::Char(..)
        | Value::Bool(..)
        | Value::Num(..)
        | Value::Empty(..) => None,
    })
}

fn take_out(tree: &mut Value, key: &Key) -> Option<()> {
    let (last, tables) = key.parts().split_last()?;
    match find(tree, &Key::from_parts(tables.to_vec()))? {
        Value::Dict(_, dict) => dict.remove(last).map(drop),
        Value::String(..)
        | Value::Char(..)
        | Value::Bool(..)
        | Value::Num(..)
        | Value::Empty(..)
        | Value::Array(..) => None,
    }
}

/// The keys that the scheme of a signature takes, where `key` stands in one.
fn signature_keys(sources: &Sources, key: &Key) -> Option<Vec<&'static str>> {
    let parts = key.parts();
    let is_signature = parts.first().is_some_and(|part| part == "providers")
        && parts.get(2).is_some_and(|part| part == "signature");
    let table = parts.split_last().filter(|_| is_signature)?.1.to_vec();
    let scheme = sources.value(&Key::from_parts(table).join("scheme")).and_then(Value::as_str);
    signature::keys_of(scheme?)
}

/// As many names as a person will read.
const LISTED_MAX: usize = 20;

fn hint(name: &str, known: &[&str]) -> String {
    match nearest(name, known.iter().copied()) {
        Some(nearest) => format!("did you mean `{nearest}`?"),
        None if known.is_empty() => "this table has no keys".to_owned(),
        None if known.len() > LISTED_MAX => {
            "once this is mended, `onceward check --config FILE --effective` lists the keys"
                .to_owned()
        }
        None => {
            let known: Vec<String> = known.iter().map(|known| format!("`{known}`")).collect();
            format!("known here: {}", known.join(", "))
        }
    }
}

/// The name that was most likely meant.
pub(crate) fn nearest<'n>(name: &str, known: impl Iterator<Item = &'n str>) -> Option<&'n str> {
    let (distance, nearest) = known.map(|known| (distance(name, known), known)).min()?;
    (distance <= 1 + nearest.len() / 5).then_some(nearest)
}

/// How many letters have to be changed, added or taken away.
fn distance(one: &str, other: &str) -> usize {
    let mut row: Vec<usize> = (0..=other.len()).collect();
    for (line, from) in one.bytes().take(100).enumerate() {
        let mut next = vec![line + 1];
        for ((to, kept), (added, left)) in other.bytes().zip(&row).zip(row.iter().skip(1).zip(0..))
        {
            let left: usize = next.get(left).copied().unwrap_or(usize::MAX - 1);
            next.push((kept + usize::from(from != to)).min(added + 1).min(left + 1));
        }
        row = next;
    }
    row.last().copied().unwrap_or(usize::MAX)
}
