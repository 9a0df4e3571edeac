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
///
/// An operation has more than one if it was freed while its attempt went on. The latest one is the
/// last.
#[derive(Debug, Default)]
pub(super) struct OwnAttempts(Mutex<HashMap<OperationId, Vec<Running>>>);

#[derive(Debug)]
struct Running {
    number: u32,
    lease: Arc<OwnLease>,
}

/// The entry of one attempt among those of this process. Dropping it removes the entry.
#[derive(Debug)]
pub(super) struct OwnAttemptEntry {
    attempts: Arc<OwnAttempts>,
    lease: Arc<OwnLease>,
}

impl OwnAttempts {
    /// Adds an attempt that the store has granted, unless another one has begun since its claim was
    /// sent. The store was not told of that one, and may have lost its record.
    ///
    /// # Errors
    /// The other attempt.
    pub(super) fn begin(
        self: &Arc<Self>,
        number: u32,
        lease: &Arc<OwnLease>,
    ) -> Result<OwnAttemptEntry, OwnAttempt> {
        let mut attempts = self.0.lock();
        let running = attempts.entry(lease.operation()).or_default();
        let told = lease.request.own_attempt.as_ref().map(|own| own.claim_id);
        if let Some(other) = running.last()
            && told != Some(other.lease.request.claim_id)
        {
            return Err(other.own_attempt());
        }
        running.push(Running { number, lease: Arc::clone(lease) });
        Ok(OwnAttemptEntry { attempts: Arc::clone(self), lease: Arc::clone(lease) })
    }

    /// The latest attempt that this process is making at an operation, if it is making one.
    pub(super) fn of(&self, operation: OperationId) -> Option<OwnAttempt> {
        Some(self.0.lock().get(&operation)?.last()?.own_attempt())
    }
}

impl Running {
    fn own_attempt(&self) -> OwnAttempt {
        let Self { number, lease } = self;
        OwnAttempt {
            subject: Arc::clone(&lease.request.subject),
            claim_id: lease.request.claim_id,
            number: *number,
            left: lease.left().max(ASK_AGAIN),
        }
    }
}

impl Drop for OwnAttemptEntry {
    fn drop(&mut self) {
        if let Entry::Occupied(mut running) = self.attempts.0.lock().entry(self.lease.operation()) {
            running.get_mut().retain(|running| !Arc::ptr_eq(&running.lease, &self.lease));
            if running.get().is_empty() {
                running.remove();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::Clock;
    use crate::operation::ClaimId;
    use crate::operation::state::ClaimRequest;
    use crate::store::memory::Memory;

    /// The lease of an attempt at one operation, under a claim of its own. The claim was sent when
    /// these attempts were known.
    fn lease(claim: u8, known: &OwnAttempts) -> Arc<OwnLease> {
        let claim_id = ClaimId::from_random([claim; 16]);
        let example = ClaimRequest::example();
        let own_attempt = known.of(example.subject.id);
        let request = ClaimRequest { claim_id, own_attempt, ..example };
        let clock = Clock::system();
        let sent_at = clock.moment();
        Arc::new(OwnLease::new(Arc::new(Memory::new(clock.clone())), clock, request, sent_at))
    }

    fn number_of_latest(attempts: &OwnAttempts) -> Option<u32> {
        attempts.of(ClaimRequest::example().subject.id).map(|own| own.number)
    }

    #[test]
    fn an_earlier_attempt_is_known_until_it_ends_too() {
        let attempts = Arc::new(OwnAttempts::default());
        for later_ends_first in [true, false] {
            let first = attempts.begin(1, &lease(1, &attempts)).unwrap();
            let second = attempts.begin(2, &lease(2, &attempts)).unwrap();
            assert_eq!(number_of_latest(&attempts), Some(2));
            if later_ends_first {
                drop(second);
                assert_eq!(number_of_latest(&attempts), Some(1));
                drop(first);
            } else {
                drop(first);
                assert_eq!(number_of_latest(&attempts), Some(2));
                drop(second);
            }
            assert!(attempts.0.lock().is_empty(), "nothing is left of an attempt that has ended");
        }
    }

    #[test]
    fn of_two_claims_that_were_sent_before_an_attempt_one_begins_it() {
        let attempts = Arc::new(OwnAttempts::default());
        let leases = [1, 2].map(|claim| lease(claim, &attempts));
        let first = attempts.begin(1, &leases[0]).unwrap();
        let refused = attempts.begin(1, &leases[1]).unwrap_err();
        assert_eq!(refused.claim_id, leases[0].request.claim_id);
        drop(first);
        let _second = attempts.begin(1, &leases[1]).unwrap();
    }
}
