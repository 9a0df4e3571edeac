//! The names and the headers of segments.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::SECTOR;
use super::disk::{Disk, DiskFile};

const MAGIC: [u8; 8] = *b"onceLOG\n";
const VERSION: u32 = 1;
const EXTENSION: &str = "log";
/// The number of bytes that the fields of a header take, without the checksum.
const FIELDS: usize = 64;
/// The number of bytes that are written at a time when a segment is made.
const ZEROS: usize = 1 << 20;

/// What a segment is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::store::embedded) enum Kind {
    /// Groups are appended to it, in the order in which they happen.
    Main,
    /// It holds copies of records that outlived their segments.
    Kept,
}

/// The place at which the segment before this one ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct End {
    pub(super) segment: u64,
    /// What lies behind this byte was never acknowledged, or its write failed.
    pub(super) offset: u64,
}

/// What a segment says of itself in its first sector.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Header {
    pub(super) kind: Kind,
    /// A number is used once in a store.
    pub(super) number: u64,
    /// A random number that is part of the checksum of each group.
    pub(super) salt: u64,
    pub(super) previous: Option<End>,
    /// The number of the first group.
    pub(super) first_group: u64,
    /// The time at which the segment was begun, in milliseconds.
    pub(super) made_at: u64,
}

impl Header {
    pub(super) fn to_bytes(self) -> [u8; SECTOR] {
        let previous = self.previous.unwrap_or(End { segment: u64::MAX, offset: 0 });
        let kind = match self.kind {
            Kind::Main => 0_u32,
            Kind::Kept => 1,
        };
        let mut bytes = Vec::with_capacity(SECTOR);
        bytes.extend_from_slice(&MAGIC);
        bytes.extend_from_slice(&VERSION.to_le_bytes());
        bytes.extend_from_slice(&kind.to_le_bytes());
        for field in [
            self.number,
            self.salt,
            previous.segment,
            previous.offset,
            self.first_group,
            self.made_at,
        ] {
            bytes.extend_from_slice(&field.to_le_bytes());
        }
        bytes.extend_from_slice(&crc32fast::hash(&bytes).to_le_bytes());
        let mut sector = [0; SECTOR];
        for (place, byte) in sector.iter_mut().zip(bytes) {
            *place = byte;
        }
        sector
    }

    /// Parses the first sector. None: it is not a whole header of this version.
    pub(super) fn from_bytes(sector: &[u8]) -> Option<Self> {
        let (fields, rest) = sector.split_at_checked(FIELDS)?;
        let sum = rest.first_chunk().map(|sum| u32::from_le_bytes(*sum))?;
        let (words, _) = fields.get(16..)?.as_chunks::<8>();
        let mut words = words.iter().map(|word| u64::from_le_bytes(*word));
        let mut next = || words.next();
        let (known, kind) = fields.get(..16)?.split_at(12);
        let is_known = known.starts_with(&MAGIC) && known.ends_with(&VERSION.to_le_bytes());
        if !is_known || sum != crc32fast::hash(fields) {
            return None;
        }
        let kind = match kind {
            [0, 0, 0, 0] => Kind::Main,
            [1, 0, 0, 0] => Kind::Kept,
            _ => return None,
        };
        let [number, salt, segment, offset] = [next()?, next()?, next()?, next()?];
        let previous = (segment != u64::MAX).then_some(End { segment, offset });
        Some(Self { kind, number, salt, previous, first_group: next()?, made_at: next()? })
    }
}

/// Returns the path of a segment.
pub(in crate::store::embedded) fn path(folder: &Path, number: u64) -> PathBuf {
    folder.join(format!("{number}.{EXTENSION}"))
}

/// Returns the numbers of the segments in a folder, in ascending order.
pub(super) fn numbers(disk: &dyn Disk, folder: &Path) -> io::Result<Vec<u64>> {
    let names = disk.names(folder)?;
    let mut numbers: Vec<u64> = names
        .iter()
        .filter_map(|name| name.strip_suffix(EXTENSION)?.strip_suffix('.')?.parse().ok())
        .collect();
    numbers.sort_unstable();
    Ok(numbers)
}

/// Makes a segment ahead: its name and its zeros are durable, so that a later sync of a group in it
/// writes no metadata of the file system.
pub(super) fn prepare(
    disk: &dyn Disk,
    folder: &Path,
    number: u64,
    length: u64,
) -> io::Result<Arc<dyn DiskFile>> {
    let file = disk.create(&path(folder, number))?;
    let zeros = vec![0; ZEROS];
    let mut written = 0;
    while written < length {
        let part = ZEROS.min(usize::try_from(length - written).unwrap_or(ZEROS));
        file.write_at(zeros.get(..part).unwrap_or(&zeros), written)?;
        written += part as u64;
    }
    file.sync()?;
    disk.sync_names(folder)?;
    Ok(file)
}

/// Reads a whole segment.
pub(super) fn content(disk: &dyn Disk, folder: &Path, number: u64) -> io::Result<Vec<u8>> {
    let file = disk.open(&path(folder, number))?;
    let length = usize::try_from(file.length()?).map_err(io::Error::other)?;
    let mut bytes = vec![0; length];
    file.read_at(&mut bytes, 0)?;
    Ok(bytes)
}

/// Reads the header of a segment. None: it has none, or not a whole one.
pub(super) fn header(disk: &dyn Disk, folder: &Path, number: u64) -> io::Result<Option<Header>> {
    let file = disk.open(&path(folder, number))?;
    if file.length()? < SECTOR as u64 {
        return Ok(None);
    }
    let mut sector = [0; SECTOR];
    file.read_at(&mut sector, 0)?;
    Ok(Header::from_bytes(&sector).filter(|header| header.number == number))
}
