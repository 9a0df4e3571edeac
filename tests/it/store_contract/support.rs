//! Operations, claims and endings for the contract's tests.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use http::StatusCode;
use onceward::operation::state::{
    ClaimReply, ClaimRequest, Decided, Ending, Forgetting, Grant, IfUncertain, Renewal, Renewed,
    Resolution, Settled, Settlement, StepSettlement, Verdict, Withdrawal,
};
use onceward::operation::{
    AnswerBody, ClaimId, Durations, FingerprintDigest, Key, KeyKind, KeyPart, OperationId,
    OperationIdParts, Outcome, Plan, PlannedStep, Reason, RequestMode, StoredAnswer, Subject,
};
use onceward::store::{Store, StoreExt as _};

pub(super) const LEASE: Duration = Duration::from_secs(15);
pub(super) const ATTEMPT_TIMEOUT: Duration = Duration::from_mins(1);
pub(super) const RETENTION: Duration = Duration::from_mins(5);
pub(super) const HOLD_FOR: Duration = Duration::from_mins(15);
pub(super) const MILLISECOND: Duration = Duration::from_millis(1);

/// The operation with this key on the route that these tests use.
pub(super) fn id_of(from: KeyKind, key: &[&[KeyPart<'_>]]) -> OperationId {
    let route = "orders";
    let method = "POST";
    OperationId::derive(OperationIdParts { route, method, path: None, scope: &[], from, key })
}

/// What a request with this key and body asks for.
pub(super) fn order_with_body(key: &str, body: &str) -> Arc<Subject> {
    let id = id_of(KeyKind::Header, &[&[key.into()]]);
    let key = Key { from: KeyKind::Header, parts: vec![key.to_owned()] };
    let mut digest = FingerprintDigest::under("body");
    digest.part(body.as_bytes());
    Arc::new(Subject {
        id,
        route: "orders".into(),
        method: "POST".to_owned(),
        path: "/webhooks/orders".to_owned(),
        key,
        fingerprint: digest.finish(),
        mode: RequestMode::Enforce,
    })
}

/// What a request with this key asks for.
pub(super) fn order(key: &str) -> Arc<Subject> {
    order_with_body(key, "{}")
}

/// The durations of every claim.
pub(super) const DURATIONS: Durations = Durations {
    lease: LEASE,
    attempt_timeout: ATTEMPT_TIMEOUT,
    retention: RETENTION,
    hold_for: HOLD_FOR,
};

/// A claim that may be granted, under a claim id of its own.
pub(super) fn claim_on(subject: &Arc<Subject>) -> ClaimRequest {
    static CLAIMS: AtomicU64 = AtomicU64::new(1);
    let number = u128::from(CLAIMS.fetch_add(1, Ordering::Relaxed));
    let claim_id = ClaimId::from_random(number.to_be_bytes());
    ClaimRequest::new(Arc::clone(subject), claim_id, "test".into(), DURATIONS)
}

/// Claims an operation that is free: the claim, and the attempt's number.
pub(super) async fn granted(store: &dyn Store, subject: &Arc<Subject>) -> (ClaimRequest, u32) {
    let request = claim_on(subject);
    let claimed = store.apply(request.clone()).await.unwrap();
    let ClaimReply::Granted(Grant { attempt, .. }) = claimed else {
        panic!("not granted: {claimed:?}")
    };
    (request, attempt)
}

/// The answer to a claim that is granted this attempt.
pub(super) fn granted_as(attempt: u32) -> ClaimReply {
    ClaimReply::Granted(Grant { attempt, steps: Vec::new() })
}

/// What a copy of it is told now.
pub(super) async fn copy_of(store: &dyn Store, subject: &Arc<Subject>) -> ClaimReply {
    store.apply(claim_on(subject)).await.unwrap()
}

/// The same, granted nothing.
pub(super) async fn look_at(store: &dyn Store, subject: &Arc<Subject>) -> ClaimReply {
    let look = ClaimRequest { may_grant: false, ..claim_on(subject) };
    store.apply(look.clone()).await.unwrap()
}

/// The stored answer to an attempt that succeeded.
pub(super) fn answer() -> Arc<StoredAnswer> {
    Arc::new(StoredAnswer {
        status: StatusCode::CREATED,
        headers: vec![(http::header::CONTENT_TYPE, "text/plain".try_into().unwrap())],
        body: AnswerBody::Kept("done".into()),
    })
}

/// The end of the attempt that was granted to a claim.
pub(super) fn end_of(request: &ClaimRequest, attempt: u32, outcome: Outcome) -> Settlement {
    let reference = None;
    let ending = match outcome {
        Outcome::Succeeded => Ending::Succeeded { answer: answer(), reference },
        Outcome::Failed => Ending::Failed { status: StatusCode::IM_A_TEAPOT, reference },
        Outcome::Uncertain => Ending::Unanswered { reason: Reason::ConnectionLost, status: None },
    };
    Settlement {
        subject: Arc::clone(&request.subject),
        claim_id: request.claim_id,
        attempt,
        holder: Arc::clone(&request.holder),
        durations: request.durations,
        ending,
    }
}

/// Steps of these names.
pub(super) fn plan_of(names: &[&str], at_once: bool, if_uncertain: IfUncertain) -> Arc<Plan> {
    let planned = |name: &&str| PlannedStep {
        name: (*name).into(),
        attempt_timeout: ATTEMPT_TIMEOUT,
        if_uncertain,
        forward_key: None,
    };
    let steps: Vec<_> = names.iter().map(planned).collect();
    let answer_from = Arc::clone(&steps.last().unwrap().name);
    Arc::new(Plan { steps, at_once, answer_from })
}

/// The end of a step of the attempt that was granted to a claim.
pub(super) fn end_of_step(
    request: &ClaimRequest,
    attempt: u32,
    step: &str,
    outcome: Outcome,
) -> StepSettlement {
    let settlement = end_of(request, attempt, outcome);
    let plan = request.plan.clone().unwrap();
    StepSettlement { settlement, plan, step: step.into() }
}

/// Claims a free operation and settles it.
pub(super) async fn attempted(
    store: &dyn Store,
    subject: &Arc<Subject>,
    outcome: Outcome,
) -> (ClaimRequest, u32) {
    let (request, attempt) = granted(store, subject).await;
    let settled = store.apply(end_of(&request, attempt, outcome)).await.unwrap();
    assert_eq!(settled, Settled::Recorded { copy_refused: false });
    (request, attempt)
}

/// A person's decision.
pub(super) fn resolved_as(verdict: Verdict) -> Resolution {
    Resolution {
        operation: OperationId::from_bytes([0; 16]),
        verdict,
        by: "ops".to_owned(),
        reason: "looked it up".to_owned(),
        reference: Some("payment 7".to_owned()),
        attempt: None,
        state: None,
        retention: RETENTION,
    }
}

/// A person resolves an operation.
pub(super) async fn resolves(
    store: &dyn Store,
    operation: OperationId,
    verdict: Verdict,
) -> Decided {
    store.apply(Resolution { operation, ..resolved_as(verdict) }).await.unwrap()
}

/// A person has an operation forgotten.
pub(super) async fn forgets(store: &dyn Store, operation: OperationId) -> Decided {
    let forgetting = Forgetting { operation, by: "ops".to_owned(), reason: "again".to_owned() };
    store.apply(forgetting).await.unwrap()
}

/// The holder of a claim takes it back.
pub(super) async fn withdraws(store: &dyn Store, operation: OperationId, claim_id: ClaimId) {
    let durations = DURATIONS;
    let withdrawal = Withdrawal { operation, claim_id, durations, leaves_record: true };
    store.apply(withdrawal).await.unwrap();
}

/// The holder of a claim renews its lease.
pub(super) async fn renews(
    store: &dyn Store,
    operation: OperationId,
    claim_id: ClaimId,
    lease: Duration,
) -> Renewed {
    store.apply(Renewal { operation, claim_id, lease }).await.unwrap()
}

/// Sweeps until nothing is due: how many are gone, and how many of these were held.
pub(super) async fn sweep_all(store: &dyn Store, limit: usize) -> (usize, usize) {
    let (mut removed, mut holds_ended) = (0, 0);
    loop {
        let swept = store.sweep(limit).await.unwrap();
        removed += swept.removed;
        holds_ended += swept.holds_ended;
        if !swept.more {
            return (removed, holds_ended);
        }
    }
}
