//! One step: forward, classify, record.

use std::sync::Arc;
use std::time::Duration;

use http::{HeaderMap, HeaderName, HeaderValue};

use super::StepsAttempt;
use crate::clock::Moment;
use crate::idempotency::claim::StepRecorded;
use crate::idempotency::classify::{AnswerHead, AnswerRules, AttemptEnd};
use crate::idempotency::disposition::{Disposition, Forwarded};
use crate::idempotency::end_log::{EndLog, log_early_answer};
use crate::idempotency::executor::Context;
use crate::idempotency::forward::{Bounds, Exchange, LongAnswer, NoAnswer, exchange, name_attempt};
use crate::idempotency::request::KeyedRequest;
use crate::operation::state::Advanced;
use crate::operation::{AnswerBody, OperationId, Outcome, Reason, StoredAnswer};
use crate::upstream::{BodyError, Request, ResponseBody};

const STEP: HeaderName = HeaderName::from_static("onceward-step");
const BODY: HeaderName = HeaderName::from_static("onceward-body");

/// A step that has been run.
pub(super) struct StepResult {
    pub(super) step: Arc<str>,
    pub(super) outcome: Outcome,
    /// The answer for the sender.
    pub(super) forwarded: Forwarded,
    /// The reply of the store; none if the record of the event cannot be read.
    pub(super) recorded: Option<StepRecorded>,
}

impl StepsAttempt<'_> {
    /// Runs a step that has begun, and records its outcome. The call that began the step was sent
    /// at `began_at`.
    pub(super) async fn run_step(&self, step: Arc<str>, began_at: Moment) -> StepResult {
        let Self { context: Context { executor, handler, sender }, claim, .. } = self;
        let AttemptEnd { ending, forwarded } = self.forward(&step, began_at).await;
        let end = EndLog::of(&ending);
        let subject = &self.keyed.subject;
        let attempt = claim.attempt;
        let answer_early = || {
            log_early_answer(subject, attempt, Some(&step));
            let retry_after = claim.lease().left();
            let operation = subject.id;
            sender.answer(Disposition::StillInFlight { operation, attempt, retry_after });
        };
        let recorded = claim.advance(&self.steps.plan, &step, ending, answer_early).await;
        handler.metrics.attempt(end.outcome, began_at.until(executor.clock.moment()));
        end.log(executor, subject, attempt, Some(&step));
        match recorded.as_ref().map(|recorded| &recorded.advanced) {
            Ok(Advanced::Next { .. } | Advanced::Recorded | Advanced::Ended { .. }) => {}
            Ok(Advanced::RecordLost) => executor.log_record_lost(subject.id, attempt),
            Ok(Advanced::Superseded) => executor.log_superseded(subject.id, attempt),
            Err(error) => executor.log_unrecorded(subject, attempt, error),
        }
        StepResult { step, outcome: end.outcome, forwarded, recorded: recorded.ok() }
    }

    async fn forward(&self, step: &str, began_at: Moment) -> AttemptEnd {
        let Self { context, claim, keyed, .. } = self;
        let receiver = self.steps.find(step);
        let request = step_request(keyed, step, claim.attempt);
        // The store begins only steps of the route, so there are both.
        let (Some(receiver), Some(request)) = (receiver, request) else {
            return AttemptEnd::of(NoAnswer::NeverSent(Reason::NothingWritten), Duration::ZERO);
        };
        let lease = claim.lease();
        let bounds = Bounds::of_attempt(context.executor, receiver, &lease, began_at);
        let rules = AnswerRules::of(receiver, &context.handler.policy);
        match exchange(*context, receiver, request, &bounds).await {
            Ok(Exchange::Complete(answer)) => rules.complete(answer),
            Ok(Exchange::TooLong(answer)) => without_body(answer, rules, &bounds).await,
            Err(no_answer) => AttemptEnd::of(no_answer, bounds.left()),
        }
    }
}

/// The request for the receiver of a step. It is the whole request, with headers for the name and
/// the id of the step.
fn step_request(keyed: &KeyedRequest, step: &str, attempt: u32) -> Option<Request> {
    let mut request = keyed.steps.as_ref()?.of(step)?;
    name_attempt(&mut request.headers, OperationId::of_step(keyed.subject.id, step), attempt);
    if let Ok(step) = HeaderValue::from_str(step) {
        request.headers.insert(STEP, step);
    }
    Some(request)
}

/// The end of a step whose answer is too long to keep. The sender gets the answer without its body,
/// as in a replay. The body cannot be streamed, because the sender is answered only after all steps
/// have run.
async fn without_body(
    answer: LongAnswer,
    rules: AnswerRules<'_>,
    bounds: &Bounds<'_>,
) -> AttemptEnd {
    let LongAnswer { status, headers, begun, mut rest, memory } = answer;
    drop((begun, memory));
    let to_its_end = async {
        while rest.chunk().await?.is_some() {}
        Ok::<(), BodyError>(())
    };
    // A success is known by its status. Any other answer that breaks off leaves the outcome
    // unknown.
    if rules.outcome(status) != Outcome::Succeeded {
        let reason = match bounds.run(to_its_end).await {
            Ok(Ok(())) => None,
            Ok(Err(broke)) => Some(broke.reason()),
            Err(reason) => Some(reason),
        };
        if let Some(reason) = reason {
            let broken = NoAnswer::Unanswered { reason, status: Some(status) };
            return AttemptEnd::of(broken, bounds.left());
        }
    }
    let ending = rules.answered(AnswerHead { status, headers: &headers }, AnswerBody::Omitted);
    let stored = rules.stored(AnswerHead { status, headers: &headers }, AnswerBody::Omitted);
    AttemptEnd { ending, forwarded: of_stored(&stored) }
}

/// Makes the answer to the sender from a stored answer.
pub(super) fn of_stored(answer: &StoredAnswer) -> Forwarded {
    let mut headers: HeaderMap = answer.headers.iter().cloned().collect();
    let body = match &answer.body {
        AnswerBody::Kept(body) => body.clone(),
        AnswerBody::Omitted => {
            headers.insert(BODY, HeaderValue::from_static("omitted"));
            bytes::Bytes::new()
        }
    };
    Forwarded::Answered { status: answer.status, headers, body: ResponseBody::whole(body) }
}
