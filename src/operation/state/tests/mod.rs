//! Every change of state, the millisecond before and after each end, repeated calls and stale
//! calls.

mod claiming;
mod deciding;
mod example;
mod lasting;
mod lookup;
mod sequences;
mod settling;
mod steps;
mod table;

use std::sync::Arc;
use std::time::Duration;

use super::*;
use crate::operation::{
    AnswerBody, AttemptLog, ClaimId, DecisionKind, Durations, Fingerprint, FingerprintDigest, Key,
    KeyKind, Operation, OperationId, Outcome, Plan, PlannedStep, Reason, RequestMode, StoredAnswer,
    Subject,
};

const T0: Timestamp = Timestamp(1_000_000);
const LEASE: u64 = 15_000;
const ATTEMPT_TIMEOUT: u64 = 60_000;
const RETENTION: u64 = 300_000;
const HOLD_FOR: u64 = 900_000;

const fn at(millis: u64) -> Timestamp {
    Timestamp(T0.0 + millis)
}

fn durations() -> Durations {
    Durations {
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

fn subject(body: &str) -> Arc<Subject> {
    Arc::new(Subject {
        id: OperationId::from_bytes([7; 16]),
        route: "orders".into(),
        method: "POST".to_owned(),
        path: "/webhooks/orders".to_owned(),
        key: Key { from: KeyKind::Header, parts: vec!["key".to_owned()] },
        fingerprint: fingerprint(body),
        mode: RequestMode::Enforce,
    })
}

fn claim_of(n: u8) -> ClaimId {
    ClaimId::from_random([n; 16])
}

fn request(n: u8) -> ClaimRequest {
    ClaimRequest::new(subject("body"), claim_of(n), "here".into(), durations())
}

fn answer(status: u16) -> Arc<StoredAnswer> {
    Arc::new(StoredAnswer::empty(http::StatusCode::from_u16(status).unwrap()))
}

fn settlement(n: u8, outcome: Outcome) -> Settlement {
    Settlement {
        subject: subject("body"),
        claim_id: claim_of(n),
        attempt: u32::from(n),
        holder: "here".into(),
        durations: durations(),
        ending: ending(outcome),
    }
}

/// The end of an attempt with a complete answer that means this outcome.
fn ending(outcome: Outcome) -> Ending {
    let reference = None;
    match outcome {
        Outcome::Succeeded => Ending::Succeeded { answer: answer(201), reference },
        Outcome::Failed => Ending::Failed { status: http::StatusCode::IM_A_TEAPOT, reference },
        Outcome::Uncertain => Ending::Uncertain { answer: answer(504), reference },
    }
}

fn granted(attempt: u32) -> ClaimReply {
    ClaimReply::Granted(Grant { attempt, steps: Vec::new() })
}

fn looked_up(attempt: u32) -> ClaimReply {
    ClaimReply::Lookup(LookupGrant { attempt, step: None })
}

fn mismatched(attempt: u32) -> ClaimReply {
    ReportedState::Mismatched { attempt }.into()
}

fn is_uncertain(claimed: &ClaimReply) -> bool {
    matches!(claimed, ClaimReply::NotGranted(ReportedState::Uncertain { .. }))
}

fn claim(
    found: Option<Operation>,
    request: &ClaimRequest,
    now: Timestamp,
) -> Transition<ClaimReply> {
    request.apply(found, now)
}

fn settle(found: Option<Operation>, end: &Settlement, now: Timestamp) -> Transition<Settled> {
    end.apply(found, now)
}

fn advance(found: Option<Operation>, end: &StepSettlement, now: Timestamp) -> Transition<Advanced> {
    end.apply(found, now)
}

fn conclude(
    found: Option<Operation>,
    end: &LookupReport,
    now: Timestamp,
) -> Transition<ClaimReply> {
    end.apply(found, now)
}

fn resolve(found: Option<Operation>, said: &Resolution, now: Timestamp) -> Transition<Decided> {
    said.apply(found, now)
}

fn forget(found: Option<Operation>, reason: &str, now: Timestamp) -> Transition<Decided> {
    let by = "ops".to_owned();
    Forgetting { operation: subject("body").id, by, reason: reason.to_owned() }.apply(found, now)
}

fn renew(found: Option<Operation>, n: u8, lease: Duration, now: Timestamp) -> Transition<Renewed> {
    Renewal { operation: subject("body").id, claim_id: claim_of(n), lease }.apply(found, now)
}

fn withdraw(found: Option<Operation>, claim_id: ClaimId, now: Timestamp) -> Transition<()> {
    let durations = durations();
    let operation = subject("body").id;
    Withdrawal { operation, claim_id, durations, leaves_record: true }.apply(found, now)
}

fn expire(found: Option<Operation>, now: Timestamp) -> Transition<bool> {
    Expiry { operation: subject("body").id }.apply(found, now)
}

fn resolution(verdict: Verdict) -> Resolution {
    Resolution {
        operation: subject("body").id,
        verdict,
        by: "ops".to_owned(),
        reason: "looked it up".to_owned(),
        reference: None,
        attempt: None,
        state: None,
        retention: Duration::from_millis(RETENTION),
    }
}

/// The record after claim `n` at `now` on the record that was `found`.
fn claimed(found: Option<Operation>, n: u8, now: Timestamp) -> Option<Operation> {
    let done = claim(found, &request(n), now);
    assert!(matches!(done.reply, ClaimReply::Granted(_)), "{:?}", done.reply);
    assert_eq!(done.change, Change::Durable);
    done.operation
}

fn settled(found: Option<Operation>, n: u8, outcome: Outcome, now: Timestamp) -> Option<Operation> {
    let done = settle(found, &settlement(n, outcome), now);
    assert_eq!(done.reply, Settled::Recorded { copy_refused: false });
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
    forget(succeeded(), "again", T0).operation
}

fn state_of(operation: Option<&Operation>) -> &'static str {
    operation.map_or("none", |operation| operation.state.as_str())
}

fn log_of(operation: Option<&Operation>) -> &AttemptLog {
    &operation.unwrap().attempts
}
