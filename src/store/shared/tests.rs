//! What a shared store asks of its server.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use futures_util::future::join_all;
use parking_lot::Mutex;
use tokio::time::sleep;

use super::epoch::{EpochMarker, EpochStatus, WhenEmptied};
use super::looks::Looks;
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
    /// The marker that each look reads, and the time until its reply comes.
    looks: Mutex<VecDeque<(Duration, EpochMarker)>>,
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
        let Some((delay, marker)) = self.looks.lock().pop_front() else { return Ok(Vec::new()) };
        sleep(delay).await;
        Ok(vec![marker])
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
    let server = SlowServer {
        clock: clock.clone(),
        not_after: Arc::clone(&not_after),
        looks: Mutex::default(),
    };
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

/// A store that has just found that its server lost its records. Its next looks read these markers,
/// each after a delay.
async fn stopped(looks: &[(Duration, EpochStatus)]) -> SharedStore<SlowServer> {
    let marker = |value: &str, status| EpochMarker { part: 0, value: value.to_owned(), status };
    let begun = ["a", "b"].map(|value| (Duration::ZERO, marker(value, EpochStatus::Begun)));
    let further = looks.iter().map(|(delay, status)| (*delay, marker("b", *status)));
    let clock = Clock::manual(BEGUN_AT);
    let server = SlowServer {
        clock: clock.clone(),
        not_after: Arc::default(),
        looks: Mutex::new(begun.into_iter().chain(further).collect()),
    };
    let timeout = Duration::from_secs(10);
    let store = SharedStore::new(server, WhenEmptied::Stop, Watchers::default(), timeout, clock);
    store.look_for_loss().await.unwrap();
    store.look_for_loss().await.unwrap();
    assert!(store.epoch.is_stopped());
    store
}

/// A person acknowledges the loss between two claims, and the reply to the second claim's look
/// would come first.
#[tokio::test(start_paused = true)]
async fn an_acknowledged_loss_is_not_found_again_by_a_look_whose_reply_is_late() {
    let late = (Duration::from_secs(1), EpochStatus::Emptied);
    let store = stopped(&[late, (Duration::ZERO, EpochStatus::Acknowledged)]).await;
    let claim = || store.apply(ClaimRequest::example());
    let (first, second) = tokio::join!(claim(), claim());
    assert!(matches!(first, Err(Error::Emptied)), "{first:?}");
    assert!(matches!(second, Ok(ClaimReply::Granted(_))), "{second:?}");
    assert_eq!(store.epoch.concern(), None);
}

#[tokio::test(start_paused = true)]
async fn a_claim_after_a_loss_is_refused_for_the_loss_although_no_look_gets_a_reply() {
    let store = stopped(&[(Duration::MAX, EpochStatus::Acknowledged)]).await;
    let refused = store.apply(ClaimRequest::example()).await;
    assert!(matches!(refused, Err(Error::Emptied)), "{refused:?}");
}

#[tokio::test(start_paused = true)]
async fn calls_that_come_during_a_look_share_the_next_one() {
    let (looks, count) = (Looks::new(), Mutex::new(0));
    let look = async || {
        *count.lock() += 1;
        sleep(ROUND).await;
        Err(Error::TablesGone("this is a test"))
    };
    let told = join_all((0..10).map(|_| looks.one(look()))).await;
    assert!(told.iter().all(|told| matches!(told, Err(Error::TablesGone(_)))), "{told:?}");
    assert_eq!(*count.lock(), 2);
}
