//! The signature table as an operator, or a preset, writes it.

use std::collections::BTreeMap;

use serde::Deserialize;

/// `[providers.NAME.signature]`. Nothing of it has been checked yet.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(
    deny_unknown_fields,
    expecting = "a table such as `{ scheme = \"hmac\", header = \"..\" }`"
)]
pub struct SignatureTable {
    /// The name of the scheme.
    pub scheme: Option<String>,
    /// The name by which `accept` lists this signing method. None: the name of the scheme.
    pub name: Option<String>,
    /// The names of the signing methods that count. None: all that count by default.
    pub accept: Option<Vec<String>>,
    /// The header with the signature or token. Of several one has to be right.
    pub header: Option<OneOrMany>,
    /// Where the signature stands, if not in a header.
    pub at: Option<String>,
    /// The text before a signature.
    pub prefix: Option<String>,
    /// The characters of which each one separates the entries of a list.
    pub separator: Option<String>,
    /// Whether the header may occur more than once, each time with a signature.
    pub repeated: Option<bool>,
    /// The encoding of a signature.
    pub encoding: Option<String>,
    /// The hash of an HMAC or of an RSA signature.
    pub hash: Option<String>,
    /// The parts that are signed, in their order. A list within the list is left out where a part
    /// of it is absent.
    pub signed: Option<Vec<OneOrMany>>,
    /// False: the operator knows that the body is not signed.
    pub covers_body: Option<bool>,
    /// The format of every body: `json`.
    pub body: Option<String>,
    /// The text that `json:` selects from: `body`, or a field of the form.
    pub document: Option<String>,
    /// Where the timestamp stands.
    pub timestamp: Option<String>,
    /// The format of the timestamp.
    pub timestamp_format: Option<String>,
    /// How far the timestamp may be from now.
    pub tolerance: Option<String>,
    /// The URL of the sender's API that gives out its keys.
    pub url: Option<String>,
    /// How the bytes of a secret are written.
    pub secret: Option<String>,
    /// The values that a key selects as `signature:NAME`, each with the selectors that find it.
    pub carries: Option<BTreeMap<String, OneOrMany>>,
    /// The next signing method, which is checked where no signature of this one is present.
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
    /// The key, below the signature table: `header`, `otherwise.scheme`.
    pub key: String,
    /// What may be written there.
    pub expected: String,
    /// What is written there.
    pub found: String,
}

impl SignatureTable {
    /// The keys that have not been taken out of the table, without those of its place in the list
    /// of methods (`scheme`, `name`, `carries`, `otherwise`).
    pub(super) fn remaining_keys(&self) -> impl Iterator<Item = &'static str> {
        let keys = [
            ("accept", self.accept.is_some()),
            ("header", self.header.is_some()),
            ("at", self.at.is_some()),
            ("prefix", self.prefix.is_some()),
            ("separator", self.separator.is_some()),
            ("repeated", self.repeated.is_some()),
            ("encoding", self.encoding.is_some()),
            ("hash", self.hash.is_some()),
            ("signed", self.signed.is_some()),
            ("covers_body", self.covers_body.is_some()),
            ("body", self.body.is_some()),
            ("document", self.document.is_some()),
            ("timestamp", self.timestamp.is_some()),
            ("timestamp_format", self.timestamp_format.is_some()),
            ("tolerance", self.tolerance.is_some()),
            ("url", self.url.is_some()),
            ("secret", self.secret.is_some()),
        ];
        keys.into_iter().filter_map(|(key, is_left)| is_left.then_some(key))
    }
}
