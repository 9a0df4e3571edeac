//! What came out of a check, and why, in words for the operator. Never a secret, never a signature.

use std::fmt;
use std::time::Duration;

use http::HeaderName;

use super::carried::Carried;
use super::certificates::CertificateError;
use super::encoding::Encoding;
use super::timestamp::TimestampFormat;

/// The request is genuine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Verified {
    /// Which of the secrets it was, counted from 0 in the order of the configuration.
    pub secret: usize,
    /// What belongs to the signature that was checked.
    pub carried: Carried,
}

/// The request is not known to be genuine.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    /// There is no signature.
    #[error("{0} is missing")]
    Missing(Place),
    /// Where it should be there is nothing but space. To a sender that signs in several ways this
    /// is a signature that is wrong: another one does not make up for it.
    #[error("{0} is empty")]
    Empty(Place),
    /// Requests of its method are no events: they pass unverified, but only without content.
    #[error(
        "a request of this method is no event here, and goes on unverified without content only"
    )]
    NoEvent,
    /// There is one, and it is not right.
    #[error("{0}")]
    Invalid(#[from] Reason),
    /// It is right, but of another time.
    #[error(
        "the signature is right, but its timestamp is {}s {} than the tolerance allows",
        .by.as_secs().max(1), if *.ahead { "further ahead" } else { "older" }
    )]
    Stale {
        /// By how much it is outside of the tolerance.
        by: Duration,
        /// How far it is from our time of day.
        distance: Duration,
        /// Whether it lies in the future.
        ahead: bool,
    },
    /// What it is checked against could not be fetched. A later copy may pass.
    #[error("{0}")]
    Undecided(CertificateError),
}

/// Where something of a signature stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Place {
    /// A header.
    Header(HeaderName),
    /// An entry of a list in a header, named by what it begins with; empty: the first.
    Entry(HeaderName, String),
    /// A member of a JSON body.
    Member(String),
    /// A field of a form.
    Field(String),
    /// A parameter of the query.
    Parameter(String),
    /// The URL.
    Url,
    /// The path of the URL.
    Path,
}

/// What is wrong with a signature.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Reason {
    /// Nobody can say which of them the sender meant.
    #[error("{0} occurs more than once, with different values")]
    Repeated(Place),
    /// Something that the signature covers is not there.
    #[error("{0}, which the signature covers, is missing")]
    Absent(Place),
    /// A list without a signature of the kind that is checked.
    #[error("nothing in {0} begins with `{1}`")]
    Prefix(Place, String),
    /// No sender has as many secrets.
    #[error("{0} holds more than {max} signatures", max = super::header::ENTRIES_MAX)]
    TooMany(Place),
    /// It cannot be decoded.
    #[error("{0} is not {1}")]
    Undecodable(Place, Encoding),
    /// The time cannot be read.
    #[error("{0} is not a timestamp in {1}")]
    Timestamp(Place, TimestampFormat),
    /// A character with which the signed text could be that of another request.
    #[error("{0} contains a `{1}`")]
    Ambiguous(Place, char),
    /// A known word was expected.
    #[error("{0} is none of {1}")]
    Unknown(Place, &'static str),
    /// What stands there is no plain value, or not of the kind that is signed.
    #[error("{0} is not what the sender writes there")]
    Unreadable(Place),
    /// It is of somebody else.
    #[error("{0} is none of those that are configured")]
    NotOurs(Place),
    /// It says something else than the part that is signed.
    #[error("{0} differs from {1}, which is signed")]
    Differs(Place, Place),
    /// The body cannot be what the sender sends.
    #[error("the body is not {0}")]
    Body(&'static str),
    /// The body is not what the signed URL says of it.
    #[error("the body does not have the digest in {0}")]
    Digest(Place),
    /// The certificate is not the sender's.
    #[error("{0}")]
    Certificate(CertificateError),
    /// All is well formed.
    #[error(
        "it was made with none of the secrets, or the signed bytes were changed on the way \
         (checked: {0})"
    )]
    Mismatch(Place),
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Header(name) => write!(f, "header `{name}`"),
            Self::Entry(name, prefix) if prefix.is_empty() => {
                write!(f, "the first entry of header `{name}`")
            }
            Self::Entry(name, prefix) => write!(f, "entry `{prefix}` of header `{name}`"),
            Self::Member(pointer) => write!(f, "member `{pointer}` of the body"),
            Self::Field(name) => write!(f, "field `{name}` of the form"),
            Self::Parameter(name) => write!(f, "parameter `{name}` of the URL"),
            Self::Url => f.write_str("the URL"),
            Self::Path => f.write_str("the path of the URL"),
        }
    }
}

impl Refused {
    /// Why there is no signature in this place.
    pub(super) const fn without(place: Place, is_there: bool) -> Self {
        if is_there { Self::Empty(place) } else { Self::Missing(place) }
    }

    /// One word for it: `missing`, `invalid`, `stale` or `undecided`.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Missing(_) | Self::Empty(_) | Self::NoEvent => "missing",
            Self::Invalid(_) => "invalid",
            Self::Stale { .. } => "stale",
            Self::Undecided(_) => "undecided",
        }
    }
}

impl Refused {
    /// By how many milliseconds a right signature is ahead of our time of day, or behind it if that
    /// is negative; none: the time is not why it was refused. Many of about the same size mean that
    /// one of the two clocks is wrong.
    pub fn offset_millis(&self) -> Option<i64> {
        match self {
            Self::Stale { distance, ahead, .. } => {
                let millis = i64::try_from(distance.as_millis()).unwrap_or(i64::MAX);
                Some(if *ahead { millis } else { -millis })
            }
            Self::Missing(_)
            | Self::Empty(_)
            | Self::NoEvent
            | Self::Invalid(_)
            | Self::Undecided(_) => None,
        }
    }
}

impl From<CertificateError> for Refused {
    fn from(error: CertificateError) -> Self {
        if error.may_pass() { Self::Undecided(error) } else { Reason::Certificate(error).into() }
    }
}
