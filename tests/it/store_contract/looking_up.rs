//! Look-ups of uncertain operations: one copy asks, and what it finds is recorded once.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use onceward::operation::state::{
    ClaimReply, ClaimRequest, Finding, IfInFlight, IfUncertain, LookupGrant, LookupReport,
    ReportedState, Settled,
};
use onceward::operation::{DecisionKind, Outcome, StoredAnswer, Subject};
use onceward::store::{Store, StoreExt as _};

use super::Harness;
use super::support::{
    ATTEMPT_TIMEOUT, MILLISECOND, answer, attempted, claim_on, copy_of, end_of, granted_as, order,
};

/// The lease of a look-up.
const LOOKUP: Duration = Duration::from_secs(7);

/// A copy that asks the receiver if nobody knows.
fn asking(subject: &Arc<Subject>) -> ClaimRequest {
    let if_uncertain = IfUncertain::LookUp { attempts_max: 10, lease: LOOKUP };
    ClaimRequest { if_uncertain, ..claim_on(subject) }
}

fn found(request: &ClaimRequest, finding: Finding) -> LookupReport {
    let (request, reason) = (request.clone(), "as told".to_owned());
    LookupReport { request, step: None, finding, reason, reference: Some("pay_1".to_owned()) }
}

fn empty_200() -> Arc<StoredAnswer> {
    Arc::new(StoredAnswer::empty(http::StatusCode::OK))
}

/// A copy is granted the look-up.
async fn asked_by(store: &dyn Store, subject: &Arc<Subject>) -> ClaimRequest {
    let request = asking(subject);
    let claimed = store.apply(request.clone()).await.unwrap();
    assert!(matches!(claimed, ClaimReply::Lookup(_)), "{claimed:?}");
    request
}

pub(super) async fn of_fifty_racers_one_looks_up_and_the_others_meet_it_in_flight(
    harness: &impl Harness,
) {
    let (store, order) = (harness.store(), order("1"));
    attempted(&*store, &order, Outcome::Uncertain).await;
    let race = (0..50).map(|_| {
        let (store, request) = (harness.store(), asking(&order));
        tokio::spawn(async move { store.apply(request.clone()).await.unwrap() })
    });
    let told: Vec<_> = join_all(race).await.into_iter().map(Result::unwrap).collect();
    let look_ups = told
        .iter()
        .filter(|told| matches!(told, ClaimReply::Lookup(LookupGrant { attempt: 1, .. })));
    assert_eq!(look_ups.count(), 1, "{told:?}");
    let in_flight = told.iter().filter(|told| {
        matches!(told, ClaimReply::NotGranted(ReportedState::InFlight { attempt: 1, .. }))
    });
    assert_eq!(in_flight.count(), 49, "{told:?}");
}

pub(super) async fn a_look_up_that_nobody_ends_makes_way_for_another(harness: &impl Harness) {
    let (store, order) = (harness.store(), order("1"));
    attempted(&*store, &order, Outcome::Uncertain).await;
    let first = asked_by(&*store, &order).await;
    harness.pass(LOOKUP - MILLISECOND).await;
    let copy = store.apply(asking(&order)).await.unwrap();
    assert!(matches!(copy, ClaimReply::NotGranted(ReportedState::InFlight { .. })), "{copy:?}");
    harness.pass(MILLISECOND).await;
    asked_by(&*store, &order).await;
    // what the first one has found does not count any more
    let told = store.apply(found(&first, Finding::Done)).await.unwrap();
    assert!(matches!(told, ClaimReply::NotGranted(ReportedState::InFlight { .. })), "{told:?}");
}

pub(super) async fn a_finding_that_is_sent_twice_is_recorded_once(harness: &impl Harness) {
    let store = harness.store();
    for (key, finding) in [("1", Finding::Done), ("2", Finding::NotDone), ("3", Finding::Unknown)] {
        let order = order(key);
        attempted(&*store, &order, Outcome::Uncertain).await;
        harness.pass(ATTEMPT_TIMEOUT).await;
        let request = asked_by(&*store, &order).await;
        let once = store.apply(found(&request, finding)).await.unwrap();
        match finding {
            Finding::Done => {
                assert_eq!(
                    once,
                    ClaimReply::NotGranted(ReportedState::Succeeded {
                        attempt: 1,
                        answer: empty_200()
                    })
                );
            }
            Finding::NotDone => {
                assert_eq!(once, granted_as(2));
            }
            Finding::Unknown => {
                assert_eq!(
                    once,
                    ClaimReply::NotGranted(ReportedState::Uncertain {
                        attempt: 1,
                        ends_in: Duration::ZERO
                    })
                );
            }
        }
        assert_eq!(store.apply(found(&request, finding)).await.unwrap(), once);
        let kept = store.get(order.id).await.unwrap().unwrap();
        let [_held, decision] = &*kept.decisions else { panic!("{:?}", kept.decisions) };
        assert_eq!((&*decision.by, decision.kind), ("lookup", DecisionKind::LookedUp));
        assert_eq!(decision.reference.as_deref(), Some("pay_1"));
    }
}

pub(super) async fn a_finding_after_a_late_settle_changes_nothing(harness: &impl Harness) {
    let (store, order) = (harness.store(), order("1"));
    let (claim, attempt) = attempted(&*store, &order, Outcome::Uncertain).await;
    let request = asked_by(&*store, &order).await;
    let late = store.apply(end_of(&claim, attempt, Outcome::Succeeded)).await.unwrap();
    assert_eq!(late, Settled::Recorded { copy_refused: false });
    harness.pass(ATTEMPT_TIMEOUT).await;
    let told = store.apply(found(&request, Finding::NotDone)).await.unwrap();
    assert_eq!(
        told,
        ClaimReply::NotGranted(ReportedState::Succeeded { attempt, answer: answer() })
    );
    assert_eq!(copy_of(&*store, &order).await, told);
}

/// Whoever waits, in this process or in another one.
pub(super) async fn a_waiter_learns_of_the_end_of_a_look_up(harness: &impl Harness) {
    let (store, another) = (harness.store(), harness.another().await);
    for (key, finding) in [("1", Finding::Done), ("2", Finding::Unknown)] {
        let order = order(key);
        attempted(&*store, &order, Outcome::Uncertain).await;
        let request = asked_by(&*store, &order).await;
        let mut watch = another.watch(order.id).await.unwrap();
        let waits = ClaimRequest { if_in_flight: IfInFlight::Wait, ..asking(&order) };
        let meanwhile = another.apply(waits.clone()).await.unwrap();
        assert!(
            matches!(meanwhile, ClaimReply::NotGranted(ReportedState::InFlight { .. })),
            "{meanwhile:?}"
        );
        store.apply(found(&request, finding)).await.unwrap();
        let ended = tokio::time::timeout(Duration::from_secs(10), watch.ended()).await;
        assert!(ended.is_ok(), "nobody was told");
    }
}
