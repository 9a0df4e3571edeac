//! The parts that a signature covers, and the selectors of its timestamp and values.

use std::borrow::Cow;
use std::fmt;

use http::HeaderName;

use super::verdict::Location;
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
    Value(Selector),
}

/// An item of the list of what is signed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Item {
    One(Part),
    /// A group, which is left out as a whole where a value in it is absent.
    Together(Vec<Part>),
}

/// Where in a request a value stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Selector {
    Header(HeaderName),
    /// A parameter of the query, decoded.
    Query(String),
    /// A field of a form, urlencoded or multipart, decoded.
    Field(String),
    /// A member of the JSON text, which is the body or a field of a form.
    Member(Pointer),
}

/// The value that a selector finds.
#[derive(Debug)]
pub(super) enum Value<'a> {
    Absent,
    Bytes(Cow<'a, [u8]>),
    Json(Scalar<'a>),
    /// The text that should be JSON is no JSON.
    Unreadable,
}

/// Where the timestamp of a signature stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum TimestampSelector {
    /// The entry of the signature's list that begins with this text. Empty: the first entry.
    Entry(String),
    Value(Selector),
}

impl Item {
    pub(super) fn parts(&self) -> &[Part] {
        match self {
            Self::One(part) => std::slice::from_ref(part),
            Self::Together(parts) => parts,
        }
    }

    /// Whether this part is covered in every request.
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
                _ => Selector::read(text).map(Self::Value),
            },
        }
    }
}

impl Selector {
    pub(super) const EXPECTED: &'static str =
        "`header:NAME`, `query:NAME`, `form:FIELD` or `json:/pointer`";

    pub(super) fn read(text: &str) -> Option<Self> {
        match text.split_once(':')? {
            ("header", name) => name.parse().ok().map(Self::Header),
            ("query", name) if !name.is_empty() => Some(Self::Query(name.to_owned())),
            ("form", name) if !name.is_empty() => Some(Self::Field(name.to_owned())),
            ("json", pointer) => {
                // A pointer to a member of each item would find several values.
                pointer.parse().ok().filter(|it: &Pointer| !it.has_wildcard()).map(Self::Member)
            }
            _ => None,
        }
    }

    pub(super) fn location(&self) -> Location {
        match self {
            Self::Header(name) => Location::Header(name.clone()),
            Self::Query(name) => Location::Parameter(name.clone()),
            Self::Field(name) => Location::Field(name.clone()),
            Self::Member(pointer) => Location::Member(pointer.to_string()),
        }
    }
}

impl TimestampSelector {
    pub(super) const EXPECTED: &'static str =
        "`header:NAME`, `entry:PREFIX`, `query:NAME`, `form:FIELD` or `json:/pointer`";

    pub(super) fn read(text: &str) -> Option<Self> {
        match text.strip_prefix("entry:") {
            Some(prefix) => Some(Self::Entry(prefix.to_owned())),
            None => Selector::read(text).map(Self::Value),
        }
    }
}

/// The part as a table writes it in `signed`.
impl fmt::Display for Part {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Body => f.write_str("body"),
            Self::Timestamp => f.write_str("timestamp"),
            Self::Url => f.write_str("url"),
            Self::Path => f.write_str("path"),
            Self::Method => f.write_str("method"),
            Self::Text(literal) => write!(f, "text:{literal}"),
            Self::Value(Selector::Header(name)) => write!(f, "header:{name}"),
            Self::Value(Selector::Query(name)) => write!(f, "query:{name}"),
            Self::Value(Selector::Field(name)) => write!(f, "form:{name}"),
            Self::Value(Selector::Member(pointer)) => write!(f, "json:{pointer}"),
        }
    }
}
