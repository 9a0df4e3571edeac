//! What a person should know of how an attempt ended.

use super::{Executor, Reply};
use crate::operation::state::Ending;
use crate::operation::{OperationId, Outcome};

impl Executor {
    /// The outcome of an attempt, or of one of its steps.
    pub(super) fn note_end(
        operation: OperationId,
        (attempt, step): (u32, Option<&str>),
        ending: &Ending,
    ) {
        let (reason, status) = (ending.reason.as_str(), ending.status);
        match ending.outcome {
            Outcome::Succeeded => {}
            Outcome::Failed => {
                tracing::info!(
                    operation.id = %operation,
                    attempt.number = attempt,
                    step,
                    reason,
                    status,
                    "the attempt failed"
                );
            }
            Outcome::Uncertain => {
                tracing::warn!(
                    operation.id = %operation,
                    attempt.number = attempt,
                    step,
                    reason,
                    status,
                    "nobody knows whether it was done"
                );
            }
        }
    }

    /// An attempt has failed.
    pub(super) fn note_refused(
        &self,
        operation: OperationId,
        attempt: u32,
        copy_refused: bool,
        reply: &Reply,
    ) {
        if (copy_refused || reply.told_to_come_back()) && !reply.passes() {
            self.metrics.refused_then_failed.inc();
            tracing::warn!(
                operation.id = %operation,
                attempt.number = attempt,
                "a copy was refused, then the attempt failed: a sender that does not retry has lost it"
            );
        }
    }

    pub(super) fn note_record_lost(&self, operation: OperationId, attempt: u32) {
        self.metrics.record_lost.inc();
        tracing::error!(operation.id = %operation, attempt.number = attempt, "the store had lost the record; it was written anew");
    }

    pub(super) fn note_superseded(&self, operation: OperationId, attempt: u32) {
        self.metrics.superseded.inc();
        tracing::error!(operation.id = %operation, attempt.number = attempt, "superseded: its outcome changed nothing");
    }
}
