//! The files of the journals. This module knows their names and reads them.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};

/// Returns the path of a journal.
pub(in super::super) fn path(records: &Path, number: u64) -> PathBuf {
    records.join(format!("{number}.jnl"))
}

/// Returns the numbers of the journals, oldest first. The database refuses journals with any other
/// name.
pub(super) fn numbers(records: &Path) -> io::Result<Vec<u64>> {
    let mut numbers = Vec::new();
    for entry in fs::read_dir(records)? {
        let path = entry?.path();
        if path.extension() == Some(OsStr::new("jnl")) {
            numbers.extend(path.file_stem().and_then(|stem| stem.to_str()?.parse::<u64>().ok()));
        }
    }
    numbers.sort_unstable();
    Ok(numbers)
}

/// The number of bytes that are read at a time in the search for the end of a journal. The zeros
/// behind that end may be many.
const PIECE_BYTES: u64 = 1 << 20;

/// Reads a journal without the zeros at its end. The database made each journal with room for
/// later groups.
pub(in super::super) fn content(path: &Path) -> io::Result<Vec<u8>> {
    let journal = File::open(path)?;
    let mut end = journal.metadata()?.len();
    let mut piece = Vec::new();
    while end > 0 {
        let start = end.saturating_sub(PIECE_BYTES);
        piece.resize(usize::try_from(end - start).map_err(io::Error::other)?, 0);
        journal.read_exact_at(&mut piece, start)?;
        if let Some(last) = piece.iter().rposition(|byte| *byte != 0) {
            end = start + last as u64 + 1;
            break;
        }
        end = start;
    }
    let mut content = vec![0; usize::try_from(end).map_err(io::Error::other)?];
    journal.read_exact_at(&mut content, 0)?;
    Ok(content)
}
