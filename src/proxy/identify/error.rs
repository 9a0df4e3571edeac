//! Why a request has no identity.

use std::fmt;

use crate::provider::signature::Carried;
use crate::proxy::selector::{InvalidReason, Place, Selector, Unread};

/// Why a request has no identity. The text repeats nothing of the request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IdentifyError {
    /// The selector that was read, as it is written in the configuration.
    pub at: Option<String>,
    /// The places whose values differ, if the selector does not name these places itself.
    pub places: Vec<String>,
    /// Why the selector read nothing usable.
    pub why: Unread,
}

impl IdentifyError {
    /// The error of one selector.
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
