//! Every arrow between states, a millisecond around every end, repeated and stale calls.

mod claiming;
mod deciding;
mod lasting;
mod lookup;
mod sequences;
mod settling;
mod steps;

use std::sync::Arc;
use std::time::Duration;

use super::*;
use crate::operation::{
    AnswerBody, Asked, AskedUnder, AttemptLog, DecisionKind, Fingerprint, FingerprintDigest, Key,
    KeyKind, OperationId, Outcome, Plan, PlannedStep, Terms,
};

const T0: Timestamp = Timestamp(1_000_000);
const LEASE: u64 = 15_000;
const ATTEMPT_TIMEOUT: u64 = 60_000;
const RETENTION: u64 = 300_000;
const HOLD_FOR: u64 = 900_000;

const fn at(millis: u64) -> Timestamp {
    Timestamp(T0.0 + millis)
}

fn terms() -> Terms {
    Terms {
        lease: Duration::from_millis(LEASE),
        attempt_timeout: Duration::from_millis(ATTEMPT_TIMEOUT),
        retention: Duration::from_millis(RETENTION),
        hold_for: Duration::from_millis(HOLD_FOR),
    }
}

fn fingerprint(body: &str) -> Fingerprint {
    let mut digest = FingerprintDigest::under("test");
    digest.part(body.as_bytes());
    digest.finish()
}

fn asked(body: &str) -> Arc<Asked> {
    Arc::new(Asked {
        id: OperationId::from_bytes([7; 16]),
        route: "orders".into(),
        method: "POST".to_owned(),
        path: "/webhooks/orders".to_owned(),
        key: Key { from: KeyKind::Header, parts: vec!["key".to_owned()] },
        fingerprint: fingerprint(body),
        under: AskedUnder::Enforce,
    })
}

fn claim_of(n: u8) -> ClaimId {
    ClaimId::from_random([n; 16])
}

fn request(n: u8) -> ClaimRequest {
    ClaimRequest::new(asked("body"), claim_of(n), "here".into(), terms())
}

fn answer(status: u16) -> Arc<StoredAnswer> {
    Arc::new(StoredAnswer::empty(http::StatusCode::from_u16(status).unwrap()))
}

fn settlement(n: u8, outcome: Outcome) -> Settlement {
    let status = if outcome == Outcome::Succeeded { 201 } else { 504 };
    Settlement {
        asked: asked("body"),
        claim_id: claim_of(n),
        attempt: u32::from(n),
        holder: "here".into(),
        terms: terms(),
        ending: Ending {
            outcome,
            reason: Reason::Answered,
            sent: true,
            status: Some(status),
            answer: Some(answer(status)),
            reference: None,
        },
    }
}

fn resolution(verdict: Verdict) -> Resolution {
    Resolution {
        verdict,
        by: "ops".to_owned(),
        reason: "looked it up".to_owned(),
        reference: None,
        attempt: None,
        state: None,
        retention: Duration::from_millis(RETENTION),
    }
}

/// The record after claim `n` at `now` on what was `found`.
fn claimed(found: Option<Operation>, n: u8, now: Timestamp) -> Option<Operation> {
    let done = claim(found, &request(n), now);
    assert!(matches!(done.result, Claimed::Granted { .. }), "{:?}", done.result);
    assert_eq!(done.change, Change::Durable);
    done.operation
}

fn settled(found: Option<Operation>, n: u8, outcome: Outcome, now: Timestamp) -> Option<Operation> {
    let done = settle(found, &settlement(n, outcome), now);
    assert_eq!(done.result, Settled::Recorded { copy_refused: false });
    assert_eq!(done.change, Change::Durable);
    done.operation
}

fn in_flight() -> Option<Operation> {
    claimed(None, 1, T0)
}

fn succeeded() -> Option<Operation> {
    settled(in_flight(), 1, Outcome::Succeeded, T0)
}

fn failed() -> Option<Operation> {
    settled(in_flight(), 1, Outcome::Failed, T0)
}

fn uncertain() -> Option<Operation> {
    settled(in_flight(), 1, Outcome::Uncertain, T0)
}

fn forgotten() -> Option<Operation> {
    forget(succeeded(), "ops", "again", T0).operation
}

fn state_of(operation: Option<&Operation>) -> &'static str {
    operation.map_or("none", |operation| operation.state.as_str())
}

fn log_of(operation: Option<&Operation>) -> &AttemptLog {
    &operation.unwrap().attempts
}
