//! Reads one group of a journal, as fjall 3 writes it (`src/journal/entry.rs` of fjall-rs/fjall).
//!
//! ```text
//! 1  number of rows: u32  sequence number: u64
//! 2  kind: u8  compression: u8  table: u64  lengths of key: u16, of value: u32, as written: u32
//!    key  value                                                           one for each row
//! 3  xxh3 of all rows: u64  `FJL` 3
//! ```
//!
//! Numbers are little-endian. The first row of a group is a [`Label`], which the program added
//! to the group.

use std::ops::Range;

use memchr::memmem;
use xxhash_rust::xxh3::xxh3_64;

use crate::operation::{OperationId, Timestamp};

/// The mark at the end of every group.
const END_MARK: &[u8] = b"FJL\x03";
/// The number of bytes from the tag of a group's end to its mark. They are the tag and the
/// checksum.
const BEFORE_MARK: usize = 9;

/// The first byte of each part of a group is one of these tags.
pub(super) const START: u8 = 1;
const ROW: u8 = 2;
const END: u8 = 3;
const CLEAR: u8 = 4;

/// The number of the table `operations`, which is the first that every store makes.
const OPERATIONS: u64 = 1;

/// The most sequence numbers that may be missing between two groups. The database uses a few for
/// each file that it sorts or merges.
const SEQUENCE_GAP_MAX: u64 = 1 << 16;

/// The key of a group's first row, in the table `meta`.
pub(in super::super) const LABEL_KEY: &[u8] = b"time";

/// The first row of a group.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in super::super) struct Label {
    /// A lower bound of the group's sequence number. The database's checksum does not cover the
    /// sequence number. If damage made the number lower, the database would skip the group, as if
    /// the tables already had it.
    pub(super) sequence_from: u64,
    /// The number of records that the group changes.
    pub(super) changes: u32,
    /// Whether the group had to be synced before its calls got their replies.
    pub(super) is_synced: bool,
}

impl Label {
    /// Returns the time of a label, also of one of the oldest versions. It is the time of the
    /// store's clock.
    pub(in super::super) fn time_of(bytes: &[u8]) -> Option<Timestamp> {
        bytes.first_chunk().map(|time| Timestamp(u64::from_be_bytes(*time)))
    }

    /// Parses what follows the time. The label of an older version is only the time, and gives
    /// none.
    fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let (sequence_from, rest) = bytes.get(8..)?.split_first_chunk()?;
        let (changes, rest) = rest.split_first_chunk()?;
        let [is_synced] = rest else { return None };
        Some(Self {
            sequence_from: u64::from_be_bytes(*sequence_from),
            changes: u32::from_be_bytes(*changes),
            is_synced: *is_synced == 1,
        })
    }
}

/// A whole group.
#[derive(Debug, Clone, Copy)]
pub(super) struct JournalGroup {
    pub(super) end: usize,
    pub(super) sequence: u64,
    pub(super) label: Option<Label>,
}

/// The reason why there is no whole group at a place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Fault {
    /// The byte at which the first wrong part begins.
    pub(super) at: usize,
    /// Whether the bytes end before the group does, although nothing before their end is wrong.
    pub(super) is_cut: bool,
    /// The byte at which the group must have ended, if its rows could be read.
    pub(super) end: Option<usize>,
}

/// Reads the group at `at`. `before` is the sequence number of the group before it.
pub(super) fn group_at(
    bytes: &[u8],
    at: usize,
    before: Option<u64>,
) -> Result<JournalGroup, Fault> {
    let mut reader = Reader { bytes, at };
    let head = reader.head()?;
    let rows_from = reader.at;
    let mut label = None;
    for number in 0..head.rows {
        let row = reader.row()?;
        if number == 0 && row.key == LABEL_KEY {
            label = Label::from_bytes(row.value);
        }
    }
    let rows = bytes.get(rows_from..reader.at).unwrap_or_default();
    let end_at = reader.at;
    let checksum = reader.end()?;
    let end = reader.at;
    let sequence = head.sequence;
    let wrong = |at| Fault { at, is_cut: false, end: Some(end) };
    if checksum != xxh3_64(rows) {
        return Err(wrong(end_at));
    }
    let from =
        label.map(|label| label.sequence_from).max(before.map(|before| before.saturating_add(1)));
    let expected = from.map_or(0..u64::MAX, |from| from..from.saturating_add(SEQUENCE_GAP_MAX));
    if !expected.contains(&sequence) {
        return Err(wrong(at));
    }
    Ok(JournalGroup { end, sequence, label })
}

/// Returns the number of records that a group changes, by its label. The group need not be whole.
pub(super) fn changes_at(bytes: &[u8], at: usize) -> Option<u32> {
    let mut reader = Reader { bytes, at };
    reader.head().ok()?;
    let row = reader.row().ok()?;
    Some(Label::from_bytes(row.value).filter(|_| row.key == LABEL_KEY)?.changes)
}

/// A row of the table `operations` that has a record.
pub(super) struct RecordRow<'a> {
    pub(super) id: OperationId,
    pub(super) kept: &'a [u8],
}

/// Returns the records in a range, as far as the rows can be read.
pub(super) fn records_in<'a>(bytes: &'a [u8], range: &Range<usize>) -> Vec<RecordRow<'a>> {
    let mut reader = Reader { bytes: bytes.get(..range.end).unwrap_or_default(), at: range.start };
    let mut records = Vec::new();
    if reader.head().is_err() {
        return records;
    }
    while let Ok(row) = reader.row() {
        // A removed record has no value.
        if row.table == OPERATIONS
            && !row.value.is_empty()
            && let Ok(id) = <[u8; 16]>::try_from(row.key)
        {
            records.push(RecordRow { id: OperationId::from_bytes(id), kept: row.value });
        }
    }
    records
}

/// Returns the places in a range at which groups end. The groups need not be whole.
pub(super) fn ends_in(bytes: &[u8], range: Range<usize>) -> impl Iterator<Item = usize> {
    let start = range.start;
    let part = bytes.get(range).unwrap_or_default();
    memmem::find_iter(part, END_MARK)
        .filter(|mark| mark.checked_sub(BEFORE_MARK).and_then(|tag| part.get(tag)) == Some(&END))
        .map(move |mark| start + mark + END_MARK.len())
}

struct Head {
    rows: u32,
    sequence: u64,
}

struct Row<'a> {
    table: u64,
    key: &'a [u8],
    value: &'a [u8],
}

struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Reader<'a> {
    fn head(&mut self) -> Result<Head, Fault> {
        let from = self.at;
        let [tag] = self.take()?;
        if tag != START {
            return Err(wrong(from));
        }
        let rows = u32::from_le_bytes(self.take()?);
        let sequence = u64::from_le_bytes(self.take()?);
        if rows == 0 {
            return Err(wrong(from));
        }
        Ok(Head { rows, sequence })
    }

    fn row(&mut self) -> Result<Row<'a>, Fault> {
        let from = self.at;
        let [tag] = self.take()?;
        if tag == CLEAR {
            let table = u64::from_le_bytes(self.take()?);
            return Ok(Row { table, key: &[], value: &[] });
        }
        if tag != ROW {
            return Err(wrong(from));
        }
        let [kind, compression] = self.take()?;
        let table = u64::from_le_bytes(self.take()?);
        let key = u16::from_le_bytes(self.take()?);
        let value = u32::from_le_bytes(self.take()?);
        let written = u32::from_le_bytes(self.take()?);
        let is_row = matches!((kind, compression), (0, 0 | 1) | (1 | 2, 0))
            && (compression == 1 || value == written);
        if !is_row {
            return Err(wrong(from));
        }
        Ok(Row { table, key: self.slice(key.into())?, value: self.slice(written as usize)? })
    }

    /// Reads the end of a group. Returns the checksum.
    fn end(&mut self) -> Result<u64, Fault> {
        let from = self.at;
        let [tag] = self.take()?;
        if tag != END {
            return Err(wrong(from));
        }
        let checksum = u64::from_le_bytes(self.take()?);
        let mark: [u8; END_MARK.len()] = self.take()?;
        if mark != END_MARK {
            return Err(Fault { end: Some(self.at), ..wrong(from) });
        }
        Ok(checksum)
    }

    fn take<const N: usize>(&mut self) -> Result<[u8; N], Fault> {
        let mut taken = [0; N];
        taken.copy_from_slice(self.slice(N)?);
        Ok(taken)
    }

    fn slice(&mut self, length: usize) -> Result<&'a [u8], Fault> {
        let rest = self.bytes.get(self.at..).unwrap_or_default();
        let slice = rest.get(..length);
        let slice = slice.ok_or(Fault { at: self.at, is_cut: true, end: None })?;
        self.at += length;
        Ok(slice)
    }
}

const fn wrong(at: usize) -> Fault {
    Fault { at, is_cut: false, end: None }
}
