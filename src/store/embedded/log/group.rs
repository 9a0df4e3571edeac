//! One group: its bytes as they are built, and as they are read.

use std::ops::Range;

use super::segment::SECTOR;
use super::{AppendError, AppendedAt, Place, RECORDS};
use crate::store::embedded::bytes::joined;

/// The bytes of a group's head.
pub(super) const HEAD: usize = 40;
/// The first bytes of the head, which its checksum does not cover.
const UNCHECKED: usize = 8;
const GROUP: [u8; 4] = *b"GRP\n";
const GAP: [u8; 4] = *b"GAP\n";
/// The last byte of a payload.
const END: u8 = 0xa5;
/// The most bytes of a group, because a place has 32 bits for an offset.
const BYTES_MAX: usize = 1 << 30;

const PUT: u8 = 0;
const REMOVE: u8 = 1;
const MOVED: u8 = 2;

/// The bytes of a group that is being built. The buffer is used again for the next group.
#[derive(Debug, Default)]
pub(in crate::store::embedded) struct GroupBytes {
    bytes: Vec<u8>,
    /// The byte at which the last row ends.
    end: usize,
    rows: u32,
    is_too_long: bool,
}

/// What a group says of itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::store::embedded) struct GroupHead {
    pub(in crate::store::embedded) number: u64,
    /// The time of the store's clock, in milliseconds.
    pub(in crate::store::embedded) time: u64,
    /// Whether the group had to be synced before its calls got their replies.
    pub(in crate::store::embedded) is_synced: bool,
    pub(super) is_gap: bool,
    pub(super) rows: u32,
    pub(super) length: u32,
    payload_crc: u32,
}

/// A row of a group.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::store::embedded) struct RowRef<'a> {
    pub(in crate::store::embedded) table: u8,
    pub(in crate::store::embedded) key: &'a [u8],
    pub(in crate::store::embedded) change: ChangeRef<'a>,
}

/// What a row changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::store::embedded) enum ChangeRef<'a> {
    /// `place` is where the value can be read later, if the table is [`RECORDS`].
    Put {
        value: &'a [u8],
        place: Place,
    },
    Remove,
    /// The bytes of a record are now here.
    Moved(Place),
}

impl GroupBytes {
    /// Begins an empty group.
    pub(in crate::store::embedded) fn begin(&mut self) {
        self.bytes.clear();
        self.bytes.resize(HEAD, 0);
        self.end = HEAD;
        self.rows = 0;
        self.is_too_long = false;
    }

    /// Adds a row. A value, and a key, has fewer than [`SECTOR`] / 4 zeros in a row.
    pub(in crate::store::embedded) fn put(&mut self, table: u8, key: &[u8], value: &[u8]) {
        self.row(table, PUT, key, value);
    }

    pub(in crate::store::embedded) fn remove(&mut self, table: u8, key: &[u8]) {
        self.row(table, REMOVE, key, &[]);
    }

    /// Adds a row that says where the bytes of a record are now.
    pub(in crate::store::embedded) fn moved(&mut self, key: &[u8], place: Place) {
        self.row(RECORDS, MOVED, key, &place.to_bytes());
    }

    /// Returns the number of bytes that the group has so far.
    pub(in crate::store::embedded) const fn len(&self) -> usize {
        self.end
    }

    pub(in crate::store::embedded) const fn is_empty(&self) -> bool {
        self.rows == 0
    }

    /// Returns the rows of a group that was appended, with the places of their values.
    pub(in crate::store::embedded) fn rows(&self, at: AppendedAt) -> Rows<'_> {
        let payload = self.bytes.get(HEAD..self.end).unwrap_or_default();
        Rows {
            segment: at.segment,
            start: at.offset as usize + HEAD,
            payload,
            at: 0,
            left: self.rows,
        }
    }

    fn row(&mut self, table: u8, kind: u8, key: &[u8], value: &[u8]) {
        // A group that could not be appended has its end already.
        self.bytes.truncate(self.end);
        let lengths = (u16::try_from(key.len()), u32::try_from(value.len()));
        let (Ok(key_length), Ok(value_length)) = lengths else {
            self.is_too_long = true;
            return;
        };
        self.bytes.extend_from_slice(&[table, kind]);
        self.bytes.extend_from_slice(&key_length.to_le_bytes());
        self.bytes.extend_from_slice(&value_length.to_le_bytes());
        self.bytes.extend_from_slice(key);
        if table == RECORDS && kind == PUT {
            self.bytes.extend_from_slice(&record_crc(key, value).to_le_bytes());
        }
        self.bytes.extend_from_slice(value);
        self.end = self.bytes.len();
        self.rows += 1;
        self.is_too_long |= self.end > BYTES_MAX;
    }

    /// Returns the number of bytes that the group takes in a segment.
    pub(super) const fn taken(&self) -> usize {
        (self.end + 1).next_multiple_of(SECTOR)
    }

    /// Adds the end of the group. Returns an error if no segment can hold the group.
    pub(super) fn complete(&mut self) -> Result<(), AppendError> {
        let taken = self.taken();
        self.bytes.truncate(self.end);
        self.bytes.push(END);
        self.bytes.resize(taken, 0);
        if self.is_too_long {
            return Err(AppendError::Unfit("it is too long"));
        }
        // Such a sector would look like one that was never written. The first one has the head.
        if self.bytes.chunks(SECTOR).skip(1).any(is_zeros) {
            return Err(AppendError::Unfit("it has too many zeros in a row"));
        }
        Ok(())
    }

    /// Writes the head of a completed group. Returns the bytes of the group.
    pub(super) fn stamped(&mut self, salt: u64, stamp: Stamp) -> &[u8] {
        let payload = self.bytes.get(HEAD..=self.end).unwrap_or_default();
        let Stamp { number, time, is_synced } = stamp;
        let payload_crc = crc32fast::hash(payload);
        let length = u32::try_from(payload.len()).unwrap_or(u32::MAX);
        let rows = self.rows;
        let head = GroupHead { number, time, is_synced, is_gap: false, rows, length, payload_crc };
        if let Some(start) = self.bytes.first_chunk_mut() {
            *start = head.to_bytes(salt);
        }
        &self.bytes
    }
}

/// What a group gets when it is appended.
#[derive(Debug, Clone, Copy)]
pub(super) struct Stamp {
    pub(super) number: u64,
    pub(super) time: u64,
    pub(super) is_synced: bool,
}

impl GroupHead {
    /// The head of a gap of this many bytes.
    pub(super) fn gap(number: u64, bytes: usize) -> Self {
        let length = u32::try_from(bytes.saturating_sub(HEAD)).unwrap_or(u32::MAX);
        let is_synced = true;
        Self { number, time: 0, is_synced, is_gap: true, rows: 0, length, payload_crc: 0 }
    }

    pub(super) fn to_bytes(self, salt: u64) -> [u8; HEAD] {
        let mut bytes = [0; HEAD];
        let (unchecked, checked) = bytes.split_at_mut(UNCHECKED);
        checked.copy_from_slice(&joined::<{ HEAD - UNCHECKED }>(&[
            &self.payload_crc.to_le_bytes(),
            &self.length.to_le_bytes(),
            &self.rows.to_le_bytes(),
            &u32::from(self.is_synced).to_le_bytes(),
            &self.number.to_le_bytes(),
            &self.time.to_le_bytes(),
        ]));
        let magic = if self.is_gap { GAP } else { GROUP };
        let crc = head_crc(salt, checked).to_le_bytes();
        unchecked.copy_from_slice(&joined::<UNCHECKED>(&[&magic, &crc]));
        bytes
    }

    /// Reads the head at a place, if it is whole.
    pub(super) fn at(bytes: &[u8], at: usize, salt: u64) -> Option<Self> {
        let (magic, rest) = bytes.get(at..)?.split_first_chunk::<4>()?;
        let is_gap = *magic == GAP;
        if !is_gap && *magic != GROUP {
            return None;
        }
        let (crc, checked) = rest.get(..HEAD - 4)?.split_first_chunk()?;
        if u32::from_le_bytes(*crc) != head_crc(salt, checked) {
            return None;
        }
        let mut reader = Reader { bytes: checked };
        let payload_crc = reader.u32()?;
        let length = reader.u32()?;
        let rows = reader.u32()?;
        let is_synced = reader.u32()? == 1;
        let number = reader.u64()?;
        let time = reader.u64()?;
        Some(Self { number, time, is_synced, is_gap, rows, length, payload_crc })
    }

    /// Returns the place at which a group ends, by its length alone. Without a salt, nobody can say
    /// whether its head is whole.
    pub(super) fn end_unchecked(bytes: &[u8], at: usize) -> Option<usize> {
        let mut reader = Reader { bytes: bytes.get(at..)? };
        let is_group = reader.array() == Some(GROUP);
        reader.take(UNCHECKED)?;
        let length = reader.u32()? as usize;
        is_group.then(|| at + (HEAD + length).next_multiple_of(SECTOR))
    }

    /// Returns the place at which a group that begins at `at` ends.
    pub(super) const fn end(&self, at: usize) -> usize {
        at + (HEAD + self.length as usize).next_multiple_of(SECTOR)
    }
}

/// A whole group among the bytes of a segment.
#[derive(Debug)]
pub(super) struct Group<'a> {
    pub(super) head: GroupHead,
    /// The place behind the group.
    pub(super) end: usize,
    pub(super) rows: Rows<'a>,
}

impl<'a> Group<'a> {
    /// Reads the group at a place, if it is whole. `bytes` are those of a segment.
    pub(super) fn at(bytes: &'a [u8], at: usize, salt: u64, segment: u64) -> Option<Self> {
        let head = GroupHead::at(bytes, at, salt)?;
        let end = head.end(at);
        let start = at + HEAD;
        let payload = bytes.get(..end)?.get(start..start + head.length as usize)?;
        if head.is_gap {
            let rows = Rows { segment, start, payload: &[], at: 0, left: 0 };
            return Some(Self { head, end, rows });
        }
        let (last, payload_rows) = payload.split_last()?;
        if *last != END || crc32fast::hash(payload) != head.payload_crc {
            return None;
        }
        let rows = Rows { segment, start, payload: payload_rows, at: 0, left: head.rows };
        Some(Self { head, end, rows })
    }
}

/// Returns the rows of a group that is not whole, as far as they can be read.
pub(super) fn rows_of_damaged(bytes: &[u8], group: Range<usize>, segment: u64) -> Rows<'_> {
    let start = group.start + HEAD;
    let payload = bytes.get(start..group.end).unwrap_or_default();
    Rows { segment, start, payload, at: 0, left: u32::MAX }
}

/// The rows of a group, in their order.
#[derive(Debug, Clone)]
pub(in crate::store::embedded) struct Rows<'a> {
    segment: u64,
    /// The byte of the segment at which the payload begins.
    start: usize,
    payload: &'a [u8],
    at: usize,
    left: u32,
}

impl<'a> Rows<'a> {
    /// Whether every row was read.
    pub(super) const fn are_done(&self) -> bool {
        self.left == 0 && self.at == self.payload.len()
    }

    fn read(&mut self) -> Option<RowRef<'a>> {
        let mut reader = Reader { bytes: self.payload.get(self.at..)? };
        let [table, kind] = reader.array()?;
        let key_length = reader.u16()?;
        let length = reader.u32()?;
        let key = reader.take(key_length.into())?;
        if table == RECORDS && kind == PUT {
            reader.u32()?;
        }
        let offset = self.start + self.payload.len() - reader.bytes.len();
        let value = reader.take(length as usize)?;
        let change = match kind {
            PUT => {
                let offset = u32::try_from(offset).ok()?;
                ChangeRef::Put { value, place: Place { segment: self.segment, offset, length } }
            }
            REMOVE => ChangeRef::Remove,
            MOVED => ChangeRef::Moved(Place::from_bytes(value)?),
            _ => return None,
        };
        self.at = self.payload.len() - reader.bytes.len();
        Some(RowRef { table, key, change })
    }
}

impl<'a> Iterator for Rows<'a> {
    type Item = RowRef<'a>;

    fn next(&mut self) -> Option<RowRef<'a>> {
        let left = self.left.checked_sub(1)?;
        let row = self.read()?;
        self.left = left;
        Some(row)
    }
}

/// The bytes of the checksum before a record's value.
pub(super) const RECORD_CRC: usize = 4;

/// Returns the checksum of a record. The key is part of it, so the bytes of another record are never
/// taken for those of this one.
pub(super) fn record_crc(key: &[u8], value: &[u8]) -> u32 {
    let mut crc = crc32fast::Hasher::new();
    crc.update(key);
    crc.update(value);
    crc.finalize()
}

fn head_crc(salt: u64, checked: &[u8]) -> u32 {
    let mut crc = crc32fast::Hasher::new();
    crc.update(&salt.to_le_bytes());
    crc.update(checked);
    crc.finalize()
}

/// Whether all bytes are zeros.
pub(super) fn is_zeros(bytes: &[u8]) -> bool {
    bytes.chunks(64).all(|chunk| chunk.iter().fold(0, |all, byte| all | byte) == 0)
}

/// Reads numbers one after the other.
pub(super) struct Reader<'a> {
    pub(super) bytes: &'a [u8],
}

impl<'a> Reader<'a> {
    fn take(&mut self, length: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.bytes.split_at_checked(length)?;
        self.bytes = rest;
        Some(taken)
    }

    pub(super) fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        self.take(N)?.try_into().ok()
    }

    fn u16(&mut self) -> Option<u16> {
        self.array().map(u16::from_le_bytes)
    }

    pub(super) fn u32(&mut self) -> Option<u32> {
        self.array().map(u32::from_le_bytes)
    }

    pub(super) fn u64(&mut self) -> Option<u64> {
        self.array().map(u64::from_le_bytes)
    }
}
