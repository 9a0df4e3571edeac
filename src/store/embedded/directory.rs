//! The directory of an embedded store. One process at a time uses it, and a file in it names its
//! format.
//!
//! ```text
//! lock     locked by the process that has the store open
//! format   names this program, and the format of the files beside it
//! log/     the log, see `log` and `tables::mark`
//! rows/    the database, see `tables::database`
//! reindex  made while rows may be missing, see `loss`
//! ```

use std::ffi::OsStr;
use std::fs::{self, File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};

use super::filesystem::{replace_file, sync_directory};
use super::open_error::OpenError;
use super::settings::IfDamaged;
use super::tables::Folders;

/// The whole content of `format`.
const FORMAT: &str = "onceward embedded store, format 2\n";

/// The files that a crash may leave in a directory before its first store is complete.
const UNFINISHED: [&str; 4] = ["lock", "format.new", "log", "rows"];

/// The directory of a store. No other process uses it while this value lives.
#[derive(Debug)]
pub(super) struct Directory {
    path: PathBuf,
    lock: File,
}

impl Drop for Directory {
    /// Unlocks the directory. It is not enough to close the file: a child process that was just
    /// forked has a copy of the open file until it executes its program, and that copy keeps the
    /// lock (`flock(2)` in the Linux manual).
    fn drop(&mut self) {
        if let Err(error) = self.lock.unlock() {
            tracing::warn!(%error, "the store stays locked until this process ends");
        }
    }
}

impl Directory {
    /// Locks the directory. If it does not exist, makes it with an empty database in it.
    pub(super) fn take(path: &Path, if_damaged: IfDamaged) -> Result<Self, OpenError> {
        let io = |source| OpenError::Io { path: path.to_owned(), source };
        fs::create_dir_all(path).map_err(io)?;
        if !path.join("format").try_exists().map_err(io)? && !is_unfinished(path).map_err(io)? {
            // These files belong to somebody else. A mistyped path must not fill another program's
            // directory.
            return Err(OpenError::NotOurs { path: path.to_owned() });
        }
        // The operating system releases the lock when the process ends, however it ends.
        let lock = File::create(path.join("lock")).map_err(io)?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                return Err(OpenError::InUse { path: path.to_owned() });
            }
            Err(TryLockError::Error(source)) => return Err(io(source)),
        }
        let taken = Self { path: path.to_owned(), lock };
        taken.check_format()?;
        let Folders { log, rows } = Folders::of(path);
        if !path.join("format").try_exists().map_err(io)? {
            taken.make()?;
        } else if !log.try_exists().map_err(io)? || !rows.try_exists().map_err(io)? {
            if if_damaged == IfDamaged::Refuse {
                return Err(OpenError::RecordsGone { path: path.to_owned() });
            }
            taken.make()?;
        }
        Ok(taken)
    }

    /// Returns the store's directory.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    fn check_format(&self) -> Result<(), OpenError> {
        match fs::read(self.path.join("format")) {
            Ok(found) if found == FORMAT.as_bytes() => Ok(()),
            Ok(found) => {
                let first = found.get(..found.len().min(80)).unwrap_or_default();
                let found = String::from_utf8_lossy(first).into_owned();
                Err(OpenError::OtherFormat { path: self.path.clone(), found })
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            Err(source) => Err(OpenError::Io { path: self.path.clone(), source }),
        }
    }

    /// Makes an empty store.
    fn make(&self) -> Result<(), OpenError> {
        let io = |source| OpenError::Io { path: self.path.clone(), source };
        let folders = Folders::of(&self.path);
        for unfinished in [&folders.log, &folders.rows] {
            if unfinished.try_exists().map_err(io)? {
                fs::remove_dir_all(unfinished).map_err(io)?;
            }
        }
        folders.create()?;
        replace_file(&self.path.join("format"), [FORMAT.as_bytes()]).map_err(io)?;
        // The directory itself may be new, so its name must be synced. If this process may not read
        // the parent, the directory was there before, and its name is durable already.
        let _best_effort = self.path.parent().map(sync_directory);
        Ok(())
    }
}

/// Whether a directory holds only what an interrupted first start may have left.
fn is_unfinished(path: &Path) -> io::Result<bool> {
    for entry in fs::read_dir(path)? {
        let name = entry?.file_name();
        if !UNFINISHED.iter().any(|left| name == OsStr::new(left)) {
            return Ok(false);
        }
    }
    Ok(true)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A child process that was just forked has a copy of the open file, as this test has.
    #[test]
    fn a_directory_is_free_though_a_copy_of_its_lock_is_open() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("store");
        let taken = Directory::take(&path, IfDamaged::Refuse).unwrap();
        let copy = taken.lock.try_clone().unwrap();
        let refused = Directory::take(&path, IfDamaged::Refuse);
        assert!(matches!(refused, Err(OpenError::InUse { .. })), "{refused:?}");
        drop(taken);
        Directory::take(&path, IfDamaged::Refuse).unwrap();
        drop(copy);
    }
}
