//! The log of a store on disk, as bytes. `src/store/embedded/log` says what they mean.

use std::fs::{self, File};
use std::ops::Range;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};

/// The bytes that a disk writes wholly or not at all. A group begins at a multiple of them.
pub const SECTOR: usize = 512;

/// The bytes of a group's head.
const HEAD: usize = 40;

/// The segments that were begun, oldest first. One that was only made ahead has no header.
pub fn all(store: &Path) -> Vec<PathBuf> {
    let files = fs::read_dir(store.join("log")).unwrap().map(|entry| entry.unwrap().path());
    let number = |path: &PathBuf| -> Option<u64> {
        path.file_name()?.to_str()?.strip_suffix(".log")?.parse().ok()
    };
    let is_begun = |path: &PathBuf| {
        let mut magic = [0; 8];
        let read = File::open(path).and_then(|file| file.read_at(&mut magic, 0));
        read.is_ok() && magic == *b"onceLOG\n"
    };
    let mut begun: Vec<_> = files.filter(|path| number(path).is_some() && is_begun(path)).collect();
    begun.sort_by_key(number);
    begun
}

/// The segment to which groups are appended.
pub fn newest(store: &Path) -> PathBuf {
    all(store).pop().unwrap()
}

/// The bytes of a segment up to the end of its last group.
pub fn content(segment: &Path) -> Vec<u8> {
    let mut bytes = fs::read(segment).unwrap();
    let end = bytes.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
    bytes.truncate(end.next_multiple_of(SECTOR));
    bytes
}

/// The same of the newest segment.
pub fn newest_content(store: &Path) -> Vec<u8> {
    content(&newest(store))
}

/// Replaces the content of a segment. There are zeros behind it, as before.
pub fn replace(segment: &Path, content: &[u8]) {
    let mut bytes = vec![0; usize::try_from(fs::metadata(segment).unwrap().len()).unwrap()];
    bytes[..content.len()].copy_from_slice(content);
    fs::write(segment, bytes).unwrap();
}

/// The groups of a segment.
pub fn groups(content: &[u8]) -> Vec<Range<usize>> {
    let mut groups = Vec::new();
    let mut at = SECTOR;
    while content.get(at..).is_some_and(|rest| rest.starts_with(b"GRP\n")) {
        let length = u32::from_le_bytes(content[at + 12..at + 16].try_into().unwrap());
        let end = at + (HEAD + length as usize).next_multiple_of(SECTOR);
        groups.push(at..end);
        at = end;
    }
    groups
}

/// Where the groups of a segment end.
pub fn ends(content: &[u8]) -> Vec<usize> {
    groups(content).into_iter().map(|group| group.end).collect()
}

/// Appends a group that puts these bytes in place of a record.
pub fn append_record(store: &Path, id: &[u8; 16], record: &[u8]) {
    let segments: Vec<_> = all(store).iter().map(|segment| content(segment)).collect();
    let newest = segments.last().unwrap();
    let last = segments.iter().rev().find_map(|content| {
        let group = groups(content).pop()?;
        Some(content[group.start + 24..group.start + HEAD].to_vec())
    });
    let last = last.expect("the log has a group");
    let number = u64::from_le_bytes(last[..8].try_into().unwrap()) + 1;
    let crc = crc32fast::hash(&[id.as_slice(), record].concat()).to_le_bytes();
    let length = u32::try_from(record.len()).unwrap().to_le_bytes();
    let row = [&[0, 0, 16, 0][..], &length, id, &crc, record, &[0xa5]].concat();
    let head = [
        &crc32fast::hash(&row).to_le_bytes()[..],
        &u32::try_from(row.len()).unwrap().to_le_bytes(),
        &1_u32.to_le_bytes(),
        &1_u32.to_le_bytes(),
        &number.to_le_bytes(),
        &last[8..],
    ]
    .concat();
    let salt = &newest[24..32];
    let head_crc = crc32fast::hash(&[salt, &head].concat()).to_le_bytes();
    let group = [&b"GRP\n"[..], &head_crc, &head, &row].concat();
    replace(&self::newest(store), &[newest, group.as_slice()].concat());
}
