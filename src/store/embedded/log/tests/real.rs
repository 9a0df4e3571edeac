//! Tests on the disk of the machine, with the thread that makes segments.

use std::path::Path;

use super::super::*;
use super::history::{Groups, Record};
use crate::store::embedded::settings::{Durability, IfDamaged};

/// The bytes of a record.
const RECORD: usize = 30_000;

fn open(folder: &Path) -> (Log<RealDisk>, Groups) {
    let mut lose = |_: &LostPart<'_>| Ok(());
    let settings = OpenSettings {
        store: folder.to_owned(),
        durability: Durability::Sync,
        if_damaged: IfDamaged::Refuse,
        segment_bytes: 1 << 20,
        numbers_from: 0,
        lose: &mut lose,
    };
    let mut groups = Groups::new();
    let opened = Log::open(RealDisk, folder, None, settings, &mut |head, row| {
        if let ChangeRef::Put { place, value } = row.change {
            let key = row.key.to_vec();
            let record = Record { key, value: value.to_vec(), place };
            groups.entry(head.number).or_default().push(record);
        }
    });
    (opened.unwrap(), groups)
}

#[test]
fn what_was_appended_is_read_again_after_a_kill_and_after_a_close() {
    let folder = tempfile::tempdir().unwrap();
    Log::create(&RealDisk, folder.path()).unwrap();
    let mut group = GroupBytes::default();
    let mut appended = Groups::new();
    for round in 0..3_u8 {
        let (mut log, found) = open(folder.path());
        assert!(found == appended);
        for Record { key, value, place } in found.values().flatten() {
            assert_eq!(log.segments().read(key, *place).unwrap(), *value);
        }
        // Three segments are filled.
        for _ in 0..100 {
            let value = vec![round + 1; RECORD];
            let key = log.position().group.to_be_bytes();
            group.begin();
            group.put(RECORDS, &key, &value);
            let at = log.append(&mut group, 5).unwrap();
            let row = group.rows(at).next().unwrap();
            let ChangeRef::Put { place, .. } = row.change else { panic!() };
            assert_eq!(log.segments().read(&key, place).unwrap(), value);
            appended.insert(at.number, vec![Record { key: key.to_vec(), value, place }]);
        }
        assert!(log.has_room());
        if round == 1 {
            log.close().unwrap();
        }
    }
}

#[test]
fn a_folder_without_a_log_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let mut lose = |_: &LostPart<'_>| Ok(());
    let settings = OpenSettings {
        store: folder.path().to_owned(),
        durability: Durability::Sync,
        if_damaged: IfDamaged::Refuse,
        segment_bytes: 1 << 20,
        numbers_from: 0,
        lose: &mut lose,
    };
    let refused = Log::open(RealDisk, folder.path(), None, settings, &mut |_, _| {});
    let missing = folder.path().join("synced");
    assert!(
        matches!(&refused, Err(crate::store::embedded::OpenError::Missing { missing: found, .. })
            if *found == missing),
        "{refused:?}"
    );
}
