//! The log: every change of the store, in the order in which the changes were made.
//!
//! A change is written as a *group* of rows. The groups are in files of 16 MiB, the *segments*. A
//! segment is made ahead and filled with zeros, so to append a group changes no metadata of the
//! file system. This module knows bytes, and nothing of operations.
//!
//! All numbers are little-endian. A sector has 512 bytes: a disk writes it wholly or not at all. A
//! group begins at a sector, so no sector belongs to two groups, and to append never changes a
//! sector that was acknowledged.
//!
//! ```text
//! N.log      header of one sector, groups, zeros. N is never used twice.
//! header     magic `onceLOG\n`  version u32 = 1  kind u32 (0 main, 1 kept)  number u64  salt u64
//!            previous u64 (the main segment before it; u64::MAX: none)
//!            previous_end u64 (what lies behind this byte of the previous one never counts)
//!            first_group u64  made_at u64 (ms)  bytes u64 (of the file when it was made)
//!            crc32 u32 of all that  zeros
//! group      magic u32 `GRP\n`
//!            crc32 u32 of the salt and the rest of the head
//!            crc32 u32 of the payload  length u32 of the payload  rows u32  is_synced u32
//!            number u64  time u64 (ms)
//!            payload: rows, and the byte 0xa5, so that its last sector is not all zeros
//!            zeros up to the next sector
//! gap        magic u32 `GAP\n`, and the rest of a head. A part that was lost, and its loss
//!            accepted. Nothing is known of its payload. It has the number before the next group's.
//! row        table u8  kind u8 (0 put, 1 remove, 2 moved)  length of key u16, of value u32
//!            key  value
//!            A put of a record (table 0) has a crc32 u32 of key and value before its value.
//!            The value of `moved` is the place of the record's bytes in a kept segment.
//! place      segment u64  offset u32  length u32
//! synced     number of the last synced group u64  xxh3 of these bytes u64, both big-endian
//! ```
//!
//! | files | for |
//! | --- | --- |
//! | `disk` | the part of the file system that is used; tests replace it |
//! | `segment`, `group`, `note` | the formats |
//! | `append`, `ahead`, `kept` | writing |
//! | `scan`, `tail`, `mend` | a start: what counts, what is damage, and what its acceptance changes |
//! | `read` | reading values and rows of segments |

mod ahead;
mod append;
mod disk;
mod group;
mod kept;
mod mend;
mod note;
mod read;
mod scan;
mod segment;
mod tail;
#[cfg(test)]
mod tests;

pub(super) use append::Log;
pub(super) use disk::{Disk, DiskFile, RealDisk};
pub(super) use group::{ChangeRef, GroupBytes, GroupHead, RowRef, Rows};
pub(super) use kept::Kept;
pub(super) use read::Segments;
pub(super) use scan::{LostPart, OpenSettings};
pub(super) use segment::SEGMENT_BYTES;

use std::io;

/// The table of records, whose values are read by their places.
pub(super) const RECORDS: u8 = 0;

/// A place between two groups.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Position {
    pub(super) segment: u64,
    pub(super) offset: u64,
    /// The number of the group that begins here.
    pub(super) group: u64,
}

/// The place of a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Place {
    pub(super) segment: u64,
    pub(super) offset: u32,
    pub(super) length: u32,
}

impl Place {
    pub(super) const BYTES: usize = 16;

    pub(super) fn to_bytes(self) -> [u8; Self::BYTES] {
        super::bytes::joined(&[
            &self.segment.to_le_bytes(),
            &self.offset.to_le_bytes(),
            &self.length.to_le_bytes(),
        ])
    }

    pub(super) fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let (segment, rest) = bytes.split_first_chunk()?;
        let (offset, rest) = rest.split_first_chunk()?;
        Some(Self {
            segment: u64::from_le_bytes(*segment),
            offset: u32::from_le_bytes(*offset),
            length: u32::from_le_bytes(rest.try_into().ok()?),
        })
    }
}

/// The place at which a group was appended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct AppendedAt {
    pub(super) segment: u64,
    pub(super) offset: u32,
    pub(super) number: u64,
}

/// Why a group was not appended. Nothing of it counts.
#[derive(Debug, thiserror::Error)]
pub(super) enum AppendError {
    /// The log was not restored after an earlier failure.
    #[error("an earlier write failed")]
    Suspended,
    /// There is no next segment. The log goes on as soon as there is room.
    #[error("there is no room for the next segment")]
    NoRoom(#[source] io::Error),
    /// The disk failed. The log must be restored.
    #[error("the disk failed")]
    Failed(#[source] io::Error),
    /// No log can hold the group. The log itself is well.
    #[error("a group cannot be kept: {0}")]
    Unfit(&'static str),
}
