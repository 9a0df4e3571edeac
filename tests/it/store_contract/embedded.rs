//! The store on disk, under test; and what only it promises: of damage, of crashes, and of two
//! processes on one directory.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use onceward::clock::Clock;
use onceward::operation::state::{ClaimReply, Forgetting, ReportedState, Settled, Verdict};
use onceward::operation::{OperationId, Outcome, Reason, State, Subject, Timestamp};
use onceward::store::codec::encode;
use onceward::store::embedded::{self, Durability, Embedded, IfDamaged, OpenError, Settings};
use onceward::store::{Error, Store, StoreExt as _};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use tempfile::TempDir;
use tokio::runtime::Builder;

use super::Harness;
use super::support::{
    ATTEMPT_TIMEOUT, LEASE, MILLISECOND, RETENTION, answer, attempted, claim_on, copy_of, end_of,
    forgets, granted, granted_as, look_at, order, renews, resolves, sweep_all, withdraws,
};
use crate::support::segments::{append_record, newest, newest_content, replace};
use crate::support::until;

pub(super) const START: Timestamp = Timestamp(1_800_000_000_000);

pub(super) struct OnDisk {
    store: Arc<Embedded>,
    clock: Clock,
    directory: TempDir,
}

/// The settings of a store in this directory.
pub(super) fn settings(directory: &Path) -> Settings {
    let path = directory.to_owned();
    Settings { path, durability: Durability::Sync, if_damaged: IfDamaged::Refuse }
}

pub(super) fn open_with(settings: &Settings, clock: &Clock) -> Result<Arc<Embedded>, OpenError> {
    embedded::open(settings, clock.clone()).map(Arc::new)
}

fn open(directory: &Path, clock: &Clock) -> Result<Arc<Embedded>, OpenError> {
    open_with(&settings(directory), clock)
}

impl Harness for OnDisk {
    async fn start() -> Self {
        let (directory, clock) = (tempfile::tempdir().unwrap(), Clock::manual(START));
        Self { store: open(directory.path(), &clock).unwrap(), clock, directory }
    }

    fn store(&self) -> Arc<dyn Store> {
        Arc::<Embedded>::clone(&self.store)
    }

    async fn pass(&self, time: Duration) {
        self.clock.advance(time);
    }
}

impl OnDisk {
    /// One that does not wait for the disk.
    pub(super) fn unsynced() -> Self {
        let (directory, clock) = (tempfile::tempdir().unwrap(), Clock::manual(START));
        let settings = Settings { durability: Durability::Os, ..settings(directory.path()) };
        let store = open_with(&settings, &clock).unwrap();
        Self { store, clock, directory }
    }

    /// Closes the store and opens it again, on this clock.
    async fn reopen_on(&mut self, clock: Clock) {
        self.store.close().await;
        self.clock = clock;
        self.store = open(self.directory.path(), &self.clock).unwrap();
    }

    async fn reopen(&mut self) {
        self.reopen_on(self.clock.clone()).await;
    }

    /// Closes the store, changes the bytes of a record, and opens it again.
    async fn damage(&mut self, id: OperationId, damage: impl FnOnce(&mut Vec<u8>)) {
        let found = self.store.get(id).await;
        self.store.close().await;
        let mut bytes = found.map_or(vec![99; 60], |found| encode(&found.unwrap()).unwrap());
        damage(&mut bytes);
        append_record(self.directory.path(), id.as_bytes(), &bytes);
        self.store = open(self.directory.path(), &self.clock).unwrap();
    }
}

/// The second process says at once which directory it is about.
#[tokio::test]
async fn a_second_opening_is_refused_and_names_the_directory() {
    let one = OnDisk::start().await;
    let began = Clock::system().moment();
    let refused = open(one.directory.path(), &one.clock).unwrap_err();
    assert!(began.until(Clock::system().moment()) < Duration::from_secs(10));
    assert!(matches!(refused, OpenError::InUse { .. }), "{refused:?}");
    assert!(refused.to_string().contains(one.directory.path().to_str().unwrap()), "{refused}");
    // and does the first no harm
    granted(&*one.store, &order("1")).await;
}

#[tokio::test]
async fn what_was_in_flight_is_uncertain_after_a_restart() {
    let mut one = OnDisk::start().await;
    let (in_flight, held) = (order("in flight"), order("held"));
    let (request, attempt) = granted(&*one.store, &in_flight).await;
    attempted(&*one.store, &held, Outcome::Uncertain).await;
    one.reopen().await;
    assert_eq!(one.store.uncertain().await.unwrap(), 2);
    let state = one.store.get(in_flight.id).await.unwrap().unwrap().state;
    let State::Uncertain(held) = state else { panic!("{state:?}") };
    assert_eq!(held.reason, Reason::HolderEnded);
    // not more of them with each restart
    one.reopen().await;
    assert_eq!(one.store.uncertain().await.unwrap(), 2);
    let told =
        ClaimReply::NotGranted(ReportedState::Uncertain { attempt, ends_in: ATTEMPT_TIMEOUT });
    assert_eq!(copy_of(&*one.store, &in_flight).await, told);
    let settled = one.store.apply(end_of(&request, attempt, Outcome::Succeeded)).await.unwrap();
    assert_eq!(settled, Settled::Recorded { copy_refused: true });
    assert_eq!(one.store.uncertain().await.unwrap(), 1);
}

/// Operations that are claimed at the same time share a row, which outlives those that end first.
#[tokio::test]
async fn of_many_that_were_claimed_together_those_in_flight_are_uncertain_after_a_crash() {
    let one = OnDisk::start().await;
    let orders: Vec<_> = (0..60).map(|number| order(&number.to_string())).collect();
    let granted = orders.iter().map(|order| granted(&*one.store, order));
    let granted = join_all(granted).await;
    let ends = granted.iter().enumerate().filter_map(|(number, (request, attempt))| {
        let outcome = [Some(Outcome::Succeeded), Some(Outcome::Failed), None][number % 3]?;
        Some(one.store.apply(end_of(request, *attempt, outcome)))
    });
    for ended in join_all(ends).await {
        ended.unwrap();
    }
    let again = orders.iter().skip(1).step_by(3).map(|order| copy_of(&*one.store, order));
    assert_eq!(join_all(again).await, vec![granted_as(2); 20]);
    let mut crashed = after_a_crash(&one);
    for _ in 0..2 {
        assert_eq!(crashed.store.uncertain().await.unwrap(), 40);
        for (number, order) in orders.iter().enumerate() {
            let state = crashed.store.get(order.id).await.unwrap().unwrap().state;
            assert_eq!(matches!(state, State::Succeeded(_)), number % 3 == 0, "{state:?}");
            assert_eq!(matches!(state, State::Uncertain(_)), number % 3 > 0, "{state:?}");
        }
        crashed.reopen().await;
    }
}

#[tokio::test]
async fn a_restart_keeps_what_is_settled_and_the_numbers_of_attempts() {
    let mut one = OnDisk::start().await;
    let (done, failed) = (order("done"), order("failed"));
    attempted(&*one.store, &done, Outcome::Succeeded).await;
    attempted(&*one.store, &failed, Outcome::Failed).await;
    attempted(&*one.store, &failed, Outcome::Failed).await;
    let before = one.store.get(done.id).await.unwrap();
    one.reopen().await;
    assert_eq!(one.store.get(done.id).await.unwrap(), before);
    let told = ClaimReply::NotGranted(ReportedState::Succeeded { attempt: 1, answer: answer() });
    assert_eq!(copy_of(&*one.store, &done).await, told);
    assert_eq!(copy_of(&*one.store, &failed).await, granted_as(3));
    forgets(&*one.store, done.id).await;
    one.reopen().await;
    assert_eq!(copy_of(&*one.store, &done).await, granted_as(2));
}

#[tokio::test]
async fn what_was_due_before_a_restart_is_swept_after_it() {
    let mut one = OnDisk::start().await;
    attempted(&*one.store, &order("done"), Outcome::Succeeded).await;
    granted(&*one.store, &order("in flight")).await;
    one.reopen().await;
    one.pass(RETENTION - MILLISECOND).await;
    assert_eq!(sweep_all(&*one.store, 10).await, (0, 0));
    one.pass(MILLISECOND).await;
    assert_eq!(sweep_all(&*one.store, 10).await, (1, 0));
    one.pass(super::support::HOLD_FOR).await;
    assert_eq!(sweep_all(&*one.store, 10).await, (1, 1));
    assert_eq!(one.store.uncertain().await.unwrap(), 0);
}

/// Records that end in one millisecond share a row.
#[tokio::test]
async fn records_that_end_together_are_swept_in_small_steps() {
    let mut one = OnDisk::start().await;
    let orders: Vec<_> = (0..40).map(|number| order(&number.to_string())).collect();
    let all = orders.iter().map(|order| attempted(&*one.store, order, Outcome::Succeeded));
    join_all(all).await;
    one.pass(RETENTION).await;
    for _ in 0..3 {
        let report = one.store.sweep(7).await.unwrap();
        assert_eq!((report.removed, report.more), (7, true));
        one.reopen().await;
    }
    assert_eq!(sweep_all(&*one.store, 7).await, (19, 0));
    assert_eq!(one.store.list(&super::listing::ALL).await.unwrap().operations, []);
}

#[tokio::test]
async fn time_does_not_go_back_when_the_machine_s_clock_does() {
    let mut one = OnDisk::start().await;
    one.pass(LEASE).await;
    attempted(&*one.store, &order("1"), Outcome::Succeeded).await;
    let set_back = Clock::manual(Timestamp(START.0 - 86_400_000));
    one.reopen_on(set_back).await;
    let told = ClaimReply::NotGranted(ReportedState::Succeeded { attempt: 1, answer: answer() });
    one.pass(RETENTION - MILLISECOND).await;
    assert_eq!(copy_of(&*one.store, &order("1")).await, told);
    one.pass(MILLISECOND).await;
    assert_eq!(copy_of(&*one.store, &order("1")).await, granted_as(1));
    let kept = one.store.get(order("1").id).await.unwrap().unwrap();
    assert_eq!(kept.created_at, START.plus(LEASE).plus(RETENTION));
}

/// What stands in a copy of the directory, as a crash of the process would leave it.
fn after_a_crash(one: &OnDisk) -> OnDisk {
    let directory = tempfile::tempdir().unwrap();
    copy_directory(one.directory.path(), directory.path());
    let clock = Clock::manual(one.clock.wall());
    OnDisk { store: open(directory.path(), &clock).unwrap(), clock, directory }
}

fn copy_directory(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let (entry, to) = (entry.unwrap(), to);
        let to = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy_directory(&entry.path(), &to);
        } else {
            fs::copy(entry.path(), to).unwrap();
        }
    }
}

#[tokio::test]
async fn what_was_answered_is_there_after_a_crash() {
    let one = OnDisk::start().await;
    let order = order("1");
    let (request, attempt) = granted(&*one.store, &order).await;
    let crashed = after_a_crash(&one);
    assert!(matches!(
        copy_of(&*crashed.store, &order).await,
        ClaimReply::NotGranted(ReportedState::Uncertain { .. })
    ));
    one.store.apply(end_of(&request, attempt, Outcome::Succeeded)).await.unwrap();
    let crashed = after_a_crash(&one);
    assert!(matches!(
        copy_of(&*crashed.store, &order).await,
        ClaimReply::NotGranted(ReportedState::Succeeded { .. })
    ));
    forgets(&*one.store, order.id).await;
    let crashed = after_a_crash(&one);
    assert_eq!(copy_of(&*crashed.store, &order).await, granted_as(2));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn nobody_is_told_of_a_success_that_was_forgotten() {
    let one = OnDisk::start().await;
    let order = order("1");
    for round in 1..=50 {
        attempted(&*one.store, &order, Outcome::Succeeded).await;
        let readers = (0..4).map(|_| {
            let (store, order) = (Arc::clone(&one.store), Arc::clone(&order));
            tokio::spawn(async move {
                while let ClaimReply::NotGranted(ReportedState::Succeeded { .. }) =
                    look_at(&*store, &order).await
                {}
            })
        });
        let readers = readers.collect::<Vec<_>>();
        forgets(&*one.store, order.id).await;
        assert_eq!(
            look_at(&*one.store, &order).await,
            ClaimReply::NotGranted(ReportedState::Free),
            "round {round}"
        );
        for reader in readers {
            reader.await.unwrap();
        }
    }
}

/// A damaged record is neither a panic nor a free key.
#[tokio::test]
async fn a_damaged_record_is_an_error_and_not_a_free_key() {
    let mut one = OnDisk::start().await;
    let order = order("1");
    let (request, attempt) = attempted(&*one.store, &order, Outcome::Succeeded).await;
    let damages: [fn(&mut Vec<u8>); 4] =
        [|bytes| bytes[40] ^= 1, |bytes| bytes[0] = 99, |bytes| bytes.truncate(4), Vec::clear];
    for damage in damages {
        one.damage(order.id, damage).await;
        let unreadable = |error| matches!(error, Error::Unreadable(id, _) if id == order.id);
        assert!(unreadable(one.store.apply(claim_on(&order)).await.unwrap_err()));
        assert!(unreadable(one.store.get(order.id).await.unwrap_err()));
        let end = end_of(&request, attempt, Outcome::Failed);
        assert!(unreadable(one.store.apply(end.clone()).await.unwrap_err()));
        assert!(unreadable(
            one.store
                .apply(Forgetting {
                    operation: order.id,
                    by: "ops".to_owned(),
                    reason: "why".to_owned()
                })
                .await
                .unwrap_err()
        ));
    }
    // not even when its retention has passed; and it is in nobody's way
    attempted(&*one.store, &super::support::order("2"), Outcome::Succeeded).await;
    one.pass(RETENTION).await;
    assert_eq!(sweep_all(&*one.store, 1).await, (1, 0));
    assert!(one.store.apply(claim_on(&order)).await.is_err());
}

#[tokio::test]
async fn a_damaged_record_in_flight_does_not_keep_the_store_from_opening() {
    let mut one = OnDisk::start().await;
    granted(&*one.store, &order("1")).await;
    one.store.close().await;
    // as if nothing had opened it between
    let crashed = order("2");
    one.store = open(one.directory.path(), &one.clock).unwrap();
    granted(&*one.store, &crashed).await;
    let mut copy = after_a_crash(&one);
    copy.damage(crashed.id, Vec::clear).await;
    assert!(copy.store.apply(claim_on(&crashed)).await.is_err());
    assert!(matches!(
        copy_of(&*copy.store, &order("1")).await,
        ClaimReply::NotGranted(ReportedState::Uncertain { .. })
    ));
}

#[test]
fn a_directory_of_somebody_else_is_refused_and_left_alone() {
    let directory = tempfile::tempdir().unwrap();
    fs::write(directory.path().join("thesis.txt"), "years of work").unwrap();
    let refused = open(directory.path(), &Clock::system()).unwrap_err();
    assert!(matches!(refused, OpenError::NotOurs { .. }), "{refused:?}");
    assert!(refused.to_string().contains(directory.path().to_str().unwrap()), "{refused}");
    assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 1);
}

#[tokio::test]
async fn a_directory_of_another_format_is_refused() {
    let one = OnDisk::start().await;
    one.store.close().await;
    let format = one.directory.path().join("format");
    assert_eq!(fs::read_to_string(&format).unwrap(), "onceward embedded store, format 2\n");
    fs::write(&format, "onceward embedded store, format 3\n").unwrap();
    let refused = open(one.directory.path(), &one.clock).unwrap_err();
    assert!(matches!(refused, OpenError::OtherFormat { .. }), "{refused:?}");
    assert!(refused.to_string().contains("format 3"), "{refused}");
}

#[tokio::test]
async fn a_start_that_was_interrupted_is_begun_again() {
    let directory = tempfile::tempdir().unwrap();
    fs::write(directory.path().join("lock"), "").unwrap();
    fs::write(directory.path().join("format.new"), "once").unwrap();
    // The last one is of an older version.
    for (folder, file) in [("log.new", "1.log"), ("rows.new", "version"), ("records.new", "0.jnl")]
    {
        fs::create_dir(directory.path().join(folder)).unwrap();
        fs::write(directory.path().join(folder).join(file), "").unwrap();
    }
    let store = open(directory.path(), &Clock::system()).unwrap();
    granted(&*store, &order("1")).await;
}

#[tokio::test]
async fn a_closed_store_answers_nobody_and_lets_go_of_its_directory() {
    let one = OnDisk::start().await;
    attempted(&*one.store, &order("1"), Outcome::Succeeded).await;
    one.store.close().await;
    one.store.close().await;
    let refused = one.store.apply(claim_on(&order("1"))).await.unwrap_err();
    assert!(matches!(refused, Error::Unavailable(_)), "{refused:?}");
    assert!(!refused.may_have_applied());
    let again = open(one.directory.path(), &one.clock).unwrap();
    assert!(matches!(
        copy_of(&*again, &order("1")).await,
        ClaimReply::NotGranted(ReportedState::Succeeded { .. })
    ));
}

/// The replies go to the runtimes of their callers, each of which hands them on.
#[test]
fn a_runtime_that_ends_keeps_no_reply_from_callers_on_others() {
    let directory = tempfile::tempdir().unwrap();
    let store = open(directory.path(), &Clock::manual(START)).unwrap();
    let calls = |name: &str| {
        let orders: Vec<_> = (0..20).map(|number| order(&format!("{name} {number}"))).collect();
        let store = Arc::clone(&store);
        async move {
            join_all(orders.iter().map(|order| granted(&*store, order))).await;
        }
    };
    let runtime = || Builder::new_current_thread().enable_all().build().unwrap();
    std::thread::scope(|threads| {
        for name in ["one", "other"] {
            threads.spawn(move || {
                let lasts = runtime();
                for round in 0..20 {
                    lasts.block_on(calls(&format!("{name} {round}")));
                }
            });
        }
        for round in 0..20 {
            let ends = runtime();
            ends.spawn(calls(&format!("unanswered {round}")));
            // the calls are made here, and nobody waits for the replies
            ends.block_on(tokio::task::yield_now());
        }
    });
}

/// Runs one of the tests below in a process of its own, on this directory.
fn in_a_process(test: &str, directory: &Path) -> Child {
    // a write past the limit of a file is an error, as on a full disk, and no signal
    Command::new("sh")
        .args(["-c", "trap '' XFSZ; exec \"$0\" \"$@\""])
        .arg(std::env::current_exe().unwrap())
        .args([&format!("store_contract::embedded::{test}"), "--exact", "--nocapture"])
        .env(DIRECTORY, directory)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap()
}

/// Names the directory of a test that runs in a process of its own.
pub(super) const DIRECTORY: &str = "STORE_CONTRACT_DIRECTORY";

/// `kill -9` under load loses nothing that was acknowledged.
#[tokio::test]
async fn what_was_answered_is_there_after_the_process_was_killed() {
    let directory = tempfile::tempdir().unwrap();
    let mut child = in_a_process("a_process_that_is_killed", directory.path());
    let lines = BufReader::new(child.stdout.take().unwrap()).lines().map(Result::unwrap);
    let settled: Vec<_> = lines
        .filter_map(|line| Some(line.strip_prefix("settled ")?.to_owned()))
        .take(500)
        .collect();
    child.kill().unwrap();
    child.wait().unwrap();
    assert_eq!(settled.len(), 500);
    let store = open(directory.path(), &Clock::system()).unwrap();
    for key in settled {
        let told = copy_of(&*store, &order(&key)).await;
        assert_eq!(
            told,
            ClaimReply::NotGranted(ReportedState::Succeeded { attempt: 1, answer: answer() }),
            "{key}"
        );
    }
}

/// Not a test by itself: settles operations from eight tasks and says so, until it is killed.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[expect(clippy::print_stdout, reason = "the parent reads it")]
async fn a_process_that_is_killed() {
    let Ok(directory) = std::env::var(DIRECTORY) else {
        return;
    };
    let store = open(directory.as_ref(), &Clock::system()).unwrap();
    let tasks = (0..8).map(|task| {
        let store = Arc::clone(&store);
        tokio::spawn(async move {
            for n in 0.. {
                let key = format!("{task}-{n}");
                attempted(&*store, &order(&key), Outcome::Succeeded).await;
                println!("settled {key}");
            }
        })
    });
    join_all(tasks.collect::<Vec<_>>()).await;
}

/// On a full disk claims are refused. What ends something is recorded, and replays go on.
#[tokio::test]
async fn a_full_disk_refuses_claims_and_replays_what_is_settled() {
    let one = OnDisk::start().await;
    attempted(&*one.store, &order("cached"), Outcome::Succeeded).await;
    attempted(&*one.store, &order("on disk"), Outcome::Succeeded).await;
    one.store.close().await;
    let child = in_a_process("a_process_whose_disk_is_full", one.directory.path());
    let output = child.wait_with_output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success() && text.contains("1 passed"), "{text}");
    let store = open(one.directory.path(), &one.clock).unwrap();
    let told = ClaimReply::NotGranted(ReportedState::Succeeded { attempt: 1, answer: answer() });
    for key in ["cached", "on disk", "in flight"] {
        assert_eq!(copy_of(&*store, &order(key)).await, told, "{key}");
    }
    for key in ["fill 0", "new"] {
        let met = copy_of(&*store, &order(key)).await;
        assert!(
            matches!(met, ClaimReply::NotGranted(ReportedState::Uncertain { .. })),
            "{key}: {met:?}"
        );
    }
}

/// Lets no file become longer than this, as if the disk were full then.
fn limit_files(bytes: Option<u64>) {
    let Rlimit { maximum, .. } = getrlimit(Resource::Fsize);
    setrlimit(Resource::Fsize, Rlimit { current: bytes, maximum }).unwrap();
}

/// Not a test by itself: its disk is full soon.
#[tokio::test]
async fn a_process_whose_disk_is_full() {
    let Ok(directory) = std::env::var(DIRECTORY) else {
        return;
    };
    let store = open(directory.as_ref(), &Clock::manual(START)).unwrap();
    copy_of(&*store, &order("cached")).await;
    let (holder, attempt) = granted(&*store, &order("in flight")).await;
    granted(&*store, &order("fill 0")).await;
    // enough for the first segment of a start, but not for the next one
    limit_files(Some(3 << 20));
    let mut acknowledged = vec!["fill 0".to_owned()];
    let refused = loop {
        let key = format!("fill {}", acknowledged.len());
        match store.apply(claim_on(&order(&key))).await {
            Ok(_) => acknowledged.push(key),
            Err(error) => break error,
        }
    };
    assert!(matches!(refused, Error::Unavailable(_)), "{refused:?}");
    assert!(!refused.may_have_applied(), "it is told to be off before anything is done");
    assert!(matches!(store.probe().await.unwrap_err(), Error::Unavailable(_)));
    // but copies are answered
    let told = ClaimReply::NotGranted(ReportedState::Succeeded { attempt: 1, answer: answer() });
    for key in ["cached", "on disk"] {
        assert_eq!(copy_of(&*store, &order(key)).await, told, "{key}");
    }
    for key in acknowledged.iter().map(String::as_str).chain(["in flight"]) {
        let met = copy_of(&*store, &order(key)).await;
        assert_eq!(
            met,
            ClaimReply::NotGranted(ReportedState::InFlight { attempt: 1, lease_left: LEASE }),
            "{key}"
        );
    }
    renews(&*store, order("in flight").id, holder.claim_id, LEASE * 2).await;
    // there is room for what ends something
    let end = end_of(&holder, attempt, Outcome::Succeeded);
    let settled = store.apply(end).await.unwrap();
    assert_eq!(settled, Settled::Recorded { copy_refused: true });
    store.sweep(10).await.unwrap();
    // with room again it goes on
    limit_files(None);
    let new = order("new");
    until("it takes claims again", async || store.apply(claim_on(&new)).await.is_ok()).await;
    store.close().await;
}

/// Wherever a bit of the log is wrong, nothing that was done is free to be done again: it is
/// remembered, or held, or the store does not open.
#[tokio::test]
async fn a_damaged_log_is_never_cut_off_in_silence() {
    let one = OnDisk::start().await;
    for number in 0..10 {
        attempted(&*one.store(), &order(&number.to_string()), Outcome::Succeeded).await;
    }
    one.store.close().await;
    let whole = newest_content(one.directory.path());
    let (mut refused, mut kept) = (0, 0);
    for at in (0..whole.len()).step_by(31) {
        let damaged = after_a_crash_of(one.directory.path(), |copy| {
            let mut bytes = whole.clone();
            bytes[at] ^= 1;
            replace(&newest(copy), &bytes);
        });
        for _ in 0..2 {
            match open(damaged.path(), &one.clock) {
                Err(_) => refused += 1,
                Ok(store) => {
                    for number in 0..10 {
                        let told = copy_of(&*store, &order(&number.to_string())).await;
                        let safe = matches!(
                            told,
                            ClaimReply::NotGranted(
                                ReportedState::Succeeded { .. } | ReportedState::Uncertain { .. }
                            )
                        );
                        assert!(safe, "{at}: {told:?}");
                    }
                    kept += 1;
                    store.close().await;
                }
            }
        }
    }
    assert!(refused > 20, "{refused} refused, {kept} kept");
}

pub(super) fn after_a_crash_of(directory: &Path, damage: impl FnOnce(&Path)) -> TempDir {
    let copy = tempfile::tempdir().unwrap();
    copy_directory(directory, copy.path());
    damage(copy.path());
    copy
}

/// An operator needs it who has freed the operation meanwhile.
#[tokio::test]
async fn what_an_old_holder_says_of_its_attempt_is_there_after_a_crash_in_the_next_attempt() {
    let one = OnDisk::start().await;
    for (key, is_sent) in [("sent", true), ("unsent", false)] {
        let order = order(key);
        let (old, attempt) = granted(&*one.store, &order).await;
        one.pass(LEASE).await;
        resolves(&*one.store, order.id, Verdict::Failed).await;
        granted(&*one.store, &order).await;
        if is_sent {
            let late = end_of(&old, attempt, Outcome::Succeeded);
            assert_eq!(one.store.apply(late).await.unwrap(), Settled::Superseded);
        } else {
            withdraws(&*one.store, order.id, old.claim_id).await;
        }
        sweep_all(&*one.store, 10).await;
        let crashed = after_a_crash(&one);
        let found = crashed.store.get(order.id).await.unwrap().unwrap();
        let outcomes: Vec<_> = found.attempts.kept().map(|attempt| attempt.outcome).collect();
        let first = if is_sent { Outcome::Succeeded } else { Outcome::Failed };
        assert_eq!(outcomes, [Some(first), Some(Outcome::Uncertain)]);
    }
}

/// A process that dies in the middle of a readiness check leaves nothing for people to resolve.
#[tokio::test]
async fn a_probe_that_a_crash_interrupts_leaves_nothing_behind() {
    let one = OnDisk::start().await;
    let mut probe = Subject::clone(&order("1"));
    probe.route = "onceward:probe".into();
    one.store.apply(claim_on(&Arc::new(probe))).await.unwrap();
    granted(&*one.store, &order("2")).await;
    let crashed = after_a_crash(&one);
    assert_eq!(crashed.store.get(order("1").id).await.unwrap(), None);
    assert_eq!(crashed.store.uncertain().await.unwrap(), 1, "the other one");
}
