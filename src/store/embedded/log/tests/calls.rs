//! Single calls: what they cost, what they refuse, and how the log goes on after a failure.

use std::collections::BTreeSet;
use std::io;

use super::super::*;
use super::history::{Play, Step, build, folder, open};
use super::sim::{Fault, Random, SimDisk};
use crate::store::embedded::settings::{Durability, IfDamaged};

use Step::Append;

fn new(durability: Durability) -> (SimDisk, Log<SimDisk>) {
    let mut play = Play::new(durability, 0);
    (play.disk, play.log.take().unwrap())
}

/// Appends the next group, with records of so many bytes.
fn append(log: &mut Log<SimDisk>, bytes: usize) -> Result<AppendedAt, AppendError> {
    let mut group = GroupBytes::default();
    build(&mut group, log.position().group, bytes);
    log.append(&mut group, 1)
}

#[test]
fn a_group_costs_two_writes_and_one_sync() {
    for (durability, calls, syncs) in [(Durability::Sync, 3, 1), (Durability::Os, 1, 0)] {
        let (disk, mut log) = new(durability);
        append(&mut log, 10).unwrap();
        for _ in 0..3 {
            let before = (disk.calls(), disk.syncs());
            append(&mut log, 10).unwrap();
            assert_eq!((disk.calls(), disk.syncs()), (before.0 + calls, before.1 + syncs));
        }
    }
}

#[test]
fn a_group_with_a_sector_of_zeros_is_refused_and_the_next_one_is_not() {
    let (disk, mut log) = new(Durability::Sync);
    let mut group = GroupBytes::default();
    group.begin();
    group.put(RECORDS, b"key", &[0; 1100]);
    let calls = disk.calls();
    let refused = log.append(&mut group, 1);
    assert!(matches!(refused, Err(AppendError::Unfit(_))), "{refused:?}");
    assert_eq!(disk.calls(), calls);
    group.begin();
    group.put(RECORDS, b"key", &[0; 300]);
    group.put(3, &vec![1; usize::from(u16::MAX) + 1], b"");
    assert!(matches!(log.append(&mut group, 1), Err(AppendError::Unfit(_))));
    append(&mut log, 10).unwrap();
}

#[test]
fn a_full_disk_refuses_groups_until_there_is_room() {
    let (disk, mut log) = new(Durability::Sync);
    assert!(log.has_room());
    let from = disk.calls();
    for call in from..from + 200 {
        disk.fault(call, Fault::Fail { kind: io::ErrorKind::StorageFull, sectors: 2 });
    }
    // A segment is full, and the one behind it was made before.
    let refused = append(&mut log, 5000);
    assert!(matches!(refused, Err(AppendError::NoRoom(_))), "{refused:?}");
    assert!(!log.has_room() && !log.is_suspended());
    let position = log.position();
    while disk.calls() < from + 200 {
        assert!(!log.has_room());
    }
    assert!(log.has_room());
    append(&mut log, 5000).unwrap();
    assert_eq!(log.position().group, position.group + 1);
}

#[test]
fn after_a_failed_write_nothing_is_appended_until_the_log_is_restored() {
    for durability in [Durability::Sync, Durability::Os] {
        let (disk, mut log) = new(durability);
        append(&mut log, 10).unwrap();
        append(&mut log, 20).unwrap();
        disk.fault(disk.calls(), Fault::Fail { kind: io::ErrorKind::Other, sectors: 9 });
        assert!(matches!(append(&mut log, 30), Err(AppendError::Failed(_))));
        assert!(matches!(append(&mut log, 30), Err(AppendError::Suspended)));
        log.restore().unwrap();
        assert_eq!(append(&mut log, 40).unwrap().number, 3);
        let (_, found) = open(&disk.after_kill(), None, durability, IfDamaged::Refuse).unwrap();
        let lengths: Vec<_> = found.values().map(|records| records[0].value.len()).collect();
        assert_eq!(lengths, [10, 20, 40], "the failed group does not count");
    }
}

/// The operating system says only once that a sync failed.
#[test]
fn a_sync_that_fails_for_somebody_else_suspends_the_log() {
    let (disk, mut log) = new(Durability::Os);
    append(&mut log, 10).unwrap();
    append(&mut log, 1000).unwrap();
    disk.fault(disk.calls(), Fault::Fail { kind: io::ErrorKind::Other, sectors: 0 });
    assert!(log.segments().sync_until(log.position()).is_err());
    assert!(log.segments().sync_until(log.position()).is_err());
    assert!(matches!(append(&mut log, 10), Err(AppendError::Suspended)));
    log.restore().unwrap();
    log.segments().sync_until(log.position()).unwrap();
    let lost = disk.after_power_loss(|_| 0);
    let (_, found) = open(&lost, None, Durability::Os, IfDamaged::Refuse).unwrap();
    assert_eq!(found.len(), 2, "what a failed sync left out was written again");
}

#[test]
fn of_groups_that_are_not_synced_a_loss_of_power_leaves_the_first_ones() {
    let mut play = Play::new(Durability::Os, 0);
    play.run(&[Append(200), Append(20), Append(600), Append(30), Append(300)]);
    let mut random = Random::new(1);
    let mut left = BTreeSet::new();
    for share in (1..=100).cycle().take(3000) {
        let disk =
            play.disk.after_power_loss(|ways| if random.below(100) < share { ways - 1 } else { 0 });
        let opened = open(&disk, None, Durability::Os, IfDamaged::Refuse);
        let (_, found) = opened.unwrap_or_else(|error| panic!("{error}"));
        play.expected.check(&found, true);
        left.insert(found.len());
    }
    assert_eq!(left, (0..=5).collect());
}

#[test]
fn a_segment_that_is_closed_is_followed_by_another_and_cut_off() {
    let (disk, mut log) = new(Durability::Sync);
    let first = append(&mut log, 10).unwrap();
    let end = log.position().offset;
    log.seal();
    let second = append(&mut log, 10).unwrap();
    assert_ne!(first.segment, second.segment);
    assert_eq!(log.segments().bytes_of(first.segment).unwrap(), end);
    // An empty segment stays.
    let (_, mut log) = new(Durability::Sync);
    let segment = log.position().segment;
    log.seal();
    assert_eq!(append(&mut log, 10).unwrap().segment, segment);
    drop(disk);
}

#[test]
fn a_closed_log_leaves_no_file_that_nobody_needs() {
    let (disk, mut log) = new(Durability::Sync);
    append(&mut log, 10).unwrap();
    log.close().unwrap();
    let names: BTreeSet<_> = disk.names(&folder()).unwrap().into_iter().collect();
    let expected = ["1.log", "2.log", "synced"].map(ToOwned::to_owned);
    assert_eq!(names, expected.into_iter().collect());
}

#[test]
fn a_number_is_never_given_twice() {
    let (disk, log) = new(Durability::Sync);
    let numbers = log.segments().numbers().unwrap();
    let kept = Kept::begin(log.segments(), 1).unwrap();
    assert!(!numbers.contains(&kept.number()));
    let next = log.segments().next_number();
    assert!(next > kept.number());
    drop(log);
    let (log, _) = open(&disk.after_kill(), None, Durability::Sync, IfDamaged::Refuse).unwrap();
    assert!(log.position().segment > kept.number());
}
