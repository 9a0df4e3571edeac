//! What a shared store asks of its server.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use parking_lot::Mutex;

use super::epoch::{EpochMarker, WhenEmptied};
use super::server::{ExpiryPass, Found, RecordPage, RecordServer, Swap, SwapResult};
use super::store::SharedStore;
use crate::clock::Clock;
use crate::operation::Timestamp;
use crate::operation::state::{ClaimReply, ClaimRequest};
use crate::store::watch::Watchers;
use crate::store::{Concern, Error, ListQuery, StoreExt as _};

const ROUND: Duration = Duration::from_millis(300);
const ROUNDS: usize = 4;
const BEGUN_AT: Timestamp = Timestamp(1_000_000);

/// A server that takes its time, and makes a write in the last of several rounds.
#[derive(Debug)]
struct SlowServer {
    clock: Clock,
    /// The latest time for the write, in each round.
    not_after: Arc<Mutex<Vec<Timestamp>>>,
}

#[async_trait]
impl RecordServer for SlowServer {
    async fn swap(&self, swap: Swap<'_>) -> Result<SwapResult, Error> {
        self.clock.advance(ROUND);
        let mut not_after = self.not_after.lock();
        not_after.extend(swap.change.map(|change| change.not_after));
        let at = (0..not_after.len()).fold(BEGUN_AT, |at, _| at.plus(ROUND));
        Ok(match not_after.len() {
            ROUNDS => SwapResult::Done(at),
            _ => SwapResult::Conflict(Found { at, stored: None }),
        })
    }

    async fn expire(&self, _limit: usize) -> Result<ExpiryPass, Error> {
        Ok(ExpiryPass::default())
    }

    async fn uncertain(&self) -> Result<u64, Error> {
        Ok(0)
    }

    async fn page(&self, _query: &ListQuery) -> Result<RecordPage, Error> {
        Ok(RecordPage { at: BEGUN_AT, records: Vec::new(), next: None })
    }

    async fn concerns(&self) -> Result<Vec<Concern>, Error> {
        Ok(Vec::new())
    }

    async fn markers(&self) -> Result<Vec<EpochMarker>, Error> {
        Ok(Vec::new())
    }

    async fn mark(&self, _marker: EpochMarker) -> Result<(), Error> {
        Ok(())
    }

    async fn close(&self) {}
}

/// Claims on such a server. Returns what became of it, and the latest time for the write in each
/// round.
async fn claimed_within(timeout: Duration) -> (Result<ClaimReply, Error>, Vec<Timestamp>) {
    let clock = Clock::manual(BEGUN_AT);
    let not_after = Arc::new(Mutex::new(Vec::new()));
    let server = SlowServer { clock: clock.clone(), not_after: Arc::clone(&not_after) };
    let when_emptied = WhenEmptied::default();
    let store = SharedStore::new(server, when_emptied, Watchers::default(), timeout, clock);
    let told = store.apply(ClaimRequest::example()).await;
    (told, not_after.lock().clone())
}

#[tokio::test]
async fn no_round_of_a_call_may_write_after_the_call_has_been_given_up() {
    let timeout = Duration::from_secs(10);
    let (told, not_after) = claimed_within(timeout).await;
    assert!(matches!(told, Ok(ClaimReply::Granted(_))), "{told:?}");
    // In the first round the server's time is not known yet.
    assert_eq!(not_after[1..], [BEGUN_AT.plus(timeout); ROUNDS - 1]);
}

/// The machine may have slept meanwhile, while the timer of the call did not run.
#[tokio::test]
async fn a_call_whose_time_is_over_asks_for_no_further_write() {
    let (told, not_after) = claimed_within(ROUND * 2).await;
    assert!(matches!(told, Err(Error::NoReply(_))), "{told:?}");
    assert_eq!(not_after.len(), 2);
}
