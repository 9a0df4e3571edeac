//! The store on disk without a part of it: it does not open, and names what is missing. A store
//! that a crash has left at any point of a first start, or of beginning a journal, opens.

use std::fs;
use std::path::{Path, PathBuf};

use onceward::operation::Outcome;
use onceward::operation::state::{ClaimReply, ReportedState};
use onceward::store::Store;
use onceward::store::embedded::{IfDamaged, OpenError};
use tempfile::TempDir;

use super::embedded::after_a_crash_of;
use super::journal::{CONTENTS, JOURNAL, open};
use super::support::{answer, attempted, copy_of, order};

/// A store in which `done` was done, as a crash leaves it.
async fn used() -> TempDir {
    let directory = tempfile::tempdir().unwrap();
    let store = open(directory.path(), IfDamaged::Refuse).unwrap();
    attempted(&*store, &order("done"), Outcome::Succeeded).await;
    after_a_crash_of(directory.path(), |_| ())
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

#[tokio::test]
async fn without_a_table_it_refuses_names_it_and_begins_anew_when_that_is_accepted() {
    let used = used().await;
    let mut parts = vec!["records/version".to_owned(), "records/keyspaces".to_owned()];
    for table in 0..=6 {
        parts.push(format!("records/keyspaces/{table}"));
        parts.push(format!("records/keyspaces/{table}/current"));
    }
    for part in &parts {
        let damaged = after_a_crash_of(used.path(), |copy| remove(&copy.join(part)));
        let before = fs::read(damaged.path().join(JOURNAL)).unwrap();
        is_refused_for(damaged.path(), part);
        assert_eq!(fs::read(damaged.path().join(JOURNAL)).unwrap(), before, "it is untouched");
        goes_on_without(damaged.path()).await;
        let aside = damaged.path().join("records.damaged/0.jnl");
        assert_eq!(fs::read(aside).unwrap(), before, "it is kept for whoever can read it");
    }
}

#[tokio::test]
async fn without_its_records_it_begins_anew_when_that_is_accepted() {
    let used = used().await;
    fs::remove_dir_all(used.path().join("records")).unwrap();
    let refused = open(used.path(), IfDamaged::Refuse).unwrap_err();
    assert!(matches!(refused, OpenError::RecordsGone { .. }), "{refused:?}");
    goes_on_without(used.path()).await;
}

#[tokio::test]
async fn without_its_journal_it_refuses_names_it_and_goes_on_when_that_is_accepted() {
    let used = used().await;
    let damaged = after_a_crash_of(used.path(), |copy| remove(&copy.join(JOURNAL)));
    is_refused_for(damaged.path(), JOURNAL);
    goes_on_without(damaged.path()).await;
    // one of an older version too: the database is never without a journal
    let older = after_a_crash_of(used.path(), |copy| {
        remove(&copy.join(JOURNAL));
        remove(&copy.join(CONTENTS));
    });
    is_refused_for(older.path(), JOURNAL);
}

/// Of groups that were synced not even the first is there: no crash does that.
#[tokio::test]
async fn a_journal_that_has_lost_all_its_groups_is_damaged() {
    let used = used().await;
    let whole = fs::read(used.path().join(JOURNAL)).unwrap();
    let written = whole.iter().rposition(|byte| *byte != 0).unwrap() + 1;
    for bytes in [vec![0; whole.len()], vec![0; written], Vec::new(), whole[..30].to_vec()] {
        let damaged = after_a_crash_of(used.path(), |copy| {
            fs::write(copy.join(JOURNAL), &bytes).unwrap();
        });
        for _ in 0..2 {
            let refused = open(damaged.path(), IfDamaged::Refuse).unwrap_err();
            assert!(matches!(refused, OpenError::DamagedJournal { offset: 0, .. }), "{refused:?}");
        }
        // accepted and not used, it opens too
        open(damaged.path(), IfDamaged::Accept).unwrap().close().await;
        open(damaged.path(), IfDamaged::Refuse).unwrap().close().await;
        goes_on_without(damaged.path()).await;
    }
}

/// The database begins the next journal by itself, and may be killed before it is written to.
#[tokio::test]
async fn a_journal_that_was_just_begun_may_be_empty_and_is_missed_once_it_was_used() {
    let used = used().await;
    for length in [0, 100_000] {
        let begun = after_a_crash_of(used.path(), |copy| {
            fs::write(copy.join("records/1.jnl"), vec![0; length]).unwrap();
        });
        let gap = after_a_crash_of(begun.path(), |copy| {
            fs::rename(copy.join("records/1.jnl"), copy.join("records/2.jnl")).unwrap();
        });
        is_refused_for(gap.path(), "records/1.jnl");
        for _ in 0..2 {
            let store = open(begun.path(), IfDamaged::Refuse).unwrap();
            remembers(&*store, "done").await;
            store.close().await;
        }
        let without = |part: &str| after_a_crash_of(begun.path(), |copy| remove(&copy.join(part)));
        is_refused_for(without("records/1.jnl").path(), "records/1.jnl");
        let store = open(begun.path(), IfDamaged::Refuse).unwrap();
        attempted(&*store, &order("more"), Outcome::Succeeded).await;
        store.close().await;
        is_refused_for(without("records/1.jnl").path(), "records/1.jnl");
        let zeroed = after_a_crash_of(begun.path(), |copy| {
            fs::write(copy.join("records/1.jnl"), vec![0; 5000]).unwrap();
        });
        let refused = open(zeroed.path(), IfDamaged::Refuse).unwrap_err();
        assert!(matches!(refused, OpenError::DamagedJournal { .. }), "{refused:?}");
        let store = open(begun.path(), IfDamaged::Refuse).unwrap();
        remembers(&*store, "more").await;
        store.close().await;
    }
}

#[tokio::test]
async fn a_store_of_an_older_version_opens_and_says_from_then_on_what_it_contains() {
    let used = used().await;
    fs::remove_file(used.path().join(CONTENTS)).unwrap();
    for part in ["records/keyspaces/0", "records/keyspaces/1/current"] {
        let damaged = after_a_crash_of(used.path(), |copy| remove(&copy.join(part)));
        is_refused_for(damaged.path(), part);
    }
    let store = open(used.path(), IfDamaged::Refuse).unwrap();
    remembers(&*store, "done").await;
    store.close().await;
    assert!(used.path().join(CONTENTS).exists());
}

#[tokio::test]
async fn a_damaged_list_of_what_it_contains_refuses_and_can_be_accepted() {
    let used = used().await;
    fs::write(used.path().join(CONTENTS), "{\"tables\":[0").unwrap();
    assert!(matches!(open(used.path(), IfDamaged::Refuse), Err(OpenError::Io { .. })));
    let store = open(used.path(), IfDamaged::Accept).unwrap();
    remembers(&*store, "done").await;
    store.close().await;
    open(used.path(), IfDamaged::Refuse).unwrap().close().await;
}

/// Until the format is written down, nothing was recorded: whatever is there is made anew.
#[tokio::test]
async fn a_first_start_that_is_cut_at_any_file_leaves_a_store_that_opens() {
    let fresh = tempfile::tempdir().unwrap();
    open(fresh.path(), IfDamaged::Refuse).unwrap().close().await;
    let records = fresh.path().join("records");
    let files = files_in(&records);
    assert!(files.len() > 15, "{files:?}");
    let mut cut: Vec<TempDir> = Vec::new();
    for (count, file) in files.iter().enumerate() {
        let name = file.strip_prefix(&records).unwrap();
        cut.push(after_a_crash_of(fresh.path(), |copy| {
            fs::rename(copy.join("records"), copy.join("records.new")).unwrap();
            fs::remove_file(copy.join("format")).unwrap();
            let file = copy.join("records.new").join(name);
            // not there yet, or with nothing in it
            if count % 2 == 0 { fs::remove_file(file) } else { fs::write(file, "") }.unwrap();
        }));
    }
    for (unfinished, content) in [("format.new", ""), ("format.new", "onceward")] {
        cut.push(after_a_crash_of(fresh.path(), |copy| {
            fs::rename(copy.join("records"), copy.join("records.new")).unwrap();
            fs::remove_file(copy.join("format")).unwrap();
            fs::write(copy.join(unfinished), content).unwrap();
        }));
    }
    cut.push(after_a_crash_of(fresh.path(), |copy| {
        fs::rename(copy.join("records"), copy.join("records.new")).unwrap();
    }));
    // published; the list of what is there is replaced at every start
    cut.push(after_a_crash_of(fresh.path(), |copy| {
        fs::write(copy.join("records/contents.new"), "{").unwrap();
    }));
    for cut in &cut {
        let store = open(cut.path(), IfDamaged::Refuse).unwrap();
        attempted(&*store, &order("done"), Outcome::Succeeded).await;
        remembers(&*store, "done").await;
        store.close().await;
    }
}
