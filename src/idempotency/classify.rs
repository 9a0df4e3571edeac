//! Reads from an exchange how the attempt ended, for the record and for the sender.

use std::sync::Arc;
use std::time::Duration;

use http::{HeaderMap, HeaderName, StatusCode};

use super::disposition::Forwarded;
use super::forward::{CompleteAnswer, NoAnswer};
use super::policy::{Policy, ReceiverPolicy};
use super::receiver::Receiver;
use crate::operation::state::Ending;
use crate::operation::{AnswerBody, Outcome, Reason, StoredAnswer};
use crate::upstream::{ResponseBody, stored_headers};

/// The rules by which a receiver's answer is read.
#[derive(Debug, Clone, Copy)]
pub(super) struct AnswerRules<'a> {
    receiver: &'a ReceiverPolicy,
    /// Headers that a replay does not carry.
    drop_headers: &'a [HeaderName],
}

/// The end of an attempt.
pub(super) struct AttemptEnd {
    /// The ending, for the record.
    pub(super) ending: Ending,
    /// The upstream's answer or the lack of one, for the sender.
    pub(super) forwarded: Forwarded,
}

/// Status and headers of a complete answer.
#[derive(Clone, Copy)]
pub(super) struct AnswerHead<'a> {
    pub(super) status: StatusCode,
    pub(super) headers: &'a HeaderMap,
}

impl<'a> AnswerRules<'a> {
    pub(super) fn of(receiver: &'a Receiver, policy: &'a Policy) -> Self {
        Self { receiver: &receiver.policy, drop_headers: &policy.drop_headers }
    }

    /// The outcome that the status of a complete answer means.
    pub(super) fn outcome(&self, status: StatusCode) -> Outcome {
        self.receiver.outcome.classify(status)
    }

    /// The end of an attempt whose answer is short enough to be kept.
    pub(super) fn complete(&self, answer: CompleteAnswer) -> AttemptEnd {
        let CompleteAnswer { status, headers, body, memory } = answer;
        let head = AnswerHead { status, headers: &headers };
        let ending = self.answered(head, AnswerBody::Kept(body.clone()));
        let body = ResponseBody::accounted(body, memory);
        AttemptEnd { ending, forwarded: Forwarded::Answered { status, headers, body } }
    }

    /// The end of an attempt with a complete answer.
    pub(super) fn answered(&self, head: AnswerHead<'_>, body: AnswerBody) -> Ending {
        let kept = match &body {
            AnswerBody::Kept(body) => Some(&**body),
            AnswerBody::Omitted => None,
        };
        let reference = self.receiver.reference.as_ref();
        let reference = reference.and_then(|location| location.read(head.headers, kept));
        match self.outcome(head.status) {
            Outcome::Succeeded => {
                Ending::Succeeded { answer: Arc::new(self.stored(head, body)), reference }
            }
            Outcome::Uncertain => {
                Ending::Uncertain { answer: Arc::new(self.stored(head, body)), reference }
            }
            Outcome::Failed => Ending::Failed { status: head.status, reference },
        }
    }

    /// The answer as it is stored and replayed.
    pub(super) fn stored(&self, head: AnswerHead<'_>, body: AnswerBody) -> StoredAnswer {
        let AnswerHead { status, headers } = head;
        let has_body = matches!(body, AnswerBody::Kept(_));
        StoredAnswer { status, headers: stored_headers(headers, self.drop_headers, has_body), body }
    }
}

impl AttemptEnd {
    /// The end of an attempt without a complete answer. `left` is the rest of the attempt's time.
    pub(super) fn of(no_answer: NoAnswer, left: Duration) -> Self {
        let ending = match no_answer {
            NoAnswer::NeverSent(reason) => Ending::NeverSent { reason },
            NoAnswer::Unanswered { reason, status } => Ending::Unanswered { reason, status },
        };
        Self { ending, forwarded: Forwarded::of(no_answer, left) }
    }
}

impl Forwarded {
    /// What the sender gets in place of an answer. The upstream may be working on the request for
    /// `left` from now.
    pub(super) const fn of(no_answer: NoAnswer, left: Duration) -> Self {
        match no_answer {
            NoAnswer::NeverSent(reason) => Self::Unreachable { reason },
            NoAnswer::Unanswered { reason: Reason::TimedOut, .. } => Self::TimedOut,
            NoAnswer::Unanswered { reason, .. } => Self::Broken { reason, ends_in: left },
        }
    }
}
