//! Why a request is not known to be genuine, in words for the operator. No message holds a secret
//! or a signature: they end up in logs and in answers.

use std::fmt;
use std::time::Duration;

use http::HeaderName;

use super::certificates::CertificateError;
use super::encoding::Encoding;
use super::timestamp_format::TimestampFormat;

/// How many signatures a request may hold. While secrets are rotated there are two or three; each
/// one more costs as many computations as there are secrets.
pub(super) const SIGNATURES_MAX: usize = 16;

/// Why a request is not known to be genuine.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SignatureError {
    /// There is no signature.
    #[error("{0} is missing")]
    Missing(Location),
    /// The signature is empty. Of a sender with several signing methods this is a wrong
    /// signature, for which a right one of a weaker method does not make up.
    #[error("{0} is empty")]
    Empty(Location),
    /// A request of a method that passes unverified, such as GET, has content. Without content it
    /// would pass.
    #[error(
        "a request of this method is no event here, and goes on unverified without content only"
    )]
    NoEvent,
    /// There is a signature, and it is not right.
    #[error("{0}")]
    Invalid(#[from] InvalidReason),
    /// The signature is right, but its timestamp is outside of the tolerance.
    #[error(
        "the signature is right, but its timestamp is {}s {} than the tolerance allows",
        .by.as_secs().max(1), if *.ahead { "further ahead" } else { "older" }
    )]
    Stale {
        /// By how much the timestamp is outside of the tolerance.
        by: Duration,
        /// How far the timestamp is from this machine's time of day.
        distance: Duration,
        /// Whether the timestamp lies in the future.
        ahead: bool,
    },
    /// The certificate or key for the check could not be fetched. A later copy may pass.
    #[error("{0}")]
    Undecided(CertificateError),
}

/// Where a part of a signature stands, for messages.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Location {
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
pub enum InvalidReason {
    /// A value is given more than once, differently. Nobody can say which one the sender meant.
    #[error("{0} occurs more than once, with different values")]
    Repeated(Location),
    /// A value that the signature covers is missing.
    #[error("{0}, which the signature covers, is missing")]
    Absent(Location),
    /// A list without a signature of the kind that is checked.
    #[error("nothing in {0} begins with `{1}`")]
    Prefix(Location, String),
    /// No sender has as many secrets at a time.
    #[error("{0} holds more than {max} signatures", max = SIGNATURES_MAX)]
    TooMany(Location),
    /// The signature cannot be decoded.
    #[error("{0} is not {1}")]
    Undecodable(Location, Encoding),
    /// The timestamp cannot be read.
    #[error("{0} is not a timestamp in {1}")]
    Timestamp(Location, TimestampFormat),
    /// A character with which the signed text could be that of another request.
    #[error("{0} contains a `{1}`")]
    Ambiguous(Location, char),
    /// A known word was expected.
    #[error("{0} is none of {1}")]
    Unknown(Location, &'static str),
    /// The value is an object or an array, or of another kind than the one that is signed.
    #[error("{0} is not what the sender writes there")]
    Unreadable(Location),
    /// The signature is for somebody else: for another topic or webhook.
    #[error("{0} is none of those that are configured")]
    NotOurs(Location),
    /// An unsigned value says something else than the signed one. The upstream might read the
    /// unsigned one.
    #[error("{0} differs from {1}, which is signed")]
    Differs(Location, Location),
    /// The body cannot be what the sender sends.
    #[error("the body is not {0}")]
    Body(&'static str),
    /// The body does not have the digest that is signed.
    #[error("the body does not have the digest in {0}")]
    Digest(Location),
    /// The certificate is not the sender's.
    #[error("{0}")]
    Certificate(CertificateError),
    /// All is well formed, and no secret made the signature.
    #[error(
        "it was made with none of the secrets, or the signed bytes were changed on the way \
         (checked: {0})"
    )]
    Mismatch(Location),
}

impl fmt::Display for Location {
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

impl SignatureError {
    /// There is no signature at this location. `is_there`: the header, field or member exists.
    pub(super) const fn without(location: Location, is_there: bool) -> Self {
        if is_there { Self::Empty(location) } else { Self::Missing(location) }
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

    /// By how many milliseconds the timestamp of a right signature is ahead of this machine's time
    /// of day; negative: behind it. None: the request was not refused for its time. Many offsets of
    /// about the same size mean that one of the two clocks is wrong.
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

impl From<CertificateError> for SignatureError {
    fn from(error: CertificateError) -> Self {
        if error.may_pass() {
            Self::Undecided(error)
        } else {
            InvalidReason::Certificate(error).into()
        }
    }
}
