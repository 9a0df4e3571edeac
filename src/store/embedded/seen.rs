//! Remembers which operations this process has seen in flight or uncertain.
//!
//! A claim may fail before the writer has looked at its record, or because the writer can no longer
//! write. A route may forward the request of such a claim unprotected (`when_store_fails`), but not
//! if there was an attempt at its operation.

use std::collections::HashSet;

use parking_lot::Mutex;

use super::unsettled::Unsettled;
use crate::operation::OperationId;

/// The most operations that are remembered. They take about 20 MiB.
const SEEN_MAX: usize = 1 << 20;

/// The operations that were in flight or uncertain when the writer saw their records last. The
/// writer and its callers share it.
#[derive(Debug, Default)]
pub(super) struct SeenAttempts(Mutex<Seen>);

#[derive(Debug, Default)]
struct Seen {
    ids: HashSet<OperationId>,
    /// Whether an operation has found no place. From then on each one may have been seen.
    is_incomplete: bool,
}

impl Seen {
    fn add(&mut self, id: OperationId) {
        if self.ids.len() < SEEN_MAX {
            self.ids.insert(id);
        } else {
            self.is_incomplete |= !self.ids.contains(&id);
        }
    }

    fn may_contain(&self, id: OperationId) -> bool {
        self.is_incomplete || self.ids.contains(&id)
    }
}

impl SeenAttempts {
    /// Notes what the writer has found. What it found may be part of a group that is not written
    /// yet, so an operation that is settled in it stays noted.
    pub(super) fn note_found(&self, id: OperationId, found: Option<Unsettled>) {
        if found.is_some() {
            self.0.lock().add(id);
        }
    }

    /// Notes what a record is, after a change that is as durable as it must be.
    pub(super) fn note_written(&self, id: OperationId, written: Option<Unsettled>) {
        let mut seen = self.0.lock();
        match written {
            Some(Unsettled::InFlight | Unsettled::Uncertain) => seen.add(id),
            None => {
                seen.ids.remove(&id);
            }
        }
    }

    /// Whether there may have been an attempt at the operation.
    pub(super) fn may_contain(&self, id: OperationId) -> bool {
        self.0.lock().may_contain(id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn with_too_many_to_remember_each_operation_may_have_been_seen() {
        let id = |number: usize| OperationId::from_bytes((number as u128).to_be_bytes());
        let mut seen = Seen::default();
        for number in 0..SEEN_MAX {
            seen.add(id(number));
        }
        seen.add(id(0));
        assert!(!seen.may_contain(id(SEEN_MAX)));
        seen.add(id(SEEN_MAX));
        assert!(seen.may_contain(id(SEEN_MAX + 1)));
        seen.ids.remove(&id(0));
        assert!(seen.may_contain(id(SEEN_MAX)), "nobody knows which one had no place");
    }

    #[test]
    fn an_attempt_is_seen_until_its_outcome_is_written() {
        let seen = SeenAttempts::default();
        let id = OperationId::from_bytes([1; 16]);
        let is_seen = || seen.may_contain(id);
        assert!(!is_seen());
        seen.note_found(id, Some(Unsettled::Uncertain));
        assert!(is_seen());
        // The group that settles it may still fail.
        seen.note_found(id, None);
        assert!(is_seen());
        seen.note_written(id, None);
        assert!(!is_seen());
        seen.note_written(id, Some(Unsettled::InFlight));
        assert!(is_seen());
    }
}
