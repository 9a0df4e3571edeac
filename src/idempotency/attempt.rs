//! One attempt: forward, classify, record, answer.

use http::{HeaderMap, HeaderName, HeaderValue};
use tokio::time::Instant;

use super::claim::Claim;
use super::classify::AnswerRules;
use super::disposition::Disposition;
use super::forward::{Bounds, Exchange, exchange};
use super::lease::Lease;
use super::long::LongAnswer;
use super::receiver::{Receiver, Receivers};
use super::record::Recording;
use super::steps::StepsAttempt;
use super::{Executor, KeyedRequest, PendingReply, RouteHandler};
use crate::clock::Moment;
use crate::operation::OperationId;
use crate::telemetry::Limit;

const OPERATION: HeaderName = HeaderName::from_static("onceward-operation");
const ATTEMPT: HeaderName = HeaderName::from_static("onceward-attempt");

/// An attempt that the store has granted.
pub(super) struct Attempt<'a> {
    pub(super) executor: &'a Executor,
    pub(super) handler: &'a RouteHandler,
    pub(super) claim: Claim,
    pub(super) keyed: KeyedRequest,
    pub(super) reply: &'a PendingReply,
}

impl Attempt<'_> {
    /// Makes the attempt, at the route's receiver or at those of its steps. A sender that has waited
    /// for `answer_within` is told that it is in flight, and the attempt goes on.
    pub(super) async fn run(self) {
        let _counted = self.executor.metrics.in_flight_guard();
        let lease = self.claim.lease();
        let reply = self.reply;
        let attempt = Some(self.claim.attempt);
        let in_flight = || Disposition::InFlight {
            operation: lease.operation(),
            attempt,
            retry_after: lease.left(),
            own: true,
        };
        let work = async {
            match &self.handler.receivers {
                Receivers::One(receiver) => self.run_at(receiver).await,
                Receivers::Steps(steps) => StepsAttempt::new(self, steps).run().await,
            }
        };
        tokio::select! {
            biased;
            () = work => {}
            never = reply.remind(in_flight) => match never {},
        }
    }

    /// Makes the attempt at one receiver, and keeps the lease meanwhile.
    async fn run_at(self, receiver: &Receiver) {
        let lease = self.claim.lease();
        tokio::select! {
            biased;
            () = self.forward_and_record(receiver) => {}
            never = lease.heartbeat() => match never {},
        }
    }

    async fn forward_and_record(self, receiver: &Receiver) {
        let Self { executor, handler, claim, keyed, reply } = self;
        let KeyedRequest { asked, mut request, memory, .. } = keyed;
        name(&mut request.headers, asked.id, claim.attempt);
        let lease = claim.lease();
        let bounds = executor.bounds(receiver, &lease, claim.asked_at);
        let room = executor.budget.reserve_none();
        let body_bytes_max = handler.policy.body_bytes_max;
        let sent = exchange(&receiver.upstream, request, &bounds, body_bytes_max, room).await;
        drop(memory);
        let rules = AnswerRules::of(receiver, &handler.policy);
        let recording = Recording { executor, handler, claim, reply };
        match sent {
            Exchange::Ended(end) => {
                let ended = rules.classify(end, bounds.left());
                recording.run(ended.ending, Some(ended.forwarded)).await;
            }
            Exchange::TooLong(answer) => {
                executor.metrics.limit_reached(Limit::ReplayBodyBytes);
                LongAnswer { recording, rules, bounds }.run(answer).await;
            }
        }
    }
}

impl Executor {
    /// What bounds an attempt at a receiver that began at `began_at`.
    pub(super) fn bounds<'a>(
        &'a self,
        receiver: &Receiver,
        lease: &'a Lease,
        began_at: Moment,
    ) -> Bounds<'a> {
        let spent = began_at.until(self.clock.moment());
        let left = receiver.attempt_timeout.saturating_sub(spent);
        Bounds { ends: Instant::now() + left, lease: Some(lease), stop: &self.stop }
    }
}

/// Tells the upstream which attempt of which operation it gets.
pub(super) fn name(headers: &mut HeaderMap, operation: OperationId, attempt: u32) {
    if let Ok(id) = HeaderValue::from_str(&operation.to_string()) {
        headers.insert(OPERATION, id);
    }
    headers.insert(ATTEMPT, attempt.into());
}
