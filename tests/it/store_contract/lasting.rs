//! Leases, retentions and holds end by time alone, and nothing else does.

use std::time::Duration;

use onceward::operation::state::{ClaimReply, ClaimRequest, ReportedState};
use onceward::operation::{Durations, Outcome, Reason, State};
use onceward::store::StoreExt as _;

use super::Harness;
use super::claiming::fifty_racers;
use super::support::{
    ATTEMPT_TIMEOUT, HOLD_FOR, LEASE, MILLISECOND, RETENTION, answer, attempted, claim_on, copy_of,
    end_of, forgets, granted, granted_as, look_at, order, sweep_all,
};

pub(super) async fn a_lease_that_ran_out_is_seen_as_uncertain_by_the_next_reader(
    harness: &impl Harness,
) {
    let (store, order) = (harness.store(), order("1"));
    granted(&*store, &order).await;
    harness.pass(LEASE - MILLISECOND).await;
    let state = store.get(order.id).await.unwrap().unwrap().state;
    assert!(matches!(state, State::InFlight(_)), "{state:?}");
    harness.pass(MILLISECOND).await;
    let state = store.get(order.id).await.unwrap().unwrap().state;
    let State::Uncertain(held) = state else { panic!("{state:?}") };
    assert_eq!(held.reason, Reason::LeaseExpired);
    let ends_in = ATTEMPT_TIMEOUT - LEASE;
    assert_eq!(
        copy_of(&*store, &order).await,
        ClaimReply::NotGranted(ReportedState::Uncertain { attempt: 1, ends_in })
    );
}

pub(super) async fn of_fifty_racers_on_a_lease_that_ran_out_none_is_granted(
    harness: &impl Harness,
) {
    let (store, order) = (harness.store(), order("1"));
    granted(&*store, &order).await;
    harness.pass(LEASE).await;
    let ends_in = ATTEMPT_TIMEOUT - LEASE;
    let told = fifty_racers(&store, &order).await;
    assert_eq!(
        told,
        vec![ClaimReply::NotGranted(ReportedState::Uncertain { attempt: 1, ends_in }); 50]
    );
    assert_eq!(store.uncertain().await.unwrap(), 1);
}

/// Durations are not cut down to whole seconds.
pub(super) async fn a_lease_of_half_a_second_is_not_none(harness: &impl Harness) {
    let (store, order) = (harness.store(), order("1"));
    let lease = Duration::from_millis(500);
    let durations = Durations { lease, ..claim_on(&order).durations };
    let request = ClaimRequest { durations, ..claim_on(&order) };
    assert_eq!(store.apply(request.clone()).await.unwrap(), granted_as(1));
    harness.pass(lease - MILLISECOND).await;
    let met =
        ClaimReply::NotGranted(ReportedState::InFlight { attempt: 1, lease_left: MILLISECOND });
    assert_eq!(look_at(&*store, &order).await, met);
    harness.pass(MILLISECOND).await;
    let told = look_at(&*store, &order).await;
    assert!(matches!(told, ClaimReply::NotGranted(ReportedState::Uncertain { .. })), "{told:?}");
}

/// It is counted from the settle, not from the claim, and not extended by replays.
pub(super) async fn a_retention_ends_on_its_millisecond_counted_from_the_settle(
    harness: &impl Harness,
) {
    let (store, order) = (harness.store(), order("1"));
    let (request, attempt) = granted(&*store, &order).await;
    harness.pass(LEASE / 2).await;
    store.apply(end_of(&request, attempt, Outcome::Succeeded)).await.unwrap();
    let replay = ClaimReply::NotGranted(ReportedState::Succeeded { attempt, answer: answer() });
    harness.pass(RETENTION / 2).await;
    assert_eq!(copy_of(&*store, &order).await, replay);
    harness.pass(RETENTION / 2 - MILLISECOND).await;
    assert_eq!(copy_of(&*store, &order).await, replay);
    assert_eq!(sweep_all(&*store, 10).await, (0, 0));
    harness.pass(MILLISECOND).await;
    assert_eq!(store.get(order.id).await.unwrap(), None);
    assert_eq!(look_at(&*store, &order).await, ClaimReply::NotGranted(ReportedState::Free));
    // remembered no more: the numbers begin again
    assert_eq!(copy_of(&*store, &order).await, granted_as(1));
}

pub(super) async fn a_hold_ends_after_the_last_refused_copy_and_is_told_once(
    harness: &impl Harness,
) {
    let (store, order) = (harness.store(), order("1"));
    attempted(&*store, &order, Outcome::Uncertain).await;
    harness.pass(HOLD_FOR - MILLISECOND).await;
    assert!(matches!(
        copy_of(&*store, &order).await,
        ClaimReply::NotGranted(ReportedState::Uncertain { .. })
    ));
    harness.pass(HOLD_FOR - MILLISECOND).await;
    assert_eq!(sweep_all(&*store, 10).await, (0, 0));
    assert!(matches!(
        copy_of(&*store, &order).await,
        ClaimReply::NotGranted(ReportedState::Uncertain { .. })
    ));
    harness.pass(HOLD_FOR).await;
    assert_eq!(copy_of(&*store, &order).await, granted_as(1));
    assert_eq!(sweep_all(&*store, 10).await, (0, 1));
    assert_eq!(sweep_all(&*store, 10).await, (0, 0));
}

pub(super) async fn a_sweep_in_small_steps_removes_what_is_past_its_retention(
    harness: &impl Harness,
) {
    let store = harness.store();
    for n in 0..10 {
        attempted(&*store, &order(&format!("old {n}")), Outcome::Succeeded).await;
    }
    harness.pass(RETENTION / 2).await;
    for n in 0..5 {
        attempted(&*store, &order(&format!("new {n}")), Outcome::Failed).await;
    }
    harness.pass(RETENTION / 2).await;
    let first = store.sweep(3).await.unwrap();
    assert_eq!((first.removed, first.more), (3, true));
    assert_eq!(sweep_all(&*store, 3).await, (7, 0));
    for n in 0..5 {
        assert!(store.get(order(&format!("new {n}")).id).await.unwrap().is_some());
    }
    harness.pass(RETENTION / 2).await;
    assert_eq!(sweep_all(&*store, 3).await, (5, 0));
}

pub(super) async fn a_sweep_never_removes_what_is_in_flight_or_held(harness: &impl Harness) {
    let store = harness.store();
    let (in_flight, held, abandoned) = (order("in flight"), order("held"), order("abandoned"));
    let again = order("again");
    attempted(&*store, &again, Outcome::Failed).await;
    attempted(&*store, &held, Outcome::Uncertain).await;
    granted(&*store, &abandoned).await;
    harness.pass(RETENTION - LEASE / 2).await;
    granted(&*store, &in_flight).await;
    granted(&*store, &again).await;
    // past the retention that the failed attempt had begun
    harness.pass(LEASE / 2 + MILLISECOND).await;
    assert_eq!(sweep_all(&*store, 1).await, (0, 0));
    assert!(matches!(
        look_at(&*store, &in_flight).await,
        ClaimReply::NotGranted(ReportedState::InFlight { .. })
    ));
    assert!(matches!(
        look_at(&*store, &again).await,
        ClaimReply::NotGranted(ReportedState::InFlight { attempt: 2, .. })
    ));
    assert!(matches!(
        look_at(&*store, &held).await,
        ClaimReply::NotGranted(ReportedState::Uncertain { .. })
    ));
    assert!(matches!(
        look_at(&*store, &abandoned).await,
        ClaimReply::NotGranted(ReportedState::Uncertain { .. })
    ));
}

pub(super) async fn the_count_of_uncertain_operations_is_live(harness: &impl Harness) {
    let store = harness.store();
    assert_eq!(store.uncertain().await.unwrap(), 0);
    let (request, attempt) = attempted(&*store, &order("1"), Outcome::Uncertain).await;
    granted(&*store, &order("2")).await;
    attempted(&*store, &order("3"), Outcome::Succeeded).await;
    assert_eq!(store.uncertain().await.unwrap(), 1);
    harness.pass(LEASE).await;
    // by its lease, whether or not anybody has looked
    assert_eq!(store.uncertain().await.unwrap(), 2);
    sweep_all(&*store, 10).await;
    assert_eq!(store.uncertain().await.unwrap(), 2);
    store.apply(end_of(&request, attempt, Outcome::Failed)).await.unwrap();
    assert_eq!(store.uncertain().await.unwrap(), 1);
    forgets(&*store, order("2").id).await;
    assert_eq!(store.uncertain().await.unwrap(), 0);
}
