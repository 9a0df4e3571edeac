//! The answer to the sender of an event with several receivers.

use super::StepsAttempt;
use super::run::{StepResult, of_stored};
use crate::idempotency::disposition::Disposition;
use crate::idempotency::end_log::log_late_success;
use crate::operation::Outcome;
use crate::operation::state::{Advanced, EventEnd};

impl StepsAttempt<'_> {
    /// The answer to the sender when no step of its attempt runs any more.
    pub(super) async fn answer(&self, mut results: Vec<StepResult>) -> Disposition {
        let context = self.context;
        let operation = self.keyed.subject.id;
        let attempt = self.claim.attempt;
        let record_was_lost =
            results.iter().any(|result| result.advanced() == Some(&Advanced::RecordLost));
        let open = match event_end(&results).cloned() {
            Some(Advanced::Ended { end: EventEnd::Succeeded(stored), .. }) => {
                if context.sender.told_to_come_back() {
                    let took = self.claim.sent_at.until(context.executor.clock.moment());
                    log_late_success(&self.keyed.subject, attempt, took);
                }
                // An earlier attempt may have done the step whose answer the sender gets.
                let from = &self.steps.plan.answer_from;
                let own = results.iter().position(|result| result.step == *from);
                let forwarded = own.map_or_else(
                    || of_stored(&stored),
                    |index| results.swap_remove(index).forwarded,
                );
                return Disposition::executed(operation, attempt, forwarded);
            }
            Some(Advanced::Ended { end: EventEnd::Open(first), copy_refused }) => {
                if results.iter().any(|result| result.outcome == Outcome::Failed) {
                    context.log_refused_then_failed(operation, attempt, copy_refused);
                }
                not_done(results, |result| result.step == first)
            }
            // The reply about a lost record does not say how the event ended.
            _ if record_was_lost => not_done(results, |_| true),
            _ => None,
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
}

impl StepResult {
    fn advanced(&self) -> Option<&Advanced> {
        self.recorded.as_ref().map(|recorded| &recorded.advanced)
    }
}

/// The result of the event at the end of the attempt. A success is final. Otherwise the latest
/// result counts, because the record had the outcomes of all earlier steps by then.
fn event_end(results: &[StepResult]) -> Option<&Advanced> {
    let is_success =
        |end: &Advanced| matches!(end, Advanced::Ended { end: EventEnd::Succeeded(_), .. });
    let ends = results.iter().filter_map(StepResult::advanced);
    let ends = ends.filter(|end| matches!(end, Advanced::Ended { .. }));
    ends.reduce(|before, after| if is_success(before) { before } else { after })
}

/// The first step that was not done and for which `is_it` holds.
fn not_done(results: Vec<StepResult>, is_it: impl Fn(&StepResult) -> bool) -> Option<StepResult> {
    let mut open = results.into_iter().filter(|result| result.outcome != Outcome::Succeeded);
    open.find(is_it)
}
