//! Every other store answers every sequence of calls as the one in memory does.

use std::fmt::Write as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use onceward::operation::state::{
    ClaimReply, ClaimRequest, Finding, Forgetting, Grant, IfInFlight, IfUncertain, LookupGrant,
    LookupReport, Renewal, Resolution, Rule, Verdict,
};
use onceward::operation::{Outcome, Subject};
use onceward::store::{Store, StoreExt as _};
use proptest::prelude::*;
use proptest::test_runner::TestRunner;

use super::Harness;
use super::embedded::OnDisk;
use super::memory::InMemory;
use super::redis::OnRedis;
use super::support::{
    HOLD_FOR, LEASE, RETENTION, answer, claim_on, end_of, end_of_step, order_with_body, plan_of,
    resolved_as, sweep_all,
};

/// One thing that happens. Operations and earlier claims are named by small numbers.
#[derive(Debug, Clone)]
enum Call {
    Claim { key: u8, other_body: bool, may_grant: bool, waits: bool, asks: bool },
    ClaimAgain { claim: usize },
    Conclude { claim: usize, finding: Finding },
    Renew { claim: usize },
    Settle { claim: usize, outcome: Outcome },
    Advance { claim: usize, step: &'static str, outcome: Outcome },
    Withdraw { claim: usize },
    Resolve { key: u8, succeeded: bool },
    Forget { key: u8 },
    Sweep,
    Pass { millis: u64 },
}

fn calls() -> impl Strategy<Value = Vec<Call>> {
    let key = 0_u8..3;
    let claim = 0_usize..8;
    let outcome =
        prop_oneof![Just(Outcome::Succeeded), Just(Outcome::Failed), Just(Outcome::Uncertain)];
    let lease = u64::try_from(LEASE.as_millis()).unwrap();
    let retention = u64::try_from(RETENTION.as_millis()).unwrap();
    let hold_for = u64::try_from(HOLD_FOR.as_millis()).unwrap();
    let pass = prop_oneof![
        4 => 0..lease * 2,
        1 => Just(lease),
        1 => Just(retention),
        1 => Just(hold_for),
    ];
    let call = prop_oneof![
        6 => (key.clone(), prop::bool::weighted(0.1), prop::bool::weighted(0.9), any::<bool>(),
            any::<bool>())
            .prop_map(|(key, other_body, may_grant, waits, asks)| {
                Call::Claim { key, other_body, may_grant, waits, asks }
            }),
        2 => (claim.clone(), prop::sample::select(&Finding::ALL[..]))
            .prop_map(|(claim, finding)| Call::Conclude { claim, finding }),
        1 => claim.clone().prop_map(|claim| Call::ClaimAgain { claim }),
        1 => claim.clone().prop_map(|claim| Call::Renew { claim }),
        4 => (claim.clone(), outcome.clone())
            .prop_map(|(claim, outcome)| Call::Settle { claim, outcome }),
        6 => (claim.clone(), prop::sample::select(&STEPS[..]), outcome)
            .prop_map(|(claim, step, outcome)| Call::Advance { claim, step, outcome }),
        1 => claim.prop_map(|claim| Call::Withdraw { claim }),
        1 => (key.clone(), any::<bool>())
            .prop_map(|(key, succeeded)| Call::Resolve { key, succeeded }),
        1 => key.prop_map(|key| Call::Forget { key }),
        1 => Just(Call::Sweep),
        3 => pass.prop_map(|millis| Call::Pass { millis }),
    ];
    prop::collection::vec(call, 1..60)
}

const STEPS: [&str; 2] = ["ledger", "mail"];

/// Applies a rule, and says in words what came of it.
async fn told<R: Rule>(store: &dyn Store, rule: R) -> String {
    format!("{:?}", store.apply(rule).await.unwrap())
}

/// Makes one call, and says in words what came of it.
async fn make(
    call: &Call,
    harness: &impl Harness,
    claims: &[(ClaimRequest, u32)],
    new: &ClaimRequest,
    round: u32,
) -> (String, Option<u32>) {
    let store = harness.store();
    let newest_first = |claim: &usize| claims.iter().rev().nth(*claim);
    let told = match call {
        Call::Claim { .. } => {
            let claimed = store.apply(new.clone()).await.unwrap();
            let granted = match claimed {
                ClaimReply::Granted(Grant { attempt, .. })
                | ClaimReply::Lookup(LookupGrant { attempt, .. }) => Some(attempt),
                ClaimReply::NotGranted(_) => None,
            };
            return (format!("{claimed:?}"), granted);
        }
        Call::ClaimAgain { claim } => match newest_first(claim) {
            Some((request, _)) => told(&*store, request.clone()).await,
            None => String::new(),
        },
        Call::Conclude { claim, finding } => match newest_first(claim) {
            Some((request, _)) => concluded(&*store, request, *finding).await,
            None => String::new(),
        },
        Call::Renew { claim } => match newest_first(claim) {
            Some((request, _)) => {
                let claim_id = request.claim_id;
                let renewal = Renewal { operation: request.subject.id, claim_id, lease: LEASE };
                told(&*store, renewal).await
            }
            None => String::new(),
        },
        Call::Settle { claim, outcome } => match newest_first(claim) {
            Some((request, attempt)) => told(&*store, end_of(request, *attempt, *outcome)).await,
            None => String::new(),
        },
        Call::Advance { claim, step, outcome } => match newest_first(claim) {
            Some((request, attempt)) if request.plan.is_some() => {
                told(&*store, end_of_step(request, *attempt, step, *outcome)).await
            }
            Some(_) | None => String::new(),
        },
        Call::Withdraw { claim } => match newest_first(claim) {
            Some((request, _)) => told(&*store, request.withdrawal()).await,
            None => String::new(),
        },
        Call::Resolve { key, succeeded } => {
            let operation = keyed(round, *key, "{}").id;
            told(&*store, Resolution { operation, ..resolved_as(verdict(*succeeded)) }).await
        }
        Call::Forget { key } => {
            let operation = keyed(round, *key, "{}").id;
            let by = "ops".to_owned();
            told(&*store, Forgetting { operation, by, reason: "again".to_owned() }).await
        }
        Call::Sweep => format!("{:?}", sweep_all(&*store, 2).await),
        Call::Pass { millis } => {
            harness.pass(Duration::from_millis(*millis)).await;
            String::new()
        }
    };
    (told, None)
}

fn verdict(succeeded: bool) -> Verdict {
    if succeeded { Verdict::Succeeded(Some(answer())) } else { Verdict::Failed }
}

/// What comes of a look-up that was granted, or was not.
async fn concluded(store: &dyn Store, request: &ClaimRequest, finding: Finding) -> String {
    let step = request.plan.as_ref().map(|plan| Arc::clone(&plan.steps[0].name));
    let (request, reason, reference) = (request.clone(), "as told".to_owned(), None);
    let report = LookupReport { request, step, finding, reason, reference };
    format!("{:?}", store.apply(report.clone()).await.unwrap())
}

/// Everything that can be read.
async fn seen(store: &dyn Store, round: u32) -> String {
    let mut seen = format!("{} uncertain", store.uncertain().await.unwrap());
    for key in 0..3 {
        let found = store.get(keyed(round, key, "{}").id).await.unwrap();
        write!(seen, "\n{found:#?}").unwrap();
    }
    seen
}

/// What is asked for under this key, which no other round uses.
fn keyed(round: u32, key: u8, body: &str) -> Arc<Subject> {
    order_with_body(&format!("{round}/{key}"), body)
}

/// What a call claims, if it does.
fn claim_of(call: &Call, round: u32) -> ClaimRequest {
    let Call::Claim { key, other_body, may_grant, waits, asks } = call else {
        return claim_on(&keyed(round, 0, "{}"));
    };
    let body = if *other_body { "other" } else { "{}" };
    let if_in_flight = if *waits { IfInFlight::Wait } else { IfInFlight::Refuse };
    let lease = LEASE / 2;
    let if_uncertain = match asks {
        true => IfUncertain::LookUp { attempts_max: 3, lease },
        false => IfUncertain::Hold,
    };
    let may_grant = *may_grant;
    // one operation has no steps, one has them in order, one at once
    let plan = (*key > 0).then(|| plan_of(&STEPS, *key == 2, if_uncertain));
    ClaimRequest {
        may_grant,
        if_in_flight,
        if_uncertain,
        plan,
        ..claim_on(&keyed(round, *key, body))
    }
}

async fn answers_agree(
    (memory, other): (&InMemory, &impl Harness),
    round: u32,
    calls: Vec<Call>,
) -> Result<(), TestCaseError> {
    let mut claims: Vec<(ClaimRequest, u32)> = Vec::new();
    for call in calls {
        let new = claim_of(&call, round);
        let expected = make(&call, memory, &claims, &new, round).await;
        let found = make(&call, other, &claims, &new, round).await;
        prop_assert_eq!(&found, &expected, "{:?}", call);
        if let Some(attempt) = expected.1 {
            claims.push((new, attempt));
        }
        let expected = seen(&*memory.store(), round).await;
        prop_assert_eq!(seen(&*other.store(), round).await, expected, "after {:?}", call);
    }
    Ok(())
}

fn all_answers_agree<H: Harness>(cases: u32, start: impl Future<Output = H>) {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let stores = runtime.block_on(async { (InMemory::start().await, start.await) });
    let rounds = AtomicU32::new(0);
    let config = ProptestConfig { cases, failure_persistence: None, ..Default::default() };
    let agreed = TestRunner::new(config).run(&calls(), |calls| {
        let round = rounds.fetch_add(1, Ordering::Relaxed);
        runtime.block_on(answers_agree((&stores.0, &stores.1), round, calls))
    });
    // a server's process is one of the runtime's
    let _runtime = runtime.enter();
    drop(stores);
    agreed.unwrap_or_else(|error| panic!("{error}"));
}

#[test]
fn the_store_on_disk_answers_as_the_one_in_memory() {
    all_answers_agree(256, async { OnDisk::unsynced() });
}

#[test]
fn the_store_on_redis_answers_as_the_one_in_memory() {
    all_answers_agree(64, OnRedis::start());
}
