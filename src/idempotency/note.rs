//! What a person should know of how an attempt ended.

use std::time::Duration;

use super::{Executor, PendingReply};
use crate::operation::state::Ending;
use crate::operation::{OperationId, OperationRequest, Outcome};
use crate::store;
use crate::telemetry::chain;

impl Executor {
    /// The outcome of an attempt, or of one of its steps.
    pub(super) fn note_end(
        asked: &OperationRequest,
        attempt: u32,
        step: Option<&str>,
        ending: &Ending,
    ) {
        let operation = asked.id;
        let reason = ending.reason().as_str();
        let status = ending.status().map(|status| status.as_u16());
        match ending.outcome() {
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
                    operation.key = asked.key.logged(),
                    route.name = &*asked.route,
                    attempt.number = attempt,
                    step,
                    reason,
                    status,
                    next = format!("onceward operations show {operation}"),
                    "nobody knows whether it was done"
                );
            }
        }
    }

    /// An attempt has succeeded after its sender was told to come back, or after it was held.
    pub(super) fn note_late(asked: &OperationRequest, attempt: u32, took: Duration) {
        tracing::info!(
            operation.id = %asked.id,
            operation.key = asked.key.logged(),
            route.name = &*asked.route,
            attempt.number = attempt,
            duration_ms = u64::try_from(took.as_millis()).unwrap_or(u64::MAX),
            "a slow attempt has succeeded: copies get its answer from now on"
        );
    }

    /// What came of an attempt is given up, since nobody can read the record that it belongs to.
    pub(super) fn note_unrecorded(
        &self,
        asked: &OperationRequest,
        attempt: u32,
        error: &store::Error,
    ) {
        self.metrics.unrecorded.inc();
        tracing::error!(
            operation.id = %asked.id,
            operation.key = asked.key.logged(),
            route.name = &*asked.route,
            attempt.number = attempt,
            error = %chain(error),
            "an outcome is given up: the record cannot be read, and copies are refused"
        );
    }

    /// An attempt has failed.
    pub(super) fn note_refused(
        &self,
        operation: OperationId,
        attempt: u32,
        copy_refused: bool,
        reply: &PendingReply,
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
