//! The store on disk answers every sequence of calls as the one in memory does.

use std::fmt::Write as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use onceward::operation::state::{ClaimRequest, Claimed, IfInFlight, Verdict};
use onceward::operation::{Asked, Outcome};
use onceward::store::Store;
use proptest::prelude::*;
use proptest::test_runner::TestRunner;

use super::Harness;
use super::embedded::OnDisk;
use super::memory::InMemory;
use super::support::{
    HOLD_FOR, LEASE, RETENTION, answer, claim_on, end_of, order_with_body, resolved_as, sweep_all,
};

/// One thing that happens. Operations and earlier claims are named by small numbers.
#[derive(Debug, Clone)]
enum Call {
    Claim { key: u8, other_body: bool, may_grant: bool, waits: bool },
    ClaimAgain { claim: usize },
    Renew { claim: usize },
    Settle { claim: usize, outcome: Outcome },
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
        6 => (key.clone(), prop::bool::weighted(0.1), prop::bool::weighted(0.9), any::<bool>())
            .prop_map(|(key, other_body, may_grant, waits)| {
                Call::Claim { key, other_body, may_grant, waits }
            }),
        1 => claim.clone().prop_map(|claim| Call::ClaimAgain { claim }),
        1 => claim.clone().prop_map(|claim| Call::Renew { claim }),
        4 => (claim.clone(), outcome)
            .prop_map(|(claim, outcome)| Call::Settle { claim, outcome }),
        1 => claim.prop_map(|claim| Call::Withdraw { claim }),
        1 => (key.clone(), any::<bool>())
            .prop_map(|(key, succeeded)| Call::Resolve { key, succeeded }),
        1 => key.prop_map(|key| Call::Forget { key }),
        1 => Just(Call::Sweep),
        3 => pass.prop_map(|millis| Call::Pass { millis }),
    ];
    prop::collection::vec(call, 1..60)
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
            let claimed = store.claim(new).await.unwrap();
            let granted =
                if let Claimed::Granted { attempt } = claimed { Some(attempt) } else { None };
            return (format!("{claimed:?}"), granted);
        }
        Call::ClaimAgain { claim } => match newest_first(claim) {
            Some((request, _)) => format!("{:?}", store.claim(request).await.unwrap()),
            None => String::new(),
        },
        Call::Renew { claim } => match newest_first(claim) {
            Some((request, _)) => {
                let (id, claim_id) = (request.asked.id, request.claim_id);
                format!("{:?}", store.renew(id, claim_id, LEASE).await.unwrap())
            }
            None => String::new(),
        },
        Call::Settle { claim, outcome } => match newest_first(claim) {
            Some((request, attempt)) => {
                let end = end_of(request, *attempt, *outcome);
                format!("{:?}", store.settle(&end).await.unwrap())
            }
            None => String::new(),
        },
        Call::Withdraw { claim } => match newest_first(claim) {
            Some((request, _)) => {
                let (id, claim_id) = (request.asked.id, request.claim_id);
                store.withdraw(id, claim_id, RETENTION).await.unwrap();
                String::new()
            }
            None => String::new(),
        },
        Call::Resolve { key, succeeded } => {
            let verdict =
                if *succeeded { Verdict::Succeeded(Some(answer())) } else { Verdict::Failed };
            let id = keyed(round, *key, "{}").id;
            format!("{:?}", store.resolve(id, &resolved_as(verdict)).await.unwrap())
        }
        Call::Forget { key } => {
            let id = keyed(round, *key, "{}").id;
            format!("{:?}", store.forget(id, "ops", "again").await.unwrap())
        }
        Call::Sweep => format!("{:?}", sweep_all(&*store, 2).await),
        Call::Pass { millis } => {
            harness.pass(Duration::from_millis(*millis)).await;
            String::new()
        }
    };
    (told, None)
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
fn keyed(round: u32, key: u8, body: &str) -> Arc<Asked> {
    order_with_body(&format!("{round}/{key}"), body)
}

/// What a call claims, if it does.
fn claim_of(call: &Call, round: u32) -> ClaimRequest {
    let Call::Claim { key, other_body, may_grant, waits } = call else {
        return claim_on(&keyed(round, 0, "{}"));
    };
    let body = if *other_body { "other" } else { "{}" };
    let if_in_flight = if *waits { IfInFlight::Waits } else { IfInFlight::Refused };
    let may_grant = *may_grant;
    ClaimRequest { may_grant, if_in_flight, ..claim_on(&keyed(round, *key, body)) }
}

async fn answers_agree(
    (memory, disk): (&InMemory, &OnDisk),
    round: u32,
    calls: Vec<Call>,
) -> Result<(), TestCaseError> {
    let mut claims: Vec<(ClaimRequest, u32)> = Vec::new();
    for call in calls {
        let new = claim_of(&call, round);
        let expected = make(&call, memory, &claims, &new, round).await;
        let found = make(&call, disk, &claims, &new, round).await;
        prop_assert_eq!(&found, &expected, "{:?}", call);
        if let Some(attempt) = expected.1 {
            claims.push((new, attempt));
        }
        let expected = seen(&*memory.store(), round).await;
        prop_assert_eq!(seen(&*disk.store(), round).await, expected, "after {:?}", call);
    }
    Ok(())
}

#[test]
fn the_store_on_disk_answers_as_the_one_in_memory() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let stores = runtime.block_on(async { (InMemory::start().await, OnDisk::unsynced()) });
    let rounds = AtomicU32::new(0);
    let config = ProptestConfig { cases: 256, failure_persistence: None, ..Default::default() };
    let agreed = TestRunner::new(config).run(&calls(), |calls| {
        let round = rounds.fetch_add(1, Ordering::Relaxed);
        runtime.block_on(answers_agree((&stores.0, &stores.1), round, calls))
    });
    agreed.unwrap_or_else(|error| panic!("{error}"));
}
