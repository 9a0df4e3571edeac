//! The parts that a signature covers, and where its timestamp stands.

use http::HeaderName;

/// A part of what is signed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Part {
    Body,
    Timestamp,
    Url,
    Path,
    Method,
    Header(HeaderName),
    Text(String),
}

/// Where the timestamp stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum TimestampSource {
    Header(HeaderName),
    /// The entry of the list that begins so; empty: the first.
    Entry(String),
    /// A member of the body, by JSON pointer. Only for bodies that are signed.
    Member(String),
}

impl Part {
    pub(super) const EXPECTED: &'static str =
        "`body`, `timestamp`, `url`, `path`, `method`, `header:NAME` or `text:LITERAL`";

    pub(super) fn read(text: &str) -> Option<Self> {
        match text {
            "body" => Some(Self::Body),
            "timestamp" => Some(Self::Timestamp),
            "url" => Some(Self::Url),
            "path" => Some(Self::Path),
            "method" => Some(Self::Method),
            _ => match text.split_once(':')? {
                ("header", name) => name.parse().ok().map(Self::Header),
                ("text", literal) if !literal.is_empty() => Some(Self::Text(literal.to_owned())),
                _ => None,
            },
        }
    }
}

impl TimestampSource {
    pub(super) const EXPECTED: &'static str = "`header:NAME`, `entry:PREFIX` or `json:/pointer`";

    pub(super) fn read(text: &str) -> Option<Self> {
        match text.split_once(':')? {
            ("header", name) => name.parse().ok().map(Self::Header),
            ("entry", prefix) => Some(Self::Entry(prefix.to_owned())),
            ("json", pointer) if pointer.starts_with('/') => Some(Self::Member(pointer.to_owned())),
            _ => None,
        }
    }
}
