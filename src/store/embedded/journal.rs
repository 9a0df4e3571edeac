//! Notices when the database has cut off more of its journal than a crash can have torn.
//!
//! The database takes whatever it cannot read in a journal for the torn end of its last write, and
//! cuts the file off there, together with all that was written and acknowledged behind it. A write
//! is complete with its end mark; what stands before the last of these in a file must still be
//! there once the database is open.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};

use memchr::memmem;

/// What every write to a journal of fjall 3 ends with.
const END_MARK: &[u8] = b"FJL\x03";

/// The journals as they were before the database was opened: where the last end mark of each ends.
#[derive(Debug)]
pub(super) struct Journals(Vec<(PathBuf, u64)>);

impl Journals {
    pub(super) fn look(records: &Path) -> io::Result<Self> {
        let mut journals = Vec::new();
        for entry in fs::read_dir(records)? {
            let path = entry?.path();
            if path.extension().is_some_and(|extension| extension == "jnl") {
                let end = last_mark(&File::open(&path)?)?;
                journals.push((path, end));
            }
        }
        Ok(Self(journals))
    }

    /// A journal that has lost complete writes meanwhile. One that is gone was not needed any more.
    pub(super) fn cut_off(&self) -> io::Result<Option<&Path>> {
        for (path, end) in &self.0 {
            match fs::metadata(path) {
                Ok(metadata) if metadata.len() < *end => return Ok(Some(path)),
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => return Err(error),
            }
        }
        Ok(None)
    }
}

/// How much is looked at at a time, from the end on: a journal may have a long end of zeros.
const PIECE_BYTES: u64 = 1 << 20;

/// The position behind the last end mark; 0 without one.
fn last_mark(journal: &File) -> io::Result<u64> {
    let overlap = END_MARK.len() as u64 - 1;
    let mut end = journal.metadata()?.len();
    let mut piece = Vec::new();
    while end > 0 {
        let start = end.saturating_sub(PIECE_BYTES);
        piece.resize(usize::try_from(end - start).map_err(io::Error::other)?, 0);
        journal.read_exact_at(&mut piece, start)?;
        if let Some(found) = memmem::rfind(&piece, END_MARK) {
            return Ok(start + (found + END_MARK.len()) as u64);
        }
        // A mark may stand across the two pieces.
        end = if start == 0 { 0 } else { start + overlap };
    }
    Ok(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_mark_is_found_whatever_stands_around_it() {
        let zeros = |count| vec![0; count];
        let far = [&b"FJL\x03"[..], &zeros(3 << 20)].concat();
        let across = [&zeros(10)[..], b"FJL\x03", &zeros((1 << 20) - 2)].concat();
        for (journal, end) in [
            (&b""[..], 0),
            (b"FJL", 0),
            (b"FJL\x03", 4),
            (b"FFJL\x03 FJFJL\x03torn FJL", 12),
            (&far, 4),
            (&across, 14),
        ] {
            let file = tempfile::NamedTempFile::new().unwrap();
            fs::write(file.path(), journal).unwrap();
            assert_eq!(last_mark(file.as_file()).unwrap(), end);
        }
    }
}
