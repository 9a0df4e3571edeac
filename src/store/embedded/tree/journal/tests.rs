//! Tests with journals of the database that are cut off, torn and damaged in every way.

use std::ops::Range;
use std::sync::Arc;

use proptest::prelude::RngExt as _;
use proptest::test_runner::{RngAlgorithm, TestRng};

use super::super::older::{OlderStore, answered, id};
use super::examine::{Examined, LossKind, SECTOR, examine};
use super::*;
use crate::operation::Operation;

/// Has the database write these groups, each of records with these bodies. Returns the journal
/// after each group.
fn written(groups: &[&[&[u8]]], durability: Durability) -> Vec<Vec<u8>> {
    let mut numbers = 1..;
    let mut record = |body: &&[u8]| answered(numbers.next().unwrap(), body);
    let groups: Vec<Vec<_>> =
        groups.iter().map(|bodies| bodies.iter().map(&mut record).collect()).collect();
    records_written(&groups, durability)
}

/// Does the same for groups of any records.
fn records_written(groups: &[Vec<Operation>], durability: Durability) -> Vec<Vec<u8>> {
    let store = tempfile::tempdir().unwrap();
    let older = OlderStore::open(store.path(), durability);
    groups.iter().map(|records| older.write(records)).collect()
}

fn sync(bytes: &[u8]) -> Examined {
    examine(trimmed(bytes), Some(Durability::Sync), None)
}

fn trimmed(bytes: &[u8]) -> &[u8] {
    &bytes[..bytes.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1)]
}

/// Returns the place of the first part that is not a whole group, and the kind of its loss.
fn fate(examined: &Examined) -> (usize, Option<LossKind>) {
    let end = examined.whole.last().map_or(0, |last| last.end);
    examined.lost.first().map_or((end, None), |lost| (lost.range.start, Some(lost.kind)))
}

/// Bodies that look like parts of a journal: marks, zeros, and a whole journal.
fn hostile() -> Vec<Vec<u8>> {
    let journal = written(&[&[b"inside"], &[b"inside"]], Durability::Sync).pop().unwrap();
    vec![
        b"FJL\x03".repeat(300),
        vec![0; 3000],
        [&[1, 1, 0, 0, 0][..], &[0; 700], b"\x03________FJL\x03"].concat(),
        journal.clone(),
        [&vec![0; 1024][..], &journal, &vec![0; 1024], b"FJL"].concat(),
        journal.repeat(20),
    ]
}

#[test]
fn what_was_written_is_whole() {
    for body in hostile() {
        let images = written(&[&[&body], &[b"a", &body, b"b"]], Durability::Sync);
        let ends: Vec<_> = images.iter().map(Vec::len).collect();
        let found: Vec<_> = sync(&images[1]).whole.iter().map(|range| range.end).collect();
        assert_eq!(found, ends);
        assert_eq!(fate(&sync(&images[1])), (ends[1], None));
    }
}

#[test]
fn a_journal_that_ends_inside_a_group_is_kept_up_to_that_group_at_whatever_byte() {
    let bodies = hostile();
    let images =
        written(&[&[b"one"], &[b"two"], &[b"x", &bodies[2], &bodies[3]]], Durability::Sync);
    let ends: Vec<_> = std::iter::once(0).chain(images.iter().map(Vec::len)).collect();
    let whole = images.last().unwrap();
    for length in 0..=whole.len() {
        let examined = sync(&whole[..length]);
        let kept = *ends.iter().rfind(|end| **end <= length).unwrap();
        assert_eq!(fate(&examined).0, kept, "cut at {length}");
        assert_eq!(examined.damaged().count(), 0, "cut at {length}");
        assert!(examined.lost.len() <= 1);
    }
}

/// Returns the sectors in which a group has a part.
fn sectors(group: &Range<usize>) -> Vec<Range<usize>> {
    let starts = (group.start / 512 * 512..group.end).step_by(512);
    starts.map(|start| start..(start + 512)).collect()
}

/// Returns the journal with some of its sectors as they were before.
fn torn(after: &[u8], before: &[u8], sectors: &[Range<usize>]) -> Vec<u8> {
    let mut bytes = after.to_vec();
    for at in sectors.iter().cloned().flatten().filter(|at| *at < after.len()) {
        bytes[at] = before.get(at).copied().unwrap_or(0);
    }
    bytes
}

/// Asserts that the groups behind this place are dropped, because none of their calls was answered.
#[track_caller]
fn is_dropped(bytes: &[u8], end: usize) {
    let examined = sync(bytes);
    let (kept, kind) = fate(&examined);
    assert_eq!(kept, end);
    assert!(matches!(kind, None | Some(LossKind::Unfinished | LossKind::Unsynced)), "{kind:?}");
    assert_eq!(examined.whole.last().map_or(0, |last| last.end), end, "nothing behind it is kept");
}

#[test]
fn a_last_group_without_some_of_its_sectors_is_dropped_whichever_they_are() {
    // each time, the group begins at another place in its first sector
    for length in (0..512).step_by(37) {
        let padding = vec![b'p'; length];
        let images = written(&[&[&padding], &[b"two", &[b'x'; 900]]], Durability::Sync);
        let [before, after] = &*images else { panic!() };
        let sectors = sectors(&(before.len()..after.len()));
        assert!((2..9).contains(&sectors.len()));
        for subset in 1..(1_u32 << sectors.len()) {
            let missing: Vec<_> = (0..sectors.len())
                .filter(|number| subset & (1 << number) != 0)
                .map(|number| sectors[number].clone())
                .collect();
            is_dropped(&torn(after, before, &missing), before.len());
        }
    }
}

#[test]
fn of_a_large_last_group_any_missing_sectors_are_noticed() {
    let bodies = hostile();
    let bodies: Vec<&[u8]> = bodies.iter().map(|body| &**body).collect();
    let images = written(&[&[b"one"], &bodies], Durability::Sync);
    let [before, after] = &*images else { panic!() };
    let sectors = sectors(&(before.len()..after.len()));
    let mut random = TestRng::deterministic_rng(RngAlgorithm::ChaCha);
    for sector in &sectors {
        is_dropped(&torn(after, before, std::slice::from_ref(sector)), before.len());
    }
    for _ in 0..500 {
        let share = random.random_range(1..100);
        let is_missing = |_: &&Range<usize>| random.random_range(0..100) < share;
        let missing: Vec<_> = sectors.iter().filter(is_missing).cloned().collect();
        if !missing.is_empty() {
            is_dropped(&torn(after, before, &missing), before.len());
        }
    }
}

/// A sector may be written before the group is complete. Its rest is then missing behind the end of
/// a row.
#[test]
fn a_sector_that_was_written_before_the_group_was_complete_is_noticed() {
    let images = written(&[&[b"one"], &[&[b'x'; 700], &[b'y'; 700]]], Durability::Sync);
    let [before, after] = &*images else { panic!() };
    let starts = [b"x".repeat(700), b"y".repeat(700)]
        .map(|body| memchr::memmem::find(after, &body).unwrap() + body.len());
    let sector_end = |at: usize| at / 512 * 512 + 512;
    // the row behind the first record begins somewhat behind its body
    let rows = starts[0]..starts[1] - 700;
    let rows = rows.filter(|at| after[*at..].starts_with(&[2, 0, 0]) && after[*at + 3] != 0);
    let next_row = rows.max_by_key(|at| sector_end(*at) - at).unwrap();
    let mut bytes = after.clone();
    bytes[next_row..sector_end(next_row)].fill(0);
    is_dropped(&bytes, before.len());
}

#[test]
fn a_flipped_bit_anywhere_is_damage_or_loses_nothing() {
    let zeros = vec![0; 1500];
    for groups in [&[&[&b"one"[..]][..], &[b"two"], &[b"three", &zeros]][..], &[&[&zeros], &[b"2"]]]
    {
        let images = written(groups, Durability::Sync);
        let ends: Vec<_> = images.iter().map(Vec::len).collect();
        let whole = images.last().unwrap();
        let mut unseen = 0;
        for bit in 0..whole.len() * 8 {
            let mut bytes = whole.clone();
            bytes[bit / 8] ^= 1 << (bit % 8);
            let examined = sync(&bytes);
            if examined.damaged().next().is_none() {
                assert_eq!(fate(&examined), (whole.len(), None), "bit {bit}");
                unseen += 1;
                continue;
            }
            // the damage is in the group of the bit, or in the group behind it
            let at = fate(&examined).0;
            let begins = ends.iter().rfind(|end| **end <= bit / 8).copied().unwrap_or(0);
            assert!(at >= begins && ends.iter().find(|end| **end > begins).unwrap() >= &at);
        }
        // a sequence number that is a little higher passes unseen, and its group keeps its place
        assert!(unseen <= 3 * 16, "{unseen}");
    }
}

#[test]
fn a_whole_group_behind_one_that_misses_a_sector_is_damage() {
    let big = [b'x'; 1600];
    let images = written(&[&[b"one"], &[&big], &[b"three"]], Durability::Sync);
    let [one, two, three] = &*images else { panic!() };
    let missing = sectors(&(one.len()..two.len()))[2].clone();
    let bytes = torn(three, one, &[missing]);
    let examined = sync(&bytes);
    assert_eq!(fate(&examined), (one.len(), Some(LossKind::Damaged)));
    // a store that goes on without this group keeps the others
    assert_eq!(examined.whole, [0..one.len(), two.len()..three.len()]);
    assert_eq!(examined.lost[0].range, one.len()..two.len());
    assert_eq!(examined.lost[0].changes, Some(1));
    assert_eq!(examined.lost[0].operations, [id(2)]);
}

#[test]
fn several_groups_may_be_unsynced_where_none_is_waited_for() {
    let big = [b'x'; 1600];
    let images = written(&[&[b"one"], &[&big, b"2"], &[b"three"], &[&big]], Durability::Os);
    let [one, two, three, four] = &*images else { panic!() };
    let os = |bytes: &[u8]| examine(trimmed(bytes), Some(Durability::Os), None);
    let second = sectors(&(one.len()..two.len()))[1].clone();
    let examined = os(&torn(four, one, std::slice::from_ref(&second)));
    assert_eq!(fate(&examined), (one.len(), Some(LossKind::Unsynced)));
    assert_eq!(examined.lost[0].range.end, four.len());
    assert_eq!(examined.lost[0].changes, Some(4));
    // the setting under which the groups were written counts
    assert_eq!(fate(&sync(&torn(four, one, &[second]))).1, Some(LossKind::Unsynced));
    // a flipped bit is damage all the same
    let mut bytes = torn(four, three, &sectors(&(three.len() + 512..four.len())));
    bytes[one.len() + 100] ^= 1;
    assert_eq!(fate(&os(&bytes)), (one.len(), Some(LossKind::Damaged)));
}

/// Each sector is as it was at some time since the last sync, whatever the other sectors are.
#[test]
fn whatever_a_loss_of_power_leaves_of_unsynced_groups_opens_with_all_that_was_synced() {
    let mut random = TestRng::deterministic_rng(RngAlgorithm::ChaCha);
    for round in 0..20 {
        let bodies: Vec<_> = (0..6)
            .map(|_| vec![b'x'; random.random_range(0..1500)])
            .chain(hostile().into_iter().take(3))
            .collect();
        let groups: Vec<_> = bodies.iter().map(|body| [&**body]).collect();
        let groups: Vec<_> = groups.iter().map(|group| &group[..]).collect();
        let images = written(&groups, Durability::Os);
        let ends: Vec<_> = std::iter::once(0).chain(images.iter().map(Vec::len)).collect();
        let synced = random.random_range(0..groups.len());
        for _ in 0..60 {
            let mut bytes = images[synced].clone();
            bytes.resize(*ends.last().unwrap(), 0);
            for (number, sector) in bytes.chunks_mut(SECTOR).enumerate() {
                let image = &images[random.random_range(synced..images.len())];
                let found = image.get(number * SECTOR..).unwrap_or_default();
                sector.iter_mut().zip(found).for_each(|(byte, found)| *byte = *found);
            }
            let examined = examine(trimmed(&bytes), Some(Durability::Os), None);
            assert_eq!(examined.damaged().count(), 0, "round {round}: {:?}", examined.lost);
            let kept = examined.whole.last().map_or(0, |last| last.end);
            assert!(kept >= ends[synced + 1] && ends.contains(&kept), "round {round}");
        }
    }
}

#[test]
fn an_older_journal_was_synced_to_its_end() {
    let images = written(&[&[b"one"], &[&[b'x'; 1600]]], Durability::Os);
    let [one, two] = &*images else { panic!() };
    let examined = examine(&two[..two.len() - 5], None, None);
    assert_eq!(fate(&examined), (one.len(), Some(LossKind::Damaged)));
    assert_eq!(fate(&examine(two, None, None)), (two.len(), None));
}

/// The first row of its groups holds only the time.
#[test]
fn a_journal_of_an_older_version_is_read() {
    let store = tempfile::tempdir().unwrap();
    let database = fjall::Database::builder(store.path()).open().unwrap();
    let table = database.keyspace("meta", fjall::KeyspaceCreateOptions::default).unwrap();
    for size in [3, 5000] {
        let mut batch = database.batch();
        batch.insert(&table, "record", vec![b'x'; size]);
        batch.insert(&table, "time", [0, 0, 1, 2, 3, 4, 5, 6]);
        batch.commit().unwrap();
    }
    database.persist(fjall::PersistMode::SyncAll).unwrap();
    let bytes = content(&store.path().join("0.jnl")).unwrap();
    let examined = sync(&bytes);
    assert_eq!((examined.whole.len(), fate(&examined)), (2, (bytes.len(), None)));
    let cut = sync(&bytes[..bytes.len() - 3]);
    assert_eq!(fate(&cut).1, Some(LossKind::Unfinished));
    assert_eq!(cut.lost[0].changes, None, "it does not say how many");
}

/// An operation that no sender sent says nothing to a person who reads the log.
#[test]
fn a_damaged_part_names_its_operations_without_those_of_probes() {
    let mut probe = answered(1, b"of a probe");
    Arc::make_mut(&mut probe.subject).route = "onceward:probe".into();
    let group = vec![probe, answered(2, b"of a sender")];
    let mut bytes = records_written(&[group], Durability::Sync).pop().unwrap();
    let last = bytes.len() - 1;
    bytes[last] ^= 1;
    let examined = sync(&bytes);
    assert_eq!(examined.lost[0].operations, [id(2)]);
}
