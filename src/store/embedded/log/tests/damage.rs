//! Flipped bits, cut and missing files, and bytes of an earlier life.

use std::path::PathBuf;

use super::super::*;
use super::history::{Groups, Play, SEGMENT, Step, build, folder, key, names, open};
use super::sim::SimDisk;
use crate::store::embedded::open_error::OpenError;
use crate::store::embedded::settings::{Durability, IfDamaged};

use Step::{Append, Kill, Seal};

/// A log of several segments, with the groups in it.
struct Fixture {
    disk: SimDisk,
    groups: Groups,
    /// Behind all groups. A start from here reads none of them.
    end: Position,
}

impl Fixture {
    fn new() -> Self {
        let mut play = Play::new(Durability::Sync, 0);
        let steps = [Append(350), Append(20), Seal, Append(700), Append(30), Kill, Append(40)];
        play.run(&steps);
        play.run(&[Append(600), Append(10)]);
        let end = play.log.as_ref().unwrap().position();
        let disk = play.disk.after_power_loss(|ways| ways - 1);
        Self { disk, groups: play.expected.appended, end }
    }

    /// The segments that hold groups.
    fn segments(&self) -> Vec<PathBuf> {
        let mut segments: Vec<u64> =
            self.groups.values().flatten().map(|record| record.place.segment).collect();
        segments.dedup();
        segments.into_iter().map(|number| segment::path(&folder(), number)).collect()
    }

    /// Returns the disk with a changed file.
    fn with(&self, path: &std::path::Path, change: impl FnOnce(&mut Vec<u8>)) -> SimDisk {
        let disk = self.disk.after_power_loss(|_| 0);
        let mut content = disk.content(path);
        change(&mut content);
        disk.put(path, content);
        disk
    }
}

/// What a start says of a log.
struct Opened {
    groups: Groups,
    /// The keys of the records in the lost parts.
    lost: Vec<Vec<u8>>,
    parts: usize,
}

fn opened(disk: &SimDisk, if_damaged: IfDamaged) -> Result<Opened, OpenError> {
    let mut lost = Vec::new();
    let mut parts = 0;
    let mut note = |part: &LostPart<'_>| {
        lost.extend(part.records.iter().map(|row| row.key.to_vec()));
        parts += 1;
        Ok(())
    };
    let settings = OpenSettings {
        store: PathBuf::from("/store"),
        durability: Durability::Sync,
        if_damaged,
        segment_bytes: SEGMENT,
        numbers_from: 0,
        lose: &mut note,
    };
    let mut groups = Groups::new();
    let opened = Log::open(disk.clone(), &folder(), None, settings, &mut |head, row| {
        let records = groups.entry(head.number).or_default();
        if let ChangeRef::Put { value, place } = row.change
            && row.table == RECORDS
        {
            let key = row.key.to_vec();
            records.push(super::history::Record { key, value: value.to_vec(), place });
        }
    });
    opened.map(|_| Opened { groups, lost, parts })
}

/// Asserts that a log is refused as damaged. Returns the byte that is named.
#[track_caller]
fn refused(disk: &SimDisk) -> (PathBuf, u64) {
    match opened(disk, IfDamaged::Refuse).map(|opened| opened.groups) {
        Err(OpenError::DamagedJournal { journal, offset, .. }) => (journal, offset),
        other => panic!("{other:?}"),
    }
}

/// Asserts that the loss of these groups can be accepted, that nothing else is lost, and that the
/// next start finds no damage.
#[track_caller]
fn goes_on_without(fixture: &Fixture, disk: &SimDisk, lost: &[u64]) -> Opened {
    let accepted = opened(disk, IfDamaged::Accept).unwrap_or_else(|error| panic!("{error}"));
    let mut groups = fixture.groups.clone();
    groups.retain(|number, _| !lost.contains(number));
    assert_eq!(accepted.groups, groups);
    // The damaged file is kept, and the next start finds no damage.
    let again = opened(&disk.after_power_loss(|_| 0), IfDamaged::Refuse);
    let again = again.unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(again.groups, groups);
    // The log goes on behind all numbers that were ever given.
    let (mut log, _) = open(disk, None, Durability::Sync, IfDamaged::Refuse).unwrap();
    let mut group = GroupBytes::default();
    let next = log.position().group;
    assert!(next > *fixture.groups.keys().last().unwrap(), "{next}");
    build(&mut group, next, 1000);
    log.append(&mut group, 9000).unwrap();
    let again = opened(&disk.after_power_loss(|_| 0), IfDamaged::Refuse).unwrap();
    assert_eq!(again.groups.keys().last(), Some(&next));
    accepted
}

#[test]
fn a_flipped_bit_is_refused_or_changes_nothing() {
    let fixture = Fixture::new();
    for path in fixture.segments() {
        let length = fixture.disk.content(&path).len();
        let mut refusals = 0;
        for bit in 0..length * 8 {
            let disk = fixture.with(&path, |bytes| bytes[bit / 8] ^= 1 << (bit % 8));
            match opened(&disk, IfDamaged::Refuse).map(|opened| opened.groups) {
                Ok(groups) => assert_eq!(groups, fixture.groups, "bit {bit}"),
                Err(OpenError::DamagedJournal { journal, offset, .. }) => {
                    assert_eq!(journal, path, "bit {bit}");
                    assert!(offset <= bit as u64 / 8, "bit {bit}: {offset}");
                    refusals += 1;
                }
                Err(error) => panic!("bit {bit}: {error}"),
            }
        }
        assert!(refusals > length, "{refusals}");
    }
}

#[test]
fn a_record_with_a_flipped_bit_is_not_read() {
    let fixture = Fixture::new();
    for path in fixture.segments() {
        let length = fixture.disk.content(&path).len();
        for byte in 0..length {
            let disk = fixture.with(&path, |bytes| bytes[byte] ^= 1 << (byte % 8));
            // This start does not read the groups.
            let opened = open(&disk, Some(fixture.end), Durability::Sync, IfDamaged::Refuse);
            let Ok((log, _)) = opened else { continue };
            for record in fixture.groups.values().flatten() {
                let place = record.place;
                match log.segments().read(&record.key, place) {
                    Ok(value) => assert_eq!(value, record.value, "byte {byte}"),
                    Err(error) => {
                        assert_eq!(error.kind(), std::io::ErrorKind::InvalidData);
                        let from = place.offset as usize - 4;
                        let until = place.offset as usize + place.length as usize;
                        assert!((from..until).contains(&byte), "byte {byte}");
                    }
                }
            }
        }
    }
}

#[test]
fn a_value_is_read_only_for_its_key() {
    let fixture = Fixture::new();
    let (log, _) = open(&fixture.disk, None, Durability::Sync, IfDamaged::Refuse).unwrap();
    let place = fixture.groups[&1][0].place;
    assert!(log.segments().read(&key(1, 0), place).is_ok());
    assert!(log.segments().read(&key(1, 1), place).is_err());
    let far = Place { offset: u32::MAX, ..place };
    let error = log.segments().read(&key(1, 0), far).unwrap_err();
    assert_eq!(error.kind(), std::io::ErrorKind::InvalidData);
}

#[test]
fn the_loss_of_a_damaged_group_can_be_accepted() {
    let fixture = Fixture::new();
    for (number, records) in &fixture.groups {
        let path = segment::path(&folder(), records[0].place.segment);
        let last = records.last().unwrap().place;
        let first = records[0].place.offset as usize;
        // The value of the last record, the first key, the head.
        let changed = [last.offset as usize, first - 10, first / 512 * 512 + 9];
        for (round, byte) in changed.into_iter().enumerate() {
            let disk = fixture.with(&path, |bytes| bytes[byte] ^= 16);
            let (journal, offset) = refused(&disk);
            assert_eq!((&journal, offset), (&path, u64::from(records[0].place.offset) / 512 * 512));
            let accepted = goes_on_without(&fixture, &disk, &[*number]);
            assert_eq!(accepted.parts, 1);
            let keys: Vec<_> = records.iter().map(|record| record.key.clone()).collect();
            match round {
                1 => assert_eq!(accepted.lost[1..], keys[1..]),
                _ => assert_eq!(accepted.lost, keys),
            }
            let kept: Vec<_> = names_in_store(&disk);
            assert_eq!(kept, [format!("{}.log.damaged", last.segment)]);
        }
    }
}

fn names_in_store(disk: &SimDisk) -> Vec<String> {
    disk.names(&PathBuf::from("/store")).unwrap()
}

#[test]
fn the_loss_of_a_header_can_be_accepted() {
    let fixture = Fixture::new();
    for path in fixture.segments() {
        let in_segment = |number: &&u64| {
            segment::path(&folder(), fixture.groups[*number][0].place.segment) == path
        };
        let lost: Vec<u64> = fixture.groups.keys().filter(in_segment).copied().collect();
        for byte in [0, 9, 20, 30, 70] {
            let disk = fixture.with(&path, |bytes| bytes[byte] ^= 1);
            assert_eq!(refused(&disk), (path.clone(), 0));
            let accepted = goes_on_without(&fixture, &disk, &lost);
            assert!(accepted.parts >= 1);
        }
    }
}

#[test]
fn a_segment_that_is_cut_off_is_refused_at_every_length() {
    let fixture = Fixture::new();
    for path in fixture.segments() {
        let length = fixture.disk.content(&path).len();
        for cut in 0..length {
            let disk = fixture.with(&path, |bytes| bytes.truncate(cut));
            match opened(&disk, IfDamaged::Refuse).map(|opened| opened.groups) {
                Err(OpenError::DamagedJournal { .. } | OpenError::Missing { .. }) => {}
                // A segment with a successor may be cut off behind its groups.
                Ok(groups) => {
                    assert_eq!(groups, fixture.groups);
                    assert!(Some(&path) != fixture.segments().last());
                }
                Err(error) => panic!("{error}"),
            }
            opened(&disk, IfDamaged::Accept).unwrap_or_else(|error| panic!("{cut}: {error}"));
            opened(&disk, IfDamaged::Refuse).unwrap_or_else(|error| panic!("{cut}: {error}"));
        }
    }
}

#[test]
fn a_missing_segment_is_noticed_whichever_it_is() {
    let fixture = Fixture::new();
    for path in fixture.segments() {
        let in_segment = |number: &&u64| {
            segment::path(&folder(), fixture.groups[*number][0].place.segment) == path
        };
        let lost: Vec<u64> = fixture.groups.keys().filter(in_segment).copied().collect();
        let disk = fixture.disk.after_power_loss(|_| 0);
        disk.remove(&path).unwrap();
        disk.sync_folder(&folder()).unwrap();
        match opened(&disk, IfDamaged::Refuse).map(|opened| opened.groups) {
            Err(OpenError::Missing { missing, .. }) => assert_eq!(missing, path),
            // The note says that groups are missing behind the last segment that is there.
            Err(OpenError::DamagedJournal { .. }) => {
                assert_eq!(Some(&path), fixture.segments().last());
            }
            other => panic!("{other:?}"),
        }
        goes_on_without(&fixture, &disk, &lost);
    }
    let disk = fixture.disk.after_power_loss(|_| 0);
    for name in names(&disk).iter().filter(|name| *name != "synced") {
        disk.remove(&folder().join(name)).unwrap();
    }
    let refused = opened(&disk, IfDamaged::Refuse).map(|opened| opened.groups);
    assert!(matches!(refused, Err(OpenError::Missing { .. })), "{refused:?}");
    assert_eq!(opened(&disk, IfDamaged::Accept).unwrap().groups, Groups::new());
    assert_eq!(opened(&disk, IfDamaged::Refuse).unwrap().groups, Groups::new());
}

#[test]
fn a_segment_before_the_mark_is_not_needed_and_the_one_of_the_mark_is() {
    let fixture = Fixture::new();
    for path in fixture.segments() {
        let disk = fixture.disk.after_power_loss(|_| 0);
        disk.remove(&path).unwrap();
        let opened = open(&disk, Some(fixture.end), Durability::Sync, IfDamaged::Refuse);
        let is_marked = path == segment::path(&folder(), fixture.end.segment);
        match opened {
            Ok((log, groups)) => {
                assert!(!is_marked && groups.is_empty());
                assert_eq!(log.position().group, fixture.end.group);
            }
            Err(OpenError::Missing { missing, .. }) => {
                assert!(is_marked);
                assert_eq!(missing, path);
                let end = Some(fixture.end);
                let (log, _) = open(&disk, end, Durability::Sync, IfDamaged::Accept).unwrap();
                assert_eq!(log.position().group, fixture.end.group);
                drop(log);
                open(&disk, end, Durability::Sync, IfDamaged::Refuse).unwrap();
            }
            Err(error) => panic!("{error}"),
        }
    }
}

#[test]
fn the_note_shows_a_log_that_lost_its_last_groups() {
    let fixture = Fixture::new();
    let path = fixture.segments().pop().unwrap();
    let begins = fixture.groups.values().last().unwrap()[0].place.offset as usize / 512 * 512;
    let disk = fixture.with(&path, |bytes| bytes[begins..].fill(0));
    assert_eq!(refused(&disk), (path, begins as u64));
    let lost = [*fixture.groups.keys().last().unwrap()];
    goes_on_without(&fixture, &disk, &lost);
    // The note itself is needed too.
    let note = folder().join("synced");
    let disk = fixture.with(&note, |bytes| bytes[3] ^= 1);
    let refused = opened(&disk, IfDamaged::Refuse).map(|opened| opened.groups);
    assert!(matches!(refused, Err(OpenError::Io { .. })), "{refused:?}");
    goes_on_without(&fixture, &disk, &[]);
    let disk = fixture.disk.after_power_loss(|_| 0);
    disk.remove(&note).unwrap();
    let refused = opened(&disk, IfDamaged::Refuse).map(|opened| opened.groups);
    assert!(matches!(refused, Err(OpenError::Missing { .. })), "{refused:?}");
    goes_on_without(&fixture, &disk, &[]);
}

/// The bytes of another segment, as a disk may return them for space that was used before.
#[test]
fn groups_of_an_earlier_life_of_a_file_are_never_read() {
    let fixture = Fixture::new();
    let paths = fixture.segments();
    let newest = paths.last().unwrap();
    let last = fixture.groups.values().last().unwrap().last().unwrap().place;
    let end = (last.offset + last.length) as usize / 512 * 512 + 512;
    for other in &paths {
        for shift in 1..4 {
            let stale = fixture.disk.content(other);
            let disk = fixture.with(newest, |bytes| {
                let length = bytes.len() - end;
                let from = (512 * shift).min(stale.len());
                let stale = stale[from..].iter().chain(std::iter::repeat(&0)).take(length);
                bytes.splice(end.., stale.copied());
            });
            // Nothing that was acknowledged is lost, but nobody can know that.
            match opened(&disk, IfDamaged::Refuse) {
                Ok(opened) => assert_eq!(opened.groups, fixture.groups),
                Err(OpenError::DamagedJournal { journal, offset, .. }) => {
                    assert_eq!((&journal, offset), (newest, end as u64));
                }
                Err(error) => panic!("{error}"),
            }
            let accepted = opened(&disk, IfDamaged::Accept).unwrap();
            assert_eq!(accepted.groups, fixture.groups);
        }
    }
}

/// A log like this one was in the same space before, and went on with the very next group.
#[test]
fn the_next_group_of_an_earlier_life_is_never_read() {
    let play = |salts: u64, steps: &[Step]| {
        let mut play = Play::new(Durability::Sync, 0);
        play.run(&[Kill]);
        play.disk.draw_from(salts);
        play.run(&[Kill]);
        play.run(steps);
        play
    };
    let life = play(100, &[Append(100), Append(200)]);
    let earlier = play(200, &[Append(100), Append(200), Append(300), Append(50)]);
    let Position { segment, offset, .. } = life.log.as_ref().unwrap().position();
    let path = segment::path(&folder(), segment);
    let end = usize::try_from(offset).unwrap();
    let disk = life.disk.after_power_loss(|ways| ways - 1);
    let mut bytes = disk.content(&path);
    let stale = earlier.disk.content(&path);
    assert_eq!(stale.len(), bytes.len());
    bytes[end..].copy_from_slice(&stale[end..]);
    disk.put(&path, bytes);
    assert_eq!(refused(&disk), (path, offset));
    let accepted = opened(&disk, IfDamaged::Accept).unwrap();
    assert_eq!(accepted.groups, life.expected.appended);
}

#[test]
fn rows_of_a_segment_are_handed_over_without_the_damaged_ones() {
    let fixture = Fixture::new();
    let place = fixture.groups[&1][0].place;
    let path = segment::path(&folder(), place.segment);
    let disk = fixture.with(&path, |bytes| bytes[place.offset as usize] ^= 1);
    let end = Some(fixture.end);
    let (log, _) = open(&disk, end, Durability::Sync, IfDamaged::Refuse).unwrap();
    let mut keys = Vec::new();
    let mut visit = |_: &GroupHead, row: RowRef<'_>| {
        if row.table == RECORDS {
            keys.push(row.key.to_vec());
        }
    };
    let damaged = log.segments().rows_of(place.segment, &mut visit).unwrap();
    assert_eq!(damaged, Some(512));
    assert_eq!(keys, [key(2, 0)]);
}
