//! The log: files of groups, which are written and synced one after the other.
//!
//! A segment is a file `N.log`. It is filled with zeros before it is used. All numbers are
//! little-endian.
//!
//! ```text
//! segment   8  magic `onceLOG\n`
//!           4  version: 1
//!           4  kind: 0 main, 1 kept (copies of records that outlived their segments)
//!           8  number of the segment, which no other segment of the store ever has
//!           8  salt: random
//!           8  number of the main segment before it; all ones: there is none
//!           8  byte at which that one ends; nothing behind it counts
//!           8  number of the first group
//!           8  time at which it was begun, in ms
//!           4  CRC-32 of all this; zeros up to byte 512
//!           groups, each at a multiple of 512
//! group     4  magic `grp\x01`
//!           4  CRC-32 of the salt of the segment, the rest of the head, and the payload
//!           4  length of the payload
//!           4  number of rows
//!           8  number of the group
//!           8  time of the store's clock, in ms
//!           4  1: it had to be synced before its calls got their replies
//!           4  zeros
//!           payload: rows, then the byte 0xa5
//!           zeros up to a multiple of 512
//! row       1  table
//!           1  kind: 0 put, 1 remove, 2 moved (the value is a place)
//!           2  length of the key
//!           4  length of the value
//!           key, value
//! place     8  number of the segment
//!           4  byte at which the value begins
//!           4  length of the value
//! synced    8  number of the last synced group
//!           8  xxh3 of these bytes
//! ```
//!
//! 512 bytes are a sector: a disk writes it wholly or not at all. No sector belongs to two groups, so
//! appending a group never touches one that was acknowledged. No value has 512 zeros in a row (see
//! `stuffing`), so a sector of zeros was never written.

mod append;
pub(super) mod disk;
pub(super) mod group;
mod note;
mod open;
pub(super) mod read;
pub(super) mod scan;
pub(super) mod segment;
mod spare;

pub(super) use append::Log;
pub(super) use group::{ChangeRef, GroupBytes};
pub(super) use open::{Fault, Opened, Visitor};
pub(super) use read::Segments;

/// The number of bytes that a disk writes wholly or not at all.
const SECTOR: usize = 512;

/// The number of bytes of a segment. A longer group has a longer segment of its own.
pub(super) const SEGMENT_BYTES: u64 = 16 << 20;

/// Where a value lies.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Place {
    pub(super) segment: u64,
    pub(super) offset: u32,
    pub(super) length: u32,
}

impl Place {
    pub(super) fn to_bytes(self) -> [u8; 16] {
        let Self { segment, offset, length } = self;
        super::bytes::joined(&[
            &segment.to_le_bytes(),
            &offset.to_le_bytes(),
            &length.to_le_bytes(),
        ])
    }

    pub(super) fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let (segment, rest) = bytes.split_first_chunk()?;
        let (offset, length) = rest.split_first_chunk()?;
        Some(Self {
            segment: u64::from_le_bytes(*segment),
            offset: u32::from_le_bytes(*offset),
            length: u32::from_le_bytes(length.try_into().ok()?),
        })
    }
}

/// A position between two groups.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub(super) struct Position {
    pub(super) segment: u64,
    /// The byte at which the next group begins.
    pub(super) offset: u64,
    /// The number of the next group.
    pub(super) group: u64,
}

/// Returns the length up to the next sector.
const fn padded(length: usize) -> usize {
    length.next_multiple_of(SECTOR)
}
