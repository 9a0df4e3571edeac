//! What people decide: it makes the claim of the attempt stale, and is durable.

use onceward::operation::state::{ClaimReply, Decided, ReportedState, Settled, Verdict};
use onceward::operation::{DecisionKind, Outcome};
use onceward::store::StoreExt as _;

use super::Harness;
use super::support::{
    RETENTION, answer, attempted, copy_of, end_of, forgets, granted, granted_as, order, resolves,
    sweep_all,
};

pub(super) async fn an_operator_resolves_what_is_uncertain_and_its_settle_becomes_stale(
    harness: &impl Harness,
) {
    let (store, order) = (harness.store(), order("1"));
    let (request, attempt) = attempted(&*store, &order, Outcome::Uncertain).await;
    let done = Verdict::Succeeded(Some(answer()));
    let decided = resolves(&*store, order.id, done).await;
    assert_eq!(decided, Decided::Done);
    let settled = store.apply(end_of(&request, attempt, Outcome::Failed)).await.unwrap();
    assert_eq!(settled, Settled::Superseded);
    let told = ClaimReply::NotGranted(ReportedState::Succeeded { attempt, answer: answer() });
    assert_eq!(copy_of(&*store, &order).await, told);
    let found = store.get(order.id).await.unwrap().unwrap();
    let [held, decision] = &*found.decisions else { panic!("{:?}", found.decisions) };
    assert_eq!((&*held.by, held.kind), ("when_uncertain", DecisionKind::Hold));
    assert_eq!((&*decision.by, decision.kind), ("ops", DecisionKind::ResolvedSucceeded));
    assert_eq!(decision.reference.as_deref(), Some("payment 7"));
    // the stale end is in the log
    assert_eq!(found.attempts.kept().next().unwrap().outcome, Some(Outcome::Failed));
}

pub(super) async fn an_operator_is_refused_what_is_in_flight_or_done(harness: &impl Harness) {
    let (store, order) = (harness.store(), order("1"));
    assert_eq!(resolves(&*store, order.id, Verdict::Failed).await, Decided::Unknown);
    assert_eq!(forgets(&*store, order.id).await, Decided::Unknown);
    let (request, attempt) = granted(&*store, &order).await;
    assert_eq!(resolves(&*store, order.id, Verdict::Failed).await, Decided::Refused);
    assert_eq!(forgets(&*store, order.id).await, Decided::Refused);
    store.apply(end_of(&request, attempt, Outcome::Succeeded)).await.unwrap();
    assert_eq!(resolves(&*store, order.id, Verdict::Failed).await, Decided::Refused);
    assert_eq!(store.get(order.id).await.unwrap().unwrap().decisions, []);
}

pub(super) async fn a_forgotten_operation_runs_again_and_keeps_its_log(harness: &impl Harness) {
    let (store, order) = (harness.store(), order("1"));
    attempted(&*store, &order, Outcome::Succeeded).await;
    // a copy has been answered, so that the answer may be at hand
    copy_of(&*store, &order).await;
    assert_eq!(forgets(&*store, order.id).await, Decided::Done);
    assert_eq!(copy_of(&*store, &order).await, granted_as(2));
    let found = store.get(order.id).await.unwrap().unwrap();
    assert_eq!((found.attempts.total(), found.decisions.len()), (2, 1));
}

pub(super) async fn a_probe_leaves_nothing_behind(harness: &impl Harness) {
    let store = harness.store();
    store.probe().await.unwrap();
    store.probe().await.unwrap();
    assert_eq!(store.uncertain().await.unwrap(), 0);
    harness.pass(RETENTION).await;
    assert_eq!(sweep_all(&*store, 10).await, (2, 0));
}
