//! Secrets, which stand in a variable or a file: `{ env = "NAME" }` or `{ file = "path" }`.
//!
//! People paste the secret itself where its name belongs. So a message names a variable only if no
//! secret looks like that, and it never names a file.

use std::ffi::OsStr;
use std::io;
use std::path::{Path, PathBuf};

use figment::value::Value;

use super::file;
use super::key::Key;
use super::origin::Origin;
use super::reader::{Reader, Reported};
use super::table::{Table, TableForm};
use crate::secret::Secret;

const EXPECTED: &str = "`{ env = \"NAME\" }` or `{ file = \"path\" }`";
const TEXT_EXPECTED: &str = "a text, `{ env = \"NAME\" }` or `{ file = \"path\" }`";

impl Table<'_, '_> {
    /// A secret that may be left out.
    pub(super) fn secret(&mut self, name: &'static str) -> Result<Option<Secret>, Reported> {
        self.table(name, EXPECTED, secret)
    }

    /// A text that may be left out, and may stand in the open or where a secret stands.
    pub(super) fn text_or_secret(
        &mut self,
        name: &'static str,
    ) -> Result<Option<Secret>, Reported> {
        match self.take(name) {
            Some(Value::String(_, text)) => Ok(Some(Secret::new(text))),
            Some(value) => {
                let key = self.key(name);
                let form = self.form(TEXT_EXPECTED);
                self.reader.table(&key, value, form, secret).map(Some)
            }
            None => Ok(None),
        }
    }
}

impl Reader<'_> {
    /// Reads a secret from where the configuration says that it is.
    pub(super) fn secret(&mut self, key: &Key, value: Value) -> Result<Secret, Reported> {
        self.table(key, value, TableForm::complete(EXPECTED), secret)
    }

    /// Reads a text that may stand in the open. It is never shown.
    pub(super) fn text_or_secret(&mut self, key: &Key, value: Value) -> Result<Secret, Reported> {
        if let Value::String(_, text) = value {
            return Ok(Secret::new(text));
        }
        self.table(key, value, TableForm::complete(TEXT_EXPECTED), secret)
    }
}

fn secret(table: &mut Table<'_, '_>) -> Result<Secret, Reported> {
    let env = table.written::<String>("env");
    let file = table.written::<PathBuf>("file");
    match (env?, file?) {
        (Some(name), None) => from_variable(table, &name),
        (None, Some(path)) => from_file(table, &path),
        (Some(_), Some(_)) => {
            let key = table.key("file");
            Err(table.reader.report(&key, "`env` or `file`", "both", Some("keep one of them")))
        }
        (None, None) => Err(table.lacks("`env` or `file`", "neither")),
    }
}

fn from_variable(table: &mut Table<'_, '_>, name: &str) -> Result<Secret, Reported> {
    let sources = table.reader.sources;
    let found = match sources.environment.get(name).map(OsStr::to_str) {
        None => "is not set",
        Some(None) => "is not UTF-8",
        // Compose and some CI systems set a variable that they cannot fill to an empty text.
        Some(Some(value)) if value.trim().is_empty() => "is empty",
        Some(Some(value)) => return Ok(Secret::new(without_newline(value).to_owned())),
    };
    let found = if is_plainly_a_name(name) {
        format!("`{name}`, which {found}")
    } else {
        format!("one that {found}")
    };
    let hint = match sources.origin(&table.key) {
        // Nobody wrote the name of a variable: `--provider` stands for `ONCEWARD_SECRET`.
        Origin::Argument(_) => "set `ONCEWARD_SECRET`, or give `--secret-file FILE`".to_owned(),
        Origin::File(_)
        | Origin::Line(..)
        | Origin::Variable(_)
        | Origin::Preset(_)
        | Origin::BuiltIn => {
            let shown = if is_plainly_a_name(name) { name } else { "NAME" };
            format!(
                "`export {shown}=…` where it is started, or `{{ file = \"path\" }}` in its place"
            )
        }
    };
    let expected = "the name of a variable that holds the secret";
    let key = table.key("env");
    Err(table.reader.report(&key, expected, found, Some(&hint)))
}

/// Whether a text reads as `STRIPE_WEBHOOK_SECRET` does: words in capitals, with a short number at
/// the end of a word at most. A secret that a sender gives out has digits or small letters in
/// between.
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

fn from_file(table: &mut Table<'_, '_>, path: &Path) -> Result<Secret, Reported> {
    let found = match file::read_small(path) {
        Err(error) => format!("one that cannot be read: {}", why(&error)),
        Ok(text) => match without_newline(&text) {
            secret if secret.trim().is_empty() => "one that is empty".to_owned(),
            secret => return Ok(Secret::new(secret.to_owned())),
        },
    };
    let hint = "a file that Onceward can read, with the secret and nothing else in it";
    let expected = "the path of a file that holds the secret";
    let key = table.key("file");
    Err(table.reader.report(&key, expected, found, Some(hint)))
}

fn why(error: &io::Error) -> String {
    // Only the kind is shown. The text of some errors quotes what was read.
    if error.kind() == io::ErrorKind::NotFound {
        return "there is no such file".to_owned();
    }
    error.kind().to_string()
}

/// The text without one newline at its end. Editors end a file with one, and so a variable that was
/// filled from a file has one. Nobody means it to be a part of the secret.
fn without_newline(text: &str) -> &str {
    let text = text.strip_suffix('\n').unwrap_or(text);
    text.strip_suffix('\r').unwrap_or(text)
}
