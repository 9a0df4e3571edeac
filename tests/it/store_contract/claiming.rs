//! One claim is granted, and all others are told how the operation stands; the numbers of attempts
//! grow.

use std::sync::Arc;

use onceward::operation::state::{
    ClaimReply, ClaimRequest, Decided, Grant, IfInFlight, ReportedState, Settled, Withdrawal,
};
use onceward::operation::{Outcome, RequestMode, Subject};
use onceward::store::{Store, StoreExt as _};
use tokio::task::JoinSet;

use super::Harness;
use super::support::{
    LEASE, answer, attempted, claim_on, copy_of, end_of, forgets, granted, granted_as, look_at,
    order, order_with_body, withdraws,
};

pub(super) async fn the_first_claim_is_granted_and_a_copy_meets_it_in_flight(
    harness: &impl Harness,
) {
    let (store, order) = (harness.store(), order("1"));
    assert_eq!(copy_of(&*store, &order).await, granted_as(1));
    let met = ClaimReply::NotGranted(ReportedState::InFlight { attempt: 1, lease_left: LEASE });
    assert_eq!(copy_of(&*store, &order).await, met);
}

/// What each of fifty claims at the same moment is told.
pub(super) async fn fifty_racers(
    store: &Arc<dyn Store>,
    subject: &Arc<Subject>,
) -> Vec<ClaimReply> {
    let start = Arc::new(tokio::sync::Barrier::new(50));
    let mut racers = JoinSet::new();
    for _ in 0..50 {
        let (store, start, request) = (Arc::clone(store), Arc::clone(&start), claim_on(subject));
        racers.spawn(async move {
            start.wait().await;
            store.apply(request.clone()).await
        });
    }
    racers.join_all().await.into_iter().map(Result::unwrap).collect()
}

pub(super) async fn of_fifty_racers_one_is_granted_and_the_others_are_answered(
    harness: &impl Harness,
) {
    let (store, order) = (harness.store(), order("1"));
    for attempt in 1..=5 {
        let told = fifty_racers(&store, &order).await;
        let count = |wanted: ClaimReply| told.iter().filter(|claimed| **claimed == wanted).count();
        assert_eq!(count(granted_as(attempt)), 1);
        assert_eq!(
            count(ClaimReply::NotGranted(ReportedState::InFlight { attempt, lease_left: LEASE })),
            49
        );
        let holder = store.get(order.id).await.unwrap().unwrap();
        let claim_id = holder.attempts.kept().last().unwrap().claim_id;
        withdraws(&*store, order.id, claim_id).await;
    }
}

pub(super) async fn a_success_is_told_with_its_answer(harness: &impl Harness) {
    let (store, order) = (harness.store(), order("1"));
    attempted(&*store, &order, Outcome::Succeeded).await;
    let told = ClaimReply::NotGranted(ReportedState::Succeeded { attempt: 1, answer: answer() });
    assert_eq!(copy_of(&*store, &order).await, told);
    assert_eq!(look_at(&*store, &order).await, told);
}

pub(super) async fn another_request_under_the_key_is_mismatched(harness: &impl Harness) {
    let (store, order) = (harness.store(), order("1"));
    let other = order_with_body("1", "{\"other\":true}");
    let mismatched = ClaimReply::NotGranted(ReportedState::Mismatched { attempt: 1 });
    let (request, attempt) = granted(&*store, &order).await;
    assert_eq!(copy_of(&*store, &other).await, mismatched);
    let end = super::support::end_of(&request, attempt, Outcome::Uncertain);
    store.apply(end.clone()).await.unwrap();
    assert_eq!(copy_of(&*store, &other).await, mismatched);
    let end = super::support::end_of(&request, attempt, Outcome::Succeeded);
    store.apply(end.clone()).await.unwrap();
    assert_eq!(copy_of(&*store, &other).await, mismatched);
    let told = ClaimReply::NotGranted(ReportedState::Succeeded { attempt: 1, answer: answer() });
    assert_eq!(copy_of(&*store, &order).await, told);
}

pub(super) async fn a_claim_that_only_looks_is_granted_nothing(harness: &impl Harness) {
    let (store, order) = (harness.store(), order("1"));
    assert_eq!(look_at(&*store, &order).await, ClaimReply::NotGranted(ReportedState::Free));
    assert_eq!(store.get(order.id).await.unwrap(), None);
    attempted(&*store, &order, Outcome::Failed).await;
    assert_eq!(look_at(&*store, &order).await, ClaimReply::NotGranted(ReportedState::Free));
    assert_eq!(copy_of(&*store, &order).await, granted_as(2));
}

/// Keys are bytes, compared as they are.
pub(super) async fn keys_that_differ_in_case_or_blanks_are_different_operations(
    harness: &impl Harness,
) {
    let store = harness.store();
    for key in ["abc", "ABC", "abc ", " abc", "abc\u{a0}", "\u{e9}", "e\u{301}"] {
        assert_eq!(copy_of(&*store, &order(key)).await, granted_as(1), "{key:?}");
    }
}

pub(super) async fn a_claim_that_is_sent_twice_is_granted_once(harness: &impl Harness) {
    let (store, order) = (harness.store(), order("1"));
    let (request, attempt) = granted(&*store, &order).await;
    assert_eq!(store.apply(request.clone()).await.unwrap(), granted_as(attempt));
    assert_eq!(store.get(order.id).await.unwrap().unwrap().attempts.total(), 1);
    // not even noted as a refused copy
    let end = super::support::end_of(&request, attempt, Outcome::Failed);
    let settled = store.apply(end.clone()).await.unwrap();
    assert_eq!(settled, onceward::operation::state::Settled::Recorded { copy_refused: false });
}

pub(super) async fn a_claim_that_arrives_after_its_withdrawal_is_granted_nothing(
    harness: &impl Harness,
) {
    let (store, order) = (harness.store(), order("1"));
    let (first, _) = granted(&*store, &order).await;
    withdraws(&*store, order.id, first.claim_id).await;
    assert_eq!(
        store.apply(first.clone()).await.unwrap(),
        ClaimReply::NotGranted(ReportedState::Free)
    );
    // nor after others have come and gone
    attempted(&*store, &order, Outcome::Failed).await;
    assert_eq!(
        store.apply(first.clone()).await.unwrap(),
        ClaimReply::NotGranted(ReportedState::Free)
    );
    assert_eq!(forgets(&*store, order.id).await, Decided::Done);
    assert_eq!(
        store.apply(first.clone()).await.unwrap(),
        ClaimReply::NotGranted(ReportedState::Free)
    );
    assert_eq!(copy_of(&*store, &order).await, granted_as(3));
}

pub(super) async fn a_withdrawal_leaves_no_trace_where_its_claim_left_none(harness: &impl Harness) {
    let (store, order) = (harness.store(), order("1"));
    let never_arrived = claim_on(&order).claim_id;
    withdraws(&*store, order.id, never_arrived).await;
    assert_eq!(store.get(order.id).await.unwrap(), None);
    let (current, attempt) = granted(&*store, &order).await;
    withdraws(&*store, order.id, never_arrived).await;
    assert_eq!(store.apply(current.clone()).await.unwrap(), granted_as(attempt));
}

/// The end of another attempt whose record was lost finds no record then, and is written anew.
pub(super) async fn a_withdrawal_that_leaves_no_record_removes_that_of_its_claim_alone(
    harness: &impl Harness,
) {
    let (store, order, other) = (harness.store(), order("1"), order("2"));
    let (claim, _) = granted(&*store, &order).await;
    let failed = attempted(&*store, &other, Outcome::Failed).await.0;
    let (again, _) = granted(&*store, &other).await;
    for claim in [&claim, &failed, &again] {
        let withdrawal = Withdrawal { leaves_record: false, ..claim.withdrawal() };
        for _ in 0..2 {
            store.apply(withdrawal).await.unwrap();
        }
    }
    assert_eq!(store.get(order.id).await.unwrap(), None);
    let other = store.get(other.id).await.unwrap().unwrap();
    assert_eq!((other.state.as_str(), other.attempts.total()), ("failed", 2));
    // another attempt of its process, whose record the store has lost
    let end = end_of(&claim_on(&order), 1, Outcome::Succeeded);
    assert_eq!(store.apply(end).await.unwrap(), Settled::RecordLost);
}

pub(super) async fn attempt_numbers_grow_across_failures_and_being_forgotten(
    harness: &impl Harness,
) {
    let (store, order) = (harness.store(), order("1"));
    for expected in 1..=3 {
        assert_eq!(attempted(&*store, &order, Outcome::Failed).await.1, expected);
    }
    assert_eq!(attempted(&*store, &order, Outcome::Succeeded).await.1, 4);
    assert_eq!(forgets(&*store, order.id).await, Decided::Done);
    assert_eq!(attempted(&*store, &order, Outcome::Failed).await.1, 5);
}

pub(super) async fn contention_on_one_operation_is_never_an_error(harness: &impl Harness) {
    let (store, order) = (harness.store(), order("1"));
    let mut senders = JoinSet::new();
    for _ in 0..16 {
        let (store, order) = (harness.store(), Arc::clone(&order));
        senders.spawn(async move {
            let mut granted = 0;
            for _ in 0..50 {
                let waits = IfInFlight::Wait;
                let request = ClaimRequest { if_in_flight: waits, ..claim_on(&order) };
                if let ClaimReply::Granted(Grant { attempt, .. }) =
                    store.apply(request.clone()).await.unwrap()
                {
                    let end = super::support::end_of(&request, attempt, Outcome::Failed);
                    store.apply(end.clone()).await.unwrap();
                    granted += 1;
                }
            }
            granted
        });
    }
    let granted: u32 = senders.join_all().await.into_iter().sum();
    let kept = store.get(order.id).await.unwrap().unwrap().attempts;
    assert_eq!((kept.total(), kept.latest_number()), (granted, granted));
}

/// A route that observes forwards forged copies too, and makes no promise: what it leaves in
/// flight, uncertain or failed holds nobody back who enforces, not for a moment.
pub(super) async fn what_was_only_observed_is_free_but_for_a_genuine_success(
    harness: &impl Harness,
) {
    let store = harness.store();
    let under = |key: &str, genuine: bool| {
        let mode = RequestMode::Observe { genuine };
        Arc::new(Subject { mode, ..Subject::clone(&order(key)) })
    };
    granted(&*store, &under("in flight", true)).await;
    attempted(&*store, &under("uncertain", true), Outcome::Uncertain).await;
    attempted(&*store, &under("failed", true), Outcome::Failed).await;
    attempted(&*store, &under("not genuine", false), Outcome::Succeeded).await;
    for key in ["in flight", "uncertain", "failed", "not genuine"] {
        assert_eq!(
            look_at(&*store, &order(key)).await,
            ClaimReply::NotGranted(ReportedState::Free),
            "{key}"
        );
        let (claim, attempt) = granted(&*store, &order(key)).await;
        assert_eq!(attempt, 2, "{key}");
        // From now on it is an operation as any other.
        let met = ClaimReply::NotGranted(ReportedState::InFlight { attempt, lease_left: LEASE });
        assert_eq!(copy_of(&*store, &under(key, true)).await, met, "{key}");
        let end = end_of(&claim, attempt, Outcome::Succeeded);
        assert!(
            matches!(store.apply(end.clone()).await.unwrap(), Settled::Recorded { .. }),
            "{key}"
        );
        let told = ClaimReply::NotGranted(ReportedState::Succeeded { attempt, answer: answer() });
        assert_eq!(copy_of(&*store, &order(key)).await, told, "{key}");
    }
    attempted(&*store, &under("genuine", true), Outcome::Succeeded).await;
    let told = ClaimReply::NotGranted(ReportedState::Succeeded { attempt: 1, answer: answer() });
    assert_eq!(copy_of(&*store, &order("genuine")).await, told);
    // For who observes too, a copy is a copy.
    attempted(&*store, &under("twice", false), Outcome::Succeeded).await;
    assert_eq!(copy_of(&*store, &under("twice", true)).await, told);
}
