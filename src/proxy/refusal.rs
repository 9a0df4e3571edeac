//! Why a request got no operation.

use serde::Serialize;

use super::identify::IdentifyError;
use crate::provider::signature::SignatureError;

/// Why a request got no operation. [`respond`](super::respond) gives each its status.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Refusal {
    /// No route serves this host and path.
    NoRoute,
    /// The route does not take the method of the request. The text lists the methods that it takes.
    MethodNotAllowed(String),
    /// The request cannot be forwarded safely.
    Malformed(Malformed),
    /// `Expect` names something other than `100-continue`.
    Expectation,
    /// The body is longer than the route allows.
    BodyTooLarge {
        /// The greatest length that the route allows, in bytes.
        bytes_max: usize,
    },
    /// The body took too long.
    BodyTimeout,
    /// The signature does not show that the request is the sender's.
    Signature(SignatureError),
    /// There is no key, or the key cannot be used.
    Key(IdentifyError),
    /// A limit was reached.
    Overloaded,
    /// The process is about to end.
    Draining,
}

/// A refusal in words, as the log, `onceward explain` and the problem document show it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ExplainedRefusal {
    /// The code of the problem that the sender gets.
    pub code: &'static str,
    /// The refusal in one sentence, which repeats nothing of the request.
    pub detail: String,
}

impl From<IdentifyError> for Refusal {
    fn from(error: IdentifyError) -> Self {
        Self::Key(error)
    }
}

impl From<SignatureError> for Refusal {
    fn from(error: SignatureError) -> Self {
        Self::Signature(error)
    }
}

/// Why a request cannot be forwarded safely.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(super) enum Malformed {
    /// The header is a list, has two lines, or names another coding (RFC 9112, 6.1).
    #[error("`Transfer-Encoding` must be given once, as `chunked`")]
    TransferEncoding,
    /// A request with both headers has two lengths (RFC 9112, 6.3).
    #[error("`Transfer-Encoding` and `Content-Length` exclude each other")]
    TwoLengths,
    /// The name of a header differs from one of the framing headers only by an underscore.
    #[error("no header may be named `content_length` or `transfer_encoding`")]
    FramingAlias,
    /// RFC 9112, 3.2.
    #[error("the request names no host")]
    HostMissing,
    /// There are two `Host` lines, which may even be equal (RFC 9112, 3.2).
    #[error("`Host` must be given once")]
    HostRepeated,
    /// RFC 9110, 7.2.
    #[error("the host must be a name, or an IPv4 or IPv6 address, with or without a port")]
    HostInvalid,
    /// The target has precedence (RFC 9112, 3.2.2), but not every server knows that.
    #[error("`Host` and the request's target name different hosts")]
    HostDisagrees,
    /// RFC 9112, 3.2.
    #[error("the request's target must be a path, or an `http` URL")]
    TargetForm,
    /// Headers that `Connection` names are removed on the way (RFC 9110, 7.6.1).
    #[error("`Connection` must not name a header that is meant for the upstream")]
    ConnectionNames,
    /// The target does not parse.
    #[error("the request target does not parse")]
    Target,
    /// The target is too long after the path of the upstream was put into it.
    #[error("with the path of the upstream the target is longer than 65534 bytes")]
    TargetTooLong,
    /// Dot segments lead out of the route.
    #[error("the path leaves its route through dot segments")]
    LeavesRoute,
    /// Some HTTP servers would read the path as the path of another route.
    #[error("the path can be read as that of another route")]
    OtherRoute,
    /// The path has too many readings to compare all of them with the other routes.
    #[error("the path can be read in too many ways")]
    Readings,
    /// The body broke off or is framed wrongly.
    #[error("the body is incomplete or framed wrongly")]
    Body,
}
