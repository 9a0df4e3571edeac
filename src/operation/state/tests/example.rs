//! An example for tests of other modules.

use std::time::Duration;

use crate::operation::state::ClaimRequest;
use crate::operation::{
    ClaimId, Durations, FingerprintDigest, Key, KeyKind, OperationId, RequestMode, Subject,
};

impl ClaimRequest {
    /// The claim of one operation by one holder: the same each time.
    pub(crate) fn example() -> Self {
        let subject = Subject {
            id: OperationId::from_bytes([1; 16]),
            route: "orders".into(),
            method: "POST".to_owned(),
            path: "/o".to_owned(),
            key: Key { from: KeyKind::Header, parts: vec!["k".to_owned()] },
            fingerprint: FingerprintDigest::under("body").finish(),
            mode: RequestMode::Enforce,
        };
        let durations = Durations {
            lease: Duration::from_secs(15),
            attempt_timeout: Duration::from_mins(1),
            retention: Duration::from_hours(24),
            hold_for: Duration::from_hours(720),
        };
        Self::new(subject.into(), ClaimId::from_random([2; 16]), "here".into(), durations)
    }
}
