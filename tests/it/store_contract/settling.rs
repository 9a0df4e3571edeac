//! What a holder writes counts while its claim is current, and only then.

use std::time::Duration;

use onceward::operation::state::{ClaimReply, Renewed, ReportedState, Settled, Verdict};
use onceward::operation::{Outcome, State};
use onceward::store::StoreExt as _;

use super::Harness;
use super::support::{
    ATTEMPT_TIMEOUT, LEASE, MILLISECOND, answer, attempted, claim_on, copy_of, end_of, granted,
    look_at, order, renews, resolves, withdraws,
};

/// A former holder changes nothing of its successor's claim.
pub(super) async fn a_settle_or_a_renewal_of_a_superseded_claim_changes_nothing(
    harness: &impl Harness,
) {
    let (store, order) = (harness.store(), order("1"));
    let (old, old_attempt) = granted(&*store, &order).await;
    harness.pass(LEASE).await;
    resolves(&*store, order.id, Verdict::Failed).await;
    let (new, attempt) = granted(&*store, &order).await;
    assert_eq!((old_attempt, attempt), (1, 2));
    let before = store.get(order.id).await.unwrap().unwrap().state;
    let renewed = renews(&*store, order.id, old.claim_id, LEASE * 9).await;
    assert_eq!(renewed, Renewed::Superseded);
    withdraws(&*store, order.id, old.claim_id).await;
    for outcome in [Outcome::Succeeded, Outcome::Failed, Outcome::Uncertain] {
        let settled = store.apply(end_of(&old, 1, outcome)).await.unwrap();
        assert_eq!(settled, Settled::Superseded);
    }
    assert_eq!(store.get(order.id).await.unwrap().unwrap().state, before);
    let settled = store.apply(end_of(&new, attempt, Outcome::Succeeded)).await.unwrap();
    assert_eq!(settled, Settled::Recorded { copy_refused: false });
    let settled = store.apply(end_of(&old, 1, Outcome::Failed)).await.unwrap();
    assert_eq!(settled, Settled::Superseded);
    let told = ClaimReply::NotGranted(ReportedState::Succeeded { attempt: 2, answer: answer() });
    assert_eq!(copy_of(&*store, &order).await, told);
}

pub(super) async fn a_settle_that_is_sent_twice_is_recorded_once(harness: &impl Harness) {
    let (store, order) = (harness.store(), order("1"));
    let (request, attempt) = attempted(&*store, &order, Outcome::Succeeded).await;
    let before = store.get(order.id).await.unwrap();
    harness.pass(Duration::from_secs(1)).await;
    let again = store.apply(end_of(&request, attempt, Outcome::Succeeded)).await.unwrap();
    assert_eq!(again, Settled::Recorded { copy_refused: false });
    assert_eq!(store.get(order.id).await.unwrap(), before);
}

pub(super) async fn a_late_settle_counts_while_its_claim_is_current(harness: &impl Harness) {
    let (store, order) = (harness.store(), order("1"));
    let (request, attempt) = granted(&*store, &order).await;
    harness.pass(LEASE).await;
    let ends_in = ATTEMPT_TIMEOUT - LEASE;
    assert_eq!(
        copy_of(&*store, &order).await,
        ClaimReply::NotGranted(ReportedState::Uncertain { attempt, ends_in })
    );
    let settled = store.apply(end_of(&request, attempt, Outcome::Succeeded)).await.unwrap();
    assert_eq!(settled, Settled::Recorded { copy_refused: true });
    let told = ClaimReply::NotGranted(ReportedState::Succeeded { attempt, answer: answer() });
    assert_eq!(copy_of(&*store, &order).await, told);
    assert_eq!(store.uncertain().await.unwrap(), 0);
}

pub(super) async fn a_settle_whose_record_is_lost_writes_it_anew(harness: &impl Harness) {
    let (store, order) = (harness.store(), order("1"));
    let lost = claim_on(&order);
    let settled = store.apply(end_of(&lost, 3, Outcome::Succeeded)).await.unwrap();
    assert_eq!(settled, Settled::RecordLost);
    let told = ClaimReply::NotGranted(ReportedState::Succeeded { attempt: 3, answer: answer() });
    assert_eq!(copy_of(&*store, &order).await, told);
    let again = store.apply(end_of(&lost, 3, Outcome::Succeeded)).await.unwrap();
    assert_eq!(again, Settled::Recorded { copy_refused: false });
}

pub(super) async fn a_refused_copy_is_told_when_the_attempt_fails(harness: &impl Harness) {
    let (store, order) = (harness.store(), order("1"));
    let (request, attempt) = granted(&*store, &order).await;
    copy_of(&*store, &order).await;
    let settled = store.apply(end_of(&request, attempt, Outcome::Failed)).await.unwrap();
    assert_eq!(settled, Settled::Recorded { copy_refused: true });
    // told once: the next attempt has refused nobody
    attempted(&*store, &order, Outcome::Failed).await;
}

pub(super) async fn a_renewed_lease_lasts_from_the_renewal(harness: &impl Harness) {
    let (store, order) = (harness.store(), order("1"));
    let (request, attempt) = granted(&*store, &order).await;
    for _ in 0..3 {
        harness.pass(LEASE - MILLISECOND).await;
        let renewed = renews(&*store, order.id, request.claim_id, LEASE).await;
        assert_eq!(renewed, Renewed::Renewed);
    }
    harness.pass(LEASE - MILLISECOND).await;
    let lease_left = MILLISECOND;
    assert_eq!(
        look_at(&*store, &order).await,
        ClaimReply::NotGranted(ReportedState::InFlight { attempt, lease_left })
    );
    harness.pass(MILLISECOND).await;
    let renewed = renews(&*store, order.id, request.claim_id, LEASE).await;
    assert_eq!(renewed, Renewed::Superseded);
    let state = store.get(order.id).await.unwrap().unwrap().state;
    assert!(matches!(state, State::Uncertain(_)), "{state:?}");
}
