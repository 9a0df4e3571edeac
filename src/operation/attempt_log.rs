//! The attempt log: the attempts at an operation, as far as they are kept.

use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::attempt::Attempt;
use super::id::ClaimId;

/// The attempts at an operation: the first and the last [`AttemptLog::KEPT`] in full, and how many
/// there were.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct AttemptLog {
    first: Vec<Attempt>,
    last: VecDeque<Attempt>,
    total: u32,
    latest: u32,
    dropped: Vec<Dropped>,
}

/// The number of dropped attempts at one step whose outcome is not known. The step is none on a
/// route without steps.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Dropped {
    step: Option<Arc<str>>,
    uncertain: u32,
}

impl AttemptLog {
    /// How many attempts are kept from either end.
    pub const KEPT: usize = 32;

    /// Adds the next attempt.
    pub fn push(&mut self, attempt: Attempt) {
        self.total = self.total.saturating_add(1);
        self.latest = self.latest.max(attempt.number);
        if self.first.len() < Self::KEPT {
            self.first.push(attempt);
        } else {
            // Attempts in the middle are dropped, so that a sender that never stops cannot make the
            // record grow. The uncertain ones among them stay counted, because `attempts_max`
            // bounds their number.
            if self.last.len() == Self::KEPT
                && let Some(dropped) = self.last.pop_front()
                && !dropped.is_known()
            {
                self.drop_uncertain(dropped.step, 1);
            }
            self.last.push_back(attempt);
        }
    }

    /// The log of an old record, which does not say how many dropped attempts were uncertain. All
    /// dropped attempts count as uncertain, because one attempt too few is safer than one too many.
    pub(crate) fn restored(
        first: Vec<Attempt>,
        last: VecDeque<Attempt>,
        total: u32,
        latest: u32,
    ) -> Self {
        let mut log = Self { first, last, total, latest, dropped: Vec::new() };
        let kept = u32::try_from(log.kept().count()).unwrap_or(u32::MAX);
        let dropped = total.saturating_sub(kept);
        if dropped > 0 {
            let steps: BTreeSet<_> = log.kept().map(|attempt| attempt.step.clone()).collect();
            for step in steps {
                log.drop_uncertain(step, dropped);
            }
        }
        log
    }

    fn drop_uncertain(&mut self, step: Option<Arc<str>>, count: u32) {
        match self.dropped.iter_mut().find(|dropped| dropped.step == step) {
            Some(dropped) => dropped.uncertain = dropped.uncertain.saturating_add(count),
            None => self.dropped.push(Dropped { step, uncertain: count }),
        }
    }

    /// How many attempts there were.
    pub const fn total(&self) -> u32 {
        self.total
    }

    /// The highest number of an attempt; 0 before the first. An attempt that is logged late does
    /// not lower it.
    pub const fn latest_number(&self) -> u32 {
        self.latest
    }

    /// How many attempts at this step have no known outcome. Dropped attempts are included. The
    /// step is none on a route without steps.
    pub fn uncertain(&self, step: Option<&str>) -> u32 {
        let is_one = |attempt: &&Attempt| !attempt.is_known() && attempt.step.as_deref() == step;
        let kept = u32::try_from(self.kept().filter(is_one).count()).unwrap_or(u32::MAX);
        let dropped = self.dropped.iter().find(|dropped| dropped.step.as_deref() == step);
        kept.saturating_add(dropped.map_or(0, |dropped| dropped.uncertain))
    }

    /// The attempts that are kept, in the order in which they were logged.
    pub fn kept(&self) -> impl Iterator<Item = &Attempt> {
        self.first.iter().chain(&self.last)
    }

    /// Whether an attempt with this number may have been logged and dropped.
    pub fn may_have_dropped(&self, number: u32) -> bool {
        number <= self.latest && self.kept().count() < self.total as usize
    }

    /// Whether the log keeps an attempt under this claim.
    pub fn knows(&self, claim_id: ClaimId) -> bool {
        self.kept().any(|attempt| attempt.claim_id == claim_id)
    }

    /// The attempts under this claim that are kept: one for each step that began.
    pub(super) fn all_of(&mut self, claim_id: ClaimId) -> impl Iterator<Item = &mut Attempt> {
        let all = self.first.iter_mut().chain(&mut self.last);
        all.filter(move |attempt| attempt.claim_id == claim_id)
    }

    /// The attempt under this claim at this step, if it is kept.
    pub fn of(&mut self, claim_id: ClaimId, step: Option<&str>) -> Option<&mut Attempt> {
        let mut newest_first = self.last.iter_mut().rev().chain(self.first.iter_mut().rev());
        newest_first.find(|attempt| attempt.claim_id == claim_id && attempt.step.as_deref() == step)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::operation::{Outcome, Timestamp};

    fn attempt(number: u32) -> Attempt {
        let mut bits = [0; 16];
        bits[..4].copy_from_slice(&number.to_be_bytes());
        let started_at = Timestamp(u64::from(number));
        Attempt::begun(number, ClaimId::from_random(bits), &"here".into(), started_at)
    }

    fn log_of(total: u32) -> AttemptLog {
        let mut log = AttemptLog::default();
        (1..=total).for_each(|number| log.push(attempt(number)));
        log
    }

    #[test]
    fn of_many_attempts_the_first_and_the_last_stay() {
        let log = log_of(100);
        let numbers: Vec<_> = log.kept().map(|attempt| attempt.number).collect();
        let expected: Vec<_> = (1..=32).chain(69..=100).collect();
        assert_eq!(numbers, expected);
        assert_eq!((log.total(), log.latest_number()), (100, 100));
    }

    fn ended(number: u32, step: Option<&str>, outcome: Outcome) -> Attempt {
        Attempt { step: step.map(Into::into), outcome: Some(outcome), ..attempt(number) }
    }

    #[test]
    fn dropped_attempts_are_counted_by_step_and_outcome() {
        let mut log = AttemptLog::default();
        for number in 1..=200 {
            // Every tenth attempt is uncertain, and every twentieth is at another step.
            let outcome = if number % 10 == 0 { Outcome::Uncertain } else { Outcome::Failed };
            log.push(ended(number, (number % 20 == 0).then_some("mail"), outcome));
        }
        assert_eq!((log.uncertain(None), log.uncertain(Some("mail"))), (10, 10));
        assert_eq!((log.total(), log.uncertain(Some("other"))), (200, 0));
    }

    /// Older records do not say how dropped attempts ended.
    #[test]
    fn the_dropped_attempts_of_an_old_record_count_as_uncertain() {
        let all = |number| ended(number, None, Outcome::Failed);
        let first = (1..=32).map(all).collect();
        let last = (69..=100).map(all).collect();
        assert_eq!(AttemptLog::restored(first, last, 100, 100).uncertain(None), 36);
        let few = AttemptLog::restored(vec![all(1)], VecDeque::new(), 1, 1);
        assert_eq!(few.uncertain(None), 0);
    }

    #[test]
    fn numbers_grow_even_when_an_older_attempt_is_logged_late() {
        let mut log = log_of(3);
        let mut late = attempt(1);
        late.claim_id = ClaimId::from_random([9; 16]);
        log.push(late);
        assert_eq!(log.latest_number(), 3);
    }

    #[test]
    fn only_a_log_that_dropped_something_may_have_dropped_an_attempt() {
        assert!(!log_of(64).may_have_dropped(40));
        assert!(log_of(65).may_have_dropped(33));
        assert!(!log_of(65).may_have_dropped(66));
    }

    #[test]
    fn an_attempt_is_found_by_its_claim_while_it_is_kept() {
        let mut log = log_of(100);
        assert!(log.knows(attempt(1).claim_id) && log.knows(attempt(100).claim_id));
        assert!(!log.knows(attempt(50).claim_id));
        assert_eq!(log.of(attempt(69).claim_id, None).map(|found| found.number), Some(69));
    }
}
