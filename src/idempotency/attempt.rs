//! One attempt: forward, classify, record, answer.

use std::sync::Arc;
use std::time::Duration;

use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use tokio::time::Instant;

use super::claim::Claim;
use super::disposition::{Disposition, Forwarded};
use super::forward::{Bounds, End, Exchange, exchange};
use super::record::WaitingSender;
use super::{Executor, Handling, Keyed, Policy, Reference, Reply};
use crate::operation::state::Ending;
use crate::operation::{AnswerBody as StoredBody, OperationId, Outcome, Reason, StoredAnswer};
use crate::telemetry::Limit;
use crate::upstream::{self, AnswerBody, OutcomeRule, stored_headers};

const OPERATION: HeaderName = HeaderName::from_static("onceward-operation");
const ATTEMPT: HeaderName = HeaderName::from_static("onceward-attempt");

impl Executor {
    /// Makes the attempt that was claimed, at one receiver or at several.
    pub(super) async fn carry_out(
        &self,
        claim: Claim,
        keyed: Keyed,
        handling: &Handling,
        reply: Reply,
    ) {
        match &handling.steps {
            Some(steps) => self.attempt_steps(claim, keyed, (handling, steps), reply).await,
            None => self.attempt(claim, keyed, handling, reply).await,
        }
    }

    /// Makes the attempt that was claimed. Meanwhile the lease is kept, and a sender that has
    /// waited for long enough is told so.
    async fn attempt(&self, claim: Claim, keyed: Keyed, handling: &Handling, reply: Reply) {
        let _counted = self.metrics.in_flight_guard();
        let lease = claim.lease();
        let operation = keyed.asked.id;
        let attempt = Some(claim.attempt);
        let in_flight = || {
            let retry_after = lease.left();
            Disposition::InFlight { operation, attempt, retry_after, own: true }
        };
        tokio::select! {
            biased;
            () = self.forward_and_record(claim, keyed, handling, &reply) => {}
            never = reply.remind(in_flight) => match never {},
            never = lease.heartbeat() => match never {},
        }
    }

    async fn forward_and_record(
        &self,
        claim: Claim,
        keyed: Keyed,
        handling: &Handling,
        reply: &Reply,
    ) {
        let Keyed { asked, mut request, memory, .. } = keyed;
        name(&mut request.headers, asked.id, claim.attempt);
        let lease = claim.lease();
        let policy = &handling.policy;
        let spent = claim.asked_at.until(self.clock.moment());
        let left = policy.terms.attempt_timeout.saturating_sub(spent);
        let ends = Instant::now() + left;
        let bounds = Bounds { ends, lease: Some(&lease), stop: &self.stop };
        let room = self.budget.reserve_none();
        let upstream = &handling.upstream;
        let exchange = exchange(upstream, request, &bounds, policy.body_bytes_max, room).await;
        drop(memory);
        match exchange {
            Exchange::Ended(end) => {
                let (ending, end) = classify(end, policy.judging(), bounds.left());
                let sender = WaitingSender { reply, end: Some(end) };
                self.record(claim, ending, handling, sender).await;
            }
            Exchange::TooLong(answer) => {
                self.metrics.limit_reached(Limit::ReplayBodyBytes);
                self.pass_through(claim, answer, handling, (reply, bounds)).await;
            }
        }
    }
}

/// Tells the upstream which attempt of which operation it gets.
pub(super) fn name(headers: &mut HeaderMap, operation: OperationId, attempt: u32) {
    if let Ok(id) = HeaderValue::from_str(&operation.to_string()) {
        headers.insert(OPERATION, id);
    }
    headers.insert(ATTEMPT, attempt.into());
}

/// What is read from an answer.
#[derive(Debug, Clone, Copy)]
pub(super) struct Judging<'a> {
    /// Which statuses mean what.
    pub(super) outcome: &'a OutcomeRule,
    /// Where it says what the receiver calls the operation.
    pub(super) reference: Option<&'a Reference>,
    /// Headers that a replay does not carry.
    pub(super) drop_headers: &'a [HeaderName],
}

impl Policy {
    const fn judging(&self) -> Judging<'_> {
        let Self { outcome, reference, drop_headers, .. } = self;
        Judging { outcome, reference: reference.as_ref(), drop_headers: drop_headers.as_slice() }
    }
}

/// The outcome of an exchange, and what its sender gets. `left` is what is left of the attempt.
pub(super) fn classify(end: End, judging: Judging<'_>, left: Duration) -> (Ending, Forwarded) {
    match end {
        End::Answered { status, headers, body, memory } => {
            let kept = StoredAnswer {
                status,
                headers: stored_headers(&headers, judging.drop_headers, true),
                body: StoredBody::Kept(body.clone()),
            };
            let reference = judging.reference.and_then(|place| place.read(&headers, Some(&body)));
            let ending = answered(upstream::outcome(judging.outcome, status), kept, reference);
            let body = AnswerBody::accounted(body, memory);
            (ending, Forwarded::Answered { status, headers, body })
        }
        End::NeverSent(reason) => {
            (unanswered(Outcome::Failed, reason, None), Forwarded::Unreachable { reason })
        }
        End::Unanswered { reason, status } => {
            let timed_out = reason == Reason::TimedOut;
            let broken = Forwarded::Broken { reason, ends_in: left };
            let end = if timed_out { Forwarded::TimedOut } else { broken };
            (unanswered(Outcome::Uncertain, reason, status), end)
        }
    }
}

/// A complete answer came.
pub(super) fn answered(
    outcome: Outcome,
    answer: StoredAnswer,
    reference: Option<String>,
) -> Ending {
    let status = Some(answer.status.as_u16());
    let answer = match outcome {
        Outcome::Succeeded | Outcome::Uncertain => Some(Arc::new(answer)),
        Outcome::Failed => None,
    };
    Ending { outcome, reason: Reason::Answered, sent: true, status, answer, reference }
}

/// No complete answer came.
pub(super) fn unanswered(outcome: Outcome, reason: Reason, status: Option<StatusCode>) -> Ending {
    let sent = outcome == Outcome::Uncertain;
    let status = status.map(|status| status.as_u16());
    Ending { outcome, reason, sent, status, answer: None, reference: None }
}
