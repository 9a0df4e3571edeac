//! Settings that are one of a few words.

use super::leaf::FromText;
use crate::idempotency::{IfInFlight, Remember, WhenStoreFails};
use crate::provider::Alphabet;
use crate::proxy::{Mode, RefusalBody, WhenKeyMissing};
use crate::store::embedded::Durability;

/// What happens to an uncertain operation.
#[derive(Debug, Clone, Copy)]
pub(super) enum UncertainWord {
    Hold,
    Lookup,
    Retry,
}

/// How the servers of `[store.redis]` are organised.
#[derive(Debug, Clone, Copy)]
pub(super) enum Topology {
    Single,
    Sentinel,
    Cluster,
}

/// Reads a type from the words for its values.
macro_rules! words {
    ($type:ty, $expected:literal, $($word:literal => $value:ident),+) => {
        impl FromText for $type {
            const EXPECTED: &'static str = $expected;

            fn from_text(text: &str) -> Option<Self> {
                match text {
                    $($word => Some(Self::$value),)+
                    _ => None,
                }
            }
        }
    };
}

words!(IfInFlight, "`refuse` or `wait`", "refuse" => Refuse, "wait" => Wait);
words!(
    UncertainWord, "`hold`, `lookup` or `retry`",
    "hold" => Hold, "lookup" => Lookup, "retry" => Retry
);
words!(
    Topology, "`single`, `sentinel` or `cluster`",
    "single" => Single, "sentinel" => Sentinel, "cluster" => Cluster
);
words!(
    WhenKeyMissing, "`refuse`, `forward` or `hash-body`",
    "refuse" => Refuse, "forward" => Forward, "hash-body" => HashBody
);
words!(RefusalBody, "`problem` or `none`", "problem" => Problem, "none" => None);
words!(
    Mode, "`enforce`, `observe` or `pass`",
    "enforce" => Enforce, "observe" => Observe, "pass" => Pass
);
words!(Remember, "`retention` or `in-flight`", "retention" => Retention, "in-flight" => InFlight);
words!(WhenStoreFails, "`refuse` or `forward`", "refuse" => Refuse, "forward" => Forward);
words!(Durability, "`sync` or `os`", "sync" => Sync, "os" => Os);
words!(Alphabet, "`hex` or `url-safe`", "hex" => Hex, "url-safe" => UrlSafe);
