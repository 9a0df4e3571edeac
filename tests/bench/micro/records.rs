//! The record of an operation, as it is encoded and decoded for every store but the one in memory.

use std::hint::black_box;

use criterion::{Criterion, Throughput};
use http::StatusCode;
use onceward::operation::state::{ClaimRequest, Ending, Rule};
use onceward::operation::{ClaimId, Operation, Timestamp};
use onceward::store::codec::{decode, encode};

use super::event::{request, settlement, success};

const KEY: &str = "evt_1NG8Du2eZvKYlo2CUI79vXWy";
const NOW: Timestamp = Timestamp(1_700_000_000_000);

pub(crate) fn measure(criterion: &mut Criterion) {
    let with_answer = |length| {
        let claim = request(KEY);
        let ending = success("a".repeat(length).into());
        changed(&settlement(claim.clone(), 1, ending), Some(changed(&claim, None)))
    };
    let cases = [
        ("in flight", changed(&request(KEY), None)),
        ("answer of 300 bytes", with_answer(300)),
        ("answer of 100 KiB", with_answer(100 * 1024)),
        ("64 failed attempts", failed(64)),
    ];
    let mut group = criterion.benchmark_group("records");
    for (case, operation) in cases {
        let record = encode(&operation).unwrap();
        group.throughput(Throughput::Bytes(record.len() as u64));
        group.bench_function(format!("encode/{case}"), |bencher| {
            bencher.iter(|| encode(black_box(&operation)).unwrap());
        });
        group.bench_function(format!("decode/{case}"), |bencher| {
            bencher.iter(|| decode(black_box(&record)).unwrap());
        });
    }
}

/// The record that a rule makes of the one before.
fn changed(rule: &impl Rule, found: Option<Operation>) -> Operation {
    rule.apply(found, NOW).operation.unwrap()
}

/// An operation whose attempts have all failed.
fn failed(attempts: u8) -> Operation {
    let mut found = None;
    for attempt in 1..=attempts {
        let claim_id = ClaimId::from_random([attempt; 16]);
        let request = ClaimRequest { claim_id, ..request(KEY) };
        let claimed = changed(&request, found);
        let ending = Ending::Failed { status: StatusCode::BAD_GATEWAY, reference: None };
        found = Some(changed(&settlement(request, attempt.into(), ending), Some(claimed)));
    }
    found.unwrap()
}
