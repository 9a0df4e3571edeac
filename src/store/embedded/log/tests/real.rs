//! Tests on the disk of the machine.

use std::collections::BTreeMap;
use std::path::Path;

use super::super::*;
use crate::store::embedded::settings::{Durability, IfDamaged};

fn open(
    folder: &Path,
    from: Option<Position>,
    segment_bytes: u64,
) -> (Log<RealDisk>, Vec<u64>, BTreeMap<Vec<u8>, Place>) {
    let mut lose = |_: &LostPart<'_>| Ok(());
    let settings = OpenSettings {
        store: folder.to_owned(),
        durability: Durability::Sync,
        if_damaged: IfDamaged::Refuse,
        segment_bytes,
        numbers_from: 0,
        lose: &mut lose,
    };
    let mut groups = Vec::new();
    let mut places = BTreeMap::new();
    let log = Log::open(RealDisk, folder, from, settings, &mut |head, row| {
        if groups.last() != Some(&head.number) {
            groups.push(head.number);
        }
        if let ChangeRef::Put { place, .. } = row.change {
            places.insert(row.key.to_vec(), place);
        }
    });
    (log.unwrap(), groups, places)
}

#[test]
fn what_was_appended_is_read_again() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    Log::create(&RealDisk, folder).unwrap();
    let mut group = GroupBytes::default();
    for round in 0..3_u64 {
        let (mut log, groups, places) = open(folder, None, 1 << 20);
        assert_eq!(groups, (1..=round * 100).collect::<Vec<_>>());
        for (key, place) in &places {
            assert_eq!(log.segments().read(key, *place).unwrap(), vec![7; 30_000]);
        }
        for number in 0..100_u64 {
            group.begin();
            group.put(RECORDS, &(round * 100 + number).to_be_bytes(), &[7; 30_000]);
            let at = log.append(&mut group, 5).unwrap();
            assert_eq!(at.number, round * 100 + number + 1);
            let row = group.rows(at).next().unwrap();
            let ChangeRef::Put { place, .. } = row.change else { panic!() };
            assert_eq!(log.segments().read(row.key, place).unwrap(), vec![7; 30_000]);
        }
        assert!(log.has_room());
        if round == 1 {
            log.close().unwrap();
        }
    }
}
