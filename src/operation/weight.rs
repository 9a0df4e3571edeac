//! How much memory an operation takes, approximately. Caches and queues of operations are bounded
//! in bytes.

use super::{Attempt, Decision, Operation, State};

/// The bytes of an operation and its entry in a map, without its texts, its log and its answer.
const BARE: usize = 640;
/// The bytes of an attempt or a decision without its texts.
const LINE: usize = 160;
/// The bytes of a step without its answer.
const STEP: usize = 160;

impl Operation {
    /// About how many bytes the operation takes in memory.
    pub fn weight(&self) -> usize {
        let answer = match &self.state {
            State::Succeeded(success) => success.answer.weight(),
            State::Uncertain(hold) => hold.answer.as_ref().map_or(0, |answer| answer.weight()),
            State::InFlight(_) | State::Failed(_) | State::Forgotten { .. } => 0,
        };
        let key: usize = self.subject.key.parts.iter().map(String::capacity).sum();
        let subject = self.subject.path.capacity() + self.subject.method.capacity() + key;
        let attempts: usize = self.attempts.kept().map(Attempt::weight).sum();
        let decisions: usize = self.decisions.iter().map(Decision::weight).sum();
        let steps: usize = self.steps.iter().map(|step| STEP + step.weight()).sum();
        BARE + answer + subject + attempts + decisions + steps
    }
}

impl Attempt {
    fn weight(&self) -> usize {
        LINE + self.reference.as_ref().map_or(0, String::capacity)
    }
}

impl Decision {
    fn weight(&self) -> usize {
        let reference = self.reference.as_ref().map_or(0, String::capacity);
        LINE + self.by.capacity() + self.reason.capacity() + reference
    }
}
