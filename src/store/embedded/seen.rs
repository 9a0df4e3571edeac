//! Remembers which operations this process has seen in flight or uncertain.
//!
//! A claim may fail before the writer has looked at its record, or because the writer can no longer
//! write. A route may forward the request of such a claim unprotected (`when_store_fails`), but not
//! if there was an attempt at its operation.

use std::collections::HashSet;

use parking_lot::Mutex;

use super::unsettled::Unsettled;
use crate::operation::OperationId;
use crate::store::Error;

/// The operations that were in flight or uncertain when the writer saw their records last. The
/// writer and its callers share it. Few operations are uncertain, so their number is not limited.
#[derive(Debug, Default)]
pub(super) struct SeenAttempts(Mutex<HashSet<OperationId>>);

impl SeenAttempts {
    /// Notes what the writer has found. What it found may be part of a group that is not written
    /// yet, so an operation that is settled in it stays noted.
    pub(super) fn note_found(&self, id: OperationId, found: Option<Unsettled>) {
        if found.is_some() {
            self.0.lock().insert(id);
        }
    }

    /// Notes what a record is, after a change that is as durable as it must be.
    pub(super) fn note_written(&self, id: OperationId, written: Option<Unsettled>) {
        let mut seen = self.0.lock();
        match written {
            Some(Unsettled::InFlight | Unsettled::Uncertain) => seen.insert(id),
            None => seen.remove(&id),
        };
    }

    /// The error for the caller of a claim that has failed.
    pub(super) fn explain(&self, id: OperationId, error: Error) -> Error {
        if error.leaves_state_unknown() && self.0.lock().contains(&id) {
            Error::AttemptExists(Box::new(error))
        } else {
            error
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_attempt_is_seen_until_its_outcome_is_written() {
        let seen = SeenAttempts::default();
        let id = OperationId::from_bytes([1; 16]);
        let is_seen = || {
            let error = seen.explain(id, Error::Unavailable("this is a test"));
            matches!(error, Error::AttemptExists(_))
        };
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
        assert!(matches!(seen.explain(id, Error::Emptied), Error::Emptied));
    }
}
