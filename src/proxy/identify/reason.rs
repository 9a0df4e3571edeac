//! Why a request has no identity. No sentence here holds anything of the request; each goes on
//! from the name of a selector.

use std::fmt;

use crate::provider::signature::Carried;
use crate::proxy::selector::{Place, Selector};

/// Why a request has no identity.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IdentifyError {
    /// The selector that was read, as it is written.
    pub at: Option<String>,
    /// Where the values stand that differ, for people, where its name does not say so.
    pub places: Vec<String>,
    /// What came of it.
    pub why: Unread,
}

/// Why a part of an identity could not be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Unread {
    /// 400 `key-missing`.
    #[error("{0}")]
    Missing(MissingReason),
    /// 400 `key-invalid`.
    #[error("{0}")]
    Invalid(InvalidReason),
}

/// Why there is no key, or not all of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, thiserror::Error)]
pub enum MissingReason {
    /// What a selector names is not in the request.
    #[error("is absent")]
    Absent,
    /// It is there and says nothing: null, empty, or nothing but whitespace.
    #[error("is null, empty or blank")]
    Blank,
    /// Not every item of the array has it. A key made of the others could be that of another event.
    #[error("is absent in some of the items")]
    AbsentInSomeItems,
    /// A selector reads JSON, the body is something else.
    #[error("is absent: the body is not JSON in UTF-8")]
    NotJson,
    /// A selector reads a form, the request does not say that the body is one.
    #[error("is absent: the body is not `application/x-www-form-urlencoded`")]
    NotAForm,
    /// The key would be the body's digest. All empty bodies have the same.
    #[error("is absent: the body is empty")]
    EmptyBody,
}

/// Why what is there cannot be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, thiserror::Error)]
pub enum InvalidReason {
    /// An object or an array where one value is needed.
    #[error("is an object or an array")]
    NotAValue,
    /// Of a key header: counted without its quotes and escapes.
    #[error("is longer than 255 bytes")]
    KeyTooLong,
    /// Of any other part: counted after quotes and escapes are decoded.
    #[error("is longer than 4096 bytes")]
    TooLong,
    /// All parts that are not of a batch together.
    #[error("all parts together are longer than 65536 bytes")]
    AllTooLong,
    /// Readers disagree about which member is meant.
    #[error("or a JSON member on the way to it occurs twice")]
    MemberTwice,
    /// Lines of a header, fields of a form or parameters of a query that differ.
    #[error("is given twice, with different values")]
    PartsDiffer,
    /// A selector reads a form, and the request names another kind of body beside it.
    #[error("cannot be read: `Content-Type` names two kinds of body")]
    KindsDiffer,
    /// Bytes or escapes that stand for no character.
    #[error("is not text")]
    NotText,
    /// More items than a key may have parts.
    #[error("has more than 8192 items")]
    TooManyParts,
    /// Two key headers that differ.
    #[error("is given twice, with different values")]
    KeysDiffer,
    /// One header line with the same value again, as some proxies join two lines into one.
    #[error("repeats its value on one line")]
    KeyRepeated,
    /// Whitespace within, a control byte, or a byte beyond ASCII.
    #[error("is not visible ASCII")]
    KeyNotVisible,
    /// It begins with a quote and is no string of RFC 9651.
    #[error("is quoted and not a string of RFC 9651")]
    KeyQuoting,
}

impl IdentifyError {
    /// Of the part that this selector names.
    pub(super) fn at(selector: &Selector, why: Unread, carried: &Carried) -> Self {
        let places = selector.places.iter().flat_map(|place| match place {
            Place::Signature(name) => carried.places(name),
            Place::Header(_) | Place::Json(_) | Place::Form(_) | Place::Query(_) | Place::Body => {
                Vec::new()
            }
        });
        let differ = why == Unread::Invalid(InvalidReason::PartsDiffer);
        let places = places.filter(|_| differ).collect();
        Self { at: Some(selector.to_string()), places, why }
    }

    /// The code of the refusal.
    pub const fn code(&self) -> &'static str {
        match self.why {
            Unread::Missing(_) => "key-missing",
            Unread::Invalid(_) => "key-invalid",
        }
    }
}

impl std::error::Error for IdentifyError {}

impl fmt::Display for IdentifyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.why {
            Unread::Missing(_) => "no idempotency key: ",
            Unread::Invalid(_) => "unusable idempotency key: ",
        })?;
        match &self.at {
            Some(at) if self.places.is_empty() => write!(f, "`{at}` {}", self.why),
            Some(at) => write!(f, "`{at}` ({}) {}", self.places.join(" and "), self.why),
            None => write!(f, "{}", self.why),
        }
    }
}

impl MissingReason {
    /// Whether a part that may be absent may be missing for this reason.
    pub(in crate::proxy) const fn is_excused(self) -> bool {
        match self {
            Self::Absent | Self::Blank | Self::NotJson | Self::NotAForm | Self::EmptyBody => true,
            Self::AbsentInSomeItems => false,
        }
    }
}

impl From<MissingReason> for Unread {
    fn from(reason: MissingReason) -> Self {
        Self::Missing(reason)
    }
}

impl From<InvalidReason> for Unread {
    fn from(reason: InvalidReason) -> Self {
        Self::Invalid(reason)
    }
}
