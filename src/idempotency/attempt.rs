//! One attempt: forward, classify, record, answer.

use std::pin::pin;

use super::claim::Claim;
use super::classify::{AnswerRules, AttemptEnd};
use super::disposition::Disposition;
use super::executor::Context;
use super::forward::{Bounds, Exchange, exchange, name_attempt};
use super::long::LongAttempt;
use super::receiver::{Receiver, Receivers};
use super::record::Recording;
use super::request::KeyedRequest;
use super::steps::StepsAttempt;

/// An attempt that the store has granted.
pub(super) struct GrantedAttempt<'a> {
    pub(super) context: Context<'a>,
    pub(super) claim: Claim,
    pub(super) keyed: KeyedRequest,
}

impl GrantedAttempt<'_> {
    /// Makes the attempt at the route's receiver, or at the receivers of its steps. When
    /// `answer_within` is over, the sender is told that the attempt is in flight, and the attempt
    /// goes on.
    pub(super) async fn run(self) {
        let Context { executor, handler, sender } = self.context;
        let _counted = executor.metrics.in_flight_guard();
        let lease = self.claim.lease();
        let attempt = self.claim.attempt;
        let operation = lease.operation();
        let in_flight =
            || Disposition::StillInFlight { operation, attempt, retry_after: lease.left() };
        let work = async {
            match &handler.receivers {
                // The heartbeat renews the lease while the attempt is made.
                Receivers::One(receiver) => lease.renew_during(pin!(self.run_at(receiver))).await,
                Receivers::Steps(steps) => {
                    let Self { context, claim, keyed } = self;
                    StepsAttempt { context, steps, claim, keyed }.run().await;
                }
            }
        };
        sender.tell_if_overdue(pin!(work), in_flight).await;
    }

    /// Makes the attempt at one receiver.
    async fn run_at(self, receiver: &Receiver) {
        let Self { context, claim, keyed } = self;
        let KeyedRequest { subject, mut request, memory, .. } = keyed;
        name_attempt(&mut request.headers, subject.id, claim.attempt);
        let lease = claim.lease();
        let bounds = Bounds::of_attempt(context.executor, receiver, &lease, claim.sent_at);
        let sent = exchange(context, receiver, request, &bounds).await;
        // The exchange is over, so the memory of the request is free for other bodies while the
        // outcome is recorded.
        drop(memory);
        let rules = AnswerRules::of(receiver, &context.handler.policy);
        let recording = Recording { context, claim };
        let end = match sent {
            Ok(Exchange::Complete(answer)) => rules.complete(answer),
            Ok(Exchange::TooLong(answer)) => {
                return LongAttempt { recording, rules, bounds }.run(answer).await;
            }
            Err(no_answer) => AttemptEnd::of(no_answer, bounds.left()),
        };
        recording.record_and_answer(end.ending, end.forwarded).await;
    }
}
