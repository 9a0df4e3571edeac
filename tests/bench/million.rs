//! How much memory and time a million remembered operations take on the embedded store:
//! `cargo bench --bench million`. Needs a gigabyte of disk and a minute or two.
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a measurement that cannot go on has failed"
)]
#![expect(clippy::print_stdout, reason = "the figures are what it is run for")]

mod event;

use std::fs;
use std::sync::Arc;
use std::time::Duration;

use onceward::clock::Clock;
use onceward::operation::state::{ClaimReply, ReportedState};
use onceward::store::embedded::{self, Durability, IfDamaged, Settings};
use onceward::store::{ListQuery, Store, StoreExt as _};
use tokio::task::JoinSet;

use event::{remember, request};

const OPERATIONS: usize = 1_000_000;
const TASKS: usize = 500;
const RESIDENT_MIB_MAX: u64 = 300;
const OPENING_MAX: Duration = Duration::from_secs(5);

#[tokio::main(flavor = "multi_thread", worker_threads = 2)]
async fn main() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("store");
    let if_damaged = IfDamaged::Refuse;
    let settings = Settings { path, durability: Durability::Os, if_damaged };
    let clock = Clock::system();
    let store = Arc::new(embedded::open(&settings, clock.clone()).unwrap());
    let began = clock.moment();
    let mut tasks = JoinSet::new();
    for task in 0..TASKS {
        let store = Arc::clone(&store);
        tasks.spawn(async move {
            for n in 0..OPERATIONS / TASKS {
                remember(&*store, &format!("{task}/{n}")).await;
            }
        });
    }
    tasks.join_all().await;
    report("remembered", began.until(clock.moment()));
    store.close().await;
    drop(store);

    let began = clock.moment();
    let store = Arc::new(embedded::open(&settings, clock.clone()).unwrap());
    let opening = began.until(clock.moment());
    report("opened again", opening);
    assert!(opening < OPENING_MAX, "{opening:?}");

    let began = clock.moment();
    for task in 0..TASKS {
        for n in (0..OPERATIONS / TASKS).step_by(10) {
            let told = store.apply(request(&format!("{task}/{n}"))).await.unwrap();
            assert!(matches!(
                told,
                ClaimReply::NotGranted(ReportedState::Succeeded { attempt: 1, .. })
            ));
        }
    }
    report("replayed every tenth", began.until(clock.moment()));

    let began = clock.moment();
    assert_eq!(listed(&*store).await, OPERATIONS);
    report("listed, 500 to a page", began.until(clock.moment()));
    store.close().await;
}

/// How many operations all pages of a list hold together.
async fn listed(store: &dyn Store) -> usize {
    let mut listing = ListQuery { route: None, state: None, key: None, after: None, limit: 500 };
    let mut count = 0;
    loop {
        let page = store.list(&listing).await.unwrap();
        count += page.operations.len();
        listing.after = page.next;
        if listing.after.is_none() {
            return count;
        }
    }
}

/// Prints how long it took and how much memory is used, and holds that to its limit.
fn report(what: &str, took: Duration) {
    let status = fs::read_to_string("/proc/self/status").expect("Linux");
    let mib = |name: &str| -> u64 {
        let line = status.lines().find_map(|line| line.strip_prefix(name)).expect(name);
        line.split_whitespace().next().expect("a number").parse::<u64>().unwrap() / 1024
    };
    let (resident, peak) = (mib("VmRSS:"), mib("VmHWM:"));
    println!("{what} in {took:?}: {resident} MiB resident, {peak} MiB at most");
    assert!(resident < RESIDENT_MIB_MAX, "{resident} MiB");
}
