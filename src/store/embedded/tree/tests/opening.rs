//! Opens stores of format 1 that are whole, cut off, damaged, or lack a part.

use std::fs;
use std::path::Path;

use tempfile::TempDir;

use super::super::journal::files::content;
use super::super::older::{CLAIMED, OlderStore, answered, id, in_flight, list};
use super::super::*;
use super::{copy_of, files, remove};

const JOURNAL: &str = "records/0.jnl";

/// A store in which ten operations were answered, one with each group, and the places at which the
/// groups end.
struct Written {
    store: TempDir,
    journal: Vec<u8>,
    ends: Vec<usize>,
}

impl Written {
    fn new(durability: Durability) -> Self {
        let store = tempfile::tempdir().unwrap();
        let older = OlderStore::open(store.path(), durability);
        let images = (0..10).map(|number| older.write(&[answered(number, b"body")]));
        let images: Vec<_> = images.collect();
        let ends = images.iter().map(Vec::len).collect();
        let journal = images.into_iter().next_back().unwrap();
        Self { store: copy_of(store.path()), journal, ends }
    }

    fn changed(&self, change: impl FnOnce(&Path)) -> TempDir {
        let copy = copy_of(self.store.path());
        change(copy.path());
        copy
    }

    fn with_journal(&self, journal: &[u8]) -> TempDir {
        self.changed(|copy| fs::write(copy.join(JOURNAL), journal).unwrap())
    }

    fn without(&self, part: &str) -> TempDir {
        self.changed(|copy| remove(&copy.join(part)))
    }
}

fn opened(store: &Path, if_damaged: IfDamaged) -> Result<Option<OldRecords>, OpenError> {
    open(store, Durability::Sync, if_damaged)
}

/// Opens the store, and reads which operations it has.
fn found(store: &Path, if_damaged: IfDamaged) -> Vec<OperationId> {
    let old = opened(store, if_damaged).unwrap().unwrap();
    old.records_after(None).map(|record| record.unwrap().id).collect()
}

fn ids(numbers: impl Iterator<Item = u32>) -> Vec<OperationId> {
    numbers.map(id).collect()
}

/// The store is refused as often as somebody tries, and nothing in it changes.
#[track_caller]
fn is_refused(store: &Path, is_expected: impl Fn(&OpenError) -> bool) {
    let before = files(store);
    for _ in 0..2 {
        let refused = opened(store, IfDamaged::Refuse).err().unwrap();
        assert!(is_expected(&refused), "{refused:?}");
    }
    assert!(files(store) == before, "it is untouched");
}

fn is_missing(store: &Path, part: &str) -> impl Fn(&OpenError) -> bool {
    let part = store.join(part);
    move |error| matches!(error, OpenError::Missing { missing, .. } if *missing == part)
}

fn is_damaged_at(offset: usize) -> impl Fn(&OpenError) -> bool {
    move |error| matches!(error, OpenError::DamagedJournal { offset: at, .. } if *at == offset as u64)
}

/// Once that was accepted, the store has these operations, and is refused no more.
#[track_caller]
fn is_accepted_with(store: &Path, left: impl Iterator<Item = u32>) {
    let left = ids(left);
    assert_eq!(found(store, IfDamaged::Accept), left);
    assert_eq!(found(store, IfDamaged::Refuse), left);
}

#[test]
fn records_are_read_in_the_order_of_their_ids_and_nothing_is_changed() {
    let store = tempfile::tempdir().unwrap();
    let older = OlderStore::open(store.path(), Durability::Sync);
    older.write(&[answered(3, b"three"), answered(1, b"FJL\x03"), in_flight(4)]);
    older.write(&[answered(2, &[0; 1000]), answered(1, b"one again")]);
    older.write_bytes(id(5), b"unreadable");
    drop(older);
    let before = files(store.path());
    for _ in 0..2 {
        let old = opened(store.path(), IfDamaged::Refuse).unwrap().unwrap();
        assert_eq!(old.kept_time().unwrap(), Timestamp(CLAIMED.0 + 1000));
        assert_eq!(old.approximate_count(), 6);
        let records: Vec<_> = old.records_after(None).map(Result::unwrap).collect();
        let operations: Vec<_> =
            records.iter().map(|record| record.operation.as_ref().ok().cloned()).collect();
        let wanted = [
            Some(answered(1, b"one again")),
            Some(answered(2, &[0; 1000])),
            Some(answered(3, b"three")),
            Some(in_flight(4)),
            None,
        ];
        assert_eq!(operations, wanted);
        assert_eq!(*records[4].kept, *b"unreadable");
        let rest: Vec<_> =
            old.records_after(Some(id(3))).map(|record| record.unwrap().id).collect();
        assert_eq!(rest, [id(4), id(5)]);
    }
    assert!(files(store.path()) == before);
}

#[test]
fn of_an_unreadable_record_it_is_known_whether_it_was_settled() {
    let store = tempfile::tempdir().unwrap();
    let older = OlderStore::open(store.path(), Durability::Sync);
    (1..=4).for_each(|number| older.write_bytes(id(number), b"unreadable"));
    older.write_unsettled(id(1).as_bytes(), b"u");
    older.write_unsettled(id(2).as_bytes(), b"f");
    older.write_unsettled(&77_u64.to_be_bytes(), &[*id(9).as_bytes(), *id(3).as_bytes()].concat());
    drop(older);
    let old = opened(store.path(), IfDamaged::Refuse).unwrap().unwrap();
    let states = [1, 2, 3, 4].map(|number| old.unsettled(id(number)).unwrap());
    let in_flight = Some(Unsettled::InFlight);
    assert_eq!(states, [Some(Unsettled::Uncertain), in_flight, in_flight, None]);
}

#[test]
fn as_long_as_the_label_stays_the_same_the_records_do() {
    let store = tempfile::tempdir().unwrap();
    let label = || opened(store.path(), IfDamaged::Refuse).unwrap().unwrap().label().unwrap();
    drop(OlderStore::open(store.path(), Durability::Sync));
    let mut labels = vec![label()];
    for number in 0..3 {
        let older = OlderStore::open(store.path(), Durability::Sync);
        older.write(&[answered(number, b"body")]);
        drop(older);
        labels.push(label());
        assert_eq!(labels.last(), Some(&label()));
    }
    labels.dedup();
    assert_eq!(labels.len(), 4);
}

#[test]
fn a_flipped_bit_is_refused_and_left_out_when_that_is_accepted() {
    let written = Written::new(Durability::Sync);
    for number in [0, 4, 9_usize] {
        let begins = number.checked_sub(1).map_or(0, |before| written.ends[before]);
        for at in [begins + 40, written.ends[number] - 2] {
            let mut bytes = written.journal.clone();
            bytes[at] ^= 1;
            let damaged = written.with_journal(&bytes);
            is_refused(damaged.path(), is_damaged_at(begins));
            is_accepted_with(damaged.path(), (0..10).filter(|kept| *kept as usize != number));
            let aside = fs::read(damaged.path().join("0.jnl.damaged")).unwrap();
            assert_eq!(aside, bytes, "it is kept for whoever can read it");
        }
    }
}

#[test]
fn a_journal_that_lacks_what_was_synced_is_damaged_at_its_end() {
    let written = Written::new(Durability::Sync);
    for (number, end) in written.ends.iter().enumerate().take(9) {
        for length in [*end, end + 1, written.ends[number + 1] - 1] {
            let damaged = written.with_journal(&written.journal[..length]);
            is_refused(damaged.path(), is_damaged_at(*end));
            is_accepted_with(damaged.path(), 0..=u32::try_from(number).unwrap());
        }
    }
    for bytes in [vec![0; 5000], Vec::new(), written.journal[..30].to_vec()] {
        let damaged = written.with_journal(&bytes);
        is_refused(damaged.path(), is_damaged_at(0));
        is_accepted_with(damaged.path(), 0..0);
    }
}

#[test]
fn a_last_group_that_was_never_synced_is_dropped() {
    let written = Written::new(Durability::Sync);
    let [before, end] = [written.ends[8], written.ends[9]];
    let sector = before / 512 * 512 + 512;
    assert!(sector < end, "the group is longer than its first sector");
    let mut torn = written.journal.clone();
    torn[before..sector].fill(0);
    let cuts = (before..end).step_by(7).map(|length| written.journal[..length].to_vec());
    for bytes in cuts.chain([torn]) {
        let unsynced = written.with_journal(&bytes);
        // nobody was told of the last group
        let records = unsynced.path().join("records");
        let noted = synced::read(&records).unwrap();
        synced::write(&records, noted - 1).unwrap();
        assert_eq!(found(unsynced.path(), IfDamaged::Refuse), ids(0..9));
    }
}

#[test]
fn a_missing_part_is_named_and_all_is_lost_when_that_is_accepted() {
    let written = Written::new(Durability::Sync);
    let mut parts = vec!["records/version".to_owned(), "records/keyspaces".to_owned()];
    for table in 0..=6 {
        parts.push(format!("records/keyspaces/{table}"));
        parts.push(format!("records/keyspaces/{table}/current"));
    }
    for part in &parts {
        let damaged = written.without(part);
        is_refused(damaged.path(), is_missing(damaged.path(), part));
        let before = files(damaged.path());
        assert!(opened(damaged.path(), IfDamaged::Accept).unwrap().is_none());
        assert!(files(damaged.path()) == before, "it is kept as it was");
    }
    // the oldest versions had no list
    for part in ["records/keyspaces/0", "records/keyspaces/1/current"] {
        let damaged = written.without(part);
        remove(&damaged.path().join("records/contents"));
        is_refused(damaged.path(), is_missing(damaged.path(), part));
    }
}

#[test]
fn without_its_records_a_store_is_refused() {
    let written = Written::new(Durability::Sync);
    let gone = written.without("records");
    is_refused(gone.path(), |error| matches!(error, OpenError::RecordsGone { .. }));
    assert!(opened(gone.path(), IfDamaged::Accept).unwrap().is_none());
}

#[test]
fn records_that_had_not_got_their_name_yet_get_it() {
    let written = Written::new(Durability::Sync);
    let rename = |copy: &Path| fs::rename(copy.join("records"), copy.join("records.new")).unwrap();
    let unnamed = written.changed(rename);
    assert_eq!(found(unnamed.path(), IfDamaged::Refuse), ids(0..10));
    let incomplete = written.changed(|copy| {
        remove(&copy.join("records/contents"));
        rename(copy);
    });
    is_refused(incomplete.path(), |error| matches!(error, OpenError::RecordsGone { .. }));
}

#[test]
fn a_missing_journal_is_named() {
    let written = Written::new(Durability::Sync);
    let missing = written.without(JOURNAL);
    is_refused(missing.path(), is_missing(missing.path(), JOURNAL));
    is_accepted_with(missing.path(), 0..0);
    let older = written.without(JOURNAL);
    remove(&older.path().join("records/contents"));
    is_refused(older.path(), is_missing(older.path(), JOURNAL));
    // The database may have begun the next one just before a crash.
    let next = "records/1.jnl";
    let begun = written.changed(|copy| fs::write(copy.join(next), [0; 5000]).unwrap());
    assert_eq!(found(begun.path(), IfDamaged::Refuse), ids(0..10));
    // Once it was used, it is missed.
    list(&begun.path().join("records"), 1, &[]);
    is_refused(begun.path(), is_damaged_at(0));
    remove(&begun.path().join(next));
    is_refused(begun.path(), is_missing(begun.path(), next));
    let gap = written.changed(|copy| fs::write(copy.join("records/2.jnl"), [0; 5000]).unwrap());
    is_refused(gap.path(), is_missing(gap.path(), next));
}

#[test]
fn a_full_journal_is_put_back_or_missed_and_must_reach_as_far_as_listed() {
    let written = Written::new(Durability::Sync);
    let full = written.changed(|copy| {
        let records = copy.join("records");
        let reaches = synced::read(&records).unwrap();
        fs::hard_link(copy.join(JOURNAL), records.join("0.full")).unwrap();
        fs::write(records.join("1.jnl"), [0; 5000]).unwrap();
        list(&records, 1, &[1]);
        let contents = fs::read_to_string(records.join("contents")).unwrap();
        let listed = format!("\"full_journals\":{{\"0\":{reaches}}}");
        fs::write(records.join("contents"), contents.replace("\"full_journals\":{}", &listed))
            .unwrap();
    });
    let without = |parts: &[&str]| {
        let copy = copy_of(full.path());
        for part in parts {
            remove(&copy.path().join(part));
        }
        copy
    };
    for parts in [&[][..], &[JOURNAL], &["records/0.full"]] {
        let store = without(parts);
        assert_eq!(found(store.path(), IfDamaged::Refuse), ids(0..10));
        assert_eq!(found(store.path(), IfDamaged::Refuse), ids(0..10));
    }
    let lost = without(&[JOURNAL, "records/0.full"]);
    is_refused(lost.path(), is_missing(lost.path(), JOURNAL));
    is_accepted_with(lost.path(), 0..0);
    for end in &written.ends[..9] {
        let cut = copy_of(full.path());
        fs::write(cut.path().join(JOURNAL), &written.journal[..*end]).unwrap();
        is_refused(cut.path(), is_damaged_at(*end));
    }
}

#[test]
fn without_the_number_of_what_was_synced_a_store_is_refused() {
    let written = Written::new(Durability::Sync);
    let synced = "records/synced";
    let missing = written.without(synced);
    is_refused(missing.path(), is_missing(missing.path(), synced));
    is_accepted_with(missing.path(), 0..10);
    let damaged = written.changed(|copy| fs::write(copy.join(synced), [0; 15]).unwrap());
    is_refused(
        damaged.path(),
        |error| matches!(error, OpenError::Io { source, .. } if source.to_string().contains("synced` is damaged")),
    );
    is_accepted_with(damaged.path(), 0..10);
}

#[test]
fn a_damaged_list_of_the_contents_is_refused() {
    let written = Written::new(Durability::Sync);
    let list = "records/contents";
    let damaged = written.changed(|copy| fs::write(copy.join(list), "{\"tables\":[0").unwrap());
    is_refused(damaged.path(), |error| matches!(error, OpenError::Io { .. }));
    is_accepted_with(damaged.path(), 0..10);
}

/// A start of an earlier version found that its database had cut off a journal.
#[test]
fn a_loss_that_was_noted_is_refused_until_it_is_accepted() {
    let written = Written::new(Durability::Sync);
    let noted = written.changed(|copy| fs::write(copy.join("damaged"), "a journal\n").unwrap());
    is_refused(noted.path(), |error| matches!(error, OpenError::Damaged { .. }));
    is_accepted_with(noted.path(), 0..10);
}

/// After a loss of power the journal may lack groups that nobody had synced.
#[test]
fn without_syncs_a_journal_may_end_after_any_group() {
    let written = Written::new(Durability::Os);
    for (number, end) in written.ends.iter().enumerate() {
        let cut = written.with_journal(&written.journal[..*end]);
        let old = open(cut.path(), Durability::Os, IfDamaged::Refuse).unwrap().unwrap();
        assert_eq!(old.records_after(None).count(), number + 1);
    }
    assert!(content(&written.store.path().join(JOURNAL)).unwrap() == written.journal);
}
