//! Settings that are one of a few words.

use super::leaf::Written;
use crate::idempotency::{Remember, WhenStoreFails};
use crate::proxy::{Mode, RefusalBody, WhenKeyMissing};
use crate::store::embedded::Durability;

/// What a copy does that meets an attempt in flight.
#[derive(Debug, Clone, Copy)]
pub(super) enum InFlightWord {
    Refuse,
    Wait,
}

impl Written for InFlightWord {
    const EXPECTED: &'static str = "`refuse` or `wait`";

    fn read(text: &str) -> Option<Self> {
        match text {
            "refuse" => Some(Self::Refuse),
            "wait" => Some(Self::Wait),
            _ => None,
        }
    }
}

/// What becomes of an operation whose outcome is unknown.
#[derive(Debug, Clone, Copy)]
pub(super) enum UncertainWord {
    Hold,
    LookUp,
    Retry,
}

impl Written for UncertainWord {
    const EXPECTED: &'static str = "`hold`, `lookup` or `retry`";

    fn read(text: &str) -> Option<Self> {
        match text {
            "hold" => Some(Self::Hold),
            "lookup" => Some(Self::LookUp),
            "retry" => Some(Self::Retry),
            _ => None,
        }
    }
}

impl Written for WhenKeyMissing {
    const EXPECTED: &'static str = "`refuse`, `forward` or `hash-body`";

    fn read(text: &str) -> Option<Self> {
        match text {
            "refuse" => Some(Self::Refuse),
            "forward" => Some(Self::Forward),
            "hash-body" => Some(Self::HashBody),
            _ => None,
        }
    }
}

impl Written for RefusalBody {
    const EXPECTED: &'static str = "`problem` or `none`";

    fn read(text: &str) -> Option<Self> {
        match text {
            "problem" => Some(Self::Problem),
            "none" => Some(Self::None),
            _ => None,
        }
    }
}

impl Written for Mode {
    const EXPECTED: &'static str = "`enforce`, `observe` or `pass`";

    fn read(text: &str) -> Option<Self> {
        match text {
            "enforce" => Some(Self::Enforce),
            "observe" => Some(Self::Observe),
            "pass" => Some(Self::Pass),
            _ => None,
        }
    }
}

impl Written for Remember {
    const EXPECTED: &'static str = "`retention` or `in-flight`";

    fn read(text: &str) -> Option<Self> {
        match text {
            "retention" => Some(Self::Retention),
            "in-flight" => Some(Self::InFlight),
            _ => None,
        }
    }
}

impl Written for WhenStoreFails {
    const EXPECTED: &'static str = "`refuse` or `forward`";

    fn read(text: &str) -> Option<Self> {
        match text {
            "refuse" => Some(Self::Refuse),
            "forward" => Some(Self::Forward),
            _ => None,
        }
    }
}

impl Written for Durability {
    const EXPECTED: &'static str = "`sync` or `os`";

    fn read(text: &str) -> Option<Self> {
        match text {
            "sync" => Some(Self::Sync),
            "os" => Some(Self::Os),
            _ => None,
        }
    }
}
