//! A copy that waits for an attempt is told of its end.

use std::time::Duration;

use onceward::operation::Outcome;
use onceward::operation::state::{ClaimReply, ReportedState, Verdict};
use onceward::store::{Store, StoreExt as _, Watch};
use tokio::time::timeout;

use super::Harness;
use super::redis::that_waits;
use super::support::{
    LEASE, answer, attempted, claim_on, copy_of, end_of, forgets, granted, order, resolves,
    withdraws,
};

/// Longer than any store takes, so that only a missed end reaches it.
const PATIENCE: Duration = Duration::from_secs(10);

async fn is_told(watch: &mut Watch) {
    timeout(PATIENCE, watch.ended()).await.expect("the end was not told");
}

pub(super) async fn a_waiter_learns_of_the_end(harness: &impl Harness) {
    let (store, order) = (harness.store(), order("1"));
    let (request, attempt) = granted(&*store, &order).await;
    let mut watch = store.watch(order.id).await.unwrap();
    let waiter = tokio::spawn(async move {
        is_told(&mut watch).await;
        watch
    });
    store.apply(end_of(&request, attempt, Outcome::Uncertain)).await.unwrap();
    let mut watch = waiter.await.unwrap();
    resolves(&*store, order.id, Verdict::Failed).await;
    is_told(&mut watch).await;
    let (next, _) = granted(&*store, &order).await;
    withdraws(&*store, order.id, next.claim_id).await;
    is_told(&mut watch).await;
    forgets(&*store, order.id).await;
    is_told(&mut watch).await;
    granted(&*store, &order).await;
    harness.pass(LEASE).await;
    store.sweep(10).await.unwrap();
    is_told(&mut watch).await;
}

pub(super) async fn an_end_between_the_watch_and_the_wait_is_not_missed(harness: &impl Harness) {
    let (store, order) = (harness.store(), order("1"));
    let mut watch = store.watch(order.id).await.unwrap();
    attempted(&*store, &order, Outcome::Succeeded).await;
    is_told(&mut watch).await;
    // and what it is told of can be read
    let told = ClaimReply::NotGranted(ReportedState::Succeeded { attempt: 1, answer: answer() });
    assert_eq!(copy_of(&*store, &order).await, told);
}

/// Attempts an operation, and waits for its end in another process.
async fn is_heard_of(store: &dyn Store, elsewhere: &dyn Store, key: &str) {
    let order = order(key);
    let (request, attempt) = granted(store, &order).await;
    // Whoever has met an attempt in flight is told of its end.
    let met = elsewhere.apply(that_waits(claim_on(&order))).await.unwrap();
    assert!(matches!(met, ClaimReply::NotGranted(ReportedState::InFlight { .. })), "{met:?}");
    let mut ended = elsewhere.watch(order.id).await.unwrap();
    store.apply(end_of(&request, attempt, Outcome::Succeeded)).await.unwrap();
    is_told(&mut ended).await;
}

/// The waiter is in another process, where several may share the store. It hears of ends one after
/// the other, so an end of which it has heard has woken everybody whom it would wake once it has
/// heard of the next one.
pub(super) async fn a_waiter_does_not_learn_of_other_operations(harness: &impl Harness) {
    let (store, elsewhere) = (harness.store(), harness.another().await);
    // The other process listens from now on. As it began to, it has woken every waiter.
    is_heard_of(&*store, &*elsewhere, "1").await;
    let mut watch = elsewhere.watch(order("2").id).await.unwrap();
    is_heard_of(&*store, &*elsewhere, "3").await;
    is_heard_of(&*store, &*elsewhere, "4").await;
    let told = futures_util::FutureExt::now_or_never(watch.ended());
    assert_eq!(told, None);
}
