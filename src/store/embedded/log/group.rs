//! One group of the log: the changes that are written and synced together. Its format is in the
//! table of the parent module.

use super::{Place, SECTOR, padded};

const MAGIC: u32 = u32::from_le_bytes(*b"grp\x01");
/// The number of bytes before the rows.
pub(in crate::store::embedded) const HEAD: usize = 40;
/// The number of bytes before the key of a row.
const ROW_HEAD: usize = 8;
/// The last byte of a payload. It is not zero, so a sector of a group is never all zeros.
const END: u8 = 0xa5;

const PUT: u8 = 0;
const REMOVE: u8 = 1;
const MOVE: u8 = 2;

/// A group that is being built. The buffer is used again for the next group.
#[derive(Debug)]
pub(in crate::store::embedded) struct GroupBytes {
    bytes: Vec<u8>,
    rows: u32,
}

impl Default for GroupBytes {
    fn default() -> Self {
        Self { bytes: vec![0; HEAD], rows: 0 }
    }
}

impl GroupBytes {
    /// Empties the buffer.
    pub(in crate::store::embedded) fn clear(&mut self) {
        self.bytes.truncate(HEAD);
        self.rows = 0;
    }

    pub(in crate::store::embedded) const fn is_empty(&self) -> bool {
        self.rows == 0
    }

    /// Adds a row with a value. Returns the byte of the group at which the value begins.
    pub(in crate::store::embedded) fn put(&mut self, table: u8, key: &[u8], value: &[u8]) -> u32 {
        self.row(table, PUT, key, value)
    }

    /// Adds the removal of a row.
    pub(in crate::store::embedded) fn remove(&mut self, table: u8, key: &[u8]) {
        self.row(table, REMOVE, key, &[]);
    }

    /// Adds a row whose value was copied to another place.
    pub(in crate::store::embedded) fn moved(&mut self, table: u8, key: &[u8], to: Place) {
        self.row(table, MOVE, key, &to.to_bytes());
    }

    fn row(&mut self, table: u8, kind: u8, key: &[u8], value: &[u8]) -> u32 {
        self.bytes.extend_from_slice(&[table, kind]);
        self.bytes.extend_from_slice(&(key.len() as u16).to_le_bytes());
        self.bytes.extend_from_slice(&(value.len() as u32).to_le_bytes());
        self.bytes.extend_from_slice(key);
        let begin = self.bytes.len() as u32;
        self.bytes.extend_from_slice(value);
        self.rows += 1;
        begin
    }

    /// The number of bytes that the group will take, with its padding.
    pub(super) const fn length(&self) -> u64 {
        padded(self.bytes.len() + 1) as u64
    }

    /// Completes the group and returns its bytes, which end with a sector.
    pub(super) fn seal(&mut self, salt: u64, label: Label) -> &[u8] {
        self.bytes.push(END);
        let length = (self.bytes.len() - HEAD) as u32;
        let head = Head { length, rows: self.rows, label };
        self.bytes.resize(padded(self.bytes.len()), 0);
        let whole = HEAD + length as usize;
        let (head_bytes, rest) = self.bytes.split_at_mut(HEAD);
        head_bytes.copy_from_slice(&head.to_bytes(salt, rest.get(..whole - HEAD).unwrap_or(rest)));
        &self.bytes
    }
}

/// What a group says of itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::store::embedded) struct Label {
    /// Groups are numbered in the order in which they are written.
    pub(in crate::store::embedded) number: u64,
    /// The time of the store's clock, in milliseconds.
    pub(in crate::store::embedded) time: u64,
    /// Whether the group had to be synced before its calls got their replies.
    pub(in crate::store::embedded) is_synced: bool,
}

#[derive(Debug, Clone, Copy)]
struct Head {
    /// The number of bytes of the payload.
    length: u32,
    rows: u32,
    label: Label,
}

impl Head {
    fn to_bytes(self, salt: u64, payload: &[u8]) -> [u8; HEAD] {
        let mut bytes = [0; HEAD];
        let Label { number, time, is_synced } = self.label;
        let parts: [&[u8]; 6] = [
            &self.length.to_le_bytes(),
            &self.rows.to_le_bytes(),
            &number.to_le_bytes(),
            &time.to_le_bytes(),
            &u32::from(is_synced).to_le_bytes(),
            &[0; 4],
        ];
        let (magic, rest) = bytes.split_at_mut(4);
        magic.copy_from_slice(&MAGIC.to_le_bytes());
        let (sum, rest) = rest.split_at_mut(4);
        let mut place = &mut *rest;
        for part in parts {
            let (this, behind) = place.split_at_mut(part.len());
            this.copy_from_slice(part);
            place = behind;
        }
        sum.copy_from_slice(&checksum(salt, rest, payload).to_le_bytes());
        bytes
    }
}

/// The checksum covers the salt of the segment. So a group of an earlier life of the same place on
/// the disk is never taken for one of this segment.
fn checksum(salt: u64, head: &[u8], payload: &[u8]) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(&salt.to_le_bytes());
    hasher.update(head);
    hasher.update(payload);
    hasher.finalize()
}

/// A whole group in the bytes of a segment.
#[derive(Debug, Clone, Copy)]
pub(in crate::store::embedded) struct WholeGroup<'a> {
    pub(in crate::store::embedded) label: Label,
    /// The byte of the segment at which the group begins.
    pub(in crate::store::embedded) begin: usize,
    /// The byte at which the next group may begin.
    pub(in crate::store::embedded) end: usize,
    rows: u32,
    payload: &'a [u8],
}

/// Returns the number of bytes that a group takes by its head, with its padding. None: there is no
/// head.
pub(super) fn extent(segment: &[u8], begin: usize) -> Option<usize> {
    let head = segment.get(begin..)?.first_chunk::<HEAD>()?;
    let length = number_at(head, 8)?;
    (number_at(head, 0)? == MAGIC).then(|| padded(HEAD + length as usize))
}

/// Reads the group that begins at this byte of a segment. None: no whole group begins there.
pub(super) fn read(segment: &[u8], begin: usize, salt: u64) -> Option<WholeGroup<'_>> {
    let end = begin.checked_add(extent(segment, begin)?)?;
    let (head, rest) = segment.get(begin..)?.split_first_chunk::<HEAD>()?;
    let payload = rest.get(..number_at(head, 8)? as usize)?;
    if number_at(head, 4)? != checksum(salt, head.get(8..)?, payload) || payload.last() != Some(&END) {
        return None;
    }
    let label = Label {
        number: wide_number_at(head, 16)?,
        time: wide_number_at(head, 24)?,
        is_synced: number_at(head, 32)? == 1,
    };
    Some(WholeGroup { label, begin, end, rows: number_at(head, 12)?, payload })
}

/// A row of a group.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::store::embedded) struct RowRef<'a> {
    pub(in crate::store::embedded) table: u8,
    pub(in crate::store::embedded) key: &'a [u8],
    pub(in crate::store::embedded) change: ChangeRef<'a>,
}

/// What a group does to a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::store::embedded) enum ChangeRef<'a> {
    /// The row has a value, which lies at this place.
    Put { value: &'a [u8], place: Place },
    /// There is no row any more.
    Remove,
    /// The value was copied to this place.
    Moved(Place),
}

impl<'a> WholeGroup<'a> {
    /// The rows, in the order in which they were added. `segment` is the number of the group's segment.
    pub(in crate::store::embedded) fn rows(
        &self,
        segment: u64,
    ) -> impl Iterator<Item = RowRef<'a>> + use<'a> {
        let mut rest = self.payload;
        let begin = self.begin + HEAD;
        let length = self.payload.len();
        (0..self.rows).map_while(move |_| {
            let (head, behind) = rest.split_first_chunk::<ROW_HEAD>()?;
            let [table, kind, key_0, key_1, value @ ..] = *head;
            let (key, behind) = behind.split_at_checked(u16::from_le_bytes([key_0, key_1]).into())?;
            let at = begin + length - behind.len();
            let (value, behind) = behind.split_at_checked(u32::from_le_bytes(value) as usize)?;
            rest = behind;
            let place = Place { segment, offset: at as u32, length: value.len() as u32 };
            let change = match kind {
                PUT => ChangeRef::Put { value, place },
                REMOVE => ChangeRef::Remove,
                MOVE => ChangeRef::Moved(Place::from_bytes(value)?),
                _ => return None,
            };
            Some(RowRef { table, key, change })
        })
    }
}

/// Reads what a damaged group still says of itself and of its rows. Nothing of it may be true.
pub(super) fn damaged(segment: &[u8], begin: usize) -> Option<WholeGroup<'_>> {
    let end = begin.checked_add(extent(segment, begin)?)?;
    let (head, payload) = segment.get(begin..end.min(segment.len()))?.split_first_chunk::<HEAD>()?;
    let label = Label { number: wide_number_at(head, 16)?, time: 0, is_synced: false };
    Some(WholeGroup { label, begin, end, rows: number_at(head, 12)?, payload })
}

/// Whether a part of a group was never written: a whole sector, or its last byte.
pub(super) fn is_unfinished(segment: &[u8], begin: usize, end: usize) -> bool {
    let Some(part) = segment.get(begin..end) else {
        return true;
    };
    let payload = number_at(part, 8).map_or(0, |length| length as usize);
    let last = (HEAD + payload).checked_sub(1).and_then(|last| part.get(last));
    lacks_a_sector(part) || last == Some(&0)
}

/// Whether all bytes of a sector are zeros.
fn lacks_a_sector(part: &[u8]) -> bool {
    part.chunks(SECTOR).any(|sector| sector.iter().all(|byte| *byte == 0))
}

fn number_at(bytes: &[u8], at: usize) -> Option<u32> {
    bytes.get(at..)?.first_chunk().map(|number| u32::from_le_bytes(*number))
}

fn wide_number_at(bytes: &[u8], at: usize) -> Option<u64> {
    bytes.get(at..)?.first_chunk().map(|number| u64::from_le_bytes(*number))
}
