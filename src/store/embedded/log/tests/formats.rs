//! The formats, byte by byte. What is pinned here is on the disks of users.

use super::super::group::Stamp;
use super::super::segment::{Header, Kind};
use super::super::*;
use super::history::folder;
use super::sim::SimDisk;

/// Returns the bytes without the zeros at their end.
fn hex(bytes: &[u8]) -> String {
    let end = bytes.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
    hex::encode(&bytes[..end])
}

#[test]
fn a_header_is_written_like_this() {
    let header = Header {
        kind: Kind::Kept,
        number: 7,
        salt: 0x0102_0304_0506_0708,
        previous: 6,
        previous_end: 0x2000,
        first_group: 9,
        made_at: 1_800_000_000_000,
        bytes: 1 << 24,
    };
    let sector = header.to_sector();
    assert_eq!(
        hex(&sector),
        "6f6e63654c4f470a0100000001000000070000000000000008070605040302010600000000000000\
         0020000000000000090000000000000000505c18a301000000000001000000000e6b3ce3"
    );
    assert_eq!(Header::from_start(&sector), Some(header));
}

#[test]
fn a_group_is_written_like_this() {
    let mut group = GroupBytes::default();
    group.begin();
    group.put(RECORDS, b"id", b"record");
    group.put(3, b"row", b"");
    group.remove(4, b"gone");
    group.moved(b"id", Place { segment: 1, offset: 2, length: 3 });
    group.complete().unwrap();
    let stamp = Stamp { number: 5, time: 1_800_000_000_000, is_synced: true };
    let bytes = group.stamped(77, stamp).to_vec();
    assert_eq!(bytes.len(), 512);
    assert_eq!(
        hex(&bytes),
        "4752500af4380865e311f965460000000400000001000000050000000000000000505c18a3010000\
         000002000600000069643d3289ff7265636f72640300030000000000726f77040104000000000067\
         6f6e650002020010000000696401000000000000000200000003000000a5"
    );
    let gap = GroupHead::gap(5, 1024).to_bytes(77);
    assert_eq!(hex(&gap), "4741500ac755ff8400000000d8030000000000000100000005");
}

#[test]
fn a_place_is_written_like_this() {
    let place = Place { segment: 1, offset: 2, length: 3 };
    assert_eq!(hex(&place.to_bytes()), "01000000000000000200000003");
    assert_eq!(Place::from_bytes(&place.to_bytes()), Some(place));
    assert_eq!(Place::from_bytes(&[0; 15]), None);
    assert_eq!(Place::from_bytes(&[0; 17]), None);
}

#[test]
fn a_note_is_written_like_this() {
    let disk = SimDisk::default();
    note::Note::begin(&disk, &folder(), 42).unwrap();
    let bytes = disk.content(&folder().join("synced"));
    assert_eq!(hex(&bytes), "000000000000002a2e4fe982b68910ac");
    assert_eq!(note::read(&disk, &folder()).unwrap(), 42);
}
