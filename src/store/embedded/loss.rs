//! Notes that index rows may be missing, because a loss was accepted.
//!
//! The note is the file `reindex` in the directory of the store. It is made before a journal is
//! mended, and removed once `reindex` has written the rows. So a start that is interrupted does not
//! leave rows out.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use super::filesystem::sync_directory;

fn path(store: &Path) -> PathBuf {
    store.join("reindex")
}

/// Notes durably that rows may be missing.
pub(super) fn note(store: &Path) -> io::Result<()> {
    File::create(path(store))?;
    sync_directory(store)
}

/// Whether rows may be missing.
pub(super) fn is_noted(store: &Path) -> io::Result<bool> {
    path(store).try_exists()
}

/// Notes that no rows are missing any more.
pub(super) fn clear(store: &Path) -> io::Result<()> {
    fs::remove_file(path(store))?;
    sync_directory(store)
}
