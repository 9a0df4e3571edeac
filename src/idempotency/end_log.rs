//! Log lines and counters about the end of an attempt.

use std::time::Duration;

use http::StatusCode;

use super::executor::{Context, Executor};
use crate::operation::state::Ending;
use crate::operation::{OperationId, Outcome, Reason, Subject};
use crate::store;
use crate::telemetry::chain;

/// The part of an ending that the log shows, for an attempt or one of its steps. It is a copy,
/// because the ending itself goes into the store before the log line is written.
#[derive(Debug, Clone, Copy)]
pub(super) struct EndLog {
    pub(super) outcome: Outcome,
    reason: Reason,
    status: Option<StatusCode>,
}

impl EndLog {
    pub(super) fn of(ending: &Ending) -> Self {
        Self { outcome: ending.outcome(), reason: ending.reason(), status: ending.status() }
    }

    /// Writes the log line.
    pub(super) fn log(
        self,
        executor: &Executor,
        subject: &Subject,
        attempt: u32,
        step: Option<&str>,
    ) {
        let operation = subject.id;
        let reason = self.reason.as_str();
        let status = self.status.map(|status| status.as_u16());
        match self.outcome {
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
                    operation.key = subject.key.logged(),
                    route.name = &*subject.route,
                    attempt.number = attempt,
                    step,
                    reason,
                    status,
                    next = executor.command_to_show(operation),
                    "nobody knows whether the operation was done"
                );
            }
        }
    }
}

impl Executor {
    /// The command that shows an operation.
    fn command_to_show(&self, operation: OperationId) -> String {
        let show = format!("onceward operations show {operation}");
        match self.admin.get() {
            Some(address) => format!("{show} --admin http://{address}"),
            None => show,
        }
    }

    /// Logs that an outcome is given up, because its record cannot be read.
    pub(super) fn log_unrecorded(&self, subject: &Subject, attempt: u32, error: &store::Error) {
        self.metrics.unrecorded.inc();
        tracing::error!(
            operation.id = %subject.id,
            operation.key = subject.key.logged(),
            route.name = &*subject.route,
            attempt.number = attempt,
            error = %chain(error),
            "an outcome is given up: the record cannot be read, and copies are refused"
        );
    }

    pub(super) fn log_record_lost(&self, operation: OperationId, attempt: u32) {
        self.metrics.record_lost.inc();
        tracing::error!(operation.id = %operation, attempt.number = attempt, "the store had lost the record; the outcome is in a new one");
    }

    pub(super) fn log_superseded(&self, operation: OperationId, attempt: u32) {
        self.metrics.superseded.inc();
        tracing::error!(operation.id = %operation, attempt.number = attempt, "the claim was superseded: the outcome of the attempt changed nothing");
    }
}

impl Context<'_> {
    /// Logs that an attempt has failed, if a copy was refused or its own sender was told to come
    /// back before that. Many senders send an event only a few times, so the event may be lost.
    pub(super) fn log_refused_then_failed(
        self,
        operation: OperationId,
        attempt: u32,
        copy_refused: bool,
    ) {
        let Self { executor, sender, .. } = self;
        if (copy_refused || sender.told_to_come_back()) && !sender.is_observed() {
            executor.metrics.refused_then_failed.inc();
            tracing::warn!(
                operation.id = %operation,
                attempt.number = attempt,
                "a copy was refused, then the attempt failed: the event is lost if its sender does not retry"
            );
        }
    }
}

/// Logs that an attempt has succeeded after its sender was told to come back, or after its
/// operation was held.
pub(super) fn log_late_success(subject: &Subject, attempt: u32, took: Duration) {
    tracing::info!(
        operation.id = %subject.id,
        operation.key = subject.key.logged(),
        route.name = &*subject.route,
        attempt.number = attempt,
        duration_ms = u64::try_from(took.as_millis()).unwrap_or(u64::MAX),
        "a slow attempt has succeeded: copies get its answer from now on"
    );
}

/// Logs that a sender got its answer although the store could not record the outcome yet.
pub(super) fn log_early_answer(subject: &Subject, attempt: u32, step: Option<&str>) {
    tracing::error!(
        operation.id = %subject.id,
        attempt.number = attempt,
        step,
        "answered before the outcome could be recorded; recording goes on"
    );
}
