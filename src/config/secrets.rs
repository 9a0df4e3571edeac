//! `{ env = "NAME" }` and `{ file = "path" }`. People paste the secret itself there: a message names
//! a variable only if no secret looks like its name, and never a file.

use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::path::Path;

use serde::de::value::MapAccessDeserializer;
use serde::de::{Deserialize, Deserializer, Error, MapAccess, Visitor};

use super::check::{Check, text};
use super::file;
use super::problem::{Key, Place};
use super::raw::RawSecret;
use crate::secret::Secret;

/// A text that may stand in the open, or where it is kept because it is a secret.
#[derive(Debug)]
pub(super) enum TextOrSecret {
    Written(String),
    Kept(RawSecret),
}

impl TextOrSecret {
    /// The text, from wherever it is. It is shown by nobody either way.
    pub(super) fn read(self, check: &mut Check<'_>, key: &Key) -> Option<Secret> {
        match self {
            Self::Written(text) => Some(Secret::new(text)),
            Self::Kept(raw) => read(check, key, raw),
        }
    }
}

impl<'de> Deserialize<'de> for TextOrSecret {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(TextOrSecretVisitor)
    }
}

struct TextOrSecretVisitor;

impl<'de> Visitor<'de> for TextOrSecretVisitor {
    type Value = TextOrSecret;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a text, `{ env = \"NAME\" }` or `{ file = \"path\" }`")
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<TextOrSecret, E> {
        Ok(TextOrSecret::Written(text.to_owned()))
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<TextOrSecret, A::Error> {
        RawSecret::deserialize(MapAccessDeserializer::new(map)).map(TextOrSecret::Kept)
    }
}

/// Reads a secret from where the configuration says that it is.
pub(super) fn read(check: &mut Check<'_>, key: &Key, raw: RawSecret) -> Option<Secret> {
    match (text(raw.env), text(raw.file)) {
        (Some(name), None) => from_variable(check, key, &name),
        (None, Some(path)) => from_file(check, key, &path),
        (Some(_), Some(_)) => {
            let hint = "keep one of them";
            check.report(&key.join("file"), "`env` or `file`", "both".to_owned(), Some(hint));
            None
        }
        (None, None) => {
            // Whatever else stands there has been reported.
            let table = check.sources.value(key).and_then(|value| value.as_dict());
            if table.is_some_and(BTreeMap::is_empty) {
                check.wrong(key, "`env` or `file`", "neither".to_owned());
            }
            None
        }
    }
}

fn from_variable(check: &mut Check<'_>, key: &Key, name: &str) -> Option<Secret> {
    let found = match check.sources.environment.get(name) {
        None => "is not set",
        Some(value) if value.trim().is_empty() => "is empty",
        Some(value) => return Some(Secret::new(without_newline(value).to_owned())),
    };
    let found = if is_plainly_a_name(name) {
        format!("`{name}`, which {found}")
    } else {
        format!("one that {found}")
    };
    // The name stands for a secret only where somebody wrote it.
    let hint = match check.sources.place(key) {
        Place::Argument(_) => "set `ONCEWARD_SECRET`, or give `--secret-file FILE`".to_owned(),
        Place::File(_)
        | Place::Line(..)
        | Place::Variable(_)
        | Place::Preset(_)
        | Place::BuiltIn => {
            let shown = if is_plainly_a_name(name) { name } else { "NAME" };
            format!(
                "`export {shown}=…` where it is started, or `{{ file = \"path\" }}` in its place"
            )
        }
    };
    let expected = "the name of a variable that holds the secret";
    check.report(&key.join("env"), expected, found, Some(&hint));
    None
}

/// Whether it reads as `STRIPE_WEBHOOK_SECRET` does: words in capitals, each with a short number
/// behind it at most. What a sender gives out as a secret has digits or small letters in between.
fn is_plainly_a_name(name: &str) -> bool {
    const WORD_MAX: usize = 20;
    let is_word = |word: &str| {
        let letters = word.trim_end_matches(|c: char| c.is_ascii_digit());
        let capitals = letters.bytes().all(|byte| byte.is_ascii_uppercase());
        capitals && word.len() <= WORD_MAX && word.len() - letters.len() <= 3
    };
    let begins = name.starts_with(|c: char| c.is_ascii_uppercase());
    begins && name.len() <= 100 && name.split('_').all(is_word)
}

fn from_file(check: &mut Check<'_>, key: &Key, path: &Path) -> Option<Secret> {
    let found = match file::read_small(path) {
        Err(error) => format!("one that cannot be read: {}", why(&error)),
        Ok(text) => match without_newline(&text) {
            secret if secret.trim().is_empty() => "one that is empty".to_owned(),
            secret => return Some(Secret::new(secret.to_owned())),
        },
    };
    let hint = "a file that Onceward can read, with the secret and nothing else in it";
    let expected = "the path of a file that holds the secret";
    check.report(&key.join("file"), expected, found, Some(hint));
    None
}

fn why(error: &io::Error) -> String {
    if error.kind() == io::ErrorKind::NotFound {
        return "there is no such file".to_owned();
    }
    error.kind().to_string()
}

/// Editors end a file with one newline, and so does what is read from one into a variable; nobody
/// means it.
fn without_newline(text: &str) -> &str {
    let text = text.strip_suffix('\n').unwrap_or(text);
    text.strip_suffix('\r').unwrap_or(text)
}
