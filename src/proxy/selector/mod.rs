//! Selectors: where in a request a part of its identity stands.

mod read;
mod unread;
mod view;

pub(super) use read::body_digest;
pub use unread::{InvalidReason, MissingReason, Unread};
pub use view::RequestView;

use std::fmt;
use std::str::FromStr;

use http::HeaderName;

use crate::json::{Pointer, PointerError};

/// A selector: `header:NAME`, `json:/pointer`, `form:FIELD`, `query:NAME`, `signature:NAME` or
/// `body`. Several can be written with `|` between them. The first one that is present counts. A
/// `?` at the end allows the value to be absent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Selector {
    /// The places that are read, in this order.
    pub places: Vec<Place>,
    /// Whether the value may be absent.
    pub optional: bool,
}

/// A place in a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Place {
    /// A header.
    Header(HeaderName),
    /// A member of a JSON body, or one member of each item of an array.
    Json(Pointer),
    /// A field of an `application/x-www-form-urlencoded` body.
    Form(String),
    /// A parameter of the query.
    Query(String),
    /// A value that came with the signature, by its name in the provider's `[signature]` table. The
    /// signature covers it.
    Signature(String),
    /// The SHA-256 of the whole body.
    Body,
}

/// Why a text is not a selector.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum SelectorError {
    /// The text does not begin with a place.
    #[error(
        "expected `header:NAME`, `json:/pointer`, `form:FIELD`, `query:NAME`, `signature:NAME` or \
         `body`"
    )]
    UnknownPlace,
    /// The text after `header:` cannot be the name of a header.
    #[error("expected the name of a header after `header:`")]
    NotAHeader,
    /// The text after `json:` is not a JSON pointer (RFC 6901).
    #[error("expected a JSON pointer after `json:`")]
    NotAPointer(#[source] PointerError),
    /// Nothing follows `form:`, `query:` or `signature:`.
    #[error("expected a name after `form:`, `query:` or `signature:`")]
    NoName,
}

/// The beginnings of places. A piece after `|` that begins otherwise belongs to the name before it,
/// because field and parameter names may hold a `|`.
const PLACES: [&str; 5] = ["header:", "json:", "form:", "query:", "signature:"];

impl FromStr for Selector {
    type Err = SelectorError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (text, optional) = text.strip_suffix('?').map_or((text, false), |text| (text, true));
        let mut texts: Vec<String> = Vec::new();
        for piece in text.split('|') {
            let begins = piece == "body" || PLACES.iter().any(|place| piece.starts_with(place));
            match texts.last_mut() {
                Some(name) if !begins => name.extend(["|", piece]),
                Some(_) | None => texts.push(piece.to_owned()),
            }
        }
        let places = texts.iter().map(|text| text.parse()).collect::<Result<_, _>>()?;
        Ok(Self { places, optional })
    }
}

impl FromStr for Place {
    type Err = SelectorError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if text == "body" {
            return Ok(Self::Body);
        }
        let (place, name) = text.split_once(':').ok_or(SelectorError::UnknownPlace)?;
        let named = |name: &str| {
            if name.is_empty() { Err(SelectorError::NoName) } else { Ok(name.to_owned()) }
        };
        match place {
            "header" => name.parse().map(Self::Header).map_err(|_| SelectorError::NotAHeader),
            "json" => name.parse().map(Self::Json).map_err(SelectorError::NotAPointer),
            "form" => named(name).map(Self::Form),
            "query" => named(name).map(Self::Query),
            "signature" => named(name).map(Self::Signature),
            _ => Err(SelectorError::UnknownPlace),
        }
    }
}

impl Selector {
    /// Whether one of the places is this header.
    pub(super) fn reads_header(&self, name: &HeaderName) -> bool {
        self.places.iter().any(|place| matches!(place, Place::Header(read) if read == name))
    }
}

impl fmt::Display for Selector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut between = "";
        for place in &self.places {
            write!(f, "{between}{place}")?;
            between = "|";
        }
        f.write_str(if self.optional { "?" } else { "" })
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Header(name) => write!(f, "header:{name}"),
            Self::Json(pointer) => write!(f, "json:{pointer}"),
            Self::Form(name) => write!(f, "form:{name}"),
            Self::Query(name) => write!(f, "query:{name}"),
            Self::Signature(name) => write!(f, "signature:{name}"),
            Self::Body => f.write_str("body"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_read_is_written_again() {
        for text in [
            "header:x-tenant",
            "header:x-tenant?",
            "json:/id",
            "json:/data/a~1b/*/id?",
            "form:txn_id",
            "form:a:b",
            "query:id?",
            "signature:id",
            "body",
            "header:ce-id|json:/id",
            "form:MessageSid|query:MessageSid?",
            "form:a|b|query:c||body",
        ] {
            assert_eq!(text.parse::<Selector>().map(|s| s.to_string()), Ok(text.to_owned()));
        }
        assert_eq!("header:X-Tenant".parse::<Selector>().unwrap().to_string(), "header:x-tenant");
    }

    #[test]
    fn a_bar_separates_places_and_nothing_else() {
        let places = |text: &str| text.parse::<Selector>().unwrap().places;
        assert_eq!(places("form:a|query:a?"), [Place::Form("a".into()), Place::Query("a".into())]);
        assert_eq!(places("form:a|b"), [Place::Form("a|b".into())]);
    }

    #[test]
    fn a_text_that_is_no_selector_says_why() {
        let pointer = |error| SelectorError::NotAPointer(error);
        for (text, error) in [
            ("", SelectorError::UnknownPlace),
            ("?", SelectorError::UnknownPlace),
            ("/id", SelectorError::UnknownPlace),
            ("body:/id", SelectorError::UnknownPlace),
            ("JSON:/id", SelectorError::UnknownPlace),
            ("header:", SelectorError::NotAHeader),
            ("header: x", SelectorError::NotAHeader),
            ("json:", pointer(PointerError::NoSlash)),
            ("json:id", pointer(PointerError::NoSlash)),
            ("json:/*/*?", pointer(PointerError::EachTwice)),
            ("form:", SelectorError::NoName),
            ("query:?", SelectorError::NoName),
            ("signature:", SelectorError::NoName),
            ("|json:/id", SelectorError::UnknownPlace),
            ("header:a?|json:/id", SelectorError::NotAHeader),
            ("json:/id|form:", SelectorError::NoName),
        ] {
            assert_eq!(text.parse::<Selector>(), Err(error), "{text}");
        }
    }
}
