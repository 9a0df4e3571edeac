//! The answer to the sender of an event with several receivers.

use super::StepsAttempt;
use super::run::{StepResult, of_stored};
use crate::idempotency::disposition::Disposition;
use crate::idempotency::executor::{Context, Executor};
use crate::operation::Outcome;
use crate::operation::state::{Advanced, EventEnd};

/// The result of an event when no step of the attempt runs any more.
struct EventResult {
    end: EventEnd,
    copy_refused: bool,
}

impl StepsAttempt<'_> {
    /// The answer to the sender when no step of its attempt runs any more.
    pub(super) async fn answer(&self, mut results: Vec<StepResult>) -> Disposition {
        let context = self.context;
        let operation = self.keyed.subject.id;
        let attempt = self.claim.attempt;
        let is_lost = self.log_records(&results);
        let open = match event_result(&results) {
            Some(EventResult { end: EventEnd::Succeeded(stored), .. }) => {
                self.log_late_success();
                // An earlier attempt may have done the step whose answer the sender gets.
                let from = &self.steps.plan.answer_from;
                let own = results.iter().position(|result| result.step == *from);
                let forwarded = own.map_or_else(
                    || of_stored(&stored),
                    |index| results.swap_remove(index).forwarded,
                );
                return Disposition::executed(operation, attempt, forwarded);
            }
            Some(EventResult { end: EventEnd::Open(first), copy_refused }) => {
                if results.iter().any(|result| result.outcome == Outcome::Failed) {
                    context.log_refused_then_failed(operation, attempt, copy_refused);
                }
                not_done(results, |result| result.step == first)
            }
            // The store had lost the record, so the result of the event is not known.
            None if is_lost => not_done(results, |_| true),
            None => None,
        };
        match open {
            Some(StepResult { step, forwarded, .. }) => {
                Disposition::Executed { operation, attempt, step: Some(step), forwarded }
            }
            // Another claim has superseded this one, or the first step that was not done belongs to
            // another attempt. The sender gets the answer that a copy would get.
            None => context.look(&self.keyed.subject).await,
        }
    }

    /// Logs each lost record and each superseded claim. The result says whether a record was lost.
    fn log_records(&self, results: &[StepResult]) -> bool {
        let executor = self.context.executor;
        let operation = self.keyed.subject.id;
        let attempt = self.claim.attempt;
        let mut is_lost = false;
        for result in results {
            match &result.advanced {
                Some(Advanced::RecordLost) => {
                    executor.log_record_lost(operation, attempt);
                    is_lost = true;
                }
                Some(Advanced::Superseded) => executor.log_superseded(operation, attempt),
                Some(Advanced::Next { .. } | Advanced::Recorded | Advanced::Ended { .. })
                | None => {}
            }
        }
        is_lost
    }

    fn log_late_success(&self) {
        let Context { executor, sender, .. } = self.context;
        if sender.told_to_come_back() {
            let took = self.claim.sent_at.until(executor.clock.moment());
            Executor::log_late_success(&self.keyed.subject, self.claim.attempt, took);
        }
    }
}

/// The result of the event at the end of the attempt. A success is final. Otherwise the latest
/// result counts, because the record had the outcomes of all earlier steps by then.
fn event_result(results: &[StepResult]) -> Option<EventResult> {
    let ends = results.iter().filter_map(|result| {
        let Some(Advanced::Ended { copy_refused, end }) = &result.advanced else { return None };
        Some(EventResult { end: end.clone(), copy_refused: *copy_refused })
    });
    ends.reduce(|before, after| match before.end {
        EventEnd::Succeeded(_) => before,
        EventEnd::Open(_) => after,
    })
}

/// The first step that was not done and for which `is_it` holds.
fn not_done(results: Vec<StepResult>, is_it: impl Fn(&StepResult) -> bool) -> Option<StepResult> {
    let mut open = results.into_iter().filter(|result| result.outcome != Outcome::Succeeded);
    open.find(is_it)
}
