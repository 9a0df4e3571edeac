//! Notes how far the log was synced, in the file `synced`.
//!
//! A log that was cut off between two groups looks whole. So the number of the last synced group is
//! kept outside the segments. It is written after the group is synced and before any of its calls
//! gets a reply. A log that does not reach this number has lost acknowledged changes.
//!
//! The file itself is synced at a start, when a segment is full, and at an orderly end, but not for
//! each group. The end of the process does not lose the latest number, and after a loss of power an
//! older number is still true. The 16 bytes are inside one sector, so they are never half written.

use std::io;
use std::path::{Path, PathBuf};

use xxhash_rust::xxh3::xxh3_64;

use super::Position;
use super::disk::{Disk, DiskFile};
use crate::store::embedded::bytes::joined;

const BYTES: usize = 16;

/// Returns the path of the file.
pub(super) fn path(folder: &Path) -> PathBuf {
    folder.join("synced")
}

/// Reads the number of the last group that is known to have been synced.
pub(super) fn read<D: Disk>(disk: &D, folder: &Path) -> io::Result<u64> {
    let path = path(folder);
    let bytes = super::segment::content(&disk.open(&path)?)?;
    let group = bytes.first_chunk().map(|group| u64::from_be_bytes(*group));
    group.filter(|group| to_bytes(*group) == *bytes).ok_or_else(|| {
        let says = format!("`{}` is damaged", path.display());
        io::Error::new(io::ErrorKind::InvalidData, says)
    })
}

/// The file, open for writing.
#[derive(Debug)]
pub(super) struct Note<F>(F);

impl<F: DiskFile> Note<F> {
    /// Opens or makes the file, and durably writes a number to it. The folder is not synced.
    pub(super) fn begin<D: Disk<File = F>>(
        disk: &D,
        folder: &Path,
        group: u64,
    ) -> io::Result<Self> {
        let path = path(folder);
        let file = match disk.open(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => disk.create(&path)?,
            opened => opened?,
        };
        let note = Self(file);
        note.write(group)?;
        if note.0.bytes()? != BYTES as u64 {
            note.0.set_bytes(BYTES as u64)?;
        }
        note.sync()?;
        Ok(note)
    }

    pub(super) fn write(&self, group: u64) -> io::Result<()> {
        self.0.write_at(&to_bytes(group), 0)
    }

    /// Makes the note survive a loss of power.
    pub(super) fn sync(&self) -> io::Result<()> {
        self.0.sync()
    }
}

fn to_bytes(group: u64) -> [u8; BYTES] {
    let group = group.to_be_bytes();
    joined(&[&group, &xxh3_64(&group).to_be_bytes()])
}
