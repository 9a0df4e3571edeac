//! One step: forward, classify, record.

use std::sync::Arc;
use std::time::Duration;

use http::{HeaderMap, HeaderName, HeaderValue};
use tokio::sync::Notify;
use tokio::time::Instant;

use super::super::attempt::{Judging, answered, classify, name, unanswered};
use super::super::claim::Claim;
use super::super::disposition::{Disposition, Forwarded};
use super::super::forward::{Bounds, Exchange, TooLong, exchange};
use super::super::{Executor, Handling, Keyed, Reply};
use super::{Receiver, Steps};
use crate::clock::Moment;
use crate::operation::state::{Advanced, Ending, StepEnd};
use crate::operation::{AnswerBody as StoredBody, OperationId, Outcome, Reason, StoredAnswer};
use crate::store;
use crate::telemetry::Limit;
use crate::upstream::{self, AnswerBody, BrokeOff, stored_headers};

const STEP: HeaderName = HeaderName::from_static("onceward-step");
const BODY: HeaderName = HeaderName::from_static("onceward-body");

/// What an attempt at an event is made with.
#[derive(Clone, Copy)]
pub(super) struct Work<'a> {
    pub(super) claim: &'a Claim,
    pub(super) keyed: &'a Keyed,
    pub(super) handling: &'a Handling,
    pub(super) steps: &'a Steps,
    pub(super) reply: &'a Reply,
}

/// A step that has been run.
pub(super) struct Ran {
    pub(super) step: Arc<str>,
    pub(super) outcome: Outcome,
    /// What its receiver answered, for the sender.
    pub(super) end: Forwarded,
    /// How the event goes on; none if its record cannot be read.
    pub(super) advanced: Option<Advanced>,
    /// When the call was sent that recorded it: the lease of the next step counts from there.
    pub(super) recorded_at: Moment,
}

impl Executor {
    /// Runs a step that has begun, and records its outcome. `began_at`: when it was asked for.
    pub(super) async fn run_step(
        &self,
        work: Work<'_>,
        step: Arc<str>,
        began_at: Moment,
    ) -> Option<Ran> {
        let (index, receiver) = work.steps.find(&step)?;
        let (ending, end) = self.forward_step(work, index, receiver, began_at).await;
        let outcome = ending.outcome;
        let settlement = work.claim.settlement(ending);
        let end_of_step = StepEnd {
            asked: settlement.asked,
            claim_id: settlement.claim_id,
            attempt: settlement.attempt,
            holder: settlement.holder,
            terms: settlement.terms,
            plan: Arc::clone(&work.steps.plan),
            step: Arc::clone(&step),
            ending: settlement.ending,
        };
        let (advanced, recorded_at) = self.record_step(work, &end_of_step).await;
        let took = began_at.until(self.clock.moment());
        work.handling.metrics.attempt(outcome, took);
        let asked = &work.keyed.asked;
        let attempt = work.claim.attempt;
        Self::note_end(asked, attempt, Some(&step), &end_of_step.ending);
        let advanced =
            advanced.inspect_err(|error| self.note_unrecorded(asked, attempt, error)).ok();
        Some(Ran { step, outcome, end, advanced, recorded_at })
    }

    async fn forward_step(
        &self,
        work: Work<'_>,
        index: usize,
        receiver: &Receiver,
        began_at: Moment,
    ) -> (Ending, Forwarded) {
        let policy = &receiver.policy;
        let Some(mut request) = work.keyed.steps.get(index).cloned() else {
            return never_sent(Reason::NothingWritten);
        };
        let id = OperationId::of_step(work.keyed.asked.id, &policy.name);
        name(&mut request.headers, id, work.claim.attempt);
        if let Ok(name) = HeaderValue::from_str(&policy.name) {
            request.headers.insert(STEP, name);
        }
        let left = policy.attempt_timeout.saturating_sub(began_at.until(self.clock.moment()));
        let lease = work.claim.lease();
        let ends = Instant::now() + left;
        let bounds = Bounds { ends, lease: Some(&lease), stop: &self.stop };
        let room = self.budget.reserve_none();
        let kept = work.handling.policy.body_bytes_max;
        let judging = Judging {
            outcome: &policy.outcome,
            reference: policy.reference.as_ref(),
            drop_headers: &work.handling.policy.drop_headers,
        };
        match exchange(&receiver.upstream, request, &bounds, kept, room).await {
            Exchange::Ended(end) => classify(end, judging, bounds.left()),
            Exchange::TooLong(answer) => {
                self.metrics.limit_reached(Limit::ReplayBodyBytes);
                without_body(answer, judging, &bounds).await
            }
        }
    }

    /// Records the end of a step, and with it the beginning of the next one. While the store cannot,
    /// the sender waits until the end that the lease has now; recording goes on after that.
    async fn record_step(
        &self,
        work: Work<'_>,
        end: &StepEnd,
    ) -> (Result<Advanced, store::Error>, Moment) {
        let lease = work.claim.lease();
        let failed_once = Notify::new();
        let operation = end.asked.id;
        let attempt = end.attempt;
        let recording = async {
            let mut sent = self.clock.moment();
            let recorded = Self::insist(&lease, &failed_once, || {
                sent = self.clock.moment();
                self.store.advance(end)
            });
            (recorded.await, sent)
        };
        let mut recording = std::pin::pin!(recording);
        tokio::select! {
            biased;
            recorded = &mut recording => recorded,
            () = async { lease.give_up_at_its_end().await; failed_once.notified().await } => {
                tracing::error!(
                    operation.id = %operation,
                    attempt.number = attempt,
                    step = &*end.step,
                    "answered before the outcome could be recorded; recording goes on"
                );
                let retry_after = Duration::ZERO;
                let attempt = Some(attempt);
                work.reply.send(Disposition::InFlight { operation, attempt, retry_after, own: true });
                recording.await
            }
        }
    }
}

fn never_sent(reason: Reason) -> (Ending, Forwarded) {
    (unanswered(Outcome::Failed, reason, None), Forwarded::Unreachable { reason })
}

/// Of an answer that is longer than what is kept there is no body: the sender gets what a replay
/// would. A success is known by now; anything else when it has come to its end.
async fn without_body(
    answer: TooLong,
    judging: Judging<'_>,
    bounds: &Bounds<'_>,
) -> (Ending, Forwarded) {
    let TooLong { status, headers, begun, mut rest, memory } = answer;
    drop((begun, memory));
    let outcome = upstream::outcome(judging.outcome, status);
    let to_its_end = async {
        while rest.chunk().await?.is_some() {}
        Ok::<(), BrokeOff>(())
    };
    if outcome != Outcome::Succeeded {
        let broken = |reason| Forwarded::Broken { reason, ends_in: bounds.left() };
        match bounds.hold(to_its_end).await {
            Ok(Ok(())) => {}
            Ok(Err(broke)) => {
                let reason = broke.reason();
                return (unanswered(Outcome::Uncertain, reason, Some(status)), broken(reason));
            }
            Err(reason) => {
                return (unanswered(Outcome::Uncertain, reason, Some(status)), broken(reason));
            }
        }
    }
    let reference = judging.reference.and_then(|place| place.read(&headers, None));
    let kept = StoredAnswer {
        status,
        headers: stored_headers(&headers, judging.drop_headers, false),
        body: StoredBody::Omitted,
    };
    let end = of_stored(&kept);
    (answered(outcome, kept, reference), end)
}

/// What the sender gets of an answer that was stored.
pub(super) fn of_stored(answer: &StoredAnswer) -> Forwarded {
    let mut headers: HeaderMap = answer.headers.iter().cloned().collect();
    let body = match &answer.body {
        StoredBody::Kept(body) => body.clone(),
        StoredBody::Omitted => {
            headers.insert(BODY, HeaderValue::from_static("omitted"));
            bytes::Bytes::new()
        }
    };
    Forwarded::Answered { status: answer.status, headers, body: AnswerBody::whole(body) }
}
