//! Decides what a part of the newest segment is that is no whole group.
//!
//! Only what was never synced may be dropped. With `durability = "sync"` none of its calls got a
//! reply, and it is the last group, because a group is written only after the one before it was
//! synced. With `durability = "os"` several groups may be unsynced, and their calls got their
//! replies: a loss of power may undo them.
//!
//! A disk writes a sector wholly or not at all, and it writes sectors in any order. So after a crash
//! each sector of an unsynced group is as it was written, or all zeros, as the segment was made. No
//! sector of a group is all zeros, so a sector of zeros is one that was not written. The head of a
//! group is in one sector and has a checksum of its own. Anything else had been written and has
//! changed since: that is damage.

use super::group::{Group, GroupHead, is_zeros};
use super::segment::SECTOR;

/// What a part is that is no whole group.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fate {
    /// Nothing was written here, and nothing behind it.
    End,
    /// A group that was not written to its end.
    Unfinished,
    /// Groups that were not synced, because they did not have to be.
    Unsynced,
    /// Something that may have been acknowledged.
    Damaged,
}

/// Decides about the rest of a segment, in which a group with this number should begin.
pub(super) fn fate(bytes: &[u8], at: usize, salt: u64, number: u64) -> Fate {
    let rest = bytes.get(at..).unwrap_or_default();
    if is_zeros(rest) {
        return Fate::End;
    }
    let mut behind = heads(bytes, at + SECTOR, salt);
    let is_written = rest.get(..SECTOR).is_none_or(|sector| !is_zeros(sector));
    match GroupHead::at(bytes, at, salt) {
        Some(head) if head.number == number && !head.is_gap => {
            let group = bytes.get(at..head.end(at)).unwrap_or_default();
            let is_last = is_zeros(bytes.get(head.end(at)..).unwrap_or_default());
            match (group.chunks(SECTOR).any(is_zeros), head.is_synced) {
                (true, true) if is_last => Fate::Unfinished,
                (true, false) if !behind.any(|head| head.is_synced) => Fate::Unsynced,
                (true | false, _) => Fate::Damaged,
            }
        }
        None if !is_written => match behind.map(|head| head.is_synced).max() {
            None => Fate::Unfinished,
            Some(false) => Fate::Unsynced,
            Some(true) => Fate::Damaged,
        },
        Some(_) | None => Fate::Damaged,
    }
}

/// Whether the bytes of a segment without a header are what its first write may have left. The
/// header and the first group are synced together.
pub(super) fn is_first_write(bytes: &[u8]) -> bool {
    if !is_zeros(bytes.get(..SECTOR).unwrap_or(bytes)) {
        return false;
    }
    let first = bytes.get(SECTOR..).unwrap_or_default();
    if is_zeros(first.get(..SECTOR).unwrap_or(first)) {
        return true;
    }
    let end = GroupHead::end_unchecked(bytes, SECTOR);
    end.is_some_and(|end| is_zeros(bytes.get(end..).unwrap_or_default()))
}

/// Returns the place of the next group that is whole, from a place on. Its number is not below
/// `number`, so a copy of an earlier group does not count.
pub(super) fn next_whole(bytes: &[u8], from: usize, salt: u64, number: u64) -> Option<usize> {
    let mut starts = (from..bytes.len()).step_by(SECTOR);
    starts
        .find(|at| Group::at(bytes, *at, salt, 0).is_some_and(|group| group.head.number >= number))
}

/// Returns the whole heads of groups from a place on.
pub(super) fn heads(bytes: &[u8], from: usize, salt: u64) -> impl Iterator<Item = GroupHead> {
    let starts = (from..bytes.len()).step_by(SECTOR);
    starts.filter_map(move |at| GroupHead::at(bytes, at, salt))
}

/// Returns the place at which the whole groups of a segment end.
pub(super) fn end_of_whole(bytes: &[u8], salt: u64) -> usize {
    let mut at = SECTOR;
    while let Some(group) = Group::at(bytes, at, salt, 0) {
        at = group.end;
    }
    at
}
