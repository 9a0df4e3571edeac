//! Logs of the store on disk that do not reach as far as was acknowledged: it does not open, whether
//! or not what is left of them is whole.

use std::fs;
use std::path::Path;
use std::time::Duration;

use onceward::clock::Clock;
use onceward::operation::Outcome;
use onceward::operation::state::{ClaimReply, ReportedState};
use onceward::store::Store;
use onceward::store::embedded::{Durability, Embedded, IfDamaged, OpenError, Settings};
use tempfile::TempDir;

use super::embedded::{START, after_a_crash_of, open_with, settings};
use super::journal::{SYNCED, open};
use super::missing::{is_refused_for, remembers, remove, used_twice};
use super::support::{RETENTION, attempted, copy_of, granted, order, sweep_all};
use crate::support::segments::{SECTOR, content, ends, groups, newest, newest_content, replace};
use crate::support::until;

fn is_refused_at(store: &Path, segment: &Path, place: usize) {
    for _ in 0..2 {
        let refused = open(store, IfDamaged::Refuse).unwrap_err();
        let OpenError::DamagedJournal { journal, offset, .. } = &refused else {
            panic!("{place}: {refused:?}")
        };
        assert_eq!((&**journal, *offset), (segment, place as u64));
        assert!(refused.to_string().contains("`--accept-damaged-store`"), "{refused}");
    }
}

/// The store with its newest segment cut off here. There are zeros behind, or nothing.
fn cut(store: &Path, length: usize) -> TempDir {
    after_a_crash_of(store, |copy| {
        let segment = newest(copy);
        let bytes = fs::read(&segment).unwrap();
        if length.is_multiple_of(2) {
            replace(&segment, &bytes[..length]);
        } else {
            fs::write(segment, &bytes[..length]).unwrap();
        }
    })
}

async fn with_ten(store: &Embedded) {
    for number in 0..10 {
        attempted(store, &order(&number.to_string()), Outcome::Succeeded).await;
    }
}

#[tokio::test]
async fn a_log_that_is_cut_off_below_what_was_acknowledged_is_damaged() {
    let running = tempfile::tempdir().unwrap();
    let store = open(running.path(), IfDamaged::Refuse).unwrap();
    with_ten(&store).await;
    let killed = after_a_crash_of(running.path(), |_| ());
    store.close().await;
    for store in [killed.path(), running.path()] {
        let ends = ends(&newest_content(store));
        // each event has two groups: its claim and its end
        assert!(ends.len() >= 20, "{ends:?}");
        let between = ends.windows(2).flat_map(|pair| [pair[0], pair[0] + 1, pair[0] + 60]);
        for length in between.step_by(4) {
            let last = *ends.iter().rfind(|end| **end <= length).unwrap();
            let damaged = cut(store, length);
            is_refused_at(damaged.path(), &newest(damaged.path()), last);
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
        let content = newest_content(directory.path());
        let begins = ends(&content)[(2 * number).max(1) - 1];
        let older = after_a_crash_of(directory.path(), |copy| {
            fs::write(copy.join(SYNCED), noted).unwrap();
            replace(&newest(copy), &content[..begins]);
        });
        open(older.path(), IfDamaged::Refuse).unwrap();
    }
}

#[tokio::test]
async fn without_syncs_a_log_reaches_as_far_as_at_its_orderly_end() {
    let directory = tempfile::tempdir().unwrap();
    let unsynced = Settings { durability: Durability::Os, ..settings(directory.path()) };
    let store = open_with(&unsynced, &Clock::manual(START)).unwrap();
    with_ten(&store).await;
    // killed before anything was synced, and then the machine stopped
    let place = ends(&newest_content(directory.path()))[8];
    let stopped = cut(directory.path(), place);
    open(stopped.path(), IfDamaged::Refuse).unwrap();
    store.close().await;
    let damaged = cut(directory.path(), place);
    is_refused_at(damaged.path(), &newest(damaged.path()), place);
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

#[tokio::test]
async fn a_full_segment_that_is_cut_off_between_two_groups_is_damaged() {
    let (used, first) = used_twice().await;
    let whole = content(&used.path().join(&first));
    for end in ends(&whole).into_iter().rev().skip(1).chain([SECTOR]) {
        for is_shorter in [false, true] {
            let damaged = after_a_crash_of(used.path(), |copy| {
                let segment = copy.join(&first);
                if is_shorter {
                    fs::write(segment, &whole[..end]).unwrap();
                } else {
                    replace(&segment, &whole[..end]);
                }
            });
            is_refused_at(damaged.path(), &damaged.path().join(&first), end);
        }
    }
}

/// When no record is in it any more, a segment is deleted, and then nobody misses it.
#[tokio::test]
async fn a_segment_that_the_store_deletes_is_not_missed() {
    let (used, first) = used_twice().await;
    let clock = Clock::manual(START);
    let store = open_with(&settings(used.path()), &clock).unwrap();
    granted(&*store, &order("in flight")).await;
    clock.advance(RETENTION);
    assert_eq!(sweep_all(&*store, 10).await, (2, 0));
    clock.advance(Duration::from_mins(2));
    until("the segment is deleted", async || {
        store.sweep(1).await.unwrap();
        !used.path().join(&first).exists()
    })
    .await;
    store.close().await;
    // The rows can be made anew without it.
    let without_rows = after_a_crash_of(used.path(), |copy| remove(&copy.join("rows")));
    for (store, if_damaged) in [
        (used.path(), IfDamaged::Refuse),
        (without_rows.path(), IfDamaged::Accept),
        (without_rows.path(), IfDamaged::Refuse),
    ] {
        let settings = Settings { if_damaged, ..settings(store) };
        let again = open_with(&settings, &clock).unwrap();
        let told = copy_of(&*again, &order("in flight")).await;
        assert!(
            matches!(told, ClaimReply::NotGranted(ReportedState::Uncertain { .. })),
            "{told:?}"
        );
        again.close().await;
    }
}

#[tokio::test]
async fn what_is_damaged_a_second_time_is_kept_beside_the_first() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path();
    let store = open(path, IfDamaged::Refuse).unwrap();
    with_ten(&store).await;
    store.close().await;
    let segment = newest(path);
    let groups = groups(&content(&segment));
    let mut damaged = Vec::new();
    for number in [1, 5, 9] {
        let mut bytes = content(&segment);
        bytes[groups[number].start + 50] ^= 1;
        replace(&segment, &bytes);
        damaged.push(bytes);
        open(path, IfDamaged::Accept).unwrap().close().await;
    }
    let name = segment.file_name().unwrap().to_str().unwrap();
    let kept = ["", ".2", ".3"].map(|behind| format!("{name}.damaged{behind}"));
    for (name, bytes) in kept.iter().zip(&damaged) {
        assert_eq!(content(&path.join(name)), *bytes, "{name}");
    }
    for table in ["1", "2"] {
        remove(&path.join("rows/keyspaces").join(table));
        open(path, IfDamaged::Accept).unwrap().close().await;
    }
    for (name, table) in [("rows.damaged", "1"), ("rows.damaged.2", "2")] {
        let tables = path.join(name).join("keyspaces");
        assert!(!tables.join(table).exists() && tables.join("3").exists(), "{name}");
    }
}
