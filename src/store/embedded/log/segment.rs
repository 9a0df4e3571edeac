//! One file of the log: its name, its header, and its zeros.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::disk::{Disk, DiskFile};
use super::group::Reader;
use crate::store::embedded::bytes::joined;

/// The bytes that a disk writes wholly or not at all.
pub(super) const SECTOR: usize = 512;

/// The place of a segment's first group.
pub(super) const FIRST: u64 = SECTOR as u64;

/// The bytes of a segment. A segment gets more if a group needs them.
pub(in crate::store::embedded) const SEGMENT_BYTES: u64 = 16 << 20;

/// The bytes of the first segment after a start, which has to wait for it.
pub(super) const STARTING_BYTES: u64 = 1 << 20;

/// The number that stands for no segment.
pub(super) const NONE: u64 = u64::MAX;

const MAGIC: [u8; 8] = *b"onceLOG\n";
const VERSION: u32 = 1;
/// The bytes of a header that its checksum covers.
const CHECKED: usize = 72;

/// The zeros that are written at a time.
const PIECE: usize = 1 << 20;

/// Whether a segment is part of the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Main,
    /// It has copies of records whose main segments went.
    Kept,
}

/// The first sector of a segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Header {
    pub(super) kind: Kind,
    pub(super) number: u64,
    pub(super) salt: u64,
    /// The main segment before it, or [`NONE`].
    pub(super) previous: u64,
    /// The byte of the previous segment behind which nothing counts.
    pub(super) previous_end: u64,
    pub(super) first_group: u64,
    /// The time of the store's clock, in milliseconds.
    pub(super) made_at: u64,
    /// The bytes of the file when it was made. A file that has fewer was cut off.
    pub(super) bytes: u64,
}

impl Header {
    pub(super) fn to_sector(self) -> [u8; SECTOR] {
        let kind: u32 = match self.kind {
            Kind::Main => 0,
            Kind::Kept => 1,
        };
        let checked: [u8; CHECKED] = joined(&[
            &MAGIC,
            &VERSION.to_le_bytes(),
            &kind.to_le_bytes(),
            &self.number.to_le_bytes(),
            &self.salt.to_le_bytes(),
            &self.previous.to_le_bytes(),
            &self.previous_end.to_le_bytes(),
            &self.first_group.to_le_bytes(),
            &self.made_at.to_le_bytes(),
            &self.bytes.to_le_bytes(),
        ]);
        let crc = crc32fast::hash(&checked).to_le_bytes();
        joined(&[&checked, &crc, &[0; SECTOR - CHECKED - 4]])
    }

    /// Reads the header of a segment, if it is whole.
    pub(super) fn from_start(bytes: &[u8]) -> Option<Self> {
        let (checked, rest) = bytes.split_first_chunk::<CHECKED>()?;
        if u32::from_le_bytes(*rest.first_chunk()?) != crc32fast::hash(checked) {
            return None;
        }
        let mut reader = Reader { bytes: checked };
        if reader.array() != Some(MAGIC) || reader.u32()? != VERSION {
            return None;
        }
        let kind = if reader.u32()? == 0 { Kind::Main } else { Kind::Kept };
        Some(Self {
            kind,
            number: reader.u64()?,
            salt: reader.u64()?,
            previous: reader.u64()?,
            previous_end: reader.u64()?,
            first_group: reader.u64()?,
            made_at: reader.u64()?,
            bytes: reader.u64()?,
        })
    }
}

/// A segment that groups are appended to.
#[derive(Debug)]
pub(super) struct Segment<F> {
    pub(super) number: u64,
    pub(super) salt: u64,
    pub(super) file: Arc<F>,
    /// The byte at which the next group begins.
    pub(super) end: u64,
    /// The bytes of the file.
    pub(super) bytes: u64,
}

impl<F: DiskFile> Segment<F> {
    /// Writes a header. It is not synced.
    pub(super) fn begin(file: Arc<F>, header: Header) -> io::Result<Self> {
        file.write_at(&header.to_sector(), 0)?;
        let Header { number, salt, bytes, .. } = header;
        Ok(Self { number, salt, file, end: FIRST, bytes })
    }

    /// Whether a group of this many bytes has room.
    pub(super) const fn has_room(&self, taken: usize) -> bool {
        self.end + taken as u64 <= self.bytes
    }
}

/// Returns the path of a segment.
pub(super) fn path(folder: &Path, number: u64) -> PathBuf {
    folder.join(format!("{number}.log"))
}

/// Returns the path of a kept segment that has no header yet.
pub(super) fn unfinished_path(folder: &Path, number: u64) -> PathBuf {
    folder.join(format!("{number}.new"))
}

/// Returns the number in the name of a file, if it is a name with this extension.
pub(super) fn number_of(name: &str, extension: &str) -> Option<u64> {
    let number = name.strip_suffix(extension)?.strip_suffix('.')?.parse().ok()?;
    (format!("{number}.{extension}") == name).then_some(number)
}

/// Makes a segment full of zeros, durably.
pub(super) fn make<D: Disk>(
    disk: &D,
    folder: &Path,
    number: u64,
    bytes: u64,
) -> io::Result<D::File> {
    let file = disk.create(&path(folder, number))?;
    fill(&file, 0, bytes)?;
    disk.sync_folder(folder)?;
    Ok(file)
}

/// Fills a part of a file with zeros, durably.
pub(super) fn fill(file: &impl DiskFile, from: u64, until: u64) -> io::Result<()> {
    let piece = vec![0; PIECE];
    let mut at = from;
    while at < until {
        let left = usize::try_from(until - at).unwrap_or(PIECE).min(PIECE);
        file.write_at(piece.get(..left).unwrap_or(&piece), at)?;
        at += left as u64;
    }
    file.sync()
}

/// Reads a whole file.
pub(super) fn content(file: &impl DiskFile) -> io::Result<Vec<u8>> {
    let mut content = vec![0; usize::try_from(file.bytes()?).map_err(io::Error::other)?];
    file.read_at(&mut content, 0)?;
    Ok(content)
}
