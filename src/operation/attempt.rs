//! One attempt at an operation: how it ended, and why.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::id::ClaimId;
use super::time::Timestamp;
use crate::words::enum_of_words;

enum_of_words! {
    /// The outcome of an attempt. Its words stand in metrics, logs and JSON.
    #[derive(Serialize, Deserialize)]
    #[serde(rename_all = "snake_case")]
    pub enum Outcome {
        /// The operation was done. No copy is forwarded until the retention has passed.
        Succeeded = "succeeded",
        /// The upstream answered with a failure, or nothing was sent. The next copy is a new
        /// attempt.
        Failed = "failed",
        /// The request may have reached the upstream, and no answer says whether the operation was
        /// done.
        Uncertain = "uncertain",
    }
}

enum_of_words! {
    /// Why an attempt has its outcome. Its words stand in logs and JSON.
    #[derive(Serialize, Deserialize)]
    pub enum Reason {
        /// A complete answer came. Its status decided the outcome.
        Answered = "answered",
        /// The upstream's name could not be resolved.
        NameNotFound = "name-not-found",
        /// No connection could be made.
        ConnectFailed = "connect-failed",
        /// No connection could be made within `connect_timeout`.
        ConnectTimedOut = "connect-timed-out",
        /// The TLS handshake failed.
        TlsFailed = "tls-failed",
        /// The connection ended before a byte of the request was written.
        NothingWritten = "nothing-written",
        /// The lease had run out before the first byte, so nothing was sent.
        LeaseLost = "lease-lost",
        /// The claim was given up because its grant came too late, so nothing was sent.
        Withdrawn = "withdrawn",
        /// No complete answer came within `attempt_timeout`.
        TimedOut = "timed-out",
        /// The connection was reset or closed after a byte of the request was written.
        ConnectionLost = "connection-lost",
        /// The bytes that came back were not HTTP.
        NotHttp = "not-http",
        /// The answer's head came, and its body broke off.
        AnswerBrokeOff = "answer-broke-off",
        /// The lease ran out before an outcome was recorded.
        LeaseExpired = "lease-expired",
        /// The process that made the attempt ended.
        HolderEnded = "holder-ended",
        /// The process was shut down before the attempt had ended.
        ShutDown = "shut-down",
        /// The upstream demands a client certificate over TLS 1.3, and took no data without one.
        ClientCertificateRefused = "client-certificate-refused",
        /// The head of the answer is longer than `answer_header_bytes_max`, or has more lines than
        /// `answer_header_lines_max`.
        AnswerHeadTooLarge = "answer-head-too-large",
        /// It is not clear where the answer ends: it has a transfer coding beside `chunked`, or a
        /// length that is no number or contradicts another one.
        AnswerLengthUnclear = "answer-length-unclear",
        /// The chunks of the answer's body could not be read.
        AnswerBodyMalformed = "answer-body-malformed",
        /// The upstream switched to another protocol, although the request did not ask for that.
        ProtocolSwitched = "protocol-switched",
        /// The handler in this process panicked or ended with an error instead of an answer.
        HandlerFailed = "handler-failed",
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// One attempt, in the attempt log.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Attempt {
    /// The number of the attempt. It begins at 1 and grows for as long as the operation is
    /// remembered.
    pub number: u32,
    /// The claim under which the attempt was made.
    pub claim_id: ClaimId,
    /// The process that made the attempt.
    pub holder: Arc<str>,
    /// The step that was attempted; none on a route without steps.
    pub step: Option<Arc<str>>,
    /// The header that carried the key to the receiver; none if no header did. The receiver could
    /// recognise copies itself by this header.
    pub forward_key: Option<Arc<str>>,
    /// When the attempt was claimed.
    pub started_at: Timestamp,
    /// When the outcome was recorded, if it was.
    pub ended_at: Option<Timestamp>,
    /// Whether a byte of the request may have been sent. True until the contrary is known.
    pub sent: bool,
    /// The outcome, if it is known.
    pub outcome: Option<Outcome>,
    /// Why the attempt has that outcome.
    pub reason: Option<Reason>,
    /// The status of the upstream's answer, if one came.
    pub status: Option<u16>,
    /// The receiver's reference for the operation, if its answer has one.
    pub reference: Option<String>,
}

impl Attempt {
    /// An attempt that was claimed just now. Its process may die at any moment, so the request
    /// counts as sent until the contrary is known.
    pub(super) fn begun(
        number: u32,
        claim_id: ClaimId,
        holder: &Arc<str>,
        started_at: Timestamp,
    ) -> Self {
        Self {
            number,
            claim_id,
            holder: Arc::clone(holder),
            step: None,
            forward_key: None,
            started_at,
            ended_at: None,
            sent: true,
            outcome: None,
            reason: None,
            status: None,
            reference: None,
        }
    }

    /// Notes how the attempt ended.
    pub(super) const fn end(&mut self, outcome: Outcome, reason: Reason, at: Timestamp) {
        self.ended_at = Some(at);
        self.outcome = Some(outcome);
        self.reason = Some(reason);
    }

    /// Whether a byte of the request was sent. None if that is not known: the attempt has not
    /// ended, or its process ended without a report.
    pub fn was_sent(&self) -> Option<bool> {
        // Nobody has reported the end of an attempt whose lease ran out or whose process has ended.
        match (self.sent, self.outcome, self.reason) {
            (false, _, _) => Some(false),
            (true, None, _) | (true, _, Some(Reason::LeaseExpired | Reason::HolderEnded)) => None,
            (true, Some(_), _) => Some(true),
        }
    }

    /// Whether it is known that the operation was done, or that it was not.
    pub(super) const fn is_known(&self) -> bool {
        matches!(self.outcome, Some(Outcome::Succeeded | Outcome::Failed))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whether_it_was_sent_is_said_only_where_it_is_known() {
        let begun =
            || Attempt::begun(1, ClaimId::from_random([1; 16]), &"here".into(), Timestamp(1));
        let ended = |sent, outcome, reason| {
            let outcome = Some(outcome);
            let reason = Some(reason);
            Attempt { sent, outcome, reason, ..begun() }.was_sent()
        };
        assert_eq!(begun().was_sent(), None, "it has not ended");
        for reason in [Reason::LeaseExpired, Reason::HolderEnded] {
            assert_eq!(ended(true, Outcome::Uncertain, reason), None);
        }
        assert_eq!(ended(true, Outcome::Uncertain, Reason::TimedOut), Some(true));
        assert_eq!(ended(true, Outcome::Succeeded, Reason::Answered), Some(true));
        assert_eq!(ended(false, Outcome::Failed, Reason::ConnectFailed), Some(false));
    }
}
