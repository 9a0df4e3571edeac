//! Reads the groups of a segment at a start, and decides what a part means that is not a whole
//! group.
//!
//! Only a group that was never synced may be dropped. With `durability = "sync"` none of its calls
//! got a reply, and it is the last one of the log, because a group is written only after the one
//! before it was synced. With `durability = "os"` several groups may be unsynced, and their calls
//! got their replies: a loss of power may undo them. Three signs distinguish an unsynced group from
//! damage:
//!
//! * The file ends inside the group, or the last byte of the group is missing. The process was
//!   killed or the disk was full while the group was written.
//! * A whole sector of the group is missing. A disk writes a sector wholly or not at all, and it
//!   writes sectors in any order. A segment is filled with zeros before it is used, so a missing
//!   sector has zeros. No sector of a group has only zeros, and a flipped bit does not make so many.
//! * The sector of its head is missing, and something lies behind it.
//!
//! Bytes that are wrong in any other way had been written, and may have been acknowledged.

use std::ops::Range;

use super::group::{self, ChangeRef, WholeGroup};
use super::read::Content;
use super::{SECTOR, padded};

/// Where to read, and what is known of that part of the log.
#[derive(Debug, Clone, Copy)]
pub(super) struct Expected {
    /// The byte at which the first group begins.
    pub(super) from: usize,
    /// The number of that group.
    pub(super) group: u64,
    /// The byte at which the segment ends; none for the newest segment of the log.
    pub(super) end: Option<usize>,
    /// Whether groups may have been acknowledged before they were synced.
    pub(super) may_be_several: bool,
}

/// The groups of a segment.
#[derive(Debug)]
pub(super) struct Scanned<'a> {
    pub(super) groups: Vec<WholeGroup<'a>>,
    pub(super) lost: Vec<LostPart>,
    /// The byte behind the last whole group.
    pub(super) end: usize,
    /// The number of the next group.
    pub(super) next: u64,
}

/// A part of a segment that is no whole group.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::store::embedded) struct LostPart {
    /// The bytes of the segment.
    pub(in crate::store::embedded) range: Range<u64>,
    pub(in crate::store::embedded) kind: LossKind,
    /// The rows that lie in it, as far as they can be read: a table and a key.
    pub(in crate::store::embedded) rows: Vec<LostRow>,
}

/// The key of a row in a lost part.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::store::embedded) struct LostRow {
    pub(in crate::store::embedded) table: u8,
    pub(in crate::store::embedded) key: Vec<u8>,
    /// The value, if the group gave the row one.
    pub(in crate::store::embedded) value: Option<Vec<u8>>,
}

/// Why a part is no whole group.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::store::embedded) enum LossKind {
    /// The process or the machine stopped while the group was written.
    Unfinished,
    /// The machine stopped before what was written was synced.
    Unsynced,
    /// The bytes have changed since they were written.
    Damaged,
}

/// Reads the groups of a segment.
pub(super) fn scan(content: &Content, expected: Expected) -> Scanned<'_> {
    let salt = content.header.salt;
    let end = expected.end.unwrap_or(content.bytes.len());
    let bytes = content.bytes.get(..end).unwrap_or(&content.bytes);
    let mut scanned = Scanned {
        groups: Vec::new(),
        lost: Vec::new(),
        end: expected.from,
        next: expected.group,
    };
    let mut at = expected.from;
    loop {
        if let Some(group) = group::read(bytes, at, salt).filter(|g| g.label.number == scanned.next) {
            scanned.groups.push(group);
            scanned.next += 1;
            at = group.end;
            scanned.end = at;
            continue;
        }
        let rest = bytes.get(at..).unwrap_or_default();
        let is_end = match expected.end {
            Some(end) => at >= end,
            None => rest.iter().all(|byte| *byte == 0),
        };
        if is_end {
            return scanned;
        }
        let newest = expected.end.is_none();
        let part = Part { bytes, at };
        let later = part.next_whole(salt, scanned.next);
        let may_be_several = scanned
            .groups
            .last()
            .map_or(expected.may_be_several, |last| !last.label.is_synced);
        let never_synced = (newest || may_be_several)
            .then(|| part.never_synced(may_be_several, later.is_some()))
            .flatten();
        if let Some(kind) = never_synced {
            scanned.lost.push(part.lost(bytes.len(), kind));
            return scanned;
        }
        let until = later.map_or(bytes.len(), |later| later.begin);
        scanned.lost.push(part.lost(until, LossKind::Damaged));
        let Some(later) = later else {
            scanned.end = bytes.len();
            return scanned;
        };
        scanned.next = later.label.number;
        at = later.begin;
    }
}

/// The bytes from a place at which the next group should begin, but does not.
struct Part<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Part<'a> {
    /// Returns the next whole group with this number or a later one.
    fn next_whole(&self, salt: u64, number: u64) -> Option<WholeGroup<'a>> {
        let places = (self.at + SECTOR..self.bytes.len()).step_by(SECTOR);
        let groups = places.filter_map(|at| group::read(self.bytes, at, salt));
        groups.into_iter().find(|group| group.label.number >= number)
    }

    /// Returns the cause of this part, if it was never synced. Returns none if it may have been
    /// acknowledged.
    fn never_synced(&self, may_be_several: bool, is_followed: bool) -> Option<LossKind> {
        if is_followed && !may_be_several {
            return None;
        }
        let Some(extent) = group::extent(self.bytes, self.at) else {
            return self.lacks_its_head().then_some(LossKind::Unsynced);
        };
        let end = self.at + extent;
        if end > self.bytes.len() {
            return Some(LossKind::Unfinished);
        }
        let behind = self.bytes.get(end..).unwrap_or_default();
        // If another group followed, this one would have been synced.
        let is_last = may_be_several || behind.iter().all(|byte| *byte == 0);
        (is_last && group::is_unfinished(self.bytes, self.at, end)).then_some(LossKind::Unsynced)
    }

    fn lacks_its_head(&self) -> bool {
        let until = padded(self.at + 1).min(self.bytes.len());
        self.bytes.get(self.at..until).is_some_and(|head| head.iter().all(|byte| *byte == 0))
            || self.bytes.len() < self.at + SECTOR
    }

    fn lost(&self, end: usize, kind: LossKind) -> LostPart {
        let begins = (self.at..end).step_by(SECTOR);
        let groups = begins.filter_map(|at| group::damaged(self.bytes, at));
        let rows = groups.flat_map(|group| group.rows(0)).map(|row| LostRow {
            table: row.table,
            key: row.key.to_vec(),
            value: match row.change {
                ChangeRef::Put { value, .. } => Some(value.to_vec()),
                ChangeRef::Remove | ChangeRef::Moved(_) => None,
            },
        });
        LostPart { range: self.at as u64..end as u64, kind, rows: rows.collect() }
    }
}
