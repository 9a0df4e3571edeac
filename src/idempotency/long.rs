//! Answers that are too long to keep: they are streamed, and remembered without their bodies.

use std::pin::pin;
use std::time::Duration;

use super::attempt::{answered, unanswered};
use super::claim::Claim;
use super::disposition::{Disposition, Forwarded};
use super::flow::Flow;
use super::forward::{Bounds, TooLong};
use super::record::WaitingSender;
use super::{Executor, Handling, Reply};
use crate::operation::{AnswerBody as StoredBody, Outcome, StoredAnswer};
use crate::upstream::{self, AnswerBody, stored_headers};

/// How long, in all, a sender may keep an answer waiting whose end decides the outcome.
const SENDER_PATIENCE: Duration = Duration::from_secs(5);

impl Executor {
    /// A success is recorded before it is streamed: whatever becomes of the rest, the upstream has
    /// said that it is done. Anything else is recorded when it has come to its end.
    pub(super) async fn pass_through(
        &self,
        claim: Claim,
        answer: TooLong,
        handling: &Handling,
        (reply, bounds): (&Reply, Bounds<'_>),
    ) {
        let TooLong { status, headers, begun, rest, memory } = answer;
        let outcome = upstream::outcome(&handling.policy.outcome, status);
        let kept = StoredAnswer {
            status,
            headers: stored_headers(&headers, &handling.policy.drop_headers, false),
            body: StoredBody::Omitted,
        };
        let reference = handling.policy.reference.as_ref();
        let reference = reference.and_then(|place| place.read(&headers, None));
        let (pieces, body) = AnswerBody::streaming();
        let end = Forwarded::Answered { status, headers, body };
        let patience = match outcome {
            Outcome::Succeeded => Duration::MAX,
            Outcome::Failed | Outcome::Uncertain => SENDER_PATIENCE,
        };
        let begun = Some((begun, memory));
        let pieces = Some(pieces);
        let budget = self.budget.clone();
        let flow = Flow { begun, rest, pieces, budget, patience };
        if outcome == Outcome::Succeeded {
            let ending = answered(outcome, kept, reference);
            let sender = WaitingSender { reply, end: Some(end) };
            self.record(claim, ending, handling, sender).await;
            let _broke_off = bounds.hold(flow.run()).await;
        } else {
            let operation = claim.lease().operation();
            let attempt = claim.attempt;
            reply.send(Disposition::Executed { operation, attempt, step: None, end });
            let rest = Rest { outcome, kept, reference, flow };
            self.record_at_its_end(claim, rest, handling, (reply, bounds)).await;
        }
    }

    /// Records what came before its last piece is handed on: who has that may send a copy. As
    /// elsewhere the sender waits for a store that cannot record it until the end of the lease.
    async fn record_at_its_end(
        &self,
        claim: Claim,
        Rest { outcome, kept, reference, flow }: Rest,
        handling: &Handling,
        (reply, bounds): (&Reply, Bounds<'_>),
    ) {
        let lease = claim.lease();
        let status = Some(kept.status);
        let (ending, last) = match bounds.hold(flow.run_but_last()).await {
            Ok(Ok(last)) => (answered(outcome, kept, reference), Some(last)),
            Ok(Err(broke)) => (unanswered(Outcome::Uncertain, broke.reason(), status), None),
            Err(reason) => (unanswered(Outcome::Uncertain, reason, status), None),
        };
        let sender = WaitingSender { reply, end: None };
        let mut recording = pin!(self.record(claim, ending, handling, sender));
        let recorded = tokio::select! {
            biased;
            () = &mut recording => true,
            () = lease.give_up_at_its_end() => false,
        };
        if let Some(last) = last {
            let _slow = bounds.hold(last.hand_on()).await;
        }
        if !recorded {
            recording.await;
        }
    }
}

/// An answer whose end decides the outcome.
struct Rest {
    outcome: Outcome,
    kept: StoredAnswer,
    reference: Option<String>,
    flow: Flow,
}
