//! The store on disk without a part of it: it does not open, and names what is missing. A store
//! that a crash has left at any point of a first start, or of beginning a segment, opens.

use std::fs;
use std::path::{Path, PathBuf};

use onceward::operation::Outcome;
use onceward::operation::state::{ClaimReply, ReportedState};
use onceward::store::Store;
use onceward::store::embedded::{IfDamaged, OpenError};
use tempfile::TempDir;

use super::embedded::after_a_crash_of;
use super::journal::{SYNCED, open};
use super::support::{answer, attempted, copy_of, order};
use crate::support::segments::{all, newest, newest_content, replace};

const MARK: &str = "log/mark";

/// A store in which `done` was done, as a crash leaves it.
async fn used() -> TempDir {
    let directory = tempfile::tempdir().unwrap();
    let store = open(directory.path(), IfDamaged::Refuse).unwrap();
    attempted(&*store, &order("done"), Outcome::Succeeded).await;
    after_a_crash_of(directory.path(), |_| ())
}

/// The same, and another process has done `more`. Each of them began a segment. Returns the name of
/// the first one.
pub(super) async fn used_twice() -> (TempDir, String) {
    let used = used().await;
    let path = used.path();
    let first = newest(path).strip_prefix(path).unwrap().to_str().unwrap().to_owned();
    let store = open(path, IfDamaged::Refuse).unwrap();
    attempted(&*store, &order("more"), Outcome::Succeeded).await;
    assert_ne!(newest(path), path.join(&first));
    (after_a_crash_of(path, |_| ()), first)
}

pub(super) fn remove(path: &Path) {
    if path.is_dir() {
        fs::remove_dir_all(path).unwrap();
    } else {
        fs::remove_file(path).unwrap();
    }
}

fn files_in(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    entries.flat_map(|path| if path.is_dir() { files_in(&path) } else { vec![path] }).collect()
}

pub(super) async fn remembers(store: &dyn Store, name: &str) {
    let told = copy_of(store, &order(name)).await;
    assert_eq!(
        told,
        ClaimReply::NotGranted(ReportedState::Succeeded { attempt: 1, answer: answer() })
    );
}

pub(super) fn is_refused_for(store: &Path, part: &str) {
    for _ in 0..2 {
        let refused = open(store, IfDamaged::Refuse).unwrap_err();
        let OpenError::Missing { missing, .. } = &refused else { panic!("{part}: {refused:?}") };
        assert_eq!(*missing, store.join(part));
        let says = refused.to_string();
        for part in [store.join(part).to_str().unwrap(), "`--accept-damaged-store`"] {
            assert!(says.contains(part), "{says}");
        }
    }
}

/// It opens once with damage accepted, has forgotten what was done, and from then on remembers.
async fn goes_on_without(store: &Path) {
    let accepted = open(store, IfDamaged::Accept).unwrap();
    attempted(&*accepted, &order("done"), Outcome::Succeeded).await;
    accepted.close().await;
    let again = open(store, IfDamaged::Refuse).unwrap();
    remembers(&*again, "done").await;
    again.close().await;
}

/// It opens once with damage accepted, and then without. Both times it remembers what was done.
async fn goes_on_with_all(store: &Path) {
    for if_damaged in [IfDamaged::Accept, IfDamaged::Refuse, IfDamaged::Refuse] {
        let opened = open(store, if_damaged).unwrap();
        remembers(&*opened, "done").await;
        opened.close().await;
    }
}

/// What the log of a store holds.
fn log(store: &Path) -> Vec<Vec<u8>> {
    all(store).iter().map(|segment| fs::read(segment).unwrap()).collect()
}

#[tokio::test]
async fn without_rows_it_refuses_names_them_and_makes_them_anew_when_that_is_accepted() {
    let used = used().await;
    let mut parts = vec!["rows".to_owned(), "rows/version".to_owned(), "rows/keyspaces".to_owned()];
    for table in 0..=5 {
        parts.push(format!("rows/keyspaces/{table}"));
        parts.push(format!("rows/keyspaces/{table}/current"));
    }
    for part in &parts {
        let damaged = after_a_crash_of(used.path(), |copy| remove(&copy.join(part)));
        let before = log(damaged.path());
        let named = if part == "rows" { "rows/version" } else { part };
        is_refused_for(damaged.path(), named);
        assert!(log(damaged.path()) == before, "it is untouched");
        goes_on_with_all(damaged.path()).await;
        let aside = damaged.path().join("rows.damaged");
        assert_eq!(aside.exists(), part != "rows", "what is left of them is kept");
        assert!(!aside.join(part.strip_prefix("rows/").unwrap_or(".")).exists());
    }
}

#[tokio::test]
async fn without_its_log_it_begins_anew_when_that_is_accepted() {
    let used = used().await;
    let file = fs::read(used.path().join("rows/version")).unwrap();
    fs::remove_dir_all(used.path().join("log")).unwrap();
    let refused = open(used.path(), IfDamaged::Refuse).unwrap_err();
    assert!(matches!(refused, OpenError::RecordsGone { .. }), "{refused:?}");
    goes_on_without(used.path()).await;
    let aside = fs::read(used.path().join("rows.damaged/version")).unwrap();
    assert_eq!(aside, file, "what is left is kept as it was");
}

#[tokio::test]
async fn without_a_segment_it_refuses_names_it_and_goes_on_when_that_is_accepted() {
    let (used, first) = used_twice().await;
    let damaged = after_a_crash_of(used.path(), |copy| remove(&copy.join(&first)));
    is_refused_for(damaged.path(), &first);
    let accepted = open(damaged.path(), IfDamaged::Accept).unwrap();
    remembers(&*accepted, "more").await;
    accepted.close().await;
    goes_on_without(damaged.path()).await;
}

/// Of groups that were synced not even the first is there: no crash does that.
#[tokio::test]
async fn a_log_that_has_lost_all_groups_of_its_newest_segment_is_damaged() {
    let used = used().await;
    let whole = fs::read(newest(used.path())).unwrap();
    let written = newest_content(used.path()).len();
    let changed = [vec![0; whole.len()], vec![0; written], Vec::new(), whole[..30].to_vec()];
    let mut damaged: Vec<_> = changed
        .iter()
        .map(|bytes| after_a_crash_of(used.path(), |copy| fs::write(newest(copy), bytes).unwrap()))
        .collect();
    damaged.push(after_a_crash_of(used.path(), |copy| remove(&newest(copy))));
    damaged.push(after_a_crash_of(used.path(), |copy| replace(&newest(copy), &whole[..512])));
    for damaged in damaged {
        for _ in 0..2 {
            let refused = open(damaged.path(), IfDamaged::Refuse).unwrap_err();
            let OpenError::DamagedJournal { offset, .. } = refused else { panic!("{refused:?}") };
            assert!(offset <= 512, "{offset}");
        }
        // accepted and not used, it opens too
        open(damaged.path(), IfDamaged::Accept).unwrap().close().await;
        open(damaged.path(), IfDamaged::Refuse).unwrap().close().await;
        goes_on_without(damaged.path()).await;
    }
}

/// Each start begins a segment, and the process may be killed before the segment is written to.
#[tokio::test]
async fn a_segment_that_was_just_begun_may_be_gone_and_is_missed_once_it_was_used() {
    let used = used().await;
    let store = open(used.path(), IfDamaged::Refuse).unwrap();
    let begun = after_a_crash_of(used.path(), |_| ());
    let without = after_a_crash_of(begun.path(), |copy| remove(&newest(copy)));
    let zeroed = after_a_crash_of(begun.path(), |copy| replace(&newest(copy), &[]));
    for begun in [&begun, &without, &zeroed] {
        for _ in 0..2 {
            let store = open(begun.path(), IfDamaged::Refuse).unwrap();
            remembers(&*store, "done").await;
            store.close().await;
        }
    }
    attempted(&*store, &order("more"), Outcome::Succeeded).await;
    let name = newest(used.path()).strip_prefix(used.path()).unwrap().to_owned();
    let used = after_a_crash_of(used.path(), |_| ());
    let without = after_a_crash_of(used.path(), |copy| remove(&copy.join(&name)));
    let zeroed = after_a_crash_of(used.path(), |copy| replace(&copy.join(&name), &[]));
    for damaged in [without, zeroed] {
        let refused = open(damaged.path(), IfDamaged::Refuse).unwrap_err();
        assert!(matches!(refused, OpenError::DamagedJournal { .. }), "{refused:?}");
    }
    let store = open(used.path(), IfDamaged::Refuse).unwrap();
    remembers(&*store, "more").await;
    store.close().await;
    is_refused_for(
        after_a_crash_of(used.path(), |copy| remove(&copy.join(&name))).path(),
        name.to_str().unwrap(),
    );
}

#[tokio::test]
async fn without_its_mark_it_refuses_and_reads_the_whole_log_when_that_is_accepted() {
    let used = used().await;
    let gone = after_a_crash_of(used.path(), |copy| remove(&copy.join(MARK)));
    is_refused_for(gone.path(), MARK);
    goes_on_with_all(gone.path()).await;
    let whole = fs::read(used.path().join(MARK)).unwrap();
    let flipped: Vec<_> = whole.iter().map(|byte| byte ^ 4).collect();
    for bytes in [&flipped[..], &whole[..whole.len() - 1], &[]] {
        let damaged = after_a_crash_of(used.path(), |copy| {
            fs::write(copy.join(MARK), bytes).unwrap();
        });
        assert!(matches!(open(damaged.path(), IfDamaged::Refuse), Err(OpenError::Io { .. })));
        goes_on_with_all(damaged.path()).await;
    }
}

/// Until the format is written down, nothing was recorded: whatever is there is made anew.
#[tokio::test]
async fn a_first_start_that_is_cut_at_any_file_leaves_a_store_that_opens() {
    let fresh = tempfile::tempdir().unwrap();
    open(fresh.path(), IfDamaged::Refuse).unwrap().close().await;
    let unname = |copy: &Path| {
        for name in ["log", "rows"] {
            fs::rename(copy.join(name), copy.join(format!("{name}.new"))).unwrap();
        }
    };
    let files: Vec<_> =
        ["log", "rows"].iter().flat_map(|name| files_in(&fresh.path().join(name))).collect();
    assert!(files.len() > 15, "{files:?}");
    let mut cut: Vec<TempDir> = Vec::new();
    for (count, file) in files.iter().enumerate() {
        let name = file.strip_prefix(fresh.path()).unwrap().to_str().unwrap();
        let name = name.replacen('/', ".new/", 1);
        cut.push(after_a_crash_of(fresh.path(), |copy| {
            unname(copy);
            fs::remove_file(copy.join("format")).unwrap();
            let file = copy.join(name);
            // not there yet, or with nothing in it
            if count % 2 == 0 { fs::remove_file(file) } else { fs::write(file, "") }.unwrap();
        }));
    }
    for (unfinished, content) in [("format.new", ""), ("format.new", "onceward")] {
        cut.push(after_a_crash_of(fresh.path(), |copy| {
            unname(copy);
            fs::remove_file(copy.join("format")).unwrap();
            fs::write(copy.join(unfinished), content).unwrap();
        }));
    }
    // complete, and then one folder has its name
    cut.push(after_a_crash_of(fresh.path(), unname));
    cut.push(after_a_crash_of(fresh.path(), |copy| {
        unname(copy);
        fs::rename(copy.join("rows.new"), copy.join("rows")).unwrap();
    }));
    // published; the mark is replaced from time to time
    cut.push(after_a_crash_of(fresh.path(), |copy| {
        fs::write(copy.join(format!("{MARK}.new")), "once").unwrap();
    }));
    for cut in &cut {
        let store = open(cut.path(), IfDamaged::Refuse).unwrap();
        attempted(&*store, &order("done"), Outcome::Succeeded).await;
        remembers(&*store, "done").await;
        store.close().await;
        assert!(cut.path().join(SYNCED).exists());
    }
}
