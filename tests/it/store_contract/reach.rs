//! Journals of the store on disk that do not reach as far as was acknowledged, or are not there:
//! it does not open, whether or not what is left of them is whole.

use std::fs;
use std::path::Path;

use onceward::clock::Clock;
use onceward::operation::Outcome;
use onceward::operation::state::{ClaimReply, ReportedState};
use onceward::store::Store;
use onceward::store::embedded::{Durability, Embedded, IfDamaged, OpenError, Settings};
use tempfile::TempDir;

use super::embedded::{START, after_a_crash_of, open_with, settings};
use super::journal::{CONTENTS, JOURNAL, SYNCED, journal, open};
use super::missing::{is_refused_for, remembers, remove};
use super::support::{attempted, copy_of, granted, order};

/// Where the groups of a journal end. No body in these stores looks like an end.
pub(super) fn ends(journal: &[u8]) -> Vec<usize> {
    memchr::memmem::find_iter(journal, b"FJL\x03").map(|mark| mark + 4).collect()
}

fn is_refused_at(store: &Path, part: &str, place: usize) {
    for _ in 0..2 {
        let refused = open(store, IfDamaged::Refuse).unwrap_err();
        let OpenError::DamagedJournal { journal, offset, .. } = &refused else {
            panic!("{place}: {refused:?}")
        };
        assert_eq!((journal, *offset), (&store.join(part), place as u64));
        assert!(refused.to_string().contains("`--accept-damaged-store`"), "{refused}");
    }
}

/// The store with its journal cut off here, with room for more behind it or without.
fn cut(store: &Path, length: usize) -> TempDir {
    after_a_crash_of(store, |copy| {
        let mut bytes = fs::read(copy.join(JOURNAL)).unwrap();
        let room = if length.is_multiple_of(2) { 0 } else { 5000 };
        bytes.truncate(length);
        bytes.resize(length + room, 0);
        fs::write(copy.join(JOURNAL), bytes).unwrap();
    })
}

async fn with_ten(store: &Embedded) {
    for number in 0..10 {
        attempted(store, &order(&number.to_string()), Outcome::Succeeded).await;
    }
}

#[tokio::test]
async fn a_journal_that_is_cut_off_below_what_was_acknowledged_is_damaged() {
    let running = tempfile::tempdir().unwrap();
    let store = open(running.path(), IfDamaged::Refuse).unwrap();
    with_ten(&store).await;
    let killed = after_a_crash_of(running.path(), |_| ());
    store.close().await;
    for store in [killed.path(), running.path()] {
        let ends = ends(&journal(store));
        // each event has two groups: its claim and its end
        assert!(ends.len() >= 20, "{ends:?}");
        let between = ends.windows(2).flat_map(|pair| [pair[0], pair[0] + 1, pair[1] - 1]);
        for length in between.step_by(4) {
            let last = *ends.iter().rfind(|end| **end <= length).unwrap();
            let damaged = cut(store, length);
            is_refused_at(damaged.path(), JOURNAL, last);
            let accepted = open(damaged.path(), IfDamaged::Accept).unwrap();
            let settled = (ends.iter().filter(|end| **end <= length).count() / 2).min(10);
            for number in 0..settled {
                remembers(&*accepted, &number.to_string()).await;
            }
            attempted(&*accepted, &order("next"), Outcome::Succeeded).await;
            accepted.close().await;
            let again = open(damaged.path(), IfDamaged::Refuse).unwrap();
            remembers(&*again, "next").await;
        }
    }
}

/// The number is not synced with each group: the disk may have any of an earlier time.
#[tokio::test]
async fn after_a_loss_of_power_an_older_number_of_what_was_synced_opens() {
    let directory = tempfile::tempdir().unwrap();
    let store = open(directory.path(), IfDamaged::Refuse).unwrap();
    let mut noted = vec![fs::read(directory.path().join(SYNCED)).unwrap()];
    for number in 0..10 {
        attempted(&*store, &order(&number.to_string()), Outcome::Succeeded).await;
        noted.push(fs::read(directory.path().join(SYNCED)).unwrap());
    }
    for (number, noted) in noted.iter().enumerate() {
        let older = after_a_crash_of(directory.path(), |copy| {
            fs::write(copy.join(SYNCED), noted).unwrap();
        });
        let store = open(older.path(), IfDamaged::Refuse).unwrap();
        for number in 0..10 {
            remembers(&*store, &number.to_string()).await;
        }
        drop(store);
        // what had been noted then is needed
        let journal = journal(directory.path());
        let begins = ends(&journal)[(2 * number).max(1) - 1];
        let older = after_a_crash_of(older.path(), |copy| {
            fs::write(copy.join(SYNCED), noted).unwrap();
            fs::write(copy.join(JOURNAL), &journal[..begins]).unwrap();
        });
        open(older.path(), IfDamaged::Refuse).unwrap();
    }
}

#[tokio::test]
async fn without_syncs_a_journal_reaches_as_far_as_at_its_orderly_end() {
    let directory = tempfile::tempdir().unwrap();
    let unsynced = Settings { durability: Durability::Os, ..settings(directory.path()) };
    let store = open_with(&unsynced, &Clock::manual(START)).unwrap();
    with_ten(&store).await;
    // killed before anything was synced, and then the machine stopped
    let stopped = cut(directory.path(), ends(&journal(directory.path()))[8]);
    open(stopped.path(), IfDamaged::Refuse).unwrap();
    store.close().await;
    let place = ends(&journal(directory.path()))[8];
    is_refused_at(cut(directory.path(), place).path(), JOURNAL, place);
    let store = open_with(&unsynced, &Clock::manual(START)).unwrap();
    remembers(&*store, "9").await;
}

#[tokio::test]
async fn without_the_number_of_what_was_synced_it_refuses_until_that_is_accepted() {
    let directory = tempfile::tempdir().unwrap();
    let store = open(directory.path(), IfDamaged::Refuse).unwrap();
    with_ten(&store).await;
    let gone = after_a_crash_of(directory.path(), |copy| remove(&copy.join(SYNCED)));
    is_refused_for(gone.path(), SYNCED);
    let whole = fs::read(directory.path().join(SYNCED)).unwrap();
    let mut flipped = whole.clone();
    flipped[6] ^= 1;
    let mut stores = vec![gone];
    for bytes in [&flipped[..], &whole[..15], &[]] {
        let damaged = after_a_crash_of(directory.path(), |copy| {
            fs::write(copy.join(SYNCED), bytes).unwrap();
        });
        let refused = open(damaged.path(), IfDamaged::Refuse).unwrap_err();
        let OpenError::Io { source, .. } = refused else { panic!("{refused:?}") };
        assert!(source.to_string().contains("synced` is damaged"), "{source}");
        stores.push(damaged);
    }
    for store in stores {
        open(store.path(), IfDamaged::Accept).unwrap().close().await;
        let again = open(store.path(), IfDamaged::Refuse).unwrap();
        remembers(&*again, "9").await;
    }
}

const FULL: &str = "records/0.full";
const SECOND: &str = "records/1.jnl";

/// A store in which `done` was done. Its journal is full: the next one was begun.
async fn with_a_full_journal() -> TempDir {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path();
    let store = open(path, IfDamaged::Refuse).unwrap();
    attempted(&*store, &order("done"), Outcome::Succeeded).await;
    store.close().await;
    // as the database begins one
    fs::write(path.join(SECOND), vec![0; 100_000]).unwrap();
    directory
}

/// The same, and `more` was done in the next journal. The database has not removed the full one.
async fn with_two_journals() -> TempDir {
    let directory = with_a_full_journal().await;
    let path = directory.path();
    let store = open(path, IfDamaged::Refuse).unwrap();
    // with the next group it is noted whether the database has removed the first one meanwhile
    let read = |part: &str| fs::read(path.join(part)).unwrap();
    let noted = [(FULL, read(FULL)), (JOURNAL, read(FULL)), (CONTENTS, read(CONTENTS))];
    attempted(&*store, &order("more"), Outcome::Succeeded).await;
    store.close().await;
    for (part, bytes) in noted {
        fs::write(path.join(part), bytes).unwrap();
    }
    directory
}

async fn remembers_both(store: &dyn Store) {
    for name in ["done", "more"] {
        remembers(store, name).await;
    }
}

#[tokio::test]
async fn a_full_journal_that_is_removed_by_hand_is_put_back_or_missed() {
    let whole = with_two_journals().await;
    let without = |parts: &[&str]| {
        after_a_crash_of(whole.path(), |copy| {
            for part in parts {
                remove(&copy.join(part));
            }
        })
    };
    for parts in [&[][..], &[JOURNAL], &[FULL]] {
        let store = without(parts);
        let opened = open(store.path(), IfDamaged::Refuse).unwrap();
        remembers_both(&*opened).await;
        opened.close().await;
        let again = open(store.path(), IfDamaged::Refuse).unwrap();
        remembers_both(&*again).await;
    }
    let lost = without(&[JOURNAL, FULL]);
    is_refused_for(lost.path(), JOURNAL);
    let accepted = open(lost.path(), IfDamaged::Accept).unwrap();
    remembers(&*accepted, "more").await;
    accepted.close().await;
    open(lost.path(), IfDamaged::Refuse).unwrap();
}

#[tokio::test]
async fn a_full_journal_that_is_cut_off_between_two_groups_is_damaged() {
    let whole = with_two_journals().await;
    let journal = journal(whole.path());
    for end in ends(&journal).into_iter().rev().skip(1) {
        let damaged = after_a_crash_of(whole.path(), |copy| {
            fs::write(copy.join(JOURNAL), &journal[..end]).unwrap();
        });
        is_refused_at(damaged.path(), JOURNAL, end);
    }
}

/// When the tables have all of it the database removes a journal, and then nobody misses it.
#[tokio::test]
async fn a_full_journal_that_the_database_removes_is_not_missed() {
    let store = with_a_full_journal().await;
    let names = [JOURNAL, FULL].map(|name| store.path().join(name));
    let opened = open(store.path(), IfDamaged::Refuse).unwrap();
    for number in 0.. {
        granted(&*opened, &order(&number.to_string())).await;
        if !names.iter().any(|name| name.exists()) {
            break;
        }
        assert!(number < 10_000, "the database removes it");
    }
    opened.close().await;
    let again = open(store.path(), IfDamaged::Refuse).unwrap();
    remembers(&*again, "done").await;
    let told = copy_of(&*again, &order("0")).await;
    assert!(matches!(told, ClaimReply::NotGranted(ReportedState::Uncertain { .. })), "{told:?}");
}

#[tokio::test]
async fn what_is_damaged_a_second_time_is_kept_beside_the_first() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path();
    let store = open(path, IfDamaged::Refuse).unwrap();
    with_ten(&store).await;
    store.close().await;
    let mut damaged = Vec::new();
    for place in [200, 900, 1500] {
        let mut bytes = journal(path);
        bytes[place] ^= 1;
        fs::write(path.join(JOURNAL), &bytes).unwrap();
        damaged.push(bytes);
        open(path, IfDamaged::Accept).unwrap().close().await;
    }
    let kept = ["0.jnl.damaged", "0.jnl.damaged.2", "0.jnl.damaged.3"];
    for (name, bytes) in kept.iter().zip(&damaged) {
        assert_eq!(fs::read(path.join(name)).unwrap(), *bytes, "{name}");
    }
    for table in ["1", "2"] {
        remove(&path.join("records/keyspaces").join(table));
        open(path, IfDamaged::Accept).unwrap().close().await;
    }
    for (name, table) in [("records.damaged", "1"), ("records.damaged.2", "2")] {
        let tables = path.join(name).join("keyspaces");
        assert!(!tables.join(table).exists() && tables.join("3").exists(), "{name}");
    }
}
