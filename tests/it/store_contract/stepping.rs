//! Events with several steps: what has succeeded is not begun again, and each end is recorded once.

use std::sync::Arc;

use onceward::operation::state::{
    Advanced, ClaimReply, ClaimRequest, EventEnd, Grant, IfUncertain, ReportedState,
    StepSettlement, Verdict,
};
use onceward::operation::{Outcome, Plan, Subject};
use onceward::store::{Store, StoreExt as _};

use super::Harness;
use super::support::{LEASE, answer, claim_on, end_of_step, forgets, order, plan_of, resolves};

fn plan(at_once: bool) -> Arc<Plan> {
    plan_of(&["charge", "account", "mail"], at_once, IfUncertain::Hold)
}

fn claiming(subject: &Arc<Subject>, plan: &Arc<Plan>) -> ClaimRequest {
    ClaimRequest { plan: Some(Arc::clone(plan)), ..claim_on(subject) }
}

/// Claims an event whose first step to run is this one.
async fn begun(
    store: &dyn Store,
    subject: &Arc<Subject>,
    plan: &Arc<Plan>,
    first: &str,
) -> (ClaimRequest, u32) {
    let request = claiming(subject, plan);
    let claimed = store.apply(request.clone()).await.unwrap();
    let ClaimReply::Granted(Grant { attempt, steps }) = claimed else {
        panic!("not begun: {claimed:?}")
    };
    assert_eq!(&*steps[0], first);
    (request, attempt)
}

fn end(claim: &(ClaimRequest, u32), step: &str, outcome: Outcome) -> StepSettlement {
    end_of_step(&claim.0, claim.1, step, outcome)
}

fn next(step: &str) -> Advanced {
    Advanced::Next { step: step.into() }
}

fn open(step: &str) -> Advanced {
    Advanced::Ended { copy_refused: false, end: EventEnd::Open(step.into()) }
}

/// How it stands with each step.
async fn standing(store: &dyn Store, subject: &Arc<Subject>) -> Vec<&'static str> {
    let found = store.get(subject.id).await.unwrap().unwrap();
    found.steps.iter().map(|step| step.state.as_str()).collect()
}

pub(super) async fn a_copy_begins_what_has_not_succeeded_and_nothing_else(harness: &impl Harness) {
    let (store, order, plan) = (harness.store(), order("1"), plan(false));
    let first = begun(&*store, &order, &plan, "charge").await;
    let told = store.apply(end(&first, "charge", Outcome::Succeeded)).await.unwrap();
    assert_eq!(told, next("account"));
    assert_eq!(standing(&*store, &order).await, ["succeeded", "in_flight", "waiting"]);
    let told = store.apply(end(&first, "account", Outcome::Failed)).await.unwrap();
    assert_eq!(told, open("account"));
    let second = begun(&*store, &order, &plan, "account").await;
    assert_eq!(second.1, 2);
    let told = store.apply(end(&second, "account", Outcome::Succeeded)).await.unwrap();
    assert_eq!(told, next("mail"));
    let told = store.apply(end(&second, "mail", Outcome::Succeeded)).await.unwrap();
    let done = EventEnd::Succeeded(answer());
    assert_eq!(told, Advanced::Ended { copy_refused: false, end: done });
    let copy = store.apply(claiming(&order, &plan)).await.unwrap();
    assert_eq!(
        copy,
        ClaimReply::NotGranted(ReportedState::Succeeded { attempt: 2, answer: answer() })
    );
}

pub(super) async fn steps_at_once_begin_together_and_end_each_on_its_own(harness: &impl Harness) {
    let (store, order, plan) = (harness.store(), order("1"), plan(true));
    let first = begun(&*store, &order, &plan, "charge").await;
    assert_eq!(standing(&*store, &order).await, ["in_flight"; 3]);
    let ends = [("mail", Outcome::Failed), ("charge", Outcome::Succeeded)];
    for (step, outcome) in ends {
        let told = store.apply(end(&first, step, outcome)).await.unwrap();
        assert_eq!(told, Advanced::Recorded);
    }
    let told = store.apply(end(&first, "account", Outcome::Succeeded)).await.unwrap();
    assert_eq!(told, open("mail"));
    begun(&*store, &order, &plan, "mail").await;
}

pub(super) async fn the_end_of_a_step_that_is_sent_twice_is_recorded_once(harness: &impl Harness) {
    let (store, order, plan) = (harness.store(), order("1"), plan(false));
    let first = begun(&*store, &order, &plan, "charge").await;
    for _ in 0..2 {
        let told = store.apply(end(&first, "charge", Outcome::Succeeded)).await.unwrap();
        assert_eq!(told, next("account"));
    }
    let found = store.get(order.id).await.unwrap().unwrap();
    assert_eq!(found.attempts.total(), 2);
}

pub(super) async fn the_end_of_a_step_that_somebody_decided_changes_nothing(
    harness: &impl Harness,
) {
    let (store, order, plan) = (harness.store(), order("1"), plan(false));
    let first = begun(&*store, &order, &plan, "charge").await;
    store.apply(end(&first, "charge", Outcome::Uncertain)).await.unwrap();
    resolves(&*store, order.id, Verdict::Failed).await;
    let told = store.apply(end(&first, "charge", Outcome::Succeeded)).await.unwrap();
    assert_eq!(told, Advanced::Superseded);
    assert_eq!(standing(&*store, &order).await, ["failed", "waiting", "waiting"]);
}

pub(super) async fn a_step_whose_record_is_lost_writes_it_anew(harness: &impl Harness) {
    let (store, order, plan) = (harness.store(), order("1"), plan(false));
    let claim = (claiming(&order, &plan), 1);
    let told = store.apply(end(&claim, "account", Outcome::Failed)).await.unwrap();
    assert_eq!(told, Advanced::RecordLost);
    begun(&*store, &order, &plan, "account").await;
}

pub(super) async fn a_forgotten_event_runs_all_its_steps_again(harness: &impl Harness) {
    let (store, order, plan) = (harness.store(), order("1"), plan(false));
    let first = begun(&*store, &order, &plan, "charge").await;
    store.apply(end(&first, "charge", Outcome::Succeeded)).await.unwrap();
    store.apply(end(&first, "account", Outcome::Failed)).await.unwrap();
    forgets(&*store, order.id).await;
    assert_eq!(begun(&*store, &order, &plan, "charge").await.1, 2);
}

pub(super) async fn a_lease_that_ran_out_leaves_uncertain_the_step_that_had_begun(
    harness: &impl Harness,
) {
    let (store, order, plan) = (harness.store(), order("1"), plan(false));
    let first = begun(&*store, &order, &plan, "charge").await;
    harness.pass(LEASE / 2).await;
    store.apply(end(&first, "charge", Outcome::Succeeded)).await.unwrap();
    // the lease is fresh since the second step began
    harness.pass(LEASE / 2).await;
    assert_eq!(standing(&*store, &order).await, ["succeeded", "in_flight", "waiting"]);
    harness.pass(LEASE / 2).await;
    assert_eq!(standing(&*store, &order).await, ["succeeded", "uncertain", "waiting"]);
    let copy = store.apply(claiming(&order, &plan)).await.unwrap();
    assert!(
        matches!(copy, ClaimReply::NotGranted(ReportedState::Uncertain { attempt: 1, .. })),
        "{copy:?}"
    );
    let late = store.apply(end(&first, "account", Outcome::Succeeded)).await.unwrap();
    assert_eq!(late, next("mail"));
}

pub(super) async fn a_step_of_whose_beginning_nobody_has_heard_begins_once_more(
    harness: &impl Harness,
) {
    let (store, order, plan) = (harness.store(), order("1"), plan(false));
    let first = begun(&*store, &order, &plan, "charge").await;
    let charged = end(&first, "charge", Outcome::Succeeded);
    store.apply(charged.clone()).await.unwrap();
    harness.pass(LEASE * 2).await;
    assert_eq!(standing(&*store, &order).await, ["succeeded", "uncertain", "waiting"]);
    assert_eq!(store.apply(charged.clone()).await.unwrap(), next("account"));
    // the lease is as fresh as if it had just begun
    harness.pass(LEASE - LEASE / 8).await;
    assert_eq!(standing(&*store, &order).await, ["succeeded", "in_flight", "waiting"]);
    let told = store.apply(end(&first, "account", Outcome::Succeeded)).await.unwrap();
    assert_eq!(told, next("mail"));
    assert_eq!(store.get(order.id).await.unwrap().unwrap().attempts.total(), 3);
}
