//! What the calls of one group of the store on disk see of each other.

use std::sync::{Arc, Barrier};
use std::time::Duration;

use onceward::clock::Clock;
use onceward::operation::state::{Change, Renewal, Renewed, Rule, RuleName, Transition};
use onceward::operation::{Operation, OperationId, Timestamp};
use onceward::store::{Store as _, StoreExt as _};
use tokio::join;

use super::embedded::{START, open_with, settings};
use super::support::{LEASE, granted, order};

/// A rule that changes no record, but the world around the store.
struct Meanwhile<F> {
    then: F,
}

impl<F> std::fmt::Debug for Meanwhile<F> {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("Meanwhile")
    }
}

impl<F: Fn() + Send + Sync + 'static> Rule for Meanwhile<F> {
    type Reply = ();
    const NAME: RuleName = RuleName::Expire;

    fn operation(&self) -> OperationId {
        order("another").id
    }

    fn apply(&self, found: Option<Operation>, _: Timestamp) -> Transition<()> {
        (self.then)();
        Transition { operation: found, change: Change::None, hold_ended: false, reply: () }
    }
}

/// A renewal is answered before its group ends, so whoever has the answer may count in the same
/// group.
#[tokio::test]
async fn a_count_shows_what_a_renewal_of_the_same_group_has_changed() {
    let directory = tempfile::tempdir().unwrap();
    let clock = Clock::manual(START);
    let store = open_with(&settings(directory.path()), &clock).unwrap();
    let (request, _) = granted(&*store, &order("1")).await;
    clock.advance(LEASE - Duration::from_millis(1));
    // the writer waits in the first call until all of them are in its queue
    let all_queued = Arc::new(Barrier::new(2));
    let starts = {
        let all_queued = Arc::clone(&all_queued);
        Meanwhile {
            then: move || {
                all_queued.wait();
            },
        }
    };
    let renewal =
        Renewal { operation: request.subject.id, claim_id: request.claim_id, lease: LEASE };
    let time_passes = Meanwhile { then: move || clock.advance(Duration::from_millis(1)) };
    let (started, renewed, passed, uncertain, _) = join!(
        biased;
        store.apply(starts),
        store.apply(renewal),
        store.apply(time_passes),
        store.uncertain(),
        async { all_queued.wait() },
    );
    started.unwrap();
    assert_eq!(renewed.unwrap(), Renewed::Renewed);
    passed.unwrap();
    assert_eq!(uncertain.unwrap(), 0);
}
