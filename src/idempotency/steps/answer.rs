//! What the sender of an event with several receivers gets.

use super::super::Executor;
use super::super::disposition::Disposition;
use super::StepsAttempt;
use super::run::{StepResult, of_stored};
use crate::operation::Outcome;
use crate::operation::state::{Advanced, EventEnd};

/// How the event stood when nothing of the attempt ran any more.
struct EventResult {
    end: EventEnd,
    copy_refused: bool,
}

impl StepsAttempt<'_> {
    /// The answer to the sender once nothing of its attempt runs any more.
    pub(super) async fn answer(&self, mut results: Vec<StepResult>) -> Disposition {
        let operation = self.keyed.asked.id;
        let attempt = self.claim.attempt;
        let is_lost = self.note_records(&results);
        let open = match event_result(&results) {
            Some(EventResult { end: EventEnd::Succeeded(stored), .. }) => {
                self.note_late_success();
                let from = &self.steps.plan.answer_from;
                let own = results.iter().position(|result| result.step == *from);
                let end = own.map_or_else(
                    || of_stored(&stored),
                    |index| results.swap_remove(index).forwarded,
                );
                return Disposition::executed(operation, attempt, end);
            }
            Some(EventResult { end: EventEnd::Open(first), copy_refused }) => {
                if results.iter().any(|result| result.outcome == Outcome::Failed) {
                    self.executor.note_refused(operation, attempt, copy_refused, self.reply);
                }
                not_done(results, |result| result.step == first)
            }
            None if is_lost => not_done(results, |_| true),
            None => None,
        };
        match open {
            Some(StepResult { step, forwarded: end, .. }) => {
                Disposition::Executed { operation, attempt, step: Some(step), end }
            }
            None => self.executor.look(&self.keyed.asked, self.handler).await,
        }
    }

    /// Tells a person of records that were lost or superseded. Says whether one was lost.
    fn note_records(&self, results: &[StepResult]) -> bool {
        let operation = self.keyed.asked.id;
        let attempt = self.claim.attempt;
        let mut is_lost = false;
        for result in results {
            match &result.advanced {
                Some(Advanced::RecordLost) => {
                    self.executor.note_record_lost(operation, attempt);
                    is_lost = true;
                }
                Some(Advanced::Superseded) => self.executor.note_superseded(operation, attempt),
                Some(Advanced::Next { .. } | Advanced::Recorded | Advanced::Ended { .. })
                | None => {}
            }
        }
        is_lost
    }

    fn note_late_success(&self) {
        if self.reply.told_to_come_back() {
            let took = self.claim.asked_at.until(self.executor.clock.moment());
            Executor::note_late(&self.keyed.asked, self.claim.attempt, took);
        }
    }
}

/// How the event stood at the end. A success is the last word; of other ends the later one knows more.
fn event_result(results: &[StepResult]) -> Option<EventResult> {
    let ends = results.iter().filter_map(|result| match &result.advanced {
        Some(Advanced::Ended { copy_refused, end }) => {
            Some(EventResult { end: end.clone(), copy_refused: *copy_refused })
        }
        Some(
            Advanced::Next { .. }
            | Advanced::Recorded
            | Advanced::RecordLost
            | Advanced::Superseded,
        )
        | None => None,
    });
    ends.reduce(|before, after| match before.end {
        EventEnd::Succeeded(_) => before,
        EventEnd::Open(_) => after,
    })
}

/// The step that is asked for, if it has not succeeded.
fn not_done(results: Vec<StepResult>, is_it: impl Fn(&StepResult) -> bool) -> Option<StepResult> {
    let mut open = results.into_iter().filter(|result| result.outcome != Outcome::Succeeded);
    open.find(is_it)
}
