//! Carries stores of format 1 over, also when that is interrupted, and refuses what it must not
//! carry over.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use tempfile::TempDir;

use super::super::carry::{Carrying, Progress};
use super::super::older::{CLAIMED, OlderStore, answered, id, in_flight};
use super::{copy_of, files, remove};
use crate::clock::Clock;
use crate::operation::{Operation, State, Timestamp};
use crate::store::embedded::directory::{Directory, OLDER};
use crate::store::embedded::open_error::OpenError;
use crate::store::embedded::settings::{Durability, IfDamaged, Settings};
use crate::store::embedded::tables::Options;
use crate::store::embedded::{Embedded, open};
use crate::store::{Error, ListQuery, Store as _};

/// More than are written in two groups.
const MANY: u32 = 2300;

/// Each seventh operation is in flight, and the others are answered.
fn operation(number: u32) -> Operation {
    if number.is_multiple_of(7) {
        in_flight(number)
    } else {
        answered(number, format!("body {number}").as_bytes())
    }
}

/// A store of format 1 with so many records.
fn older(count: u32) -> TempDir {
    let store = tempfile::tempdir().unwrap();
    let older = OlderStore::open(store.path(), Durability::Sync);
    let operations: Vec<_> = (0..count).map(operation).collect();
    operations.chunks(100).for_each(|group| drop(older.write(group)));
    drop(older);
    store
}

/// The time at which the stores are opened. All attempts in flight have their leases.
fn now() -> Clock {
    Clock::manual(CLAIMED.plus(Duration::from_secs(2)))
}

fn opened(store: &Path, if_damaged: IfDamaged) -> Result<Embedded, OpenError> {
    let settings = Settings { path: store.to_owned(), durability: Durability::Sync, if_damaged };
    open(&settings, now())
}

/// Opens the store. It has all of so many records, each once, and nothing else is in its directory.
async fn has_all(store: &Path, count: u32) {
    let embedded = opened(store, IfDamaged::Refuse).unwrap();
    for number in 0..count {
        let found = embedded.get(id(number)).await.unwrap().unwrap();
        if let State::InFlight(_) = operation(number).state {
            assert!(matches!(found.state, State::Uncertain(_)), "{number}");
        } else {
            assert_eq!(found, operation(number));
        }
    }
    assert_eq!(embedded.uncertain().await.unwrap(), u64::from(count.div_ceil(7)));
    let mut query = ListQuery { route: None, state: None, key: None, after: None, limit: 1000 };
    let mut listed = Vec::new();
    loop {
        let page = embedded.list(&query).await.unwrap();
        listed.extend(page.operations.into_iter().map(|operation| operation.subject.id));
        query.after = page.next;
        if query.after.is_none() {
            break;
        }
    }
    assert_eq!(listed.len(), count as usize);
    assert_eq!(listed.into_iter().collect::<BTreeSet<_>>(), (0..count).map(id).collect());
    embedded.close().await;
    assert_eq!(names(store), ["format", "lock", "log", "rows"]);
    let format = fs::read_to_string(store.join("format")).unwrap();
    assert_eq!(format, "onceward embedded store, format 2\n");
}

/// What is in a directory.
fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name());
    let mut names: Vec<_> = entries.map(|name| name.into_string().unwrap()).collect();
    names.sort();
    names
}

/// Begins to carry a store over, and hands over the carrying.
fn carrying<T>(store: &Path, carry: impl FnOnce(Carrying<'_>) -> T) -> T {
    let directory = Arc::new(Directory::take(store).unwrap());
    let options = Options::new(Durability::Sync, IfDamaged::Refuse);
    let older = super::super::open(store, Durability::Sync, IfDamaged::Refuse).unwrap().unwrap();
    let clock = now();
    carry(Carrying::begin(&older, &directory, options, &clock).unwrap())
}

#[tokio::test]
async fn all_records_are_carried_over() {
    for count in [0, 1, 1024, MANY] {
        let store = older(count);
        has_all(store.path(), count).await;
        has_all(store.path(), count).await;
    }
}

#[tokio::test]
async fn what_is_carried_over_expires_and_the_clock_does_not_go_back() {
    let store = older(20);
    let settings = Settings {
        path: store.path().to_owned(),
        durability: Durability::Sync,
        if_damaged: IfDamaged::Refuse,
    };
    let set_back = Clock::manual(Timestamp(0));
    let embedded = open(&settings, set_back.clone()).unwrap();
    // Format 1 had written a time a second after the claims.
    let attempt = embedded.get(id(7)).await.unwrap().unwrap().attempts.kept().last().cloned();
    assert_eq!(attempt.unwrap().ended_at, Some(Timestamp(CLAIMED.0 + 1000)));
    let ends_at = operation(1).state.changes_at();
    set_back.advance(Timestamp(CLAIMED.0 + 1000).until(Timestamp(ends_at.0 - 1)));
    assert_eq!(embedded.sweep(100).await.unwrap().removed, 0);
    set_back.advance(Duration::from_millis(1));
    assert_eq!(embedded.sweep(100).await.unwrap().removed, 17);
}

/// Nobody can say whether the operation of an unreadable record was done.
#[tokio::test]
async fn an_unreadable_record_stays_unreadable() {
    let store = older(3);
    let older = OlderStore::open(store.path(), Durability::Sync);
    for (number, kept) in [(4, &b"\x63unreadable"[..]), (5, &[0; 3000]), (6, b"")] {
        older.write_bytes(id(number), kept);
    }
    older.write_unsettled(id(5).as_bytes(), b"u");
    drop(older);
    for _ in 0..2 {
        let embedded = opened(store.path(), IfDamaged::Refuse).unwrap();
        for number in 4..7 {
            let refused = embedded.get(id(number)).await.unwrap_err();
            assert!(matches!(refused, Error::Unreadable(of, _) if of == id(number)), "{refused:?}");
        }
        assert_eq!(embedded.uncertain().await.unwrap(), 2, "the one in flight, and the noted one");
        embedded.close().await;
    }
}

/// The next start goes on behind what is carried over.
#[tokio::test]
async fn interrupted_after_any_group_it_goes_on() {
    let store = older(MANY);
    let carried_at_once = carrying(store.path(), |mut carrying| {
        let mut killed = Vec::new();
        loop {
            // as `kill -9` leaves it
            killed.push(copy_of(store.path()));
            if !carrying.step().unwrap() {
                break;
            }
        }
        killed
    });
    let mut left = Vec::new();
    for killed in &carried_at_once {
        left.push(carrying(killed.path(), |mut carrying| {
            let before = carrying.carried();
            while carrying.step().unwrap() {}
            carrying.carried() - before
        }));
        has_all(killed.path(), MANY).await;
    }
    let all = MANY as usize;
    assert_eq!(left, [all, all - 1024, all - 2048, 0]);
    // the first one too, which ended in an orderly way
    has_all(store.path(), MANY).await;
}

#[tokio::test]
async fn records_that_an_older_version_has_changed_meanwhile_are_carried_over_anew() {
    let store = older(MANY);
    carrying(store.path(), |mut carrying| {
        carrying.step().unwrap();
    });
    let older = OlderStore::open(store.path(), Durability::Sync);
    older.write(&[answered(7, b"meanwhile")]);
    drop(older);
    let embedded = opened(store.path(), IfDamaged::Refuse).unwrap();
    assert_eq!(embedded.get(id(7)).await.unwrap().unwrap(), answered(7, b"meanwhile"));
}

#[tokio::test]
async fn a_new_store_that_cannot_be_opened_is_made_again() {
    let store = older(MANY);
    carrying(store.path(), |mut carrying| {
        carrying.step().unwrap();
    });
    for part in ["log.new/mark", "log.new/1.log", "log.new/synced", "log.new", "rows.new"] {
        let damaged = copy_of(store.path());
        remove(&damaged.path().join(part));
        has_all(damaged.path(), MANY).await;
    }
    for file in ["log.new/2.log", "log.new/carried-from"] {
        let damaged = copy_of(store.path());
        let mut bytes = fs::read(damaged.path().join(file)).unwrap();
        bytes[9] ^= 1;
        fs::write(damaged.path().join(file), bytes).unwrap();
        has_all(damaged.path(), MANY).await;
    }
}

/// Does the steps by which a complete new store becomes the store, and copies the directory before
/// each.
fn published_step_by_step(store: &Path) -> Vec<TempDir> {
    carrying(store, |mut carrying| {
        while carrying.step().unwrap() {}
        carrying.close().unwrap();
    });
    let mut copies = vec![copy_of(store)];
    let mut then = |step: &dyn Fn(&Path) -> io::Result<()>| {
        step(store).unwrap();
        copies.push(copy_of(store));
    };
    then(&|store| fs::remove_file(store.join("log.new/carried-from")));
    then(&|store| fs::write(store.join("format.new"), "onceward"));
    then(&|store| fs::write(store.join("format.new"), "onceward embedded store, format 2\n"));
    then(&|store| fs::rename(store.join("format.new"), store.join("format")));
    then(&|store| fs::rename(store.join("records"), store.join("records.format-1")));
    then(&|store| fs::rename(store.join("rows.new"), store.join("rows")));
    then(&|store| fs::rename(store.join("log.new"), store.join("log")));
    then(&|store| fs::remove_file(store.join("records.format-1/version")));
    then(&|store| fs::remove_dir_all(store.join("records.format-1/keyspaces")));
    then(&|store| fs::remove_dir_all(store.join("records.format-1")));
    copies
}

#[tokio::test]
async fn interrupted_while_the_new_store_becomes_the_store_it_has_all() {
    let store = older(30);
    let before = files(store.path()).len();
    let copies = published_step_by_step(store.path());
    for copy in &copies {
        if fs::read_to_string(copy.path().join("format")).unwrap() == OLDER {
            assert!(files(copy.path()).len() > before, "the old records are still there");
        }
        has_all(copy.path(), 30).await;
    }
}

/// A store whose carrying was interrupted half-way.
fn half_carried() -> TempDir {
    let store = older(MANY);
    carrying(store.path(), |mut carrying| {
        carrying.step().unwrap();
    });
    store
}

/// The store is refused as often as somebody tries, and nothing in it changes.
fn is_refused(store: &Path, if_damaged: IfDamaged, is_expected: impl Fn(&OpenError) -> bool) {
    fs::write(store.join("lock"), "").unwrap();
    let before = files(store);
    for _ in 0..2 {
        let refused = opened(store, if_damaged).err().unwrap();
        assert!(is_expected(&refused), "{refused:?}");
        assert!(files(store) == before, "it is untouched");
    }
}

/// Nobody can say which part is the store, so the loss of one cannot be accepted.
fn is_mixed(store: &Path) {
    for if_damaged in [IfDamaged::Refuse, IfDamaged::Accept] {
        is_refused(store, if_damaged, |error| {
            let OpenError::Mixed { foreign, .. } = error else { return false };
            foreign.exists() && error.to_string().contains(foreign.to_str().unwrap())
        });
    }
}

#[tokio::test]
async fn a_mixture_that_no_crash_leaves_is_refused_and_untouched() {
    let [first, second] = [older(30), older(30)];
    has_all(second.path(), 30).await;
    let [format_1, format_2] = [first.path(), second.path()];
    let mixed = |store: &Path, foreign: &[(&Path, &str, &str)]| {
        let mixture = copy_of(store);
        for (other, from, to) in foreign {
            let copied = copy_of(&other.join(from));
            fs::rename(copied.path(), mixture.path().join(to)).unwrap();
        }
        is_mixed(mixture.path());
    };
    mixed(format_2, &[(format_1, "records", "records")]);
    mixed(format_2, &[(format_1, "records", "records.new")]);
    mixed(format_2, &[(format_2, "log", "log.new")]);
    mixed(format_1, &[(format_2, "log", "log")]);
    mixed(format_1, &[(format_2, "rows", "rows")]);
    mixed(format_1, &[(format_1, "records", "records.format-1")]);
    // an older program's files in place of the newer ones, or the other way round
    for (store, format) in [(format_1, "onceward embedded store, format 2\n"), (format_2, OLDER)] {
        let mixture = copy_of(store);
        fs::write(mixture.path().join("format"), format).unwrap();
        is_mixed(mixture.path());
    }
    // while the new store gets its names
    let copies = published_step_by_step(&copy_of(format_1).keep());
    let named_last = copies.iter().filter(|copy| copy.path().join("log.new").exists());
    for copy in
        named_last.filter(|copy| fs::read_to_string(copy.path().join("format")).unwrap() != OLDER)
    {
        mixed(copy.path(), &[(format_2, "log", "log")]);
        if copy.path().join("rows.new").exists() {
            mixed(copy.path(), &[(format_2, "rows", "rows")]);
        }
        if copy.path().join("records").exists() {
            mixed(copy.path(), &[(format_1, "records", "records.format-1")]);
        }
    }
}

#[tokio::test]
async fn damaged_records_are_refused_and_nothing_is_carried_over() {
    for store in [older(250), half_carried()] {
        let journal = store.path().join("records/0.jnl");
        let mut bytes = fs::read(&journal).unwrap();
        let at = bytes.len() / 2;
        bytes[at] ^= 1;
        fs::write(&journal, &bytes).unwrap();
        is_refused(store.path(), IfDamaged::Refuse, |error| {
            matches!(error, OpenError::DamagedJournal { .. })
        });
        let embedded = opened(store.path(), IfDamaged::Accept).unwrap();
        assert!(embedded.get(id(1)).await.unwrap().is_some());
        embedded.close().await;
        assert_eq!(fs::read(store.path().join("0.jnl.damaged")).unwrap(), bytes);
        opened(store.path(), IfDamaged::Refuse).unwrap().close().await;
    }
}

/// Whoever is killed after that was accepted goes on without being asked again.
#[tokio::test]
async fn records_that_are_lost_are_kept_aside_and_an_empty_store_begins() {
    let is_empty = async |store: &Path, aside: &str| {
        let embedded = opened(store, IfDamaged::Refuse).unwrap();
        assert_eq!(embedded.get(id(1)).await.unwrap(), None);
        embedded.close().await;
        assert_eq!(names(store), ["format", "lock", "log", aside, "rows"]);
        assert!(store.join(aside).join("0.jnl").exists());
    };
    for store in [older(30), half_carried()] {
        remove(&store.path().join("records/keyspaces/1"));
        is_refused(store.path(), IfDamaged::Refuse, |error| {
            matches!(error, OpenError::Missing { .. })
        });
        let begun = copy_of(store.path());
        fs::write(begun.path().join("format"), "onceward embedded store, format 2, begun anew\n")
            .unwrap();
        fs::create_dir_all(begun.path().join("log.new")).unwrap();
        is_empty(begun.path(), "records.damaged").await;
        opened(store.path(), IfDamaged::Accept).unwrap().close().await;
        is_empty(store.path(), "records.damaged").await;
    }
}

#[test]
fn progress_is_told_after_some_time_and_after_a_part_of_the_records() {
    let clock = now();
    let mut progress = Progress::begin(&clock, 10_000);
    let told: Vec<_> = (0..12).map(|_| progress.note(100)).collect();
    assert_eq!(told, [false, false, false, false, true].repeat(3)[..12]);
    clock.advance(Duration::from_millis(4_999));
    assert!(!progress.note(1));
    clock.advance(Duration::from_millis(1));
    assert!(progress.note(1));
    assert!(!progress.note(1));
}
