//! The parts that a signature covers, and where its timestamp and its values stand.

use std::borrow::Cow;
use std::fmt;

use http::HeaderName;

use super::verdict::Place;
use crate::json::{Pointer, Scalar};

/// A part of what is signed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Part {
    Body,
    Timestamp,
    Url,
    Path,
    Method,
    Text(String),
    Value(Source),
}

/// What is signed, one after the other.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Item {
    One(Part),
    /// Left out as a whole where a value in it is absent.
    Together(Vec<Part>),
}

/// Where a value stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Source {
    Header(HeaderName),
    /// A parameter of the query, decoded.
    Query(String),
    /// A field of a form, urlencoded or multipart, decoded.
    Field(String),
    /// A member of the JSON text.
    Member(Pointer),
}

/// What stands there.
#[derive(Debug)]
pub(super) enum Value<'a> {
    Absent,
    Bytes(Cow<'a, [u8]>),
    Json(Scalar<'a>),
    /// The text that should be JSON is not.
    Unreadable,
}

/// Where the timestamp stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum TimestampSource {
    /// The entry of the list that begins so; empty: the first.
    Entry(String),
    Value(Source),
}

impl Item {
    pub(super) fn parts(&self) -> &[Part] {
        match self {
            Self::One(part) => std::slice::from_ref(part),
            Self::Together(parts) => parts,
        }
    }

    /// Whether this part is always covered.
    pub(super) fn always_covers(&self, part: &Part) -> bool {
        matches!(self, Self::One(own) if own == part)
    }
}

impl Part {
    pub(super) const EXPECTED: &'static str = "`body`, `timestamp`, `url`, `path`, `method`, \
        `header:NAME`, `query:NAME`, `form:FIELD`, `json:/pointer` or `text:LITERAL`";

    pub(super) fn read(text: &str) -> Option<Self> {
        match text {
            "body" => Some(Self::Body),
            "timestamp" => Some(Self::Timestamp),
            "url" => Some(Self::Url),
            "path" => Some(Self::Path),
            "method" => Some(Self::Method),
            _ => match text.split_once(':')? {
                ("text", literal) if !literal.is_empty() => Some(Self::Text(literal.to_owned())),
                ("text", _) => None,
                _ => Source::read(text).map(Self::Value),
            },
        }
    }
}

impl Source {
    pub(super) const EXPECTED: &'static str =
        "`header:NAME`, `query:NAME`, `form:FIELD` or `json:/pointer`";

    pub(super) fn read(text: &str) -> Option<Self> {
        match text.split_once(':')? {
            ("header", name) => name.parse().ok().map(Self::Header),
            ("query", name) if !name.is_empty() => Some(Self::Query(name.to_owned())),
            ("form", name) if !name.is_empty() => Some(Self::Field(name.to_owned())),
            ("json", pointer) => {
                // One value of each item would be no value.
                pointer.parse().ok().filter(|it: &Pointer| !it.has_wildcard()).map(Self::Member)
            }
            _ => None,
        }
    }

    pub(super) fn place(&self) -> Place {
        match self {
            Self::Header(name) => Place::Header(name.clone()),
            Self::Query(name) => Place::Parameter(name.clone()),
            Self::Field(name) => Place::Field(name.clone()),
            Self::Member(pointer) => Place::Member(pointer.to_string()),
        }
    }
}

impl TimestampSource {
    pub(super) const EXPECTED: &'static str =
        "`header:NAME`, `entry:PREFIX`, `query:NAME`, `form:FIELD` or `json:/pointer`";

    pub(super) fn read(text: &str) -> Option<Self> {
        match text.strip_prefix("entry:") {
            Some(prefix) => Some(Self::Entry(prefix.to_owned())),
            None => Source::read(text).map(Self::Value),
        }
    }
}

/// As it is written in `signed`.
impl fmt::Display for Part {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Body => f.write_str("body"),
            Self::Timestamp => f.write_str("timestamp"),
            Self::Url => f.write_str("url"),
            Self::Path => f.write_str("path"),
            Self::Method => f.write_str("method"),
            Self::Text(literal) => write!(f, "text:{literal}"),
            Self::Value(Source::Header(name)) => write!(f, "header:{name}"),
            Self::Value(Source::Query(name)) => write!(f, "query:{name}"),
            Self::Value(Source::Field(name)) => write!(f, "form:{name}"),
            Self::Value(Source::Member(pointer)) => write!(f, "json:{pointer}"),
        }
    }
}
