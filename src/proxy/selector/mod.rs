//! Selectors: where in a request a part of its identity stands.

mod read;

use std::fmt;
use std::str::FromStr;

use http::HeaderName;

use crate::json::{Pointer, PointerError};

pub(super) use read::PART_BYTES_MAX;

/// `header:NAME`, `json:/pointer`, `form:FIELD`, `query:NAME`, `signature:NAME` or `body`, with `?`
/// where it may be absent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Selector {
    /// Where to look.
    pub place: Place,
    /// Whether it may be absent.
    pub optional: bool,
}

/// Where to look.
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
    /// A value that belongs to the signature that was checked, by the name that the sender's
    /// `[signature]` has for it.
    Signature(String),
    /// The SHA-256 of the whole body.
    Body,
}

/// Why a text is not a selector.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum SelectorError {
    /// It does not begin with a place to look.
    #[error(
        "expected `header:NAME`, `json:/pointer`, `form:FIELD`, `query:NAME`, `signature:NAME` or \
         `body`"
    )]
    UnknownPlace,
    /// What follows `header:` cannot be the name of a header.
    #[error("expected the name of a header after `header:`")]
    NotAHeader,
    /// What follows `json:` is not a pointer.
    #[error("expected a JSON pointer after `json:`")]
    NotAPointer(#[source] PointerError),
    /// Nothing follows `form:`, `query:` or `signature:`.
    #[error("expected a name after `form:`, `query:` or `signature:`")]
    NoName,
}

impl FromStr for Selector {
    type Err = SelectorError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (text, optional) = text.strip_suffix('?').map_or((text, false), |text| (text, true));
        if text == "body" {
            return Ok(Self { place: Place::Body, optional });
        }
        let (place, name) = text.split_once(':').ok_or(SelectorError::UnknownPlace)?;
        let named = |name: &str| {
            if name.is_empty() { Err(SelectorError::NoName) } else { Ok(name.to_owned()) }
        };
        let place = match place {
            "header" => Place::Header(name.parse().map_err(|_| SelectorError::NotAHeader)?),
            "json" => Place::Json(name.parse().map_err(SelectorError::NotAPointer)?),
            "form" => Place::Form(named(name)?),
            "query" => Place::Query(named(name)?),
            "signature" => Place::Signature(named(name)?),
            _ => return Err(SelectorError::UnknownPlace),
        };
        Ok(Self { place, optional })
    }
}

impl fmt::Display for Selector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.place {
            Place::Header(name) => write!(f, "header:{name}"),
            Place::Json(pointer) => write!(f, "json:{pointer}"),
            Place::Form(name) => write!(f, "form:{name}"),
            Place::Query(name) => write!(f, "query:{name}"),
            Place::Signature(name) => write!(f, "signature:{name}"),
            Place::Body => f.write_str("body"),
        }?;
        f.write_str(if self.optional { "?" } else { "" })
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
        ] {
            assert_eq!(text.parse::<Selector>().map(|s| s.to_string()), Ok(text.to_owned()));
        }
        assert_eq!("header:X-Tenant".parse::<Selector>().unwrap().to_string(), "header:x-tenant");
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
        ] {
            assert_eq!(text.parse::<Selector>(), Err(error), "{text}");
        }
    }
}
