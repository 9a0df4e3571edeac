//! One step: forward, classify, record.

use std::sync::Arc;

use http::{HeaderMap, HeaderName, HeaderValue};
use tokio::sync::Notify;

use super::super::attempt::name;
use super::super::claim::EndedStep;
use super::super::classify::{Answer, AnswerRules, Ended};
use super::super::disposition::{Disposition, Forwarded};
use super::super::forward::{Bounds, Exchange, TooLong, exchange};
use super::super::receiver::Placed;
use super::super::record::{note_given_up, record_or_give_up};
use super::super::{Executor, KeyedRequest};
use super::StepsAttempt;
use crate::clock::Moment;
use crate::operation::state::Advanced;
use crate::operation::{AnswerBody as StoredBody, OperationId, Outcome, Reason, StoredAnswer};
use crate::telemetry::Limit;
use crate::upstream::{AnswerBody, BrokeOff, Request};

const STEP: HeaderName = HeaderName::from_static("onceward-step");
const BODY: HeaderName = HeaderName::from_static("onceward-body");

/// A step that has been run.
pub(super) struct StepResult {
    pub(super) step: Arc<str>,
    pub(super) outcome: Outcome,
    /// What its receiver answered, for the sender.
    pub(super) forwarded: Forwarded,
    /// How the event goes on; none if its record cannot be read.
    pub(super) advanced: Option<Advanced>,
    /// When the call was sent that recorded it: the lease of the next step counts from there.
    pub(super) recorded_at: Moment,
}

impl StepsAttempt<'_> {
    /// Runs a step that has begun, and records its outcome. `began_at` is the time at which its
    /// beginning was asked for. None if the route does not have the step any more.
    pub(super) async fn run_step(&self, step: Arc<str>, began_at: Moment) -> Option<StepResult> {
        let Self { executor, handler, claim, reply, .. } = self;
        let Ended { ending, forwarded } = self.forward(&step, began_at).await?;
        let outcome = ending.outcome();
        let asked = &self.keyed.asked;
        let attempt = claim.attempt;
        let failed = Notify::new();
        let plan = &self.steps.plan;
        let ended = EndedStep { plan, step: &step, ending: ending.clone() };
        let recording = claim.advance(executor, ended, &failed);
        let lease = claim.lease();
        let recorded = record_or_give_up(&lease, &failed, recording, || {
            note_given_up(asked, attempt, Some(&step));
            reply.send(Disposition::own_in_flight(asked.id, attempt));
        });
        let recorded = recorded.await;
        let now = executor.clock.moment();
        handler.metrics.attempt(outcome, began_at.until(now));
        Executor::note_end(asked, attempt, Some(&step), &ending);
        let recorded =
            recorded.inspect_err(|error| executor.note_unrecorded(asked, attempt, error)).ok();
        let recorded_at = recorded.as_ref().map_or(now, |recorded| recorded.asked_at);
        let advanced = recorded.map(|recorded| recorded.advanced);
        Some(StepResult { step, outcome, forwarded, advanced, recorded_at })
    }

    async fn forward(&self, step: &str, began_at: Moment) -> Option<Ended> {
        let Self { executor, handler, claim, keyed, .. } = self;
        let Placed { index, receiver } = self.steps.find(step)?;
        let Some(request) = step_request(keyed, index, step, claim.attempt) else {
            return Some(Ended::never_sent(Reason::NothingWritten));
        };
        let lease = claim.lease();
        let bounds = executor.bounds(receiver, &lease, began_at);
        let room = executor.budget.reserve_none();
        let body_bytes_max = handler.policy.body_bytes_max;
        let rules = AnswerRules::of(receiver, &handler.policy);
        let sent = exchange(&receiver.upstream, request, &bounds, body_bytes_max, room).await;
        Some(match sent {
            Exchange::Ended(end) => rules.classify(end, bounds.left()),
            Exchange::TooLong(answer) => {
                executor.metrics.limit_reached(Limit::ReplayBodyBytes);
                without_body(answer, rules, &bounds).await
            }
        })
    }
}

/// What the receiver of a step gets: the whole request, with the step's name and an id of its own.
fn step_request(keyed: &KeyedRequest, index: usize, step: &str, attempt: u32) -> Option<Request> {
    let mut request = keyed.steps.as_ref()?.of(index)?;
    name(&mut request.headers, OperationId::of_step(keyed.asked.id, step), attempt);
    if let Ok(step) = HeaderValue::from_str(step) {
        request.headers.insert(STEP, step);
    }
    Some(request)
}

/// Of an answer that is longer than what is kept there is no body: the sender gets what a replay
/// would. A success is known by now; anything else when it has come to its end.
async fn without_body(answer: TooLong, rules: AnswerRules<'_>, bounds: &Bounds<'_>) -> Ended {
    let TooLong { status, headers, begun, mut rest, memory } = answer;
    drop((begun, memory));
    let to_its_end = async {
        while rest.chunk().await?.is_some() {}
        Ok::<(), BrokeOff>(())
    };
    if rules.outcome(status) != Outcome::Succeeded {
        let reason = match bounds.hold(to_its_end).await {
            Ok(Ok(())) => None,
            Ok(Err(broke)) => Some(broke.reason()),
            Err(reason) => Some(reason),
        };
        if let Some(reason) = reason {
            return Ended::unanswered(reason, Some(status), bounds.left());
        }
    }
    let ending = rules.answered(Answer { status, headers: &headers }, StoredBody::Omitted);
    let stored = rules.stored(Answer { status, headers: &headers }, StoredBody::Omitted);
    Ended { ending, forwarded: of_stored(&stored) }
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
