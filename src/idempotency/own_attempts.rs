//! Knows the attempts that this process is making, without asking the store.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;

use super::lease::OwnLease;
use crate::operation::OperationId;
use crate::operation::state::OwnAttempt;

/// The shortest time after which a copy may ask again. A lease whose record is lost is not renewed
/// and runs out, but its attempt goes on.
const ASK_AGAIN: Duration = Duration::from_secs(1);

/// The attempts that this process is making. A store that lost its records knows none of them, and
/// would grant a copy the next attempt while one is in flight.
#[derive(Debug, Default)]
pub(super) struct OwnAttempts(Mutex<HashMap<OperationId, Running>>);

#[derive(Debug)]
struct Running {
    number: u32,
    lease: Arc<OwnLease>,
}

/// The place of one attempt among those of this process. Dropping it ends the attempt.
#[derive(Debug)]
pub(super) struct RunningPlace {
    attempts: Arc<OwnAttempts>,
    lease: Arc<OwnLease>,
}

impl OwnAttempts {
    /// Adds an attempt.
    pub(super) fn begin(self: &Arc<Self>, number: u32, lease: &Arc<OwnLease>) -> RunningPlace {
        // An earlier attempt may still run if its operation was freed meanwhile. The latest one
        // counts.
        let running = Running { number, lease: Arc::clone(lease) };
        self.0.lock().insert(lease.operation(), running);
        RunningPlace { attempts: Arc::clone(self), lease: Arc::clone(lease) }
    }

    /// The attempt that this process is making at an operation, if it is making one.
    pub(super) fn of(&self, operation: OperationId) -> Option<OwnAttempt> {
        let (number, lease) = {
            let attempts = self.0.lock();
            let running = attempts.get(&operation)?;
            (running.number, Arc::clone(&running.lease))
        };
        Some(OwnAttempt {
            subject: Arc::clone(&lease.request.subject),
            claim_id: lease.request.claim_id,
            number,
            left: lease.left().max(ASK_AGAIN),
        })
    }
}

impl Drop for RunningPlace {
    fn drop(&mut self) {
        if let Entry::Occupied(running) = self.attempts.0.lock().entry(self.lease.operation())
            && Arc::ptr_eq(&running.get().lease, &self.lease)
        {
            running.remove();
        }
    }
}
