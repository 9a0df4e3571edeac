//! Why a request got no operation.

use super::guard::{self, GuardError};
use super::identify::IdentifyError;
use crate::provider::signature::Refused;

/// Why a request got no operation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Refusal {
    /// No route serves this host and path.
    NoRoute,
    /// The route does not take this method; it takes these.
    MethodNotAllowed(String),
    /// The request is not one that can be passed on safely.
    Malformed(Malformed),
    /// It expects something other than 100 (Continue).
    Expectation,
    /// Its body is longer than the route takes.
    BodyTooLarge {
        /// What the route takes.
        bytes_max: usize,
    },
    /// Its body took too long.
    BodyTimeout,
    /// It is not known to be its sender's.
    Signature(Refused),
    /// It has no key, or one that cannot be used.
    Key(IdentifyError),
    /// There is more to do than can be done.
    Overloaded,
    /// The process is about to end.
    Draining,
}

impl From<GuardError> for Refusal {
    fn from(error: GuardError) -> Self {
        match error {
            GuardError::Malformed(malformed) => Self::Malformed(Malformed::Head(malformed)),
            GuardError::Expectation => Self::Expectation,
        }
    }
}

impl From<IdentifyError> for Refusal {
    fn from(error: IdentifyError) -> Self {
        Self::Key(error)
    }
}

/// What is wrong with a request's form.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(super) enum Malformed {
    /// Its head can be read in two ways.
    #[error(transparent)]
    Head(guard::Malformed),
    /// Its target does not parse.
    #[error("the request target does not parse")]
    Target,
    /// With the path of the upstream before its own it is longer than a target may be.
    #[error("with the path of the upstream the target is longer than 65534 bytes")]
    TargetTooLong,
    /// Dot segments lead out of the route.
    #[error("the path leaves its route through dot segments")]
    LeavesRoute,
    /// Some receiver would take it for another route's.
    #[error("the path can be read as that of another route")]
    OtherRoute,
    /// Nobody can say how it is meant.
    #[error("the path can be read in too many ways")]
    Readings,
    /// Its body broke off or is framed wrongly.
    #[error("the body is incomplete or framed wrongly")]
    Body,
}
