//! Requests in the shapes that senders publish.
//!
//! `samples/expect.json` says for each request what is right. An entry has these members:
//!
//! - `file`, `provider`: the captured request, and the sender of the route that takes it;
//! - `kind`: `first`, `retry`, `sibling` (another event that shares much), `handshake`, `odd` (a test
//!   button, a batch, an old version, …) or `attack`;
//! - `source`: where its shape was published, by the title of a page or repository and path; those that
//!   follow have the shape of the first;
//! - `at`: when it arrived; `secrets`, `verify`, `methods`, `public_url`, `certificates`: of the route;
//! - `expect`: `signature` (a verdict), `handled` (`keyed`, `handshake`, `passed`, `refused`),
//!   `same_as` and `different_from` (other files, as far as it is keyed), `note` (why).

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::Deserialize;

/// A request and what is right for it.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Sample {
    pub(crate) file: String,
    pub(crate) provider: String,
    pub(crate) kind: Kind,
    pub(crate) at: String,
    #[serde(rename = "source")]
    _source: Option<String>,
    #[serde(default)]
    pub(crate) secrets: Vec<String>,
    #[serde(default = "yes")]
    pub(crate) verify: bool,
    #[serde(default)]
    pub(crate) methods: Vec<String>,
    #[serde(default)]
    pub(crate) public_url: String,
    #[serde(default)]
    pub(crate) certificates: BTreeMap<String, String>,
    pub(crate) expect: Expected,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Kind {
    First,
    Retry,
    Sibling,
    Handshake,
    Odd,
    Attack,
}

/// The expected result.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Expected {
    pub(crate) signature: Option<OneOrMore>,
    pub(crate) handled: OneOrMore,
    #[serde(default)]
    pub(crate) same_as: Vec<String>,
    #[serde(default)]
    pub(crate) different_from: Vec<String>,
    #[serde(rename = "note")]
    _note: String,
}

#[derive(Debug, Deserialize)]
#[serde(untagged)]
pub(crate) enum OneOrMore {
    One(String),
    More(Vec<String>),
}

impl OneOrMore {
    pub(crate) fn allows(&self, word: &str) -> bool {
        match self {
            Self::One(one) => one == word,
            Self::More(more) => more.iter().any(|one| one == word),
        }
    }
}

fn yes() -> bool {
    true
}

pub(crate) fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/presets/samples")
}

/// All of them.
pub(crate) fn samples() -> Vec<Sample> {
    let text = std::fs::read_to_string(folder().join("expect.json")).unwrap();
    serde_json::from_str(&text).unwrap()
}

impl Sample {
    pub(crate) fn request(&self) -> Vec<u8> {
        std::fs::read(folder().join(&self.file)).unwrap()
    }
}
