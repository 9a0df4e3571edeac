//! Notes how far the journals were synced. The note is the file `synced` in the directory of the
//! database.
//!
//! A journal that was cut off between two groups looks whole. A journal that was cut off inside a
//! group looks as if the process had died while it wrote that group. So the number of the last
//! synced group is kept outside the journals. It is written after the group is synced and before
//! any of its calls gets a reply. A journal that does not reach this number has lost acknowledged
//! changes.
//!
//! The file itself is synced at a start, when a journal is full, and at an orderly end, but not for
//! each group. The end of the process does not lose the latest number, and after a loss of power an
//! older number is still true. With `durability = "os"` groups are not synced, so the number is
//! written only when the file is synced.
//!
//! ```text
//! sequence number: u64   xxh3 of its bytes: u64      big-endian
//! ```
//!
//! The 16 bytes are always at the same place inside one sector of the disk, so they are never half
//! written.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};

use xxhash_rust::xxh3::xxh3_64;

use super::bytes::joined;

const BYTES: usize = 16;

/// The file, open for writing.
#[derive(Debug)]
pub(super) struct SyncedNote(File);

/// Returns the path of the file.
pub(super) fn path(records: &Path) -> PathBuf {
    records.join("synced")
}

impl SyncedNote {
    /// Reads the sequence number up to which all groups were synced.
    pub(super) fn read(records: &Path) -> io::Result<u64> {
        let path = path(records);
        let bytes = fs::read(&path)?;
        let sequence = bytes.first_chunk().map(|sequence| u64::from_be_bytes(*sequence));
        let sequence = sequence.filter(|sequence| to_bytes(*sequence) == *bytes);
        sequence.ok_or_else(|| {
            let says = format!("`{}` is damaged", path.display());
            io::Error::new(io::ErrorKind::InvalidData, says)
        })
    }

    /// Opens or makes the file, and durably writes a number to it.
    pub(super) fn begin(records: &Path, sequence: u64) -> io::Result<Self> {
        let file = File::options().create(true).truncate(false).write(true).open(path(records))?;
        let synced = Self(file);
        synced.note(sequence)?;
        synced.0.set_len(BYTES as u64)?;
        synced.sync()?;
        Ok(synced)
    }

    /// Notes that a group was synced.
    pub(super) fn note(&self, sequence: u64) -> io::Result<()> {
        self.0.write_all_at(&to_bytes(sequence), 0)
    }

    /// Makes the note survive a loss of power.
    pub(super) fn sync(&self) -> io::Result<()> {
        self.0.sync_data()
    }
}

fn to_bytes(sequence: u64) -> [u8; BYTES] {
    let sequence = sequence.to_be_bytes();
    joined(&[&sequence, &xxh3_64(&sequence).to_be_bytes()])
}
