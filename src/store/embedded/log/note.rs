//! Notes how far the log was synced. The note is the file `synced` in the folder of the log.
//!
//! A log that was cut off between two groups looks whole, and one that was cut off inside a group
//! looks as if the process had died while it wrote that group. So the number of the last synced
//! group is kept outside the segments. It is written after the group is synced and before any of
//! its calls gets a reply. A log that does not reach this number has lost acknowledged changes.
//!
//! The file itself is synced at a start and at an orderly end, but not for each group. The end of
//! the process does not lose the latest number, and after a loss of power an older number is still
//! true. The 16 bytes lie in one sector of the disk, so they are never half written.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use xxhash_rust::xxh3::xxh3_64;

use super::disk::{Disk, DiskFile};

const BYTES: usize = 16;

/// The file, open for writing.
#[derive(Debug)]
pub(super) struct SyncedNote(Arc<dyn DiskFile>);

/// Returns the path of the file.
pub(super) fn path(folder: &Path) -> PathBuf {
    folder.join("synced")
}

impl SyncedNote {
    /// Reads the number of the last synced group.
    pub(super) fn read(disk: &dyn Disk, folder: &Path) -> io::Result<u64> {
        let mut bytes = [0; BYTES];
        disk.open(&path(folder))?.read_at(&mut bytes, 0)?;
        let number = bytes.first_chunk().map_or(0, |number| u64::from_le_bytes(*number));
        if to_bytes(number) == bytes {
            return Ok(number);
        }
        let says = format!("`{}` is damaged", path(folder).display());
        Err(io::Error::new(io::ErrorKind::InvalidData, says))
    }

    /// Makes the file, or opens it, and durably writes a number to it.
    pub(super) fn begin(disk: &dyn Disk, folder: &Path, number: u64) -> io::Result<Self> {
        let is_there = disk.names(folder)?.iter().any(|name| path(folder).ends_with(name));
        let file = if is_there { disk.open(&path(folder)) } else { disk.create(&path(folder)) }?;
        let note = Self(file);
        note.write(number)?;
        note.0.set_length(BYTES as u64)?;
        note.sync()?;
        disk.sync_names(folder)?;
        Ok(note)
    }

    /// Notes that a group was synced.
    pub(super) fn write(&self, number: u64) -> io::Result<()> {
        self.0.write_at(&to_bytes(number), 0)
    }

    /// Makes the note survive a loss of power.
    pub(super) fn sync(&self) -> io::Result<()> {
        self.0.sync()
    }
}

fn to_bytes(number: u64) -> [u8; BYTES] {
    let number = number.to_le_bytes();
    let mut bytes = [0; BYTES];
    let (first, second) = bytes.split_at_mut(8);
    first.copy_from_slice(&number);
    second.copy_from_slice(&xxh3_64(&number).to_le_bytes());
    bytes
}
