//! A process that is killed, or meets with an error, at any of its calls that change files, while
//! it opens the store on disk or makes it, and in its first attempt: the next one opens it with all
//! that was acknowledged.
//!
//! `strace` kills it on its way into the call. It counts the calls of each thread for itself.

use std::collections::BTreeSet;
use std::fs;
use std::io::{BufRead as _, BufReader};
use std::ops::Range;
use std::path::Path;
use std::process::{Command, Stdio};

use onceward::clock::Clock;
use onceward::operation::state::{ClaimReply, Grant, ReportedState};
use onceward::operation::{Outcome, Timestamp};
use onceward::store::embedded::{IfDamaged, OpenError, Settings};
use onceward::store::{ListQuery, Store, StoreExt as _};
use tempfile::TempDir;

use super::embedded::{DIRECTORY, START, after_a_crash_of, open_with, settings};
use super::journal::{SYNCED, end_with, open};
use super::listing::ALL;
use super::missing::{remembers, remove};
use super::support::{attempted, claim_on, copy_of, end_of, granted, order};
use crate::older_records::{restore_embedded, time};
use crate::support::segments::{all, content, groups, newest, newest_content, replace};

/// Calls that change files, or make sure that they were changed. What a process has written before
/// it is killed at one of them is there.
const CALLS: [&str; 9] = [
    "ftruncate",
    "pwrite64",
    "fdatasync",
    "fsync",
    "rename",
    "linkat",
    "unlink",
    "unlinkat",
    "rmdir",
];

/// Tells a process that damage is accepted, and what time it is.
const ACCEPTS: &str = "STORE_CONTRACT_ACCEPTS";
const TIME: &str = "STORE_CONTRACT_TIME";

/// Says that the attempt of the process is recorded.
const RECORDED: &str = "recorded its attempt";

/// Not a test by itself: opens a store, makes an attempt, and closes it.
#[tokio::test]
#[expect(clippy::print_stdout, reason = "the parent reads it")]
async fn a_process_that_opens_a_store() {
    let Ok(directory) = std::env::var(DIRECTORY) else {
        return;
    };
    let accepts = std::env::var_os(ACCEPTS).is_some();
    let if_damaged = if accepts { IfDamaged::Accept } else { IfDamaged::Refuse };
    let clock = Clock::manual(Timestamp(std::env::var(TIME).unwrap().parse().unwrap()));
    let settings = Settings { if_damaged, ..settings(directory.as_ref()) };
    let store = open_with(&settings, &clock).unwrap();
    let request = claim_on(&order("next"));
    if let ClaimReply::Granted(Grant { attempt, .. }) = store.apply(request.clone()).await.unwrap()
    {
        store.apply(end_of(&request, attempt, Outcome::Succeeded)).await.unwrap();
        println!("{RECORDED}");
    }
    store.close().await;
}

/// What has become of a process and its store.
struct Met {
    store: TempDir,
    /// Whether its attempt was acknowledged.
    recorded: bool,
    /// Whether it came to its end.
    is_done: bool,
}

/// It is killed at each of its first calls of a kind, and at some of those behind them: most are
/// those by which the database makes one table after the other.
const EACH: usize = 6;
const STEP: usize = 23;

/// A process that opens a copy of a store.
struct Opening<'a> {
    store: &'a Path,
    accepts: bool,
    at: Timestamp,
}

impl<'a> Opening<'a> {
    const fn of(store: &'a Path) -> Self {
        Self { store, accepts: false, at: START }
    }

    const fn accepted(store: &'a Path) -> Self {
        Self { accepts: true, ..Self::of(store) }
    }

    /// Kills it at its first call of each kind, at its second, and so on, each time on another copy
    /// of the store, until it comes to its end.
    fn killed_at_each_call(&self) -> Vec<Met> {
        let mut killed = Vec::new();
        for call in CALLS {
            let mut number = 1;
            loop {
                let at_this = self.meets(&format!("{call}:signal=KILL:when={number}"));
                if at_this.is_done {
                    break;
                }
                killed.push(at_this);
                number += if number < EACH { 1 } else { STEP };
            }
        }
        assert!(killed.len() > 10, "{}", killed.len());
        killed
    }

    /// It meets with this at one of its calls.
    fn meets(&self, fault: &str) -> Met {
        let copy = after_a_crash_of(self.store, |_| ());
        let mut process = Command::new("strace");
        process
            .args(["-f", "-qq", "-o", "/dev/null", "-e", &format!("inject={fault}")])
            .arg(std::env::current_exe().unwrap())
            .args(PROCESS)
            .env(DIRECTORY, copy.path())
            .env(TIME, self.at.0.to_string());
        if self.accepts {
            process.env(ACCEPTS, "");
        }
        let output = process.output().expect("`strace` is installed");
        let says = String::from_utf8_lossy(&output.stdout).into_owned();
        Met { store: copy, recorded: says.contains(RECORDED), is_done: output.status.success() }
    }
}

/// Runs it.
const PROCESS: [&str; 3] =
    ["store_contract::killed::a_process_that_opens_a_store", "--exact", "--nocapture"];

async fn remembers_all(store: &dyn Store, Met { recorded, .. }: &Met) {
    for number in 0..10 {
        remembers(store, &number.to_string()).await;
    }
    let told = copy_of(store, &order("in flight")).await;
    assert!(matches!(told, ClaimReply::NotGranted(ReportedState::Uncertain { .. })), "{told:?}");
    if *recorded {
        remembers(store, "next").await;
    }
}

/// A store in which ten events were done and one is in flight.
async fn used() -> TempDir {
    let directory = tempfile::tempdir().unwrap();
    let store = open(directory.path(), IfDamaged::Refuse).unwrap();
    for number in 0..10 {
        attempted(&*store, &order(&number.to_string()), Outcome::Succeeded).await;
    }
    granted(&*store, &order("in flight")).await;
    after_a_crash_of(directory.path(), |_| ())
}

#[tokio::test]
async fn killed_at_any_call_while_it_opens_a_store_it_loses_nothing() {
    let used = used().await;
    for killed in Opening::of(used.path()).killed_at_each_call() {
        let store = open(killed.store.path(), IfDamaged::Refuse).unwrap();
        remembers_all(&*store, &killed).await;
    }
}

#[tokio::test]
async fn killed_at_any_call_of_its_first_start_it_starts_the_next_time() {
    let empty = tempfile::tempdir().unwrap();
    for killed in Opening::of(empty.path()).killed_at_each_call() {
        let store = open(killed.store.path(), IfDamaged::Refuse).unwrap();
        if killed.recorded {
            remembers(&*store, "next").await;
        }
    }
}

#[tokio::test]
async fn killed_at_any_call_while_it_leaves_out_damage_it_can_be_told_so_once_more() {
    let used = used().await;
    let mut bytes = newest_content(used.path());
    let last = groups(&bytes).pop().unwrap();
    bytes[last.start + 60] ^= 1;
    replace(&newest(used.path()), &bytes);
    for killed in Opening::accepted(used.path()).killed_at_each_call() {
        let path = killed.store.path();
        match open(path, IfDamaged::Refuse) {
            Ok(store) => store.close().await,
            // the damage, or what the log lacks without it
            Err(OpenError::DamagedJournal { .. }) => {}
            Err(error) => panic!("{error:?}"),
        }
        let store = open(path, IfDamaged::Accept).unwrap();
        for number in 0..10 {
            remembers(&*store, &number.to_string()).await;
        }
        if killed.recorded {
            remembers(&*store, "next").await;
        }
        let names: BTreeSet<_> = fs::read_dir(path).unwrap().map(|e| e.unwrap().path()).collect();
        let aside = names.iter().filter(|name| name.to_string_lossy().contains(".log.damaged"));
        let is_whole = aside.map(|name| content(name)).any(|kept| kept == bytes);
        assert!(is_whole, "{names:?}");
    }
}

#[tokio::test]
async fn killed_at_any_call_while_it_makes_rows_anew_it_can_be_told_so_once_more() {
    let used = used().await;
    let segment = newest(used.path()).strip_prefix(used.path()).unwrap().to_owned();
    let written = newest_content(used.path());
    remove(&used.path().join("rows/keyspaces/2"));
    for killed in Opening::accepted(used.path()).killed_at_each_call() {
        let path = killed.store.path();
        match open(path, IfDamaged::Refuse) {
            Ok(store) => store.close().await,
            Err(OpenError::Missing { .. }) => {
                assert_eq!(content(&path.join(&segment)), written, "it is untouched");
            }
            Err(error) => panic!("{error:?}"),
        }
        let store = open(path, IfDamaged::Accept).unwrap();
        remembers_all(&*store, &killed).await;
        let aside = path.join("rows.damaged/keyspaces");
        assert!(aside.join("1/current").exists() && !aside.join("2").exists(), "it is kept");
    }
}

#[tokio::test]
async fn killed_at_any_call_while_it_begins_anew_it_can_be_told_so_once_more() {
    let used = used().await;
    remove(&used.path().join("log"));
    let version = fs::read(used.path().join("rows/version")).unwrap();
    for killed in Opening::accepted(used.path()).killed_at_each_call() {
        let path = killed.store.path();
        match open(path, IfDamaged::Refuse) {
            Ok(store) => store.close().await,
            Err(OpenError::RecordsGone { .. }) => {
                let kept = fs::read(path.join("rows/version")).unwrap();
                assert_eq!(kept, version, "it is untouched");
            }
            Err(error) => panic!("{error:?}"),
        }
        let store = open(path, IfDamaged::Accept).unwrap();
        if killed.recorded {
            remembers(&*store, "next").await;
        }
        let kept = fs::read(path.join("rows.damaged/version")).unwrap();
        assert_eq!(kept, version, "it is kept as it was");
    }
}

/// What an older version has recorded is carried over at the first start.
#[tokio::test]
async fn killed_at_any_call_while_it_carries_an_older_store_over_it_loses_nothing() {
    let older = tempfile::tempdir().unwrap();
    restore_embedded(older.path());
    let older = older.path().join("store");
    let opened = |store: &Path| open_with(&settings(store), &Clock::manual(time())).unwrap();
    let found = async |store: &Path| {
        let store = opened(store);
        let mut found = store.list(&ListQuery { limit: 100, ..ALL }).await.unwrap().operations;
        found.retain(|operation| operation.subject.id != order("next").id);
        store.close().await;
        found
    };
    let whole = after_a_crash_of(&older, |_| ());
    let wanted = found(whole.path()).await;
    assert_eq!(wanted.len(), 16);
    for killed in (Opening { at: time(), ..Opening::of(&older) }).killed_at_each_call() {
        let path = killed.store.path();
        assert_eq!(found(path).await, wanted);
        if killed.recorded {
            let store = opened(path);
            remembers(&*store, "next").await;
            store.close().await;
        }
        let names = fs::read_dir(path).unwrap().map(|entry| entry.unwrap().file_name());
        let names: BTreeSet<_> = names.map(|name| name.into_string().unwrap()).collect();
        assert_eq!(names.into_iter().collect::<Vec<_>>(), ["format", "lock", "log", "rows"]);
    }
}

#[tokio::test]
async fn what_was_acknowledged_is_there_after_an_error_at_any_call() {
    let used = used().await;
    let fails = |call, error, number| format!("{call}:error={error}:when={number}");
    let errors = CALLS.map(|call| (call, "EIO")).into_iter().chain([("write", "ENOSPC")]);
    for (call, error) in errors {
        for number in 1..=EACH {
            let met = Opening::of(used.path()).meets(&fails(call, error, number));
            let store = open(met.store.path(), IfDamaged::Refuse).unwrap();
            remembers_all(&*store, &met).await;
        }
    }
}

/// After a failed sync the operating system may have a group in its memory that is not on the disk
/// and that it does not write any more. Who finds the group writes it.
#[tokio::test]
async fn the_last_group_is_written_once_more_at_a_start() {
    let used = used().await;
    let segment = newest(used.path());
    let last = groups(&content(&segment)).pop().unwrap();
    let name = segment.file_name().unwrap().to_str().unwrap();
    let calls = used.path().join("calls");
    let mut process = Command::new("strace");
    process
        .args(["-f", "-qq", "-y", "-e", "trace=pwrite64,fdatasync", "-o"])
        .arg(&calls)
        .arg(std::env::current_exe().unwrap())
        .args(PROCESS)
        .env(DIRECTORY, used.path())
        .env(TIME, START.0.to_string());
    // The groups up to the noted one were synced, so the note is that of the group before.
    let noted = used.path().join(SYNCED);
    let bytes = fs::read(&noted).unwrap();
    let before = u64::from_be_bytes(bytes[..8].try_into().unwrap()) - 1;
    let sum = xxhash_rust::xxh3::xxh3_64(&before.to_be_bytes());
    fs::write(noted, [before.to_be_bytes(), sum.to_be_bytes()].concat()).unwrap();
    assert!(process.output().expect("`strace` is installed").status.success());
    let calls = fs::read_to_string(calls).unwrap();
    let calls =
        calls.lines().filter(|line| line.contains(&format!("/{name}>"))).collect::<Vec<_>>();
    let Range { start, end } = last;
    let length = end - start;
    assert!(calls[0].ends_with(&format!(", {length}, {start}) = {length}")), "{calls:?}");
    assert!(calls[1].contains("fdatasync("), "{calls:?}");
}

/// Not a test by itself: settles operations with large answers and says so, until it is killed.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[expect(clippy::print_stdout, reason = "the parent reads it")]
async fn a_process_that_fills_its_log() {
    let Ok(directory) = std::env::var(DIRECTORY) else {
        return;
    };
    let store = open(directory.as_ref(), IfDamaged::Refuse).unwrap();
    let body = vec![b'x'; 250_000];
    let settles = async |key: String| {
        let (request, _) = granted(&*store, &order(&key)).await;
        store.apply(end_with(&request, &body)).await.unwrap();
        println!("settled {key}");
    };
    for number in 0.. {
        let key = |task| format!("{}-{task}-{number}", std::process::id());
        tokio::join!(settles(key(0)), settles(key(1)), settles(key(2)));
    }
}

/// The store begins a segment, and the thread behind it finishes the full one.
#[tokio::test]
async fn killed_while_its_segment_is_full_it_loses_nothing() {
    let directory = tempfile::tempdir().unwrap();
    open(directory.path(), IfDamaged::Refuse).unwrap().close().await;
    let mut settled = Vec::new();
    for behind in [0, 1, 30] {
        let mut process = Command::new(std::env::current_exe().unwrap())
            .args(["store_contract::killed::a_process_that_fills_its_log", "--exact"])
            .arg("--nocapture")
            .env(DIRECTORY, directory.path())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(process.stdout.take().unwrap()).lines().map(Result::unwrap);
        let mut next = || -> String {
            let settled = lines.find_map(|line| Some(line.strip_prefix("settled ")?.to_owned()));
            settled.expect("it goes on until it is killed")
        };
        settled.push(next());
        let begun = all(directory.path()).len();
        // the first segment of a start is short
        while all(directory.path()).len() < begun + 2 {
            settled.push(next());
        }
        settled.extend((0..behind).map(|_| next()));
        process.kill().unwrap();
        process.wait().unwrap();
        let store = open(directory.path(), IfDamaged::Refuse).unwrap();
        for key in &settled {
            let told = copy_of(&*store, &order(key)).await;
            assert!(
                matches!(told, ClaimReply::NotGranted(ReportedState::Succeeded { attempt: 1, .. })),
                "{key}"
            );
        }
        store.close().await;
    }
}
