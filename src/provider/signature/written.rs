//! A signature table as it is written.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::reader::Reader;
use super::settings::Settings;

/// `[providers.NAME.signature]`, nothing of it looked at yet.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(
    deny_unknown_fields,
    expecting = "a table such as `{ scheme = \"hmac\", header = \"..\" }`"
)]
pub struct Written {
    /// How it is checked.
    pub scheme: Option<String>,
    /// By which `accept` names it; else it is the scheme's.
    pub name: Option<String>,
    /// The names of the ways that count; none: all of them.
    pub accept: Option<Vec<String>>,
    /// The header with the signature or token, or several of which one has to be right.
    pub header: Option<OneOrMany>,
    /// Where the signature stands, if not in a header.
    pub at: Option<String>,
    /// What stands before a signature.
    pub prefix: Option<String>,
    /// What separates the entries of a list: one character, or several of which each one does.
    pub separator: Option<String>,
    /// Whether the header may occur more than once, each with a signature.
    pub repeated: Option<bool>,
    /// How a signature is written.
    pub encoding: Option<String>,
    /// The hash of an HMAC or of an RSA signature.
    pub hash: Option<String>,
    /// The parts that are signed, in their order. A list in the list is left out where a part of it
    /// is absent.
    pub signed: Option<Vec<OneOrMany>>,
    /// False says that it is known: the body is not signed.
    pub covers_body: Option<bool>,
    /// What every body is: `json`.
    pub body: Option<String>,
    /// Which text `json:` means: `body`, or a field of the form.
    pub document: Option<String>,
    /// Where the timestamp stands.
    pub timestamp: Option<String>,
    /// How the timestamp is written.
    pub timestamp_format: Option<String>,
    /// How far the timestamp may be from now.
    pub tolerance: Option<String>,
    /// Where an API of the sender gives its keys out.
    pub url: Option<String>,
    /// What the text of a secret means.
    pub secret: Option<String>,
    /// The values that a key selects as `signature:NAME`, each with where it stands.
    pub carries: Option<BTreeMap<String, OneOrMany>>,
    /// What is checked where the signature does not occur.
    pub otherwise: Option<Box<Self>>,
}

/// A text, or a list of them.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(untagged, expecting = "a text or a list of texts")]
pub enum OneOrMany {
    /// A text.
    One(String),
    /// A list.
    Many(Vec<String>),
}

impl OneOrMany {
    pub(super) fn into_all(self) -> Vec<String> {
        match self {
            Self::One(text) => vec![text],
            Self::Many(texts) => texts,
        }
    }
}

/// A value that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{key}`: expected {expected}, found {found}")]
pub struct Mistake {
    /// Below the signature table: `header`, `otherwise.scheme`.
    pub key: String,
    /// What may stand there.
    pub expected: String,
    /// What does.
    pub found: String,
}

impl Written {
    /// What the table means.
    ///
    /// # Errors
    /// Everything that is wrong with it.
    pub fn settings(self) -> Result<Settings, Vec<Mistake>> {
        let mut reader = Reader::default();
        let settings = reader.settings(self);
        let mistakes = reader.into_mistakes();
        settings.filter(|_| mistakes.is_empty()).ok_or(mistakes)
    }
}
