//! Reads how far the journals were synced. The note is the file `synced` in the directory of the
//! database.
//!
//! A journal that was cut off between two groups looks whole. A journal that was cut off inside a
//! group looks as if the process had died while it wrote that group. So the number of the last
//! synced group is kept outside the journals. It was written after the group was synced and before
//! any of its calls got a reply. A journal that does not reach this number has lost acknowledged
//! changes.
//!
//! ```text
//! sequence number: u64   xxh3 of its bytes: u64      big-endian
//! ```

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use xxhash_rust::xxh3::xxh3_64;

use crate::store::embedded::bytes::joined;
use crate::store::embedded::filesystem::replace_file;

/// Returns the path of the file.
pub(super) fn path(records: &Path) -> PathBuf {
    records.join("synced")
}

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

/// Writes the number durably.
pub(super) fn write(records: &Path, sequence: u64) -> io::Result<()> {
    replace_file(&path(records), [to_bytes(sequence).as_slice()])
}

fn to_bytes(sequence: u64) -> [u8; 16] {
    let sequence = sequence.to_be_bytes();
    joined(&[&sequence, &xxh3_64(&sequence).to_be_bytes()])
}
