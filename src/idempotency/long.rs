//! Answers that are too long to keep: they are streamed to the sender, and stored without a body.

use std::time::Duration;

use tokio::sync::oneshot;

use super::classify::{AnswerHead, AnswerRules};
use super::disposition::{Disposition, Forwarded};
use super::forward::{Bounds, LongAnswer};
use super::record::Recording;
use super::relay::BodyRelay;
use crate::operation::state::Ending;
use crate::operation::{AnswerBody, Outcome};
use crate::upstream::{Chunk, ResponseBody};

/// The total time for which a sender may keep the upstream waiting, if the end of the answer
/// decides the outcome. A sender that takes longer is given up, because it must not keep a failure
/// from being recorded.
const SENDER_PATIENCE: Duration = Duration::from_secs(5);

/// An attempt whose answer is longer than `replay.body_bytes_max`.
pub(super) struct LongAttempt<'a> {
    pub(super) recording: Recording<'a>,
    pub(super) rules: AnswerRules<'a>,
    pub(super) bounds: Bounds<'a>,
}

impl LongAttempt<'_> {
    /// Streams the answer. A success is recorded before the answer is streamed: the upstream has
    /// said that the operation was done, whatever becomes of the rest of the body. Any other answer
    /// is recorded at the end of its body, because an answer that breaks off leaves the outcome
    /// unknown.
    pub(super) async fn run(self, answer: LongAnswer) {
        let LongAnswer { status, headers, begun, rest, memory } = answer;
        let ending =
            self.rules.answered(AnswerHead { status, headers: &headers }, AnswerBody::Omitted);
        let is_success = ending.outcome() == Outcome::Succeeded;
        let (chunks, body) = ResponseBody::streaming();
        let forwarded = Forwarded::Answered { status, headers, body };
        let relay = BodyRelay {
            first: Some(Chunk::Data(begun, memory)),
            rest,
            chunks: Some(chunks),
            budget: self.recording.context.executor.budget.clone(),
            patience: if is_success { Duration::MAX } else { SENDER_PATIENCE },
        };
        if is_success {
            self.recording.record_and_answer(ending, forwarded).await;
            let _broke_off = self.bounds.run(relay.run()).await;
            return;
        }
        let operation = self.recording.claim.subject().id;
        let attempt = self.recording.claim.attempt;
        let executed = Disposition::executed(operation, attempt, forwarded);
        self.recording.context.sender.answer(executed);
        self.record_at_its_end(ending, relay).await;
    }

    /// Records the outcome before the last chunk is handed on, because a sender that has the whole
    /// answer may send a copy. If the store cannot record the outcome, the sender gets the last
    /// chunk at the end of the lease.
    async fn record_at_its_end(self, ending: Ending, relay: BodyRelay) {
        let Self { recording, bounds, .. } = self;
        let status = ending.status();
        let mut last = None;
        let ending = match bounds.run(relay.run_but_last()).await {
            Ok(Ok(chunk)) => {
                last = Some(chunk);
                ending
            }
            Ok(Err(broke)) => Ending::Unanswered { reason: broke.reason(), status },
            Err(reason) => Ending::Unanswered { reason, status },
        };
        let (answer_early, is_early) = oneshot::channel();
        let record = recording.record(ending, move || {
            let _gone = answer_early.send(());
        });
        let hand_on = async {
            // When the outcome is recorded, the other end of the channel is dropped. That ends
            // this wait, too.
            let _early_or_recorded = is_early.await;
            if let Some(last) = last {
                let _slow = bounds.run(last.hand_on()).await;
            }
        };
        let (_recorded, ()) = tokio::join!(record, hand_on);
    }
}
